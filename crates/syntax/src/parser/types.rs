//! Types as text, and the statements about user types.

use super::cursor::{Cursor, MAX_NESTING};
use super::words;
use crate::ast::{CreateType, Name, QualifiedName, StatementKind, TypeChange, TypeText};
use crate::error::{Error, Result};
use crate::lexer::{Token, TokenKind};
use halcyon_model::CqlType;

/// What follows `CREATE`: `TYPE [IF NOT EXISTS] name ( field type, … )`
pub(super) fn create_type(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.next();
    let if_not_exists = cursor.if_not_exists()?;
    let name = type_name(cursor)?;
    cursor.expect_symbol("(")?;
    let mut fields = vec![field(cursor)?];
    while cursor.eat_symbol(",") {
        if cursor.is_name_ahead(0) {
            fields.push(field(cursor)?);
        }
    }
    cursor.expect_symbol(")")?;
    Ok(StatementKind::CreateType(CreateType { name, if_not_exists, fields }))
}

/// What follows `ALTER`: `TYPE [IF EXISTS] name ADD … | RENAME … | ALTER …`
pub(super) fn alter_type(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.next();
    let if_exists = cursor.if_exists()?;
    let name = type_name(cursor)?;
    let change = if cursor.eat_word("add") {
        let if_not_exists = cursor.if_not_exists()?;
        let mut fields = vec![field(cursor)?];
        while cursor.is_script && cursor.eat_symbol(",") {
            fields.push(field(cursor)?);
        }
        TypeChange::Add { if_not_exists, fields }
    } else if cursor.eat_word("rename") {
        let if_exists = cursor.if_exists()?;
        TypeChange::Rename { if_exists, renames: renames(cursor)? }
    } else if cursor.eat_word("alter") {
        let field = cursor.name()?;
        cursor.expect_word("type")?;
        TypeChange::Retype { field, to: type_text(cursor)? }
    } else {
        return Err(cursor.no_viable());
    };
    Ok(StatementKind::AlterType { name, if_exists, change })
}

/// `a TO b AND c TO d`
pub(super) fn renames(cursor: &mut Cursor<'_>) -> Result<Vec<(Name, Name)>> {
    let mut renames = Vec::new();
    loop {
        let from = cursor.name()?;
        cursor.expect_word("to")?;
        renames.push((from, cursor.name()?));
        if !cursor.eat_word("and") {
            return Ok(renames);
        }
    }
}

fn field(cursor: &mut Cursor<'_>) -> Result<(Name, TypeText)> {
    let name = cursor.name()?;
    Ok((name, type_text(cursor)?))
}

/// Keywords that name no user type, though they are names elsewhere.
fn names_no_type(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Word
        && (words::is_native_type(token.text)
            || (words::names_no_function(token.text) && !token.is_word("key"))
            || token.is_word("count"))
}

/// `[keyspace.]type`
pub(super) fn type_name(cursor: &mut Cursor<'_>) -> Result<QualifiedName> {
    let first = cursor.peek();
    let location = first.location;
    let is_qualified = cursor.peek_ahead(1).is_symbol(".");
    let keyspace = if is_qualified || (cursor.is_name_ahead(0) && names_no_type(&first)) {
        let keyspace = cursor.name()?;
        cursor.expect_symbol(".")?;
        Some(keyspace.text)
    } else {
        None
    };
    let token = cursor.peek();
    if !cursor.is_name_ahead(0) || names_no_type(&token) {
        return Err(cursor.no_viable());
    }
    const RESERVED: [&str; 6] = ["byte", "complex", "enum", "interval", "macaddr", "bitstring"];
    if token.kind == TokenKind::Word && RESERVED.contains(&token.text) {
        let what = format!("Invalid (reserved) user type name {}", token.text);
        return Err(cursor.refused(what));
    }
    let name = cursor.name()?.text;
    Ok(QualifiedName { location, keyspace, name })
}

/// One of the native types: what CAST takes.
pub(super) fn native_type(cursor: &mut Cursor<'_>) -> Result<TypeText> {
    let token = cursor.peek();
    if token.kind != TokenKind::Word || !words::is_native_type(token.text) {
        return Err(cursor.no_viable());
    }
    cursor.next();
    Ok(TypeText { location: token.location, text: token.text.to_ascii_lowercase() })
}

/// A type, with one blank after each comma and none elsewhere, and `frozen` where Cassandra shows it (`CQL3Type.Raw.toString`): of
/// tuples and vectors never, of collections and user types also where what they are part of is frozen.
pub(super) fn type_text(cursor: &mut Cursor<'_>) -> Result<TypeText> {
    let location = cursor.location();
    let mut text = String::new();
    push_type(cursor, &mut text, (0, false))?;
    Ok(TypeText { location, text })
}

fn push_type(
    cursor: &mut Cursor<'_>,
    text: &mut String,
    (depth, is_frozen): (usize, bool),
) -> Result<()> {
    if depth > MAX_NESTING {
        let what = format!("types nest deeper than {MAX_NESTING}");
        return Err(Error::Invalid { location: cursor.location(), what });
    }
    let token = cursor.peek();
    if token.kind == TokenKind::String {
        return push_class(cursor, text);
    }
    if !cursor.is_name_ahead(0) && !token.is_word("set") {
        return Err(cursor.no_viable());
    }
    let is_generic = GENERICS.iter().any(|word| token.is_word(word));
    if is_generic && cursor.peek_ahead(1).is_symbol("<") || token.is_word("set") {
        return push_generic(cursor, text, (depth, is_frozen));
    }
    if token.kind == TokenKind::Word && words::is_native_type(token.text) {
        if !cursor.peek_ahead(1).is_symbol(".") {
            check_end(cursor)?;
            text.push_str(&cursor.next().text.to_ascii_lowercase());
            return Ok(());
        }
    } else if GENERICS.iter().any(|word| token.is_word(word))
        && !cursor.peek_ahead(1).is_symbol(".")
    {
        check_end(cursor)?;
    }
    let first = cursor.peek();
    let named = type_name(cursor)?;
    let mark = text.len();
    match first.kind {
        TokenKind::Word => text.push_str(&first.text.to_ascii_lowercase()),
        _ => text.push_str(first.text),
    }
    if named.keyspace.is_some() {
        text.push('.');
        text.push_str(&halcyon_model::types::quote_identifier_if_needed(&named.name));
    }
    if is_frozen {
        text.insert_str(mark, "frozen<");
        text.push('>');
    }
    Ok(())
}

/// A Java class name in quotes.
fn push_class(cursor: &mut Cursor<'_>, text: &mut String) -> Result<()> {
    let token = cursor.peek();
    let class = token.value();
    let parsed = CqlType::parse(&class);
    match &parsed {
        Ok(CqlType::Custom(unknown)) if !cursor.is_script && !unknown.contains('(') => {
            let full = if unknown.contains('.') {
                unknown.clone()
            } else {
                format!("org.apache.cassandra.db.marshal.{unknown}")
            };
            cursor.note(format!(
                "Error setting type {class}: Unable to find abstract-type class '{full}'"
            ))?;
        }
        Err(error) if !cursor.is_script => {
            cursor.note(format!("Cannot parse type {class}: {error}"))?;
        }
        _ => {}
    }
    let token = cursor.next();
    match parsed {
        Ok(known) if !cursor.is_script => text.push_str(&format!("'{known}'")),
        _ => text.push_str(token.text),
    }
    Ok(())
}

fn push_generic(
    cursor: &mut Cursor<'_>,
    text: &mut String,
    (depth, is_frozen): (usize, bool),
) -> Result<()> {
    let word = cursor.next();
    cursor.expect_symbol("<")?;
    if word.is_word("frozen") {
        return push_frozen(cursor, text, depth);
    }
    let is_collection = !word.is_word("tuple") && !word.is_word("vector");
    let shows_frozen = is_frozen && is_collection;
    text.push_str(if shows_frozen { "frozen<" } else { "" });
    text.push_str(&word.text.to_ascii_lowercase());
    text.push('<');
    let inner = (depth + 1, shows_frozen || word.is_word("tuple"));
    let mut has_fault = cursor.unless_faulty(|cursor| push_type(cursor, text, inner))?.is_none();
    if word.is_word("map") {
        push_comma(cursor, text)?;
        cursor.unless_faulty(|cursor| push_type(cursor, text, inner))?;
    } else if word.is_word("vector") {
        push_comma(cursor, text)?;
        text.push_str(cursor.expect_kind(TokenKind::Integer, "INTEGER")?.text);
    } else if word.is_word("tuple") {
        while cursor.is_symbol(",") {
            push_comma(cursor, text)?;
            has_fault |= cursor.unless_faulty(|cursor| push_type(cursor, text, inner))?.is_none();
        }
        // Cassandra makes the tuple, of types of which one is null.
        if has_fault && cursor.is_symbol(">") {
            return Err(cursor.no_viable());
        }
    }
    cursor.expect_symbol(">")?;
    text.push_str(if shows_frozen { ">>" } else { ">" });
    Ok(())
}

/// What is between `frozen<` and `>`, both included.
fn push_frozen(cursor: &mut Cursor<'_>, text: &mut String, depth: usize) -> Result<()> {
    let inner = cursor.peek();
    let is_native = inner.kind == TokenKind::Word
        && words::is_native_type(inner.text)
        && !cursor.peek_ahead(1).is_symbol(".");
    push_type(cursor, text, (depth + 1, true))?;
    if is_native && !cursor.is_script {
        cursor.note(format!(
            "frozen<> is only allowed on collections, tuples, and user-defined types (got {})",
            inner.text.to_ascii_lowercase()
        ))?;
    }
    cursor.expect_symbol(">").map(drop)
}

fn push_comma(cursor: &mut Cursor<'_>, text: &mut String) -> Result<()> {
    cursor.expect_symbol(",")?;
    text.push_str(", ");
    Ok(())
}

/// Words that Cassandra's types begin with, and user types may be named as.
const GENERICS: [&str; 6] = ["map", "list", "set", "tuple", "vector", "frozen"];

/// Cassandra looks one token ahead of the name of one of its own types, for the `.`, and refuses a token that can never follow a type.
fn check_end(cursor: &Cursor<'_>) -> Result<()> {
    const WORDS: [&str; 6] = ["static", "masked", "primary", "language", "finalfunc", "initcond"];
    let next = cursor.peek_ahead(1);
    let fits = match next.kind {
        TokenKind::End => true,
        TokenKind::Symbol => matches!(next.text, ";" | ")" | "," | ">"),
        _ => WORDS.iter().any(|word| next.is_word(word)),
    };
    let is_constraint = cursor.is_script && next.is_word("check");
    if !fits && !is_constraint {
        return Err(cursor.no_viable_ahead(1));
    }
    cursor.peek_ahead(2);
    Ok(())
}
