//! The user types of one keyspace: texts in, types out.
//!
//! 1. Texts are collected first; a type may name one that is defined (or altered) later.
//! 2. `resolve` goes through them so that each comes after those it names, on an explicit stack: no text can
//!    exhaust the real one.  Types that name each other in a circle stay unknown.

use std::cell::Cell;
use std::collections::BTreeMap;

use halcyon_model::CqlType;
use halcyon_model::types::{MAX_PARTS, TypeError, UserType};

use halcyon_syntax::lexer::{TokenKind, tokens};

/// Field names with their types in CQL.
pub type FieldTexts = Vec<(String, String)>;

#[derive(Debug, Clone)]
pub struct UserTypeCatalog {
    keyspace: String,
    /// Types, or why there is none.
    resolved: BTreeMap<String, Result<UserType, TypeError>>,
}

impl UserTypeCatalog {
    /// Resolves all types of a keyspace. A type that cannot be resolved is kept as its error, which its users get.
    pub fn resolve(keyspace: &str, texts: &BTreeMap<String, FieldTexts>) -> UserTypeCatalog {
        let mut catalog =
            UserTypeCatalog { keyspace: keyspace.to_owned(), resolved: BTreeMap::new() };
        for name in in_order(texts) {
            if let Some(fields) = texts.get(name) {
                let resolved = catalog.user_type(name, fields);
                catalog.resolved.insert(name.to_owned(), resolved);
            }
        }
        catalog
    }

    fn user_type(&self, name: &str, texts: &FieldTexts) -> Result<UserType, TypeError> {
        let mut parts = 1usize;
        let mut fields = Vec::with_capacity(texts.len());
        for (field, text) in texts {
            let cql_type = self.parse(text)?;
            parts += cql_type.parts();
            if parts > MAX_PARTS {
                return Err(TypeError::too_large(name));
            }
            fields.push((field.as_bytes().to_vec(), cql_type));
        }
        let keyspace = self.keyspace.clone();
        Ok(UserType { keyspace, name: name.as_bytes().to_vec(), fields })
    }

    /// Every given type, or why it is invalid.
    pub fn all(&self) -> impl Iterator<Item = (&str, Result<&UserType, &TypeError>)> {
        self.resolved.iter().map(|(name, found)| (name.as_str(), found.as_ref()))
    }

    /// Parses a type of the keyspace from its CQL.
    pub fn parse(&self, text: &str) -> Result<CqlType, TypeError> {
        let failure: Cell<Option<TypeError>> = Cell::new(None);
        let parsed = CqlType::parse_cql(text, &|name| match self.resolved.get(name)? {
            Ok(user_type) => Some(user_type.clone()),
            Err(error) => {
                failure.set(Some(error.clone()));
                None
            }
        });
        parsed.map_err(|error| failure.take().unwrap_or(error))
    }
}

/// Names of types, each after those that it names; circles are cut anywhere.
fn in_order(texts: &BTreeMap<String, FieldTexts>) -> Vec<&str> {
    let mut order = Vec::with_capacity(texts.len());
    let mut seen: BTreeMap<&str, ()> = BTreeMap::new();
    for root in texts.keys() {
        if seen.insert(root, ()).is_some() {
            continue;
        }
        let mut stack = vec![(root.as_str(), named_in(texts, root))];
        while let Some((name, left)) = stack.last_mut() {
            match left.pop() {
                None => {
                    order.push(*name);
                    stack.pop();
                }
                Some(next) => {
                    if seen.insert(next, ()).is_none() {
                        let more = named_in(texts, next);
                        stack.push((next, more));
                    }
                }
            }
        }
    }
    order
}

/// Names of user types that stand in a type's fields.
fn named_in<'a>(texts: &'a BTreeMap<String, FieldTexts>, name: &str) -> Vec<&'a str> {
    let mut named = Vec::new();
    for (_, text) in texts.get(name).into_iter().flatten() {
        for token in tokens(text) {
            if matches!(token.kind, TokenKind::Word | TokenKind::QuotedName)
                && let Some((known, _)) = texts.get_key_value(token.value().as_ref())
            {
                named.push(known.as_str());
            }
        }
    }
    named
}
