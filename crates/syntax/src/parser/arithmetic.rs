//! `+ - * / %` by precedence, the same of terms and of selectors.

use super::cursor::Cursor;
use crate::ast::ArithmeticOperator;
use crate::error::Result;
use crate::lexer::Token;

/// An operand.
pub(super) trait Operand: Sized {
    fn single(cursor: &mut Cursor<'_>) -> Result<Self>;

    fn join(operator: ArithmeticOperator, left: Box<Self>, right: Box<Self>) -> Self;

    /// Whether the next sign belongs to an outer rule.
    fn ends(cursor: &mut Cursor<'_>) -> bool;

    /// Whether an operand may begin with this token, where the grammar looks at it before it takes the `+`.
    fn may_begin(_token: &Token<'_>) -> bool {
        true
    }
}

pub(super) fn sum<T: Operand>(cursor: &mut Cursor<'_>) -> Result<T> {
    let mut left: T = product(cursor)?;
    while !T::ends(cursor) {
        let operator = match cursor.peek().text {
            "+" => ArithmeticOperator::Add,
            "-" => ArithmeticOperator::Subtract,
            _ => break,
        };
        if operator == ArithmeticOperator::Add && !T::may_begin(&cursor.peek_ahead(1)) {
            return Err(cursor.no_viable_ahead(1));
        }
        cursor.next();
        let right = product(cursor)?;
        cursor.wrap()?;
        left = T::join(operator, Box::new(left), Box::new(right));
    }
    Ok(left)
}

fn product<T: Operand>(cursor: &mut Cursor<'_>) -> Result<T> {
    let mut left = T::single(cursor)?;
    loop {
        let operator = match cursor.peek().text {
            "*" => ArithmeticOperator::Multiply,
            "/" => ArithmeticOperator::Divide,
            "%" => ArithmeticOperator::Modulo,
            _ => return Ok(left),
        };
        cursor.next();
        let right = T::single(cursor)?;
        cursor.wrap()?;
        left = T::join(operator, Box::new(left), Box::new(right));
    }
}
