//! INSERT, UPDATE, DELETE and BATCH.
//!
//! ```text
//!  ast ─► prepare ─► ModifyPlan ─► bind(values) ─► BoundModification ─► mutation(key, current rows) ─► stream::Mutation
//!                                      │                                      ▲
//!                                      └─► conditions ─► what must be read ───┘
//! ```
//!
//! 1. `restrictions` says which partitions and rows are meant, `operation` what becomes of their columns, `conditions`
//!    what must hold first.
//! 2. Binding gives owned values: a bound modification can be sent to the shard that owns its partition.
//! 3. What depends on stored rows (list elements by index, counters, conditions) is decided there, by the pure code
//!    here: `query` reads the rows and hands them in as a `CurrentPartition`.

mod bound;
mod conditions;
mod current;
mod keys;
mod operation;
mod restrictions;
mod row;
mod statement;

use std::sync::Arc;

use super::json::JsonMarker;
use super::term::Term;
use super::{Plan, Prepared, Variables, find_table};
use halcyon_model::request::BatchKind;
use halcyon_schema::catalog::{Catalog, ColumnRef, Table, TableKind};
use halcyon_syntax::ast::{Batch, Modification};
use halcyon_syntax::{Error, Result};

pub use bound::{BoundModification, BoundRows};
pub use conditions::{BoundCondition, BoundConditions};
pub use current::{CurrentCell, CurrentPartition, CurrentRow};
pub use operation::Change;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementType {
    Insert,
    Update,
    Delete,
}

impl std::fmt::Display for StatementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StatementType::Insert => "INSERT",
            StatementType::Update => "UPDATE",
            StatementType::Delete => "DELETE",
        })
    }
}

/// What USING says.
#[derive(Debug, Clone, Default)]
pub struct Attributes {
    pub timestamp: Option<Term>,
    pub ttl: Option<Term>,
}

#[derive(Debug, Clone)]
pub struct ModifyPlan {
    pub table: Arc<Table>,
    pub kind: StatementType,
    pub attributes: Attributes,
    operations: Vec<operation::Operation>,
    restrictions: restrictions::Restrictions,
    conditions: conditions::Conditions,
    /// Where it is `INSERT … JSON ?`.
    json: Option<JsonMarker>,
}

#[derive(Debug, Clone)]
pub struct BatchPlan {
    pub kind: BatchKind,
    pub timestamp: Option<Term>,
    pub statements: Vec<Arc<ModifyPlan>>,
}

/// Prepares one modification.
pub fn prepare(
    modification: &Modification,
    catalog: &Catalog,
    keyspace: Option<&str>,
) -> Result<Prepared> {
    let mut variables = Variables::default();
    let plan = statement::prepare(modification, catalog, keyspace, &mut variables)?;
    variables.find_partition_key(plan.table.schema.partition_key.iter().map(|c| c.name.as_str()));
    Ok(Prepared {
        plan: Plan::Modification(Arc::new(plan)),
        variables,
        columns: None,
        warnings: Vec::new(),
    })
}

/// Prepares a BATCH statement.
pub fn prepare_batch(batch: &Batch, catalog: &Catalog, keyspace: Option<&str>) -> Result<Prepared> {
    let mut variables = Variables::default();
    let mut statements = Vec::with_capacity(batch.statements.len());
    for modification in &batch.statements {
        let plan = statement::prepare(modification, catalog, keyspace, &mut variables)?;
        statements.push(Arc::new(plan));
    }
    let attributes =
        statement::attributes(&batch.using, "[batch]", "[batch]", catalog, &mut variables)?;
    if attributes.ttl.is_some() {
        return Err(Error::invalid_request("Global TTL on the BATCH statement is not supported."));
    }
    let marked = attributes.timestamp.as_ref().is_some_and(Term::is_marker);
    if let [first, rest @ ..] = statements.as_slice()
        && !marked
        && rest.iter().all(|other| other.table.id == first.table.id)
    {
        let key = first.table.schema.partition_key.iter().map(|c| c.name.as_str());
        variables.find_partition_key(key);
    }
    let plan = BatchPlan { kind: batch.kind, timestamp: attributes.timestamp, statements };
    plan.check()?;
    Ok(Prepared {
        plan: Plan::Batch(Arc::new(plan)),
        variables,
        columns: None,
        warnings: Vec::new(),
    })
}

impl BatchPlan {
    /// Which statements may stand together (`BatchStatement.validate`).
    pub fn check(&self) -> Result<()> {
        let timestamp_set = self.timestamp.is_some();
        let conditional = self.statements.iter().any(|plan| plan.has_conditions());
        let refuse = |message: &str| Err(Error::invalid_request(message));
        if timestamp_set && conditional {
            return refuse("Cannot provide custom timestamp for conditional BATCH");
        }
        if timestamp_set && self.kind == BatchKind::Counter {
            return refuse("Cannot provide custom timestamp for counter BATCH");
        }
        if timestamp_set && self.statements.iter().any(|p| p.attributes.timestamp.is_some()) {
            return refuse("Timestamp must be set either on BATCH or individual statements");
        }
        let counters = self.statements.iter().any(|plan| plan.table.is_counter());
        let others = self.statements.iter().any(|plan| !plan.table.is_counter());
        if timestamp_set && counters {
            return refuse("Cannot provide custom timestamp for a BATCH containing counters");
        }
        if self.kind == BatchKind::Counter && others {
            return refuse("Cannot include non-counter statement in a counter batch");
        }
        if counters && others {
            return refuse("Counter and non-counter mutations cannot exist in the same batch");
        }
        if self.kind == BatchKind::Logged && counters {
            return refuse("Cannot include a counter statement in a logged batch");
        }
        let is_virtual = |plan: &Arc<ModifyPlan>| plan.table.kind == TableKind::Virtual;
        let virtuals = self.statements.iter().any(is_virtual);
        if self.kind == BatchKind::Logged && virtuals {
            return refuse("Cannot include a virtual table statement in a logged batch");
        }
        if virtuals && !self.statements.iter().all(is_virtual) {
            return refuse(
                "Mutations for virtual and regular tables cannot exist in the same batch",
            );
        }
        if conditional && virtuals {
            return refuse(
                "Conditional BATCH statements cannot include mutations for virtual tables",
            );
        }
        let tables_differ = |pair: &[Arc<ModifyPlan>]| match pair {
            [a, b] => a.table.id != b.table.id,
            _ => false,
        };
        if conditional && self.statements.windows(2).any(tables_differ) {
            return refuse("Batch with conditions cannot span multiple tables");
        }
        Ok(())
    }
}

impl ModifyPlan {
    pub fn has_conditions(&self) -> bool {
        !matches!(self.conditions, conditions::Conditions::None)
    }

    /// `IF EXISTS` or `IF NOT EXISTS`: a refusal shows all columns.
    pub fn has_existence_condition(&self) -> bool {
        matches!(
            self.conditions,
            conditions::Conditions::Exists | conditions::Conditions::NotExists
        )
    }

    /// Columns that conditions name, those of regular columns first.
    pub fn condition_columns(&self) -> Vec<ColumnRef> {
        self.conditions.columns()
    }

    /// Whether a row of the table itself is meant, not only the static one.
    pub fn updates_regular_rows(&self) -> bool {
        self.table.schema.clustering.is_empty() || self.restrictions.has_clustering()
    }

    pub fn updates_static_row(&self) -> bool {
        self.operations.iter().any(|operation| operation.is_static())
    }

    /// Columns whose stored values the operations need.
    pub fn columns_read(&self) -> impl Iterator<Item = ColumnRef> {
        self.operations.iter().filter(|op| op.requires_read()).map(|op| op.column)
    }

    pub fn key_is_in_relation(&self) -> bool {
        self.restrictions.key_has_in()
    }

    pub fn clustering_has_in(&self) -> bool {
        self.restrictions.clustering_has_in()
    }
}
