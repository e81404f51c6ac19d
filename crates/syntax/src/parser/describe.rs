//! DESCRIBE, as the server answers it.

use super::cursor::Cursor;
use super::term::function_name;
use super::types::type_name;
use crate::ast::{Describe, DescribeTarget, QualifiedName, StatementKind};
use crate::error::Result;
use crate::lexer::TokenKind;

pub(super) fn describe(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.next();
    let target = target(cursor)?;
    let internals = cursor.eat_word("with");
    if internals {
        cursor.expect_word("internals")?;
    }
    Ok(StatementKind::Describe(Describe { target, internals }))
}

fn target(cursor: &mut Cursor<'_>) -> Result<DescribeTarget> {
    const WHOLE: [(&str, DescribeTarget); 6] = [
        ("cluster", DescribeTarget::Cluster),
        ("keyspaces", DescribeTarget::Keyspaces),
        ("tables", DescribeTarget::Tables),
        ("types", DescribeTarget::Types),
        ("functions", DescribeTarget::Functions),
        ("aggregates", DescribeTarget::Aggregates),
    ];
    if cursor.peek().kind != TokenKind::Word {
        return generic(cursor);
    }
    let second = cursor.peek_ahead(1);
    let ends = second.kind == TokenKind::End || second.is_symbol(";") || second.is_word("with");
    if ends && let Some((_, target)) = WHOLE.iter().find(|(word, _)| cursor.is_word(word)) {
        cursor.next();
        return Ok(target.clone());
    }
    if cursor.eat_word("full") {
        cursor.expect_word("schema")?;
        return Ok(DescribeTarget::Schema { full: true });
    }
    if cursor.eat_word("schema") {
        return Ok(DescribeTarget::Schema { full: false });
    }
    let only = cursor.is_word("only") && second.is_word("keyspace");
    if only {
        cursor.next();
    }
    if cursor.eat_word("keyspace") {
        let name = match cursor.is_name_ahead(0) || cursor.is_symbol("?") {
            true => Some(cursor.definite_name("keyspace")?.text),
            false => None,
        };
        return Ok(DescribeTarget::Keyspace { name, only });
    }
    if cursor.eat_word("table") || cursor.eat_word("columnfamily") {
        return Ok(DescribeTarget::Table(cursor.table_name()?));
    }
    if cursor.eat_word("index") {
        return Ok(DescribeTarget::Index(cursor.table_name()?));
    }
    if cursor.eat_word("materialized") {
        cursor.expect_word("view")?;
        return Ok(DescribeTarget::View(cursor.table_name()?));
    }
    if !ends && !second.is_symbol(".") {
        if cursor.eat_word("type") {
            return Ok(DescribeTarget::Type(type_name(cursor)?));
        }
        if cursor.eat_word("function") {
            return Ok(DescribeTarget::Function(function_name(cursor)?));
        }
        if cursor.eat_word("aggregate") {
            return Ok(DescribeTarget::Aggregate(function_name(cursor)?));
        }
    }
    generic(cursor)
}

/// `[keyspace.]name` of anything.
fn generic(cursor: &mut Cursor<'_>) -> Result<DescribeTarget> {
    let first = cursor.name()?;
    if !cursor.eat_symbol(".") {
        let name = QualifiedName { location: first.location, keyspace: None, name: first.text };
        return Ok(DescribeTarget::Generic(name));
    }
    let name = cursor.name()?.text;
    let keyspace = Some(first.text);
    Ok(DescribeTarget::Generic(QualifiedName { location: first.location, keyspace, name }))
}
