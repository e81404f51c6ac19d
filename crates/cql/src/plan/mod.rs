//! Plans: what a statement means once its names are looked up and its terms have types.
//!
//! ```text
//!  ast ─► prepare(catalog, keyspace) ─► Prepared { variables, plan } ─► bind(values) ─► what `query` executes
//! ```
//!
//! A plan is made once and bound many times; nothing in it changes. `select` and `modify` each own their plan and its
//! bound form; `term` is what both evaluate.

pub mod functions;
mod json;
pub mod modify;
pub mod restrictions;
pub mod select;
pub mod selection;
pub mod term;

#[cfg(test)]
mod recorded_tests;

use std::sync::Arc;

use halcyon_model::request::{ColumnSpec, Value};
use halcyon_model::uuid;

use halcyon_schema::catalog::{Catalog, Table};
use halcyon_syntax::ast::{QualifiedName, Statement, StatementKind};
use halcyon_syntax::{Error, Result};

pub use json::Given;

/// The bind markers of a statement, in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    pub specs: Vec<ColumnSpec>,
    /// For each partition key column the marker that gives its value; empty if not all are markers.
    pub partition_key: Vec<u16>,
    /// By marker, the name of what receives it, whatever name the user gave the marker.
    pub receivers: Vec<String>,
}

/// What all terms of one execution see the same way.
#[derive(Debug, Clone, Copy)]
pub struct Execution<'a> {
    /// By marker.
    pub values: &'a [Value<'a>],
    /// The request's time: `now()`, `currentTimestamp()`, default timestamps.
    pub now_micros: i64,
    /// Seconds; the client's `now_in_seconds` if it sent one.
    pub now_seconds: i32,
    pub protocol_version: u8,
    /// For what must never repeat: `uuid()`, `now()`, list cells.
    pub uuids: &'a uuid::Generator,
    /// What the JSON of an INSERT gives its columns.
    pub json: &'a [Given],
}

/// Columns of a result set; shared by all its pages.
pub type ResultColumns = Arc<[ColumnSpec]>;

/// What a statement means.
#[derive(Debug, Clone)]
pub enum Plan {
    Select(Arc<select::SelectPlan>),
    Modification(Arc<modify::ModifyPlan>),
    Batch(Arc<modify::BatchPlan>),
    /// Everything else (schema, USE, TRUNCATE, roles) is executed as it was written.
    Other(Arc<Statement>),
}

/// A statement whose names are looked up and whose terms have types.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub plan: Plan,
    pub variables: Variables,
    /// `None` if it has no result set.
    pub columns: Option<ResultColumns>,
    pub warnings: Vec<String>,
}

/// Prepares a statement against a catalog. `keyspace` is the one in force: set by USE or sent with the request.
pub fn prepare(
    statement: &Statement,
    catalog: &Catalog,
    keyspace: Option<&str>,
) -> Result<Prepared> {
    match &statement.kind {
        StatementKind::Select(select) => select::prepare(select, catalog, keyspace),
        StatementKind::Modification(modification) => {
            modify::prepare(modification, catalog, keyspace)
        }
        StatementKind::Batch(batch) => modify::prepare_batch(batch, catalog, keyspace),
        _ => Ok(Prepared {
            plan: Plan::Other(Arc::new(statement.clone())),
            variables: Variables::default(),
            columns: None,
            warnings: Vec::new(),
        }),
    }
}

/// The table that a statement names (`Schema.validateTable`).
pub fn find_table<'a>(
    name: &QualifiedName,
    catalog: &'a Catalog,
    keyspace: Option<&str>,
) -> Result<&'a Arc<Table>> {
    let keyspace = name.keyspace.as_deref().or(keyspace).ok_or_else(|| {
        Error::invalid_request(
            "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename",
        )
    })?;
    let keyspace = catalog
        .keyspace(keyspace)
        .ok_or_else(|| Error::invalid_request(format!("keyspace {keyspace} does not exist")))?;
    keyspace
        .tables
        .get(&name.name)
        .ok_or_else(|| Error::invalid_request(format!("table {} does not exist", name.name)))
}
