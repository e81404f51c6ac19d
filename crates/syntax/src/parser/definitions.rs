//! Indexes, functions, aggregates and triggers. Each rule begins after CREATE or DROP.

use super::cursor::Cursor;
use super::properties::options;
use super::term::{allowed_function_name, function_name, term};
use super::types::type_text;
use super::words::is_unreserved_keyword;
use crate::ast::{
    CreateAggregate, CreateFunction, CreateIndex, CreateTrigger, IndexTarget, IndexTargetKind,
    StatementKind, TypeText,
};
use crate::error::Result;
use crate::lexer::TokenKind;

/// `[CUSTOM] INDEX [IF NOT EXISTS] [name] ON table ( targets ) [USING 'class'] [WITH …]`
pub(super) fn create_index(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let is_custom = cursor.eat_word("custom");
    cursor.expect_word("index")?;
    let if_not_exists = cursor.if_not_exists()?;
    let name = if cursor.is_name_ahead(0) || cursor.is_symbol("?") {
        Some(cursor.definite_name("index")?)
    } else {
        None
    };
    cursor.expect_word("on")?;
    let table = cursor.table_name()?;
    cursor.expect_symbol("(")?;
    let begins_target =
        cursor.is_column_ahead(0) || cursor.is_word("entries") || cursor.is_word("full");
    let targets = if begins_target { cursor.list(index_target)? } else { Vec::new() };
    cursor.expect_symbol(")")?;
    let class = if cursor.eat_word("using") {
        let token = cursor.expect_kind(TokenKind::String, "STRING_LITERAL")?;
        Some(token.value().into_owned())
    } else {
        None
    };
    let options = if cursor.eat_word("with") { options(cursor)? } else { Vec::new() };
    let index = CreateIndex { name, if_not_exists, is_custom, table, targets, class, options };
    Ok(StatementKind::CreateIndex(index))
}

fn index_target(cursor: &mut Cursor<'_>) -> Result<IndexTarget> {
    const KINDS: [(&str, IndexTargetKind); 4] = [
        ("values", IndexTargetKind::Values),
        ("keys", IndexTargetKind::Keys),
        ("entries", IndexTargetKind::KeysAndValues),
        ("full", IndexTargetKind::Full),
    ];
    for (word, kind) in KINDS {
        let is_kind = cursor.is_word(word)
            && (cursor.peek_ahead(1).is_symbol("(") || !cursor.is_name_ahead(0));
        if is_kind {
            cursor.next();
            cursor.expect_symbol("(")?;
            let column = cursor.column()?;
            cursor.expect_symbol(")")?;
            return Ok(IndexTarget { column, kind });
        }
    }
    Ok(IndexTarget { column: cursor.column()?, kind: IndexTargetKind::Simple })
}

/// `FUNCTION …` or `AGGREGATE …`, after `OR REPLACE` if that was said.
pub(super) fn create_function(cursor: &mut Cursor<'_>, replace: bool) -> Result<StatementKind> {
    cursor.next();
    let if_not_exists = cursor.if_not_exists()?;
    let name = function_name(cursor)?;
    cursor.expect_symbol("(")?;
    let mut arguments = Vec::new();
    if !cursor.is_symbol(")") {
        arguments = cursor.list(|cursor| Ok((cursor.name()?, type_text(cursor)?)))?;
    }
    cursor.expect_symbol(")")?;
    let called_on_null = if cursor.eat_word("called") {
        true
    } else if cursor.eat_word("returns") {
        cursor.expect_word("null")?;
        false
    } else {
        return Err(cursor.no_viable());
    };
    cursor.expect_words(&["on", "null", "input", "returns"])?;
    let returns = type_text(cursor)?;
    cursor.expect_word("language")?;
    let language = cursor.peek();
    let is_name = cursor.is_name_ahead(0) && language.kind == TokenKind::Word;
    if !is_name || is_unreserved_keyword(language.text) {
        return Err(cursor.mismatched("IDENT"));
    }
    let language = cursor.next().text.to_ascii_lowercase();
    cursor.expect_word("as")?;
    let body = cursor.expect_kind(TokenKind::String, "STRING_LITERAL")?.value().into_owned();
    Ok(StatementKind::CreateFunction(CreateFunction {
        name,
        if_not_exists,
        replace,
        arguments,
        called_on_null,
        returns,
        language,
        body,
    }))
}

pub(super) fn create_aggregate(cursor: &mut Cursor<'_>, replace: bool) -> Result<StatementKind> {
    cursor.next();
    let if_not_exists = cursor.if_not_exists()?;
    let name = function_name(cursor)?;
    let arguments = argument_types(cursor)?;
    cursor.expect_word("sfunc")?;
    let state_function = allowed_function_name(cursor)?;
    cursor.expect_word("stype")?;
    let state_type = type_text(cursor)?;
    let final_function = match cursor.eat_word("finalfunc") {
        true => Some(allowed_function_name(cursor)?),
        false => None,
    };
    let initial = if cursor.eat_word("initcond") { Some(term(cursor)?) } else { None };
    Ok(StatementKind::CreateAggregate(CreateAggregate {
        name,
        if_not_exists,
        replace,
        arguments,
        state_function,
        state_type,
        final_function,
        initial,
    }))
}

pub(super) fn argument_types(cursor: &mut Cursor<'_>) -> Result<Vec<TypeText>> {
    cursor.expect_symbol("(")?;
    let begins_type =
        cursor.is_name_ahead(0) || cursor.is_word("set") || cursor.peek().kind == TokenKind::String;
    let types = if begins_type { cursor.list(type_text)? } else { Vec::new() };
    cursor.expect_symbol(")")?;
    Ok(types)
}

/// `FUNCTION` or `AGGREGATE` `[IF EXISTS] name [( types )]`
pub(super) fn drop_function(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let is_aggregate = cursor.next().is_word("aggregate");
    let if_exists = cursor.if_exists()?;
    let name = function_name(cursor)?;
    let arguments = if cursor.is_symbol("(") { Some(argument_types(cursor)?) } else { None };
    Ok(match is_aggregate {
        true => StatementKind::DropAggregate { name, if_exists, arguments },
        false => StatementKind::DropFunction { name, if_exists, arguments },
    })
}

pub(super) fn create_trigger(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.next();
    let if_not_exists = cursor.if_not_exists()?;
    let name = cursor.name()?;
    cursor.expect_word("on")?;
    let table = cursor.table_name()?;
    cursor.expect_word("using")?;
    let class = cursor.expect_kind(TokenKind::String, "STRING_LITERAL")?.value().into_owned();
    Ok(StatementKind::CreateTrigger(CreateTrigger { name, if_not_exists, table, class }))
}

pub(super) fn drop_trigger(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.next();
    let if_exists = cursor.if_exists()?;
    let name = cursor.name()?;
    cursor.expect_word("on")?;
    let table = cursor.table_name()?;
    Ok(StatementKind::DropTrigger { name, table, if_exists })
}
