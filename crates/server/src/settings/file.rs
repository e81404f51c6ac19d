//! `cassandra.yaml`: text to checked values by their present names.

use std::collections::BTreeMap;

use halcyon_model::units;
use saphyr::{Yaml, YamlLoader};
use saphyr_parser::Parser;

use super::error::{Error, Errors, Result};
use super::keys::Key;
use super::value::Kind;

/// A value of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Null,
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// A member of a mapping.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        match self {
            Node::Map(members) => members.iter().find(|(key, _)| key == name).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The mapping in a list of one: so Cassandra writes a class with its parameters.
    pub(super) fn only(&self) -> &Node {
        match self {
            Node::List(items) => match items.as_slice() {
                [only @ Node::Map(_)] => only,
                _ => self,
            },
            _ => self,
        }
    }

    /// The value of a member of this name, unless that is secret.
    pub(super) fn shown_as(&self, name: &str) -> String {
        if is_secret(name) { REDACTED.to_owned() } else { self.to_string() }
    }

    pub(crate) fn scalar(&self) -> Option<&str> {
        match self {
            Node::Scalar(text) => Some(text),
            _ => None,
        }
    }
}

const REDACTED: &str = "<REDACTED>";

/// Whether a member's value must not be shown, as Cassandra's `@Redacted` has it for encryption options, and for whatever is named
/// a password in the parameters of a class.
fn is_secret(name: &str) -> bool {
    name.ends_with("password")
        || name == "keystore"
        || name == "truststore"
        || name == "private_key"
}

/// As Cassandra's `settings` table prints it, and as errors show it: without secrets.
impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Node::Null => f.write_str("null"),
            Node::Scalar(text) => f.write_str(text),
            Node::List(nodes) => {
                let texts: Vec<_> = nodes.iter().map(Node::to_string).collect();
                write!(f, "[{}]", texts.join(", "))
            }
            Node::Map(members) => {
                let text = |(name, node): &(String, Node)| match node {
                    Node::Null => format!("{name}={node}"),
                    _ => format!("{name}={}", node.shown_as(name)),
                };
                write!(f, "{{{}}}", members.iter().map(text).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// The values of a file, by present name, and what is wrong with others. Null values are left out: they mean the default.
pub(super) fn read(text: &str, keys: &[Key]) -> Result<(BTreeMap<&'static str, Node>, Errors)> {
    let mut values = BTreeMap::new();
    let (mut unknown, mut errors) = (Vec::new(), Errors::default());
    for (name, node) in top_level(text)? {
        let Some((key, unit, node)) = find(&name, node, keys) else {
            unknown.push(name);
            continue;
        };
        if let Some(Some(node)) = errors.take(checked(&name, key, unit, node)) {
            values.insert(key.name, node);
        }
    }
    if !unknown.is_empty() {
        errors.add(Error::Unknown(unknown));
    }
    Ok((values, errors))
}

/// A key by its name, an older name, or `key.member`.
fn find<'k>(
    name: &str,
    node: Node,
    keys: &'k [Key],
) -> Option<(&'k Key, Option<&'static str>, Node)> {
    for key in keys {
        if let Some((_, unit)) = key.older.iter().find(|(older, _)| *older == name) {
            return Some((key, *unit, node));
        }
        if key.name == name {
            return Some((key, None, node));
        }
    }
    let (head, member) = name.split_once('.')?;
    let key = keys.iter().find(|key| key.name == head && key.kind == Kind::Map)?;
    Some((key, None, Node::Map(vec![(member.to_owned(), node)])))
}

fn checked(name: &str, key: &Key, unit: Option<&str>, node: Node) -> Result<Option<Node>> {
    let wrong =
        |value: String, allowed: String| Error::Wrong { key: name.to_owned(), value, allowed };
    match (node, &key.kind) {
        (Node::Null, _) => Ok(None),
        (Node::Scalar(text), Kind::List) => {
            // snakeyaml makes a list of one of it, and a comma separates.
            let items = text.split(',').map(|item| Node::Scalar(item.trim().to_owned()));
            Ok(Some(Node::List(items.collect())))
        }
        (Node::Scalar(text), kind) => {
            let text = match unit {
                Some(unit) => match units::settings::with_unit(&text, unit) {
                    Some(text) => text,
                    None => return Ok(None),
                },
                None => text,
            };
            kind.check(&text).map_err(|allowed| wrong(text.clone(), allowed))?;
            Ok(Some(Node::Scalar(text)))
        }
        (node @ Node::List(_), Kind::List | Kind::Map) | (node @ Node::Map(_), Kind::Map) => {
            Ok(Some(node))
        }
        (node, kind) => Err(wrong(node.to_string(), kind.allowed())),
    }
}

fn top_level(text: &str) -> Result<Vec<(String, Node)>> {
    let mut loader = YamlLoader::<Yaml<'_>>::default();
    // Values are Cassandra's to parse. Of a key that stands twice Cassandra takes the last.
    loader.early_parse(false);
    loader.allow_duplicate_keys(true);
    let syntax = |e: &dyn std::fmt::Display| Error::Syntax(e.to_string());
    Parser::new_from_str(text).load(&mut loader, true).map_err(|e| syntax(&e))?;
    if let Some(e) = loader.error() {
        return Err(syntax(e));
    }
    match loader.into_documents().into_iter().next().map(node) {
        None | Some(Node::Null) => Ok(Vec::new()),
        Some(Node::Map(members)) => Ok(members),
        Some(_) => Err(Error::Syntax("the file is not a mapping of keys to values".to_owned())),
    }
}

fn node(yaml: Yaml<'_>) -> Node {
    match yaml {
        Yaml::Representation(text, style, _) => {
            let plain = style == saphyr::ScalarStyle::Plain;
            match text.as_ref() {
                "" | "~" | "null" | "Null" | "NULL" if plain => Node::Null,
                text => Node::Scalar(text.to_owned()),
            }
        }
        Yaml::Sequence(items) => Node::List(items.into_iter().map(node).collect()),
        Yaml::Mapping(members) => Node::Map(
            members
                .into_iter()
                .map(|(name, value)| (node(name).to_string(), node(value)))
                .collect(),
        ),
        Yaml::Tagged(_, inner) => node(*inner),
        Yaml::Value(_) | Yaml::Alias(_) | Yaml::BadValue => Node::Null,
    }
}
