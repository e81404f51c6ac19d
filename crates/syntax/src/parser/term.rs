//! Terms: the grammar of values.

use std::collections::HashMap;

use super::arithmetic::{Operand, sum};
use super::cursor::Cursor;
use super::types::{native_type, type_text};
use super::words;
use crate::ast::{ArithmeticOperator, LiteralKind, Name, QualifiedName, RawTerm, TypeText};
use crate::error::Result;
use crate::lexer::{Token, TokenKind};

/// A term; a token that cannot follow a term is an error.
pub(super) fn term(cursor: &mut Cursor<'_>) -> Result<RawTerm> {
    let term = cursor.deeper(sum::<RawTerm>)?;
    if follows_term(&cursor.peek()) {
        // Whether a term ends is decided by two tokens: `+ 1` belongs to it, `+ column` does not.
        cursor.peek_ahead(1);
    } else if !cursor.is_timeout() {
        return Err(cursor.no_viable());
    }
    Ok(term)
}

/// Cassandra decides by one table for all terms whether one has ended.
fn follows_term(token: &Token<'_>) -> bool {
    const WORDS: [&str; 16] = [
        "and", "if", "where", "group", "order", "per", "limit", "allow", "asc", "desc", "primary",
        "insert", "update", "delete", "apply", "with",
    ];
    match token.kind {
        TokenKind::End => true,
        TokenKind::Symbol => matches!(token.text, ";" | ")" | "," | "]" | "}" | ":" | ".." | "+"),
        _ => WORDS.iter().any(|word| token.is_word(word)),
    }
}

impl Operand for RawTerm {
    fn single(cursor: &mut Cursor<'_>) -> Result<RawTerm> {
        group(cursor)
    }

    fn join(operator: ArithmeticOperator, left: Box<RawTerm>, right: Box<RawTerm>) -> RawTerm {
        RawTerm::Arithmetic { operator, left, right }
    }

    /// `SET l = [1] + l`: the column after the sign is the assignment's, not the term's.
    fn ends(cursor: &mut Cursor<'_>) -> bool {
        cursor.is_symbol("+")
            && cursor.is_column_ahead(1)
            && !cursor.peek_ahead(2).is_symbol("(")
            && !cursor.peek_ahead(2).is_symbol(".")
    }

    fn may_begin(token: &Token<'_>) -> bool {
        match token.kind {
            TokenKind::End => false,
            TokenKind::Symbol => matches!(token.text, "?" | ":" | "[" | "{" | "(" | "-"),
            TokenKind::Word => {
                !words::is_reserved(token.text)
                    || ["null", "nan", "infinity", "true", "false", "token"]
                        .iter()
                        .any(|word| token.is_word(word))
            }
            _ => true,
        }
    }
}

pub(super) fn may_begin_term(token: &Token<'_>) -> bool {
    RawTerm::may_begin(token)
}

fn group(cursor: &mut Cursor<'_>) -> Result<RawTerm> {
    if cursor.eat_symbol("-") {
        return Ok(RawTerm::Negate(Box::new(simple(cursor)?)));
    }
    simple(cursor)
}

/// A literal that is one token.
pub(super) fn constant(cursor: &mut Cursor<'_>) -> Option<RawTerm> {
    let token = cursor.peek();
    let (kind, text) = match token.kind {
        TokenKind::String => (LiteralKind::String, token.value().into_owned()),
        TokenKind::Integer => (LiteralKind::Integer, token.text.to_owned()),
        TokenKind::Float if token.text.eq_ignore_ascii_case("-nan") => {
            (LiteralKind::Float, "NaN".to_owned())
        }
        TokenKind::Float if token.text.eq_ignore_ascii_case("-infinity") => {
            (LiteralKind::Float, "-Infinity".to_owned())
        }
        TokenKind::Float => (LiteralKind::Float, token.text.to_owned()),
        TokenKind::Uuid => (LiteralKind::Uuid, token.text.to_owned()),
        TokenKind::Blob => (LiteralKind::Hex, token.text.to_owned()),
        TokenKind::Duration => (LiteralKind::Duration, token.text.to_owned()),
        TokenKind::Word if token.is_word("true") || token.is_word("false") => {
            (LiteralKind::Boolean, token.text.to_owned())
        }
        TokenKind::Word if token.is_word("nan") => (LiteralKind::Float, "NaN".to_owned()),
        TokenKind::Word if token.is_word("infinity") => (LiteralKind::Float, "Infinity".to_owned()),
        _ => return None,
    };
    cursor.next();
    Some(RawTerm::Literal { kind, text })
}

/// `?` or `:name`
pub(super) fn marker(cursor: &mut Cursor<'_>) -> Result<Option<RawTerm>> {
    let name = if cursor.eat_symbol("?") {
        None
    } else if cursor.eat_symbol(":") {
        Some(cursor.name()?.text)
    } else {
        return Ok(None);
    };
    let index = cursor.markers;
    cursor.markers = match index.checked_add(1) {
        Some(next) => next,
        None => return Err(cursor.refused("Too many markers(?). 65535 markers max is allowed")),
    };
    Ok(Some(RawTerm::Bind { index, name }))
}

/// A marker in a term. Cassandra takes a `?` for one after a look at the token behind it.
fn value_marker(cursor: &mut Cursor<'_>) -> Result<Option<RawTerm>> {
    if cursor.is_symbol("?") {
        let behind = cursor.peek_ahead(1);
        let is_operator = ["-", "*", "/", "%"].iter().any(|symbol| behind.is_symbol(symbol));
        let is_cast = behind.is_word("as");
        if !is_operator && !is_cast && !follows_term(&behind) && !behind.is_word("using") {
            return Err(cursor.no_viable_ahead(1));
        }
        if is_cast {
            cursor.peek_ahead(2);
        }
    }
    marker(cursor)
}

/// A whole number or a marker: what LIMIT and USING take.
pub(super) fn whole_number(cursor: &mut Cursor<'_>) -> Result<RawTerm> {
    if let Some(marker) = marker(cursor)? {
        return Ok(marker);
    }
    match cursor.peek().kind {
        TokenKind::Integer => constant(cursor).ok_or_else(|| cursor.no_viable()),
        _ => Err(cursor.no_viable()),
    }
}

fn simple(cursor: &mut Cursor<'_>) -> Result<RawTerm> {
    cursor.deeper(|cursor| {
        if let Some(literal) = constant(cursor) {
            return Ok(literal);
        }
        if let Some(marker) = value_marker(cursor)? {
            return Ok(marker);
        }
        let token = cursor.peek();
        match token.text {
            "[" => list(cursor),
            "{" => braces(cursor),
            "(" => parentheses(cursor),
            _ if token.is_word("null") => {
                cursor.next();
                Ok(RawTerm::Null)
            }
            _ if token.is_word("cast") && cursor.peek_ahead(1).is_symbol("(") => cast(cursor),
            _ => call(cursor),
        }
    })
}

fn list(cursor: &mut Cursor<'_>) -> Result<RawTerm> {
    cursor.expect_symbol("[")?;
    let terms = if may_begin_term(&cursor.peek()) { cursor.list(term)? } else { Vec::new() };
    cursor.expect_symbol("]")?;
    Ok(RawTerm::List(terms))
}

/// Of several values of one field the last one counts.
fn last_of_each(fields: Vec<(Name, RawTerm)>) -> Vec<(Name, RawTerm)> {
    let mut places = HashMap::new();
    let mut kept: Vec<(Name, RawTerm)> = Vec::with_capacity(fields.len());
    for (field, value) in fields {
        let place = *places.entry(field.text.clone()).or_insert(kept.len());
        match kept.get_mut(place) {
            Some((_, known)) => *known = value,
            None => kept.push((field, value)),
        }
    }
    kept
}

/// A set, a map or a user type.
fn braces(cursor: &mut Cursor<'_>) -> Result<RawTerm> {
    let first = cursor.peek_ahead(1);
    if !first.is_symbol("}") && !may_begin_term(&first) {
        return Err(cursor.no_viable_ahead(1));
    }
    cursor.expect_symbol("{")?;
    if cursor.eat_symbol("}") {
        return Ok(RawTerm::Set(Vec::new()));
    }
    if cursor.is_name_ahead(0) && cursor.peek_ahead(1).is_symbol(":") {
        let fields = cursor.list(|cursor| {
            let field = cursor.name()?;
            cursor.expect_symbol(":")?;
            Ok((field, term(cursor)?))
        })?;
        cursor.expect_symbol("}")?;
        return Ok(RawTerm::UserType(last_of_each(fields)));
    }
    let first = term(cursor)?;
    let found = if cursor.eat_symbol(":") {
        let mut entries = vec![(first, term(cursor)?)];
        while cursor.eat_symbol(",") {
            entries.push(entry(cursor)?);
        }
        RawTerm::Map(entries)
    } else if !cursor.is_symbol(",") && !cursor.is_symbol("}") {
        return Err(cursor.no_viable());
    } else {
        let mut terms = vec![first];
        while cursor.eat_symbol(",") {
            terms.push(term(cursor)?);
        }
        RawTerm::Set(terms)
    };
    cursor.expect_symbol("}")?;
    Ok(found)
}

fn entry(cursor: &mut Cursor<'_>) -> Result<(RawTerm, RawTerm)> {
    let key = term(cursor)?;
    cursor.expect_symbol(":")?;
    Ok((key, term(cursor)?))
}

/// `{ key: value, … }` where nothing but a map may stand.
pub(super) fn map(cursor: &mut Cursor<'_>) -> Result<Vec<(RawTerm, RawTerm)>> {
    cursor.expect_symbol("{")?;
    let entries = if cursor.is_symbol("}") { Vec::new() } else { cursor.list(entry)? };
    cursor.expect_symbol("}")?;
    Ok(entries)
}

/// A tuple, or a type in front of a term.
fn parentheses(cursor: &mut Cursor<'_>) -> Result<RawTerm> {
    let first = cursor.peek_ahead(1);
    if !may_begin_term(&first) && !first.is_word("set") {
        return Err(cursor.no_viable_ahead(1));
    }
    let hint = if is_class(cursor) {
        Some(hint(cursor)?)
    } else if cursor.peek_ahead(1).kind == TokenKind::String {
        None
    } else {
        cursor.attempt(hint)
    };
    match hint {
        Some(to) => Ok(RawTerm::TypeHint { to, term: Box::new(simple(cursor)?) }),
        None => tuple(cursor),
    }
}

/// `(type)`
pub(super) fn hint(cursor: &mut Cursor<'_>) -> Result<TypeText> {
    cursor.expect_symbol("(")?;
    let to = type_text(cursor)?;
    cursor.expect_symbol(")")?;
    Ok(to)
}

/// A text in parentheses is a class only before what it is the type of.
pub(super) fn is_class(cursor: &Cursor<'_>) -> bool {
    cursor.peek_ahead(1).kind == TokenKind::String
        && cursor.peek_ahead(2).is_symbol(")")
        && begins_simple(&cursor.peek_ahead(3))
}

/// Whether a term without a sign begins with a token that could not follow one.
fn begins_simple(token: &Token<'_>) -> bool {
    let is_apart = matches!(token.text, ":" | "-") || token.is_word("as");
    RawTerm::may_begin(token) && !follows_term(token) && !is_apart
}

pub(super) fn tuple(cursor: &mut Cursor<'_>) -> Result<RawTerm> {
    cursor.expect_symbol("(")?;
    let terms = cursor.list(term)?;
    cursor.expect_symbol(")")?;
    Ok(RawTerm::Tuple(terms))
}

/// `CAST(term AS type)` is a call of the function that casts to the type.
fn cast(cursor: &mut Cursor<'_>) -> Result<RawTerm> {
    let location = cursor.next().location;
    cursor.expect_symbol("(")?;
    let argument = simple(cursor)?;
    cursor.expect_word("as")?;
    let to = native_type(cursor)?;
    cursor.expect_symbol(")")?;
    let name = format!("cast_as_{}", to.text);
    let name = QualifiedName { location, keyspace: Some("system".to_owned()), name };
    Ok(RawTerm::Call { name, arguments: vec![argument] })
}

/// `[keyspace.]function`
pub(super) fn function_name(cursor: &mut Cursor<'_>) -> Result<QualifiedName> {
    let location = cursor.location();
    let keyspace = if cursor.is_name_ahead(0) && cursor.peek_ahead(1).is_symbol(".") {
        let keyspace = cursor.name()?;
        cursor.next();
        Some(keyspace.text)
    } else {
        None
    };
    Ok(QualifiedName { location, keyspace, name: allowed_function_name(cursor)? })
}

pub(super) fn allowed_function_name(cursor: &mut Cursor<'_>) -> Result<String> {
    let token = cursor.peek();
    let is_allowed = token.is_word("token")
        || (cursor.is_name_ahead(0)
            && !(token.kind == TokenKind::Word && words::names_no_function(token.text)));
    if !is_allowed {
        return Err(cursor.no_viable());
    }
    let token = cursor.next();
    // The grammar takes the text of a keyword as it stands.
    let keeps_case = token.kind == TokenKind::Word && words::keeps_case_as_function(token.text);
    Ok(if keeps_case { token.text.to_owned() } else { token.value().into_owned() })
}

fn call(cursor: &mut Cursor<'_>) -> Result<RawTerm> {
    let is_name = cursor.is_name_ahead(0) || cursor.is_word("token");
    if is_name && !["(", "."].iter().any(|symbol| cursor.peek_ahead(1).is_symbol(symbol)) {
        return Err(cursor.no_viable_ahead(1));
    }
    let name = function_name(cursor)?;
    cursor.expect_symbol("(")?;
    let arguments = if cursor.is_symbol(")") { Vec::new() } else { cursor.list(term)? };
    cursor.expect_symbol(")")?;
    Ok(RawTerm::Call { name, arguments })
}
