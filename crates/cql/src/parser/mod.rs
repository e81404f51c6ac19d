//! Tokens to statements, by recursive descent: one function per rule of the grammar.
//!
//! 1. The first words choose the rule.  Statements that do not shape tables are stepped over to their `;`.
//! 2. A rule consumes exactly its statement; what follows must be `;` or the end.
//! 3. Nesting is bounded (`MAX_NESTING`), so no text can exhaust the stack.

mod cursor;
mod properties;
mod table;
mod types;

use cursor::Cursor;

use crate::ast::{Statement, StatementKind};
use crate::error::{Error, Result};
use crate::lexer::{Token, TokenKind, tokens};

/// Deepest nesting of types and literals.
pub(crate) const MAX_NESTING: usize = 100;

/// Parses a script: statements, each closed by `;` (the last one may go without).
pub fn parse_statements(text: &str) -> Result<Vec<Statement>> {
    let tokens = tokens(text);
    let mut cursor = Cursor::new(&tokens);
    let mut statements = Vec::new();
    loop {
        while cursor.eat_symbol(";") {}
        if cursor.at_end() {
            return Ok(statements);
        }
        let place = cursor.place();
        let kind = statement(&mut cursor)?;
        let closed = cursor.at_end() || cursor.eat_symbol(";");
        if !closed && !matches!(kind, StatementKind::Skipped { .. }) {
            return Err(cursor.expected("';'"));
        }
        statements.push(Statement { place, kind });
    }
}

fn statement(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let token = cursor.peek();
    if token.kind != TokenKind::Word {
        return Err(cursor.expected_hint("a statement", "such as CREATE TABLE"));
    }
    match token.text.to_ascii_lowercase().as_str() {
        "use" => {
            cursor.next();
            Ok(StatementKind::Use { keyspace: cursor.name("a keyspace name")?.text })
        }
        "create" => create(cursor),
        "alter" => alter(cursor),
        "drop" => drop_statement(cursor),
        "begin" => Ok(skip_batch(cursor)),
        word if SHELL_WORDS.contains(&word) => Ok(skip_line(cursor)),
        _ => Ok(skip(cursor)),
    }
}

fn create(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let kind = cursor.peek_ahead(1);
    let is = |words: &[&str]| words.iter().any(|word| kind.is_word(word));
    if is(&["keyspace", "schema"]) {
        cursor.next();
        cursor.next();
        let if_not_exists = cursor.eat_if_not_exists();
        let name = cursor.name("a keyspace name")?;
        let options = properties::options(cursor)?;
        Ok(StatementKind::CreateKeyspace { name, if_not_exists, options })
    } else if is(&["type"]) {
        types::create_type(cursor)
    } else if is(&["table", "columnfamily"]) {
        table::create_table(cursor)
    } else if is(&["materialized"]) {
        table::create_view(cursor)
    } else {
        Ok(skip(cursor))
    }
}

fn alter(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let kind = cursor.peek_ahead(1);
    if kind.is_word("type") {
        types::alter_type(cursor)
    } else if kind.is_word("table") || kind.is_word("columnfamily") {
        table::alter_table(cursor)
    } else {
        Ok(skip(cursor))
    }
}

fn drop_statement(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let kind = cursor.peek_ahead(1);
    let words = match kind.text.to_ascii_lowercase().as_str() {
        "keyspace" | "schema" | "type" | "table" | "columnfamily" => 2,
        "materialized" => 3,
        _ => return Ok(skip(cursor)),
    };
    (0..words).for_each(|_| {
        cursor.next();
    });
    let if_exists = cursor.eat_if_exists();
    if kind.is_word("keyspace") || kind.is_word("schema") {
        let name = cursor.name("a keyspace name")?;
        return Ok(StatementKind::DropKeyspace { name, if_exists });
    }
    let what = if kind.is_word("type") { "a type name" } else { "a table name" };
    let name = cursor.qualified_name(what)?;
    Ok(match words {
        3 => StatementKind::DropView { name, if_exists },
        _ if kind.is_word("type") => StatementKind::DropType { name, if_exists },
        _ => StatementKind::DropTable { name, if_exists },
    })
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

/// The first words of what is stepped over.
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
    let line = cursor.place().line;
    while !cursor.at_end() && !cursor.is_symbol(";") && cursor.place().line == line {
        cursor.next();
    }
    StatementKind::Skipped { what }
}

/// A whole number in some range.
fn integer<T: std::str::FromStr>(cursor: &mut Cursor<'_>, what: &str) -> Result<T> {
    let token: Token<'_> = cursor.peek();
    if token.kind != TokenKind::Integer {
        return Err(cursor.expected(what));
    }
    cursor.next();
    token.text.parse().map_err(|_| Error::Invalid {
        place: token.place,
        what: format!("{} is out of range for {what}", token.text),
    })
}
