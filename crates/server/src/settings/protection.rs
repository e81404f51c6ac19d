//! Settings that protect: obeyed or refused, never ignored.
//!
//! A user who sets `cdc_enabled`, a guardrail, or another place for system tables relies on it. Cassandra's other settings may mean
//! nothing here; for these Halcyon does not start, and names them. This holds for thresholds that only warn, too. At values that
//! protect nothing (the defaults, those of a stock cassandra.yaml) they are fine.

use super::file::Node;
use super::keys::{Key, Support};
use super::{Error, Errors, Values, value};

impl Values {
    pub(super) fn refuse_protection(&self, errors: &mut Errors) {
        let relied_on = |key: &&Key| {
            key.support == Support::Refused
                && self.node(key.name).is_some_and(|node| protects(key, node))
        };
        let names: Vec<&str> = self.keys.iter().filter(relied_on).map(|key| key.name).collect();
        if !names.is_empty() {
            errors.add(Error::Refused(format!(
                "{}: not supported yet; remove it from the file to start without what it does",
                names.join(", ")
            )));
        }
    }
}

fn is_on(node: &Node, member: &str) -> bool {
    node.get(member).and_then(Node::scalar).and_then(value::boolean) == Some(true)
}

/// Whether a user who sets this relies on it.
fn protects(key: &Key, node: &Node) -> bool {
    match node {
        Node::Null => false,
        Node::Map(members) => {
            is_on(node, "enabled")
                || members
                    .iter()
                    .any(|(_, node)| matches!(node, Node::Map(_)) && protects(key, node))
        }
        Node::List(items) => items.iter().any(|item| item.scalar() != Some("")),
        Node::Scalar(text) => match value::boolean(text) {
            Some(value) => Some(value) != key.default.and_then(value::boolean),
            // Thresholds are off at -1.
            None => !text.starts_with('-') && !key.is_default(text),
        },
    }
}
