//! Types as text, and the statements about user types.

use super::MAX_NESTING;
use super::cursor::Cursor;
use crate::ast::{CreateType, Name, StatementKind, TypeChange, TypeText};
use crate::error::{Error, Result};
use crate::lexer::TokenKind;

/// `CREATE TYPE [IF NOT EXISTS] name ( field type, … )`
pub(super) fn create_type(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.expect_word("create")?;
    cursor.expect_word("type")?;
    let if_not_exists = cursor.eat_if_not_exists();
    let name = cursor.qualified_name("a type name")?;
    cursor.expect_symbol("(")?;
    let fields = cursor.list(field)?;
    cursor.expect_symbol(")")?;
    Ok(StatementKind::CreateType(CreateType { name, if_not_exists, fields }))
}

/// `ALTER TYPE [IF EXISTS] name ADD … | RENAME … | ALTER …`
pub(super) fn alter_type(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.expect_word("alter")?;
    cursor.expect_word("type")?;
    let type_must_not_exist = cursor.eat_if_exists();
    let name = cursor.qualified_name("a type name")?;
    let change = if cursor.eat_word("add") {
        let if_not_exists = cursor.eat_if_not_exists();
        TypeChange::Add { if_not_exists, fields: cursor.list(field)? }
    } else if cursor.eat_word("rename") {
        let if_exists = cursor.eat_if_exists();
        TypeChange::Rename { if_exists, renames: renames(cursor)? }
    } else {
        return Err(
            cursor.expected_hint("ADD or RENAME", "fields of a type cannot change otherwise")
        );
    };
    Ok(StatementKind::AlterType { name, if_exists: type_must_not_exist, change })
}

/// `a TO b AND c TO d`
pub(super) fn renames(cursor: &mut Cursor<'_>) -> Result<Vec<(Name, Name)>> {
    let mut renames = Vec::new();
    loop {
        let from = cursor.name("a name")?;
        cursor.expect_word("to")?;
        renames.push((from, cursor.name("a name")?));
        if !cursor.eat_word("and") {
            return Ok(renames);
        }
    }
}

fn field(cursor: &mut Cursor<'_>) -> Result<(Name, TypeText)> {
    let name = cursor.name("a field name")?;
    Ok((name, type_text(cursor)?))
}

/// A type, with one blank after each comma and none elsewhere.
pub(super) fn type_text(cursor: &mut Cursor<'_>) -> Result<TypeText> {
    let place = cursor.place();
    let mut text = String::new();
    push_type(cursor, &mut text, 0)?;
    Ok(TypeText { place, text })
}

fn push_type(cursor: &mut Cursor<'_>, text: &mut String, depth: usize) -> Result<()> {
    if depth > MAX_NESTING {
        let what = format!("types nest deeper than {MAX_NESTING}");
        return Err(Error::Invalid { place: cursor.place(), what });
    }
    let token = cursor.peek();
    match token.kind {
        TokenKind::String => {
            // A Java class name in quotes.
            cursor.next();
            text.push_str(token.text);
            return Ok(());
        }
        // Only a vector's dimension; the type parser refuses it elsewhere.
        TokenKind::Integer if depth > 0 => {
            cursor.next();
            text.push_str(token.text);
            return Ok(());
        }
        TokenKind::Word | TokenKind::QuotedName => {
            cursor.next();
            text.push_str(token.text);
        }
        _ => return Err(cursor.expected("a type")),
    }
    if cursor.eat_symbol(".") {
        text.push('.');
        let token = cursor.peek();
        cursor.name("a type name")?;
        text.push_str(token.text);
    }
    if cursor.eat_symbol("<") {
        text.push('<');
        push_type(cursor, text, depth + 1)?;
        while cursor.eat_symbol(",") {
            text.push_str(", ");
            push_type(cursor, text, depth + 1)?;
        }
        cursor.expect_symbol(">")?;
        text.push('>');
    }
    Ok(())
}
