//! `WITH …`: options, clustering order, compact storage.

use super::cursor::Cursor;
use super::term::{constant, map};
use super::words;
use crate::ast::{LiteralKind, Name, OptionValue, Properties, RawTerm, TableOption};
use crate::error::{Error, Result};
use crate::lexer::TokenKind;

/// Nothing, or `WITH property AND property …`. `of` names the table or view in refusals.
pub(super) fn properties(cursor: &mut Cursor<'_>, of: &str) -> Result<Properties> {
    let mut properties = Properties::default();
    if !cursor.eat_word("with") {
        return Ok(properties);
    }
    loop {
        let is_option = cursor.peek_ahead(1).is_symbol("=");
        if cursor.is_word("clustering") && !is_option {
            cursor.next();
            cursor.expect_words(&["order", "by"])?;
            cursor.expect_symbol("(")?;
            loop {
                let ordered = ordering(cursor)?;
                let is_same = |known: &(Name, bool)| known.0.text == ordered.0.text;
                if properties.clustering_order.iter().any(is_same) {
                    return Err(Error::InvalidRequest(format!(
                        "Duplicate column '{}' in CLUSTERING ORDER BY clause for {of}",
                        ordered.0.text
                    )));
                }
                properties.clustering_order.push(ordered);
                if !cursor.eat_symbol(",") {
                    break;
                }
            }
            cursor.expect_symbol(")")?;
        } else if cursor.is_word("compact") && cursor.peek_ahead(1).is_word("storage") {
            cursor.next();
            cursor.next();
            properties.compact_storage = true;
        } else {
            push(cursor, &mut properties.options)?;
        }
        if !cursor.eat_word("and") {
            return Ok(properties);
        }
    }
}

/// `option AND option …`
pub(super) fn options(cursor: &mut Cursor<'_>) -> Result<Vec<TableOption>> {
    let mut options = Vec::new();
    loop {
        push(cursor, &mut options)?;
        if !cursor.eat_word("and") {
            return Ok(options);
        }
    }
}

fn push(cursor: &mut Cursor<'_>, options: &mut Vec<TableOption>) -> Result<()> {
    let option = option(cursor)?;
    if options.iter().any(|known| known.name.text == option.name.text) {
        return cursor.note(format!("Multiple definitions for property '{}'", option.name.text));
    }
    options.push(option);
    Ok(())
}

fn ordering(cursor: &mut Cursor<'_>) -> Result<(Name, bool)> {
    let name = cursor.name()?;
    if cursor.eat_word("desc") {
        Ok((name, true))
    } else if cursor.eat_word("asc") {
        Ok((name, false))
    } else {
        Err(cursor.no_viable())
    }
}

/// Cassandra reads the name, the `=` and the value's first token before it chooses the rule.
fn option(cursor: &mut Cursor<'_>) -> Result<TableOption> {
    if !cursor.is_name_ahead(0) {
        return Err(cursor.no_viable());
    }
    if !cursor.peek_ahead(1).is_symbol("=") {
        return Err(cursor.no_viable_ahead(1));
    }
    let value = cursor.peek_ahead(2);
    let fits = match value.kind {
        TokenKind::Word => is_value_word(value.text) || cursor.is_script,
        TokenKind::Symbol => value.text == "{" || value.text == "-",
        TokenKind::QuotedName
        | TokenKind::Unknown
        | TokenKind::Broken(_)
        | TokenKind::Unterminated
        | TokenKind::End => false,
        _ => true,
    };
    if !fits {
        return Err(cursor.no_viable_ahead(2));
    }
    let name = cursor.name()?;
    cursor.next();
    let value = if cursor.is_symbol("{") {
        OptionValue::Map(option_map(cursor)?)
    } else {
        OptionValue::Simple(simple(cursor)?)
    };
    Ok(TableOption { name, value })
}

/// Reserved keywords stand for themselves; other words are refused, since they must be quoted.
fn is_value_word(word: &str) -> bool {
    ["true", "false", "nan", "infinity"].iter().any(|known| word.eq_ignore_ascii_case(known))
        || words::is_unreserved_keyword(word)
}

fn simple(cursor: &mut Cursor<'_>) -> Result<String> {
    if let Some(RawTerm::Literal { text, .. }) = constant(cursor) {
        return Ok(text);
    }
    match cursor.peek().kind {
        TokenKind::Word => Ok(cursor.next().text.to_owned()),
        _ => Err(cursor.no_viable()),
    }
}

/// A map whose keys and values are literals (`convertPropertyMap`).
pub(super) fn option_map(cursor: &mut Cursor<'_>) -> Result<Vec<(String, String)>> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (key, value) in map(cursor)? {
        let unbound = |term: &RawTerm| match term {
            RawTerm::Bind { .. } => " (bind variables are not supported in DDL queries)",
            _ => "",
        };
        let RawTerm::Literal { text: name, .. } = &key else {
            let what = format!("Invalid property name: {}{}", spell(&key), unbound(&key));
            return Err(cursor.refused(what));
        };
        let RawTerm::Literal { text, .. } = &value else {
            let what = format!(
                "Invalid property value: {} for property: {}{}",
                spell(&value),
                spell(&key),
                unbound(&value)
            );
            return Err(cursor.refused(what));
        };
        if found.iter().any(|(known, _)| known == name) {
            return Err(cursor.refused(format!("Multiple definition for property {name}")));
        }
        found.push((name.clone(), text.clone()));
    }
    Ok(found)
}

/// A term as messages show it (`Term.Raw.getText`).
fn spell(term: &RawTerm) -> String {
    let all = |terms: &[RawTerm]| terms.iter().map(spell).collect::<Vec<_>>().join(", ");
    match term {
        RawTerm::Null => "NULL".to_owned(),
        RawTerm::Literal { kind: LiteralKind::String, text } => format!("'{text}'"),
        RawTerm::Literal { text, .. } => text.clone(),
        RawTerm::Bind { name: None, .. } => "?".to_owned(),
        RawTerm::Bind { name: Some(name), .. } => format!(":{name}"),
        RawTerm::List(terms) => format!("[{}]", all(terms)),
        RawTerm::Set(terms) => format!("{{{}}}", all(terms)),
        RawTerm::Tuple(terms) => format!("({})", all(terms)),
        RawTerm::Map(entries) => {
            let pairs: Vec<String> =
                entries.iter().map(|(k, v)| format!("{}: {}", spell(k), spell(v))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        RawTerm::UserType(fields) => {
            let pairs: Vec<String> =
                fields.iter().map(|(k, v)| format!("{}: {}", k.text, spell(v))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        RawTerm::Call { name, arguments } => format!("{}({})", name.name, all(arguments)),
        RawTerm::TypeHint { to, term } => format!("({}){}", to.text, spell(term)),
        RawTerm::Negate(term) => format!("-{}", spell(term)),
        RawTerm::Arithmetic { left, right, .. } => format!("{} + {}", spell(left), spell(right)),
    }
}
