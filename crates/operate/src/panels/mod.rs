//! What an operator looks at, defined once: the page, the table `halcyon_views.panels` and `ops/grafana/halcyon.json` are made from
//! [`PANELS`].
//!
//! 1. The order is causal: what clients notice, then what a read meets, then why that is so. Tables follow.
//! 2. A panel has a statement, which the page executes as its visitor, and expressions for a server of metrics. Both read the same
//!    counters.
//! 3. A row is the point of a line or of a bucket, by [`Kind`]. Its texts name the line.

mod charts;
#[cfg(test)]
mod grafana;
mod lists;
mod panel;

use serde_json::{Value, json};

pub(crate) use panel::LOOK;
pub use panel::{Kind, Panel, Unit};

/// In the order in which they are shown.
pub const PANELS: [&Panel; charts::ALL.len() + lists::ALL.len()] = {
    let mut all = [&charts::ALL[0]; charts::ALL.len() + lists::ALL.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < charts::ALL.len() {
            &charts::ALL[at]
        } else {
            &lists::ALL[at - charts::ALL.len()]
        };
        at += 1;
    }
    all
};

/// What the page needs to know of each.
pub(crate) fn for_page() -> Value {
    PANELS
        .iter()
        .map(|panel| {
            json!({
                "name": panel.name,
                "section": panel.section,
                "title": panel.title,
                "question": panel.question,
                "unit": panel.unit.name(),
                "kind": panel.kind.name(),
                "query": panel.query,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Proves that each panel has a name of its own and says what it answers, that a section is in one piece, and that every chart has
    /// expressions for Grafana.
    #[test]
    fn panels_are_complete() {
        let mut names = BTreeSet::new();
        let mut sections: Vec<&str> = Vec::new();
        for panel in PANELS {
            assert!(names.insert(panel.name), "{}", panel.name);
            assert!(panel.question.ends_with(['?', '.']), "{}", panel.name);
            assert!(panel.query.starts_with("SELECT JSON "), "{}", panel.name);
            assert_eq!(panel.expressions.is_empty(), panel.kind == Kind::Rows, "{}", panel.name);
            assert_eq!(panel.every % LOOK, 0, "{}", panel.name);
            if sections.last() != Some(&panel.section) {
                assert!(!sections.contains(&panel.section), "{}", panel.section);
                sections.push(panel.section);
            }
        }
        assert_eq!(sections.first(), Some(&"Latency"));
    }
}
