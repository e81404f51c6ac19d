//! Tokens to statements, by recursive descent: one function per rule of Cassandra's grammar.
//!
//! 1. The first words choose the rule. A rule consumes exactly its statement.
//! 2. A client's text is one statement (`parse_statement`). A script has many, of which those
//!    that do not change the schema are skipped (`parse_statements`).
//! 3. Nesting (`MAX_NESTING`) and the height of trees (`MAX_HEIGHT`) are bounded, so no text can exhaust the stack.

mod arithmetic;
mod cursor;
mod definitions;
mod describe;
mod diagnosis;
mod modify;
mod properties;
mod relation;
mod role;
mod script;
mod select;
mod statement;
mod table;
mod term;
#[cfg(test)]
mod tests;
mod types;
mod words;

use cursor::Cursor;
use statement::statement;

use crate::ast::{RawTerm, Relation, Statement, StatementKind};
use crate::error::Result;
use crate::lexer::{Token, TokenKind, tokens};

pub use script::parse_statements;

/// Parses the text of a WHERE clause, without the word.
pub fn parse_relations(text: &str) -> Result<Vec<Relation>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    match parse_statement(&format!("SELECT * FROM t WHERE {text}"))?.kind {
        StatementKind::Select(select) => Ok(select.relations),
        _ => Ok(Vec::new()),
    }
}

/// Parses a term: the first state of an aggregate, as it is stored.
pub fn parse_term(text: &str) -> Result<RawTerm> {
    let tokens = tokens(text);
    let mut cursor = Cursor::new(text, &tokens);
    let term = term::term(&mut cursor).and_then(|term| cursor.expect_end().map(|()| term));
    cursor.concluded(term)
}

/// Parses one statement, which may be closed by `;`. Errors are Cassandra's, word for word where that is feasible.
pub fn parse_statement(text: &str) -> Result<Statement> {
    let all = tokens(text);
    // Cassandra's lexer reports an invalid character and skips it; only the first report counts.
    let is_bad = |token: &&Token<'_>| {
        matches!(token.kind, TokenKind::Unknown | TokenKind::Broken(_) | TokenKind::Unterminated)
            || token.is_symbol("|")
    };
    let bad = all.iter().find(is_bad);
    let good: Vec<Token<'_>>;
    let tokens = match bad {
        None => &all,
        Some(_) => {
            good = all.iter().filter(|token| !is_bad(token)).copied().collect();
            &good
        }
    };
    let parsed = parse_one(text, tokens);
    let lexical = match bad {
        Some(token) => Some((token.location, diagnosis::bad_token(text, token))),
        None => diagnosis::open_comment(text, &all).map(|error| (error.location(), error)),
    };
    if let Some(thrown) = all.iter().find_map(|token| diagnosis::unreadable_number(text, token))
        && parsed.as_ref().err().is_none_or(|error| error.location() > thrown.location())
    {
        return Err(thrown);
    }
    match (parsed, lexical) {
        (Err(error), Some((location, _))) if error.location() < location => Err(error),
        (_, Some((_, error))) => Err(error),
        (parsed, None) => parsed,
    }
}

fn parse_one(text: &str, tokens: &[Token<'_>]) -> Result<Statement> {
    let mut cursor = Cursor::new(text, tokens);
    let location = cursor.location();
    let kind = statement(&mut cursor).and_then(|kind| {
        while cursor.eat_symbol(";") {}
        cursor.expect_end().map(|()| kind)
    });
    Ok(Statement { location, kind: cursor.concluded(kind)? })
}
