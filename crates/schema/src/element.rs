//! What DESCRIBE lists.

/// One row of a result. `DESCRIBE TABLES` and similar statements print no CREATE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    pub keyspace: String,
    /// `keyspace`, `type`, `table`, `index`, `materialized_view`, `function`, `aggregate`.
    pub kind: &'static str,
    pub name: String,
    pub statement: Option<String>,
}
