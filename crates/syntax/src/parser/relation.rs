//! The conditions of WHERE and IF.

use super::cursor::Cursor;
use super::term::{marker, term, tuple};
use crate::ast::{
    CellTarget, Condition, Conditions, Name, Operator, RawTerm, Relation, RelationTarget,
    RelationValue,
};
use crate::error::Result;

pub(super) fn relations(cursor: &mut Cursor<'_>) -> Result<Vec<Relation>> {
    let mut relations = vec![relation(cursor)?];
    while cursor.eat_word("and") {
        relations.push(relation(cursor)?);
    }
    Ok(relations)
}

fn compare(cursor: &Cursor<'_>, ahead: usize) -> Option<Operator> {
    Some(match cursor.peek_ahead(ahead).text {
        "=" => Operator::Equal,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        "!=" => Operator::NotEqual,
        _ => return None,
    })
}

fn comparison(cursor: &mut Cursor<'_>) -> Result<Operator> {
    let operator = compare(cursor, 0).ok_or_else(|| cursor.no_viable())?;
    cursor.next();
    Ok(operator)
}

fn relation(cursor: &mut Cursor<'_>) -> Result<Relation> {
    let token = cursor.peek();
    if token.is_word("token") {
        cursor.next();
        let target = RelationTarget::Token(columns(cursor)?);
        let operator = comparison(cursor)?;
        return Ok(Relation { target, operator, value: RelationValue::One(term(cursor)?) });
    }
    if token.text == "expr" && cursor.peek_ahead(1).is_symbol("(") && cursor.touches_next() {
        cursor.next();
        cursor.expect_symbol("(")?;
        let target = RelationTarget::Expression(cursor.definite_name("index")?);
        cursor.expect_symbol(",")?;
        let value = RelationValue::One(term(cursor)?);
        cursor.expect_symbol(")")?;
        return Ok(Relation { target, operator: Operator::Equal, value });
    }
    if token.is_symbol("(") {
        let is_tuple = cursor.is_column_ahead(1)
            && [",", ")"].iter().any(|symbol| cursor.peek_ahead(2).is_symbol(symbol));
        if is_tuple {
            return tuple_relation(cursor);
        }
        cursor.next();
        let inner = cursor.deeper(relation)?;
        cursor.expect_symbol(")")?;
        return Ok(inner);
    }
    column_relation(cursor)
}

fn column_relation(cursor: &mut Cursor<'_>) -> Result<Relation> {
    check_column_relation(cursor)?;
    let column = cursor.column()?;
    if cursor.eat_symbol("[") {
        let key = term(cursor)?;
        cursor.expect_symbol("]")?;
        let operator = comparison(cursor)?;
        let target = RelationTarget::Element(column, key);
        return Ok(Relation { target, operator, value: RelationValue::One(term(cursor)?) });
    }
    let target = RelationTarget::Column(column);
    let (operator, value) = if let Some(operator) = compare(cursor, 0) {
        cursor.next();
        (operator, RelationValue::One(term(cursor)?))
    } else if cursor.eat_word("like") {
        (Operator::Like, RelationValue::One(term(cursor)?))
    } else if cursor.eat_word("is") {
        cursor.expect_words(&["not", "null"])?;
        (Operator::IsNot, RelationValue::One(RawTerm::Null))
    } else if cursor.eat_word("contains") {
        let is_key = cursor.eat_word("key");
        let operator = if is_key { Operator::ContainsKey } else { Operator::Contains };
        (operator, RelationValue::One(term(cursor)?))
    } else {
        cursor.expect_word("in")?;
        (Operator::In, in_values(cursor)?)
    };
    Ok(Relation { target, operator, value })
}

/// Cassandra chooses the rule by the token after the column, and after IN by the token after that.
fn check_column_relation(cursor: &Cursor<'_>) -> Result<()> {
    if !cursor.is_column_ahead(0) {
        return Err(cursor.no_viable());
    }
    let next = cursor.peek_ahead(1);
    if next.is_word("in") {
        let values = cursor.peek_ahead(2);
        let fits = ["(", "?", ":"].iter().any(|symbol| values.is_symbol(symbol));
        return if fits { Ok(()) } else { Err(cursor.no_viable_ahead(2)) };
    }
    let fits = compare(cursor, 1).is_some()
        || next.is_symbol("[")
        || ["like", "is", "contains"].iter().any(|word| next.is_word(word));
    if fits { Ok(()) } else { Err(cursor.no_viable_ahead(1)) }
}

/// `(a, b, …)` or one marker.
fn in_values(cursor: &mut Cursor<'_>) -> Result<RelationValue> {
    if let Some(marker) = marker(cursor)? {
        return Ok(RelationValue::One(marker));
    }
    if !cursor.is_symbol("(") {
        return Err(cursor.no_viable());
    }
    cursor.next();
    let terms = if cursor.is_symbol(")") { Vec::new() } else { cursor.list(term)? };
    cursor.expect_symbol(")")?;
    Ok(RelationValue::Many(terms))
}

fn columns(cursor: &mut Cursor<'_>) -> Result<Vec<Name>> {
    cursor.expect_symbol("(")?;
    let columns = cursor.list(Cursor::column)?;
    cursor.expect_symbol(")")?;
    Ok(columns)
}

fn tuple_relation(cursor: &mut Cursor<'_>) -> Result<Relation> {
    let target = RelationTarget::Columns(columns(cursor)?);
    if cursor.eat_word("in") {
        return Ok(Relation { target, operator: Operator::In, value: tuples(cursor)? });
    }
    let operator = compare(cursor, 0).ok_or_else(|| cursor.no_viable())?;
    let value = cursor.peek_ahead(1);
    if !["(", "?", ":"].iter().any(|symbol| value.is_symbol(symbol)) {
        return Err(cursor.no_viable_ahead(1));
    }
    cursor.next();
    Ok(Relation { target, operator, value: RelationValue::One(tuple_or_marker(cursor)?) })
}

fn tuple_or_marker(cursor: &mut Cursor<'_>) -> Result<RawTerm> {
    match marker(cursor)? {
        Some(marker) => Ok(marker),
        None => tuple(cursor),
    }
}

/// `((1, 2), (3, 4))`, `(?, ?)`, `()` or one marker.
fn tuples(cursor: &mut Cursor<'_>) -> Result<RelationValue> {
    if let Some(marker) = marker(cursor)? {
        return Ok(RelationValue::One(marker));
    }
    let next = cursor.peek_ahead(1);
    if cursor.is_symbol("(") && !["(", "?", ":", ")"].iter().any(|s| next.is_symbol(s)) {
        return Err(cursor.no_viable_ahead(1));
    }
    if !cursor.is_symbol("(") {
        return Err(cursor.no_viable());
    }
    cursor.next();
    // The first decides whether all are markers or all are tuples.
    let terms = match cursor.peek().text {
        ")" => Vec::new(),
        "(" => cursor.list(tuple)?,
        _ => cursor.list(|cursor| marker(cursor)?.ok_or_else(|| cursor.no_viable()))?,
    };
    cursor.expect_symbol(")")?;
    Ok(RelationValue::Many(terms))
}

/// Nothing, `IF EXISTS` or `IF condition AND …`.
pub(super) fn conditions(cursor: &mut Cursor<'_>) -> Result<Conditions> {
    if !cursor.eat_word("if") {
        return Ok(Conditions::None);
    }
    if cursor.is_word("exists") {
        let next = cursor.peek_ahead(1);
        let is_column = compare(cursor, 1).is_some()
            || next.is_word("in")
            || next.is_word("contains")
            || ["[", "."].iter().any(|symbol| next.is_symbol(symbol));
        if !is_column {
            let ends = next.kind == crate::lexer::TokenKind::End
                || next.is_symbol(";")
                || ["insert", "update", "delete", "apply"].iter().any(|word| next.is_word(word));
            if !ends {
                return Err(cursor.no_viable_ahead(1));
            }
            cursor.next();
            return Ok(Conditions::IfExists);
        }
    }
    let mut conditions = vec![condition(cursor)?];
    while cursor.eat_word("and") {
        conditions.push(condition(cursor)?);
    }
    Ok(Conditions::All(conditions))
}

fn condition(cursor: &mut Cursor<'_>) -> Result<Condition> {
    let column = cursor.column()?;
    let target = if cursor.eat_symbol("[") {
        let key = term(cursor)?;
        cursor.expect_symbol("]")?;
        CellTarget::Element(column, key)
    } else if cursor.eat_symbol(".") {
        CellTarget::Field(column, cursor.name()?)
    } else {
        CellTarget::Column(column)
    };
    let is_whole = matches!(target, CellTarget::Column(_));
    let (operator, value) = if cursor.eat_word("in") {
        (Operator::In, in_values(cursor)?)
    } else if is_whole && cursor.eat_word("contains") {
        let is_key = cursor.eat_word("key");
        let operator = if is_key { Operator::ContainsKey } else { Operator::Contains };
        (operator, RelationValue::One(term(cursor)?))
    } else {
        let operator = comparison(cursor)?;
        (operator, RelationValue::One(term(cursor)?))
    };
    Ok(Condition { target, operator, value })
}
