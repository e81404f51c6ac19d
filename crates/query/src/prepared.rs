//! A statement that is ready to be executed.

use std::sync::Arc;

use halcyon_cql::plan::requires::Requirement;
use halcyon_cql::plan::{Plan, ResultColumns, Variables};
use halcyon_engine::{Shard, Tables};
use halcyon_model::request::Value;
use halcyon_schema::catalog::TableKind;
use halcyon_syntax::ast::StatementKind;

use crate::basis::Basis;

/// A statement that is ready to be executed. Any thread may hold it.
#[derive(Debug)]
pub struct PreparedStatement {
    pub text: String,
    /// The keyspace in force when it was prepared.
    pub keyspace: Option<String>,
    pub variables: Variables,
    /// `None` if it has no result set.
    pub columns: Option<ResultColumns>,
    pub warnings: Vec<String>,
    pub(crate) plan: Plan,
    /// Of its plan; what has none is asked at its execution.
    pub(crate) requires: Vec<Requirement>,
    pub(crate) basis: Basis,
}

impl PreparedStatement {
    /// A copy for one shard, whose reference counts no other shard touches.
    #[must_use]
    pub fn for_shard(&self, shard: &Shard) -> PreparedStatement {
        let mut plan = self.plan.clone();
        plan.map_tables(|table| shard.own_table(table));
        let columns = self.columns.as_ref().map(|columns| columns.iter().cloned().collect());
        if let (Plan::Select(plan), Some(columns)) = (&mut plan, &columns) {
            Arc::make_mut(plan).columns = Arc::clone(columns);
        }
        PreparedStatement {
            text: self.text.clone(),
            keyspace: self.keyspace.clone(),
            variables: self.variables.clone(),
            columns,
            warnings: self.warnings.clone(),
            plan,
            requires: self.requires.clone(),
            basis: self.basis.for_shard(),
        }
    }

    /// Whether it need not be prepared again: nothing that it was prepared against has changed.
    pub fn is_current(&self, tables: &Tables) -> bool {
        tables.with_catalog(|catalog| self.basis.holds(catalog))
    }

    /// Whether Cassandra takes it for one whose meaning depends on USE: it does so of all that change the schema, and of no TRUNCATE.
    pub fn depends_on_use(&self) -> bool {
        match &self.plan {
            Plan::Other(statement) => !matches!(statement.kind, StatementKind::Truncate { .. }),
            _ => self.keyspace.is_some(),
        }
    }

    /// Whether it changes the schema: then names without a keyspace mean that of its preparation, and not that of its execution. DESCRIBE
    /// and statements about permissions look names up when they are executed.
    pub fn changes_schema(&self) -> bool {
        use StatementKind::{Auth, Describe, Truncate, Use};
        match &self.plan {
            Plan::Other(statement) => {
                !matches!(statement.kind, Use { .. } | Describe(_) | Auth(_) | Truncate { .. })
            }
            _ => false,
        }
    }

    /// The keyspace and the table that it reads or writes; of a batch, those of its first statement.
    pub fn table(&self) -> Option<(&str, &str)> {
        let table = match &self.plan {
            Plan::Select(plan) => &plan.table,
            Plan::Modification(plan) => &plan.table,
            Plan::Batch(plan) => &plan.statements.first()?.table,
            Plan::Other(_) => return None,
        };
        Some((&table.schema.keyspace, &table.schema.name))
    }

    /// Whether it writes rows, and so has a timestamp.
    pub fn writes(&self) -> bool {
        matches!(self.plan, Plan::Modification(_) | Plan::Batch(_))
    }

    /// Whether it returns the rows of named partitions: only such reads count for the latency target.
    pub fn reads_partitions(&self) -> bool {
        match &self.plan {
            Plan::Select(plan) => {
                let has_storage = plan.table.kind != TableKind::Virtual;
                has_storage && plan.restrictions.key_restricted && !plan.is_aggregate()
            }
            _ => false,
        }
    }
}

/// One of a batch, with its own values in `values`.
pub struct BatchEntry<'a> {
    pub statement: Arc<PreparedStatement>,
    pub values: &'a [Value<'a>],
}
