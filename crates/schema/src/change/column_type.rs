//! The type of a column or field, looked up in its keyspace. Messages are Cassandra's.

use halcyon_model::CqlType;
use halcyon_model::types::{TypeError, UserType};

use super::context::invalid;
use crate::catalog::Keyspace;
use halcyon_syntax::Result;
use halcyon_syntax::ast::TypeText;
use halcyon_syntax::lexer::{Token, TokenKind, tokens};

pub(super) fn resolve(text: &TypeText, keyspace: &Keyspace) -> Result<CqlType> {
    let tokens = tokens(&text.text);
    check_keyspaces(&tokens, &keyspace.name)?;
    check_vectors(&tokens)?;
    let known = |name: &str| keyspace.types.get(name).map(|found| UserType::clone(found));
    let unknown = |name: &str| format!("Unknown type {}.{name}", keyspace.name);
    if is_empty(text) {
        let found = known("empty").map(|found| CqlType::Udt(Box::new(found)));
        return found.ok_or_else(|| invalid(unknown("empty")));
    }
    CqlType::parse_stated(&text.text, &known).map_err(|error| {
        invalid(match error {
            TypeError::Unknown(name) => unknown(&name),
            TypeError::NotAllowed(what) => what,
            TypeError::Syntax { .. } => error.to_string(),
        })
    })
}

/// Whether it is `empty`: rows of the schema have this type, where a statement names a user type.
pub(super) fn is_empty(text: &TypeText) -> bool {
    text.text.eq_ignore_ascii_case("empty")
}

/// Refuses a type of another keyspace.
pub fn check_type_keyspace(text: &TypeText, keyspace: &str) -> Result<()> {
    if text.text.contains('.') { check_keyspaces(&tokens(&text.text), keyspace) } else { Ok(()) }
}

/// Types are used only in the keyspace that they are defined in.
fn check_keyspaces(tokens: &[Token<'_>], keyspace: &str) -> Result<()> {
    for pair in tokens.windows(2) {
        let [name, dot] = pair else { continue };
        if dot.is_symbol(".") && name.value() != keyspace {
            return Err(invalid(format!(
                "Statement on keyspace {keyspace} cannot refer to a user type in keyspace {}; user types can only be used in the keyspace they are defined in",
                name.value()
            )));
        }
    }
    Ok(())
}

fn check_vectors(tokens: &[Token<'_>]) -> Result<()> {
    for token in tokens.iter().filter(|token| token.kind == TokenKind::Integer) {
        if token.text.starts_with('-') || token.text.parse::<u32>().is_ok_and(|n| n == 0) {
            return Err(invalid(format!(
                "vectors may only have positive dimensions; given {}",
                token.text
            )));
        }
    }
    Ok(())
}

/// Whether it is a user type of cells in which something else has cells: no column is.
pub(super) fn nests_cells(cql_type: &CqlType) -> bool {
    match cql_type {
        CqlType::Udt(udt) => udt.fields.iter().any(|(_, field)| field.is_multi_cell()),
        _ => false,
    }
}

/// Whether a type mentions a user type, at any depth.
pub(super) fn mentions(cql_type: &CqlType, name: &[u8]) -> bool {
    if let CqlType::Udt(udt) = cql_type
        && udt.name == name
    {
        return true;
    }
    cql_type.children().into_iter().any(|child| mentions(child, name))
}

/// A type without user types: what stays of a dropped column's, so that the user type can be dropped too.
pub(super) fn expand_user_types(cql_type: &CqlType) -> CqlType {
    let boxed = |inner: &CqlType| Box::new(expand_user_types(inner));
    match cql_type {
        CqlType::Udt(udt) => {
            CqlType::Tuple(udt.fields.iter().map(|(_, field)| expand_user_types(field)).collect())
        }
        CqlType::Frozen(inner) => match inner.as_ref() {
            CqlType::Udt(_) => expand_user_types(inner),
            other => CqlType::Frozen(Box::new(expand_user_types(other))),
        },
        CqlType::List(e) => CqlType::List(boxed(e)),
        CqlType::Set(e) => CqlType::Set(boxed(e)),
        CqlType::Map(k, v) => CqlType::Map(boxed(k), boxed(v)),
        CqlType::Tuple(fields) => CqlType::Tuple(fields.iter().map(expand_user_types).collect()),
        CqlType::Vector(e, n) => CqlType::Vector(boxed(e), *n),
        CqlType::Reversed(inner) => CqlType::Reversed(boxed(inner)),
        other => other.clone(),
    }
}

/// A type's text with the keyspace in front of user types, as messages show it.
pub(super) fn spelled_with_keyspace(text: &TypeText, keyspace: &Keyspace) -> String {
    let mut out = String::new();
    for token in tokens(&text.text) {
        let is_name = matches!(token.kind, TokenKind::Word | TokenKind::QuotedName);
        if is_name && keyspace.types.contains_key(token.value().as_ref()) {
            out.push_str(&format!("{}.{}", keyspace.name, token.value()));
        } else {
            out.push_str(token.text);
        }
        if token.is_symbol(",") {
            out.push(' ');
        }
    }
    out
}
