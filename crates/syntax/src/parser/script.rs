//! Scripts: schema files, snapshots' `schema.cql`, the output of `DESCRIBE`, with commands of `cqlsh` between statements.

use super::cursor::Cursor;
use super::statement::statement;
use crate::ast::{Statement, StatementKind};
use crate::error::Result;
use crate::lexer::{TokenKind, tokens};

/// Parses a script: statements, each closed by `;` (optional after the last one). Statements that do not change the schema are skipped.
pub fn parse_statements(text: &str) -> Result<Vec<Statement>> {
    let tokens = tokens(text);
    let mut cursor = Cursor::new(text, &tokens);
    cursor.is_script = true;
    let mut statements = Vec::new();
    loop {
        while cursor.eat_symbol(";") {}
        if cursor.at_end() {
            return Ok(statements);
        }
        let location = cursor.location();
        let kind = shaping(&mut cursor)?;
        let closed = cursor.at_end() || cursor.eat_symbol(";");
        if !closed && !matches!(kind, StatementKind::Skipped { .. }) {
            return Err(cursor.mismatched("';'"));
        }
        statements.push(Statement { location, kind });
    }
}

fn shaping(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let token = cursor.peek();
    if token.kind != TokenKind::Word {
        return Err(cursor.no_viable());
    }
    const SHAPED: [&str; 6] =
        ["keyspace", "schema", "type", "table", "columnfamily", "materialized"];
    let second = cursor.peek_ahead(1);
    let shapes = SHAPED.iter().any(|word| second.is_word(word));
    match token.text.to_ascii_lowercase().as_str() {
        "use" => statement(cursor),
        "create" | "drop" if shapes => statement(cursor),
        "alter" if shapes && !second.is_word("keyspace") && !second.is_word("materialized") => {
            statement(cursor)
        }
        "begin" => Ok(skip_batch(cursor)),
        word if SHELL_WORDS.contains(&word) => Ok(skip_line(cursor)),
        _ => Ok(skip(cursor)),
    }
}

/// Commands of `cqlsh`, which end with their line.
const SHELL_WORDS: [&str; 21] = [
    "capture",
    "clear",
    "cls",
    "consistency",
    "copy",
    "debug",
    "desc",
    "describe",
    "elapsed",
    "exit",
    "expand",
    "help",
    "history",
    "login",
    "paging",
    "quit",
    "serial",
    "show",
    "source",
    "tracing",
    "unicode",
];

/// The first words of a skipped statement.
fn first_words(cursor: &Cursor<'_>) -> String {
    let words: Vec<String> = (0..2)
        .map(|i| cursor.peek_ahead(i))
        .take_while(|token| token.kind == TokenKind::Word)
        .map(|token| token.text.to_ascii_uppercase())
        .collect();
    words.join(" ")
}

fn skip(cursor: &mut Cursor<'_>) -> StatementKind {
    let what = first_words(cursor);
    while !cursor.at_end() && !cursor.is_symbol(";") {
        cursor.next();
    }
    StatementKind::Skipped { what }
}

/// `BEGIN … BATCH a; b; APPLY BATCH`: the inner `;` do not end it.
fn skip_batch(cursor: &mut Cursor<'_>) -> StatementKind {
    let what = first_words(cursor);
    while !cursor.at_end() && !cursor.eat_words(&["apply", "batch"]) {
        cursor.next();
    }
    StatementKind::Skipped { what }
}

fn skip_line(cursor: &mut Cursor<'_>) -> StatementKind {
    let what = first_words(cursor);
    let line = cursor.location().line;
    while !cursor.at_end() && !cursor.is_symbol(";") && cursor.location().line == line {
        cursor.next();
    }
    StatementKind::Skipped { what }
}
