//! Plans: statements with resolved names and typed terms.
//!
//! ```text
//!  ast ─► prepare(catalog, keyspace) ─► Prepared { variables, plan } ─► bind(values) ─► what `query` executes
//! ```
//!
//! A plan is made once and bound many times; nothing in it changes. `select` and `modify` each own their plan and its
//! bound form. Below them files use each other in one direction:
//!
//! ```text
//!  select, modify ─► selection, restrictions ─► term (prepare) ─► eval (run) ─► functions ─► json ─► value (bytes)
//!                                       all of them ─► metadata (columns, markers), execution (values, time, UUIDs)
//! ```

mod eval;
mod execution;
pub mod functions;
mod json;
pub mod mask;
mod metadata;
pub mod modify;
mod names;
mod prepared;
pub mod requires;
pub mod restrictions;
pub mod select;
pub mod selection;
pub mod term;
mod value;
pub mod view;

#[cfg(test)]
mod recorded_tests;

use std::sync::Arc;

use halcyon_schema::catalog::{Catalog, Table};
use halcyon_syntax::Result;
use halcyon_syntax::ast::{Statement, StatementKind};

pub use execution::{Execution, Given, Runner, Work};
pub use metadata::{ResultColumns, Variables};
pub use names::find_table;

/// A statement whose names are looked up and whose terms have types.
pub type Prepared = prepared::Prepared<Plan>;

/// The plan of a statement, by kind.
#[derive(Debug, Clone)]
pub enum Plan {
    Select(Arc<select::SelectPlan>),
    Modification(Arc<modify::ModifyPlan>),
    Batch(Arc<modify::BatchPlan>),
    /// Everything else (schema, USE, TRUNCATE, roles) is executed as it was written.
    Other(Arc<Statement>),
}

impl Plan {
    /// The tables that it was made for; `None` of what is executed as it was written.
    pub fn tables(&self) -> Option<Vec<&Arc<Table>>> {
        match self {
            Plan::Select(plan) => Some(vec![&plan.table]),
            Plan::Modification(plan) => Some(vec![&plan.table]),
            Plan::Batch(plan) => Some(plan.statements.iter().map(|plan| &plan.table).collect()),
            Plan::Other(_) => None,
        }
    }

    /// Replaces the tables. What the plan shares with another one is copied first.
    pub fn map_tables(&mut self, own: impl Fn(&Arc<Table>) -> Arc<Table>) {
        match self {
            Plan::Select(plan) => {
                let plan = Arc::make_mut(plan);
                plan.table = own(&plan.table);
            }
            Plan::Modification(plan) => {
                let plan = Arc::make_mut(plan);
                plan.table = own(&plan.table);
            }
            Plan::Batch(plan) => {
                for plan in &mut Arc::make_mut(plan).statements {
                    let plan = Arc::make_mut(plan);
                    plan.table = own(&plan.table);
                }
            }
            Plan::Other(_) => {}
        }
    }
}

/// Prepares a statement against a catalog. `keyspace` is the one in force: set by USE or sent with the request.
pub fn prepare(
    statement: &Statement,
    catalog: &Catalog,
    keyspace: Option<&str>,
    work: &Work<'_>,
) -> Result<Prepared> {
    let prepared = prepare_kind(statement, catalog, keyspace, work);
    work.check()?;
    prepared
}

fn prepare_kind(
    statement: &Statement,
    catalog: &Catalog,
    keyspace: Option<&str>,
    work: &Work<'_>,
) -> Result<Prepared> {
    match &statement.kind {
        StatementKind::Select(select) => {
            Ok(select::prepare(select, catalog, keyspace, work)?.map(Plan::Select))
        }
        StatementKind::Modification(modification) => {
            Ok(modify::prepare(modification, catalog, keyspace, work)?.map(Plan::Modification))
        }
        StatementKind::Batch(batch) => {
            Ok(modify::prepare_batch(batch, catalog, keyspace, work)?.map(Plan::Batch))
        }
        _ => Ok(Prepared {
            plan: Plan::Other(Arc::new(statement.clone())),
            variables: Variables::default(),
            columns: None,
            warnings: Vec::new(),
            requires: Vec::new(),
        }),
    }
}
