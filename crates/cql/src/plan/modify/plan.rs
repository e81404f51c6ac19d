//! The plans of modifications and batches.

use std::sync::Arc;

use super::conditions::Conditions;
use super::operation::Operation;
use super::restrictions::Restrictions;
use super::statement_type::StatementType;
use crate::plan::json::JsonMarker;
use crate::plan::term::Term;
use halcyon_model::request::BatchKind;
use halcyon_schema::catalog::{ColumnRef, Table, TableKind};
use halcyon_syntax::{Error, Result};

/// The attributes in USING.
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
    pub(super) operations: Vec<Operation>,
    pub(super) restrictions: Restrictions,
    pub(super) conditions: Conditions,
    /// Where it is `INSERT … JSON ?`.
    pub(super) json: Option<JsonMarker>,
}

#[derive(Debug, Clone)]
pub struct BatchPlan {
    pub kind: BatchKind,
    pub timestamp: Option<Term>,
    pub statements: Vec<Arc<ModifyPlan>>,
}

/// Which statements may stand together (`BatchStatement.validate`).
pub fn check_batch(
    kind: BatchKind,
    timestamp_set: bool,
    statements: &[Arc<ModifyPlan>],
) -> Result<()> {
    let conditional = statements.iter().any(|plan| plan.has_conditions());
    let refuse = |message: &str| Err(Error::invalid_request(message));
    if timestamp_set && conditional {
        return refuse("Cannot provide custom timestamp for conditional BATCH");
    }
    if timestamp_set && kind == BatchKind::Counter {
        return refuse("Cannot provide custom timestamp for counter BATCH");
    }
    if timestamp_set && statements.iter().any(|p| p.attributes.timestamp.is_some()) {
        return refuse("Timestamp must be set either on BATCH or individual statements");
    }
    let counters = statements.iter().any(|plan| plan.table.is_counter());
    let others = statements.iter().any(|plan| !plan.table.is_counter());
    if timestamp_set && counters {
        return refuse("Cannot provide custom timestamp for a BATCH containing counters");
    }
    if kind == BatchKind::Counter && others {
        return refuse("Cannot include non-counter statement in a counter batch");
    }
    if counters && others {
        return refuse("Counter and non-counter mutations cannot exist in the same batch");
    }
    if kind == BatchKind::Logged && counters {
        return refuse("Cannot include a counter statement in a logged batch");
    }
    let is_virtual = |plan: &Arc<ModifyPlan>| plan.table.kind == TableKind::Virtual;
    let virtuals = statements.iter().any(is_virtual);
    if kind == BatchKind::Logged && virtuals {
        return refuse("Cannot include a virtual table statement in a logged batch");
    }
    if virtuals && !statements.iter().all(is_virtual) {
        return refuse("Mutations for virtual and regular tables cannot exist in the same batch");
    }
    if conditional && virtuals {
        return refuse("Conditional BATCH statements cannot include mutations for virtual tables");
    }
    let tables_differ = |pair: &[Arc<ModifyPlan>]| match pair {
        [a, b] => a.table.id != b.table.id,
        _ => false,
    };
    if conditional && statements.windows(2).any(tables_differ) {
        return refuse("Batch with conditions cannot span multiple tables");
    }
    Ok(())
}

impl ModifyPlan {
    pub fn has_conditions(&self) -> bool {
        !matches!(self.conditions, Conditions::None)
    }

    /// `IF EXISTS` or `IF NOT EXISTS`: a refusal shows all columns.
    pub fn has_existence_condition(&self) -> bool {
        matches!(self.conditions, Conditions::Exists | Conditions::NotExists)
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

    /// Refuses IN, which no statement of a conditional write has, whatever its values. `IN` of one term is `=`.
    pub(super) fn check_one_partition(&self) -> Result<()> {
        self.refuse_in(self.restrictions.key_has_in(), "the partition key is")
    }

    pub(super) fn check_one_row(&self) -> Result<()> {
        self.refuse_in(self.restrictions.clustering_has_in(), "the clustering key columns is")
    }

    fn refuse_in(&self, has_in: bool, what: &str) -> Result<()> {
        let kind = if self.kind == StatementType::Delete { "deletions" } else { "updates" };
        match has_in {
            false => Ok(()),
            true => {
                let message = format!("IN on {what} not supported with conditional {kind}");
                Err(Error::InvalidRequest(message))
            }
        }
    }
}
