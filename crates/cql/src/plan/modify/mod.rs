//! INSERT, UPDATE, DELETE and BATCH.
//!
//! ```text
//!  ast ─► prepare ─► ModifyPlan ─► bind(values) ─► BoundModification ─► mutation(key, current rows) ─► stream::Mutation
//!                                      │                                      ▲
//!                                      └─► conditions ─► what must be read ───┘
//! ```
//!
//! 1. `restrictions` selects the partitions and rows, `operation` changes their columns, `conditions` has the conditions of a
//!    conditional write.
//! 2. Binding gives owned values: a bound modification can be sent to the shard that owns its partition.
//! 3. Changes that depend on stored rows (list elements by index, counters, conditions) are computed there, by the pure code
//!    here: `query` reads the rows and hands them in as a `CurrentPartition`.

mod bound;
mod columns;
mod conditions;
mod current;
mod guarded;
mod indexed;
mod keys;
mod operation;
mod plan;
mod restrictions;
mod row;
mod statement;
mod statement_type;
mod terms;

use std::sync::Arc;

use super::execution::Work;
use super::metadata::Variables;
use super::prepared::Prepared;
use super::term::{Preparation, Term};
use halcyon_schema::catalog::Catalog;
use halcyon_syntax::ast::{Batch, Modification};
use halcyon_syntax::{Error, Result};

pub use bound::{BoundModification, BoundRows, Company, CounterShard};
pub use conditions::{BoundCondition, BoundConditions};
pub use current::{CurrentCell, CurrentCounter, CurrentPartition, CurrentRow};
pub use operation::Change;
pub use plan::{Attributes, BatchPlan, ModifyPlan, check_batch};
pub use statement_type::StatementType;
pub use terms::Terms;

/// Prepares one modification.
pub fn prepare(
    modification: &Modification,
    catalog: &Catalog,
    keyspace: Option<&str>,
    work: &Work<'_>,
) -> Result<Prepared<Arc<ModifyPlan>>> {
    let mut variables = Variables::default();
    let (plan, requires) =
        statement::prepare(modification, catalog, keyspace, &mut variables, work)?;
    statement::validate(&plan)?;
    variables.find_partition_key(plan.table.schema.partition_key.iter().map(|c| c.name.as_str()));
    let plan = Arc::new(plan);
    Ok(Prepared { plan, variables, columns: None, warnings: Vec::new(), requires })
}

/// Prepares a BATCH statement.
pub fn prepare_batch(
    batch: &Batch,
    catalog: &Catalog,
    keyspace: Option<&str>,
    work: &Work<'_>,
) -> Result<Prepared<Arc<BatchPlan>>> {
    let mut variables = Variables::default();
    let mut statements = Vec::with_capacity(batch.statements.len());
    let mut requires = Vec::new();
    for modification in &batch.statements {
        let (plan, needed) =
            statement::prepare(modification, catalog, keyspace, &mut variables, work)?;
        statements.push(Arc::new(plan));
        // Each once: a batch may have thousands of statements on one table.
        for requirement in needed {
            if !requires.contains(&requirement) {
                requires.push(requirement);
            }
        }
    }
    let mut to = Preparation::new(catalog, "[batch]", &mut variables, work);
    let attributes = statement::attributes(&batch.using, "[batch]", &mut to)?;
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
    check_batch(batch.kind, attributes.timestamp.is_some(), &statements)?;
    statements.iter().try_for_each(|plan| statement::validate(plan))?;
    let plan = BatchPlan { kind: batch.kind, timestamp: attributes.timestamp, statements };
    let plan = Arc::new(plan);
    Ok(Prepared { plan, variables, columns: None, warnings: Vec::new(), requires })
}
