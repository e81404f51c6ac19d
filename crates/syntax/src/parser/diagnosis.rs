//! The messages of syntax errors, word for word those of Cassandra's parser, which ANTLR generates:
//!
//! ```text
//!  line 1:9 mismatched input 'FORM' expecting K_FROM (SELECT * [FORM]...)
//!       │   │                                         └ the text around the token where the choice was made
//!       │   └ the token that was read, and the expected one if there is only one
//!       └ where the token that fits nothing stands; "0:-1" is the end of the text
//! ```
//!
//! The text shown reaches from ten tokens before to two after, blanks counted as tokens; never beyond the last token
//! that had to be read to find the error, and is left out if that is the end.

use std::fmt::Write as _;

use crate::error::Error;
use crate::lexer::{Expected, Location, Token, TokenKind};

const TOKENS_BEFORE: usize = 10;
const TOKENS_AFTER: usize = 2;

/// The tokens from which an error message is made, by index.
pub(super) struct Sight {
    /// Where the parser had to choose.
    pub(super) decision: usize,
    /// The token that does not fit.
    pub(super) failing: usize,
    /// The furthest token of its lookahead.
    pub(super) fetched: usize,
}

pub(super) fn no_viable(text: &str, tokens: &[Token<'_>], sight: &Sight) -> Error {
    let (location, shown) = head(tokens, sight.failing);
    let message = format!("no viable alternative at input '{shown}'");
    error(text, tokens, sight, location, &message)
}

pub(super) fn mismatched(text: &str, tokens: &[Token<'_>], sight: &Sight, expected: &str) -> Error {
    let (location, shown) = head(tokens, sight.failing);
    let message = format!("mismatched input '{shown}' expecting {expected}");
    error(text, tokens, sight, location, &message)
}

/// The location and the text of a token, as in messages.
fn head(tokens: &[Token<'_>], at: usize) -> (Option<Location>, String) {
    match tokens.get(at) {
        Some(token) if token.kind != TokenKind::End => (Some(token.location), shown(token)),
        _ => (None, "<EOF>".to_owned()),
    }
}

/// A token's text as Cassandra's lexer keeps it: without quotes, unless nothing would be left.
fn shown(token: &Token<'_>) -> String {
    match token.kind {
        TokenKind::QuotedName if token.text == "\"\"" => token.text.to_owned(),
        TokenKind::QuotedName | TokenKind::String => token.value().into_owned(),
        _ => token.text.to_owned(),
    }
}

fn error(
    text: &str,
    tokens: &[Token<'_>],
    sight: &Sight,
    location: Option<Location>,
    what: &str,
) -> Error {
    let mut message = match location {
        Some(location) => format!("line {location} {what}"),
        None => format!("line 0:-1 {what}"),
    };
    if let Some(snippet) = snippet(text, tokens, sight) {
        let _ = write!(message, " ({snippet})");
    }
    let end = tokens.last().map_or(Location { line: 1, column: 0 }, |token| token.location);
    Error::Syntax { location: location.unwrap_or(end), message }
}

/// A number of which Cassandra's parser cannot tell whether it is a double: it then throws, whatever receives the number.
pub(super) fn unreadable_number(text: &str, token: &Token<'_>) -> Option<Error> {
    let is_number =
        token.kind == TokenKind::Float && token.text.contains(|c: char| c.is_ascii_digit());
    let reason = if is_number { number_fault(token.text)? } else { return None };
    let message =
        format!("Failed parsing statement: [{text}] reason: NumberFormatException {reason}");
    Some(Error::Syntax { location: token.location, message })
}

/// What `BigDecimal` says of a number, or of the double that it would be.
fn number_fault(number: &str) -> Option<&'static str> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent).trim_start_matches('0');
    if digits.len() > 10 {
        return Some("Too many nonzero exponent digits.");
    }
    let exponent: i64 = exponent.parse().unwrap_or(0);
    if i32::try_from(exponent).is_err() {
        return Some("Exponent overflow.");
    }
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i64);
    if i32::try_from(fraction - exponent).is_err() {
        return Some("Scale out of range.");
    }
    let is_infinite = number.parse().is_ok_and(f64::is_infinite);
    is_infinite.then_some(
        "Character I is neither a decimal digit number, decimal point, nor \"e\" notation exponential mark.",
    )
}

/// A token, or the blanks or the comment between two.
struct Piece {
    location: Location,
    /// Characters of its text.
    length: usize,
    is_end: bool,
}

impl Piece {
    fn line(&self) -> usize {
        self.location.line as usize - 1
    }

    fn column(&self) -> usize {
        self.location.column as usize
    }

    fn end_column(&self) -> usize {
        self.column() + self.length
    }
}

/// All pieces of the text, and for each of the tokens its index among them.
fn pieces(text: &str, tokens: &[Token<'_>]) -> (Vec<Piece>, Vec<usize>) {
    let mut pieces = Vec::new();
    let mut indexes = Vec::with_capacity(tokens.len());
    let mut at = 0usize;
    let mut location = Location { line: 1, column: 0 };
    for token in tokens {
        let start = offset(text, token);
        while at < start {
            let gap = text.get(at..start).unwrap_or_default();
            let length = hidden_length(gap);
            let hidden = gap.get(..length).unwrap_or_default();
            pieces.push(Piece { location, length: utf16(hidden), is_end: false });
            location = advance(location, hidden);
            at += length;
        }
        indexes.push(pieces.len());
        let is_end = token.kind == TokenKind::End;
        pieces.push(Piece { location, length: utf16(&shown(token)), is_end });
        location = advance(location, token.text);
        at = start + token.text.len();
    }
    (pieces, indexes)
}

fn offset(text: &str, token: &Token<'_>) -> usize {
    match token.kind {
        TokenKind::End => text.len(),
        _ => (token.text.as_ptr() as usize).saturating_sub(text.as_ptr() as usize),
    }
}

fn utf16(text: &str) -> usize {
    text.encode_utf16().count()
}

fn advance(location: Location, over: &str) -> Location {
    match over.rsplit_once('\n') {
        None => Location { column: location.column + utf16(over) as u32, ..location },
        Some((_, last)) => {
            let lines = over.matches('\n').count() as u32;
            Location { line: location.line + lines, column: utf16(last) as u32 }
        }
    }
}

/// Length of the run of blanks, or of the comment, at the start of a gap between tokens.
fn hidden_length(gap: &str) -> usize {
    let whole = gap.len();
    let length = if gap.starts_with("--") || gap.starts_with("//") {
        gap.find(['\n', '\r']).map_or(whole, |end| end + 1)
    } else if gap.starts_with("/*") {
        gap.get(2..).and_then(|rest| rest.find("*/")).map_or(whole, |end| end + 4)
    } else {
        gap.find(['-', '/']).unwrap_or(whole)
    };
    length.max(1).min(whole)
}

fn snippet(text: &str, tokens: &[Token<'_>], sight: &Sight) -> Option<String> {
    let (pieces, indexes) = pieces(text, tokens);
    let index = *indexes.get(sight.decision)?;
    let fetched = *indexes.get(sight.fetched.max(sight.decision))?;
    let from = pieces.get(index.saturating_sub(TOKENS_BEFORE))?;
    let to = pieces.get((index + TOKENS_AFTER).min(fetched))?;
    let offending = pieces.get(index)?;
    if from.is_end || to.is_end || offending.is_end {
        return None;
    }
    let mut lines: Vec<Vec<u16>> =
        text.trim_end_matches('\n').split('\n').map(|line| line.encode_utf16().collect()).collect();
    let shows_start = from.location == Location { line: 1, column: 0 };
    let shows_end = to.line() + 1 == lines.len() && to.end_column() == lines.last()?.len();
    lines.get_mut(to.line())?.truncate(to.end_column());
    let marked = lines.get_mut(offending.line())?;
    marked.insert(offending.end_column().min(marked.len()), u16::from(b']'));
    marked.insert(offending.column().min(marked.len()), u16::from(b'['));
    let first = lines.get_mut(from.line())?;
    first.drain(..from.column().min(first.len()));
    let mut shown = String::new();
    shown.push_str(if shows_start { "" } else { "..." });
    for line in lines.get(from.line()..=to.line())? {
        shown.push_str(&String::from_utf16_lossy(line));
    }
    shown.push_str(if shows_end { "" } else { "..." });
    Some(shown)
}

/// The errors of Cassandra's lexer for a character that begins no token, and for a quote or comment without an end.
pub(super) fn bad_token(text: &str, token: &Token<'_>) -> Error {
    let end = advance(Location { line: 1, column: 0 }, text);
    let eof = |expected: &str| (end, format!("mismatched character '<EOF>' expecting {expected}"));
    let next =
        text.get(offset(text, token) + token.text.len()..).and_then(|rest| rest.chars().next());
    let next = next.map_or("<EOF>".to_owned(), String::from);
    let behind = advance(token.location, token.text);
    let (location, what) = match token.kind {
        TokenKind::Unterminated if token.text.starts_with('\'') => eof("'''"),
        TokenKind::Unterminated if token.text.starts_with('"') => eof("'\"'"),
        TokenKind::Unterminated if token.text.starts_with("$$") => {
            let last = text.chars().next_back().unwrap_or('$');
            let location = Location { column: end.column.saturating_sub(1), ..end };
            (location, format!("mismatched character '{last}' expecting '$'"))
        }
        TokenKind::Unterminated => eof("'*'"),
        TokenKind::Broken(expected) => {
            let what = match expected {
                Expected::Char(c) => format!("mismatched character '{next}' expecting '{c}'"),
                Expected::Set => format!("mismatched character '{next}' expecting set null"),
                Expected::Digit => {
                    format!("required (...)+ loop did not match anything at character '{next}'")
                }
                Expected::Other => format!("no viable alternative at character '{next}'"),
            };
            (behind, what)
        }
        _ => (token.location, format!("no viable alternative at character '{}'", token.text)),
    };
    Error::Syntax { location, message: format!("line {location} {what}") }
}

/// Cassandra requires a line break after a `--` comment, even on the last line.
pub(super) fn open_comment(text: &str, tokens: &[Token<'_>]) -> Option<Error> {
    let last = tokens.iter().rev().find(|token| token.kind != TokenKind::End);
    let mut at = last.map_or(0, |token| offset(text, token) + token.text.len());
    while at < text.len() {
        let gap = text.get(at..)?;
        let length = hidden_length(gap);
        let is_line = gap.starts_with("--") || gap.starts_with("//");
        if is_line && !gap.get(..length)?.ends_with(['\n', '\r']) {
            let location = advance(Location { line: 1, column: 0 }, text);
            let message =
                format!("line {location} mismatched character '<EOF>' expecting set null");
            return Some(Error::Syntax { location, message });
        }
        at += length;
    }
    None
}
