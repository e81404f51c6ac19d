//! Materialized views: what a view has of its base table, as `system_schema.views` stores it.

use halcyon_stream::TableId;

/// What Cassandra warns of with every CREATE MATERIALIZED VIEW.
pub(crate) const USAGE_WARNING: &str =
    "Materialized views are experimental and are not recommended for production use.";

/// What a node's settings say of the making of views.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ViewSettings {
    /// `materialized_views_enabled`
    pub is_creation_allowed: bool,
}

/// The part of a view's definition that its table does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub base_id: TableId,
    /// In the same keyspace.
    pub base: String,
    /// `SELECT *`: it gets the columns that its base gets.
    pub includes_all: bool,
    /// CQL: which rows of its base it has.
    pub where_clause: String,
}
