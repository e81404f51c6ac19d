//! The names of the functions behind operators.

use halcyon_syntax::ast::ArithmeticOperator;

/// The function behind an operator; `None` is negation.
pub fn operator_name(operator: Option<ArithmeticOperator>) -> &'static str {
    match operator {
        Some(ArithmeticOperator::Add) => "_add",
        Some(ArithmeticOperator::Subtract) => "_substract",
        Some(ArithmeticOperator::Multiply) => "_multiply",
        Some(ArithmeticOperator::Divide) => "_divide",
        Some(ArithmeticOperator::Modulo) => "_modulo",
        None => "_negate",
    }
}
