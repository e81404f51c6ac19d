//! `WITH …`: options, clustering order, compact storage.

use super::cursor::Cursor;
use crate::ast::{Name, OptionValue, Properties, TableOption};
use crate::error::Result;
use crate::lexer::TokenKind;

/// Nothing, or `WITH property AND property …`.
pub(super) fn properties(cursor: &mut Cursor<'_>) -> Result<Properties> {
    let mut properties = Properties::default();
    if !cursor.eat_word("with") {
        return Ok(properties);
    }
    loop {
        if cursor.eat_words(&["clustering", "order", "by"]) {
            cursor.expect_symbol("(")?;
            properties.clustering_order = cursor.list(ordering)?;
            cursor.expect_symbol(")")?;
        } else if cursor.eat_words(&["compact", "storage"]) {
            properties.compact_storage = true;
        } else {
            properties.options.push(option(cursor)?);
        }
        if !cursor.eat_word("and") {
            return Ok(properties);
        }
    }
}

/// Nothing, or `WITH option AND option …`.
pub(super) fn options(cursor: &mut Cursor<'_>) -> Result<Vec<TableOption>> {
    let mut options = Vec::new();
    if !cursor.eat_word("with") {
        return Ok(options);
    }
    loop {
        options.push(option(cursor)?);
        if !cursor.eat_word("and") {
            return Ok(options);
        }
    }
}

fn ordering(cursor: &mut Cursor<'_>) -> Result<(Name, bool)> {
    let name = cursor.name("a clustering column")?;
    let descending = if cursor.eat_word("desc") {
        true
    } else if cursor.eat_word("asc") {
        false
    } else {
        return Err(cursor.expected("ASC or DESC"));
    };
    Ok((name, descending))
}

fn option(cursor: &mut Cursor<'_>) -> Result<TableOption> {
    let name = cursor.name("an option name")?;
    cursor.expect_symbol("=")?;
    let value = if cursor.eat_symbol("{") {
        OptionValue::Map(map(cursor)?)
    } else {
        OptionValue::Simple(simple(cursor, "a value")?)
    };
    Ok(TableOption { name, value })
}

/// What follows `{`.
fn map(cursor: &mut Cursor<'_>) -> Result<Vec<(String, String)>> {
    if cursor.eat_symbol("}") {
        return Ok(Vec::new());
    }
    let entries = cursor.list(|cursor| {
        let key = simple(cursor, "a key in quotes")?;
        if cursor.is_symbol(",") || cursor.is_symbol("}") {
            // A set: its elements are keys without values.
            return Ok((key, String::new()));
        }
        cursor.expect_symbol(":")?;
        Ok((key, simple(cursor, "a value")?))
    })?;
    cursor.expect_symbol("}")?;
    Ok(entries)
}

fn simple(cursor: &mut Cursor<'_>, what: &str) -> Result<String> {
    let token = cursor.peek();
    match token.kind {
        TokenKind::String
        | TokenKind::Integer
        | TokenKind::Float
        | TokenKind::Blob
        | TokenKind::Uuid
        | TokenKind::Duration
        | TokenKind::Word => {
            cursor.next();
            Ok(match token.kind {
                // NaN, true: as written.
                TokenKind::Word => token.text.to_owned(),
                _ => token.value().into_owned(),
            })
        }
        _ => Err(cursor.expected(what)),
    }
}
