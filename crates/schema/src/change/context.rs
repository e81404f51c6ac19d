//! The context and the result of a schema statement, and the checks that several statements share.

use std::collections::BTreeSet;
use std::sync::Arc;

use halcyon_guardrails::Guard;
use halcyon_model::CqlType;
use halcyon_model::options::{Compaction, MapOption};
use halcyon_model::request::SchemaChange;
use halcyon_syntax::ast::{MaskText, QualifiedName, RawTerm, Relation};
use halcyon_syntax::{Error, Result};

use crate::catalog::{Catalog, Keyspace, Table};
use crate::function::FunctionSettings;
use crate::index::IndexSettings;
use crate::mask::{ColumnMask, MaskSettings, MaskedColumn};
use crate::rows::WriteTime;
use crate::system;
use crate::view::ViewSettings;

/// The session and the node that execute a statement.
/// Evaluates a constant term: the meaning of terms is known above this crate.
pub type Evaluate<'e> = dyn Fn(&Keyspace, &RawTerm, &CqlType) -> Result<Option<Vec<u8>>> + 'e;

/// Finds the function of a column's mask, and its arguments.
pub type FindMask<'e> = dyn Fn(MaskedColumn<'_>, &MaskText) -> Result<ColumnMask> + 'e;

#[derive(Clone)]
pub struct Context<'a> {
    /// Set by USE.
    pub keyspace: Option<&'a str>,
    /// This node's data centre: NetworkTopologyStrategy's `replication_factor` means it.
    pub data_center: &'a str,
    /// For a table whose statement has no compaction.
    pub default_compaction: Option<&'a MapOption<Compaction>>,
    /// `default_keyspace_rf`
    pub default_factor: u32,
    /// Of the request.
    pub guard: &'a Guard,
    pub indexes: &'a IndexSettings,
    pub views: &'a ViewSettings,
    /// Checks the WHERE of a view on a table (which the planner does, that builds on this room).
    pub view_rows: CheckViewRows,
    pub functions: &'a FunctionSettings,
    /// What a term is as a value of a type, in a keyspace; `None`: null.
    pub evaluate: &'a Evaluate<'a>,
    pub masks: MaskSettings,
    pub find_mask: &'a FindMask<'a>,
    /// `drop_compact_storage_enabled`
    pub drops_compact_storage: bool,
    /// For a table whose statement has no id: a time-based UUID, unique.
    pub table_id: [u8; 16],
    pub at: WriteTime,
}

/// What the WHERE of a view restricts, if it may.
pub type CheckViewRows = fn(&Catalog, &Table, &[Relation]) -> Result<RestrictedRows>;

/// The columns of a base table that a view's WHERE restricts.
#[derive(Debug, Clone, Default)]
pub struct RestrictedRows {
    /// In any way.
    pub any: Vec<String>,
    /// Outside of the primary key, and otherwise than by `IS NOT NULL`.
    pub regulars: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Change {
    pub catalog: Catalog,
    /// `None`: nothing has changed.
    pub event: Option<SchemaChange>,
    pub warnings: Vec<String>,
}

pub(super) fn unchanged(catalog: &Catalog) -> Change {
    Change { catalog: catalog.clone(), event: None, warnings: Vec::new() }
}

/// A catalog with one keyspace in another state.
pub(super) fn with_keyspace(catalog: &Catalog, keyspace: Keyspace, event: SchemaChange) -> Change {
    let mut catalog = catalog.clone();
    catalog.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
    Change { catalog, event: Some(event), warnings: Vec::new() }
}

pub(super) fn invalid(message: String) -> Error {
    Error::InvalidRequest(message)
}

pub(super) fn keyspace_name<'a>(name: &'a QualifiedName, context: &Context<'a>) -> Result<&'a str> {
    keyspace_of(name, context.keyspace)
}

/// The keyspace that a name means.
pub fn keyspace_of<'a>(name: &'a QualifiedName, default: Option<&'a str>) -> Result<&'a str> {
    name.keyspace.as_deref().or(default).ok_or_else(|| {
        Error::invalid_request(
            "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename",
        )
    })
}

/// Refuses to change what belongs to the system (`ClientState.ensurePermission`). `what` is done to `resource`.
pub(super) fn forbidden(
    catalog: &Catalog,
    keyspace: &str,
    what: &str,
    resource: &str,
) -> Result<()> {
    if system::is_local(keyspace) || catalog.is_virtual(keyspace) {
        return Err(system::not_modifiable(keyspace));
    }
    if system::is_replicated_system(keyspace) && !resource.is_empty() {
        return Err(Error::Unauthorized(format!("Cannot {what} <{resource}>")));
    }
    Ok(())
}

pub(super) fn existing<'a>(catalog: &'a Catalog, keyspace: &str) -> Result<&'a Arc<Keyspace>> {
    catalog
        .keyspace(keyspace)
        .ok_or_else(|| invalid(format!("Keyspace '{keyspace}' doesn't exist")))
}

/// The first that has been there before.
pub(super) fn first_duplicate<T: Copy + Ord>(mut names: impl Iterator<Item = T>) -> Option<T> {
    let mut seen = BTreeSet::new();
    names.find(|name| !seen.insert(*name))
}

/// Refuses to make or drop a function or a trigger where no client may (`AlterSchemaStatement.execute`).
pub(super) fn system_keyspace(catalog: &Catalog, keyspace: &str) -> Result<()> {
    match system::is_local(keyspace) || catalog.is_virtual(keyspace) {
        true => Err(invalid(format!("System keyspace '{keyspace}' is not user-modifiable"))),
        false => Ok(()),
    }
}
