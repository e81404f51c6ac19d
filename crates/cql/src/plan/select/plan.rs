//! The plan of a SELECT.

use std::sync::Arc;
use std::time::Duration;

use halcyon_model::CqlType;
use halcyon_model::schema::ColumnKind;

use super::grouping::Grouping;
use crate::plan::execution::Work;
use crate::plan::metadata::ResultColumns;
use crate::plan::restrictions::Restrictions;
use crate::plan::selection::Selection;
use crate::plan::term::Term;
use halcyon_schema::catalog::{Catalog, ColumnRef, Table};
use halcyon_syntax::Result;

#[derive(Debug, Clone)]
pub struct SelectPlan {
    pub table: Arc<Table>,
    pub columns: ResultColumns,
    /// The selectors are the columns of one JSON text, under these names, with their types.
    pub json: Option<Vec<(String, CqlType)>>,
    pub distinct: bool,
    pub allow_filtering: bool,
    pub selection: Selection,
    pub restrictions: Restrictions,
    /// Rows come last to first.
    pub reversed: bool,
    /// Fetched columns by which rows of several partitions are sorted, with their types; `true` is against them.
    pub sort: Vec<(usize, CqlType, bool)>,
    /// The fetched column of `ORDER BY … ANN OF`.
    pub nearest: Option<usize>,
    /// The fetched columns that the filters test, one index per entry of `restrictions.filters`.
    pub filter_fetch: Vec<(ColumnRef, usize)>,
    pub grouping: Option<Grouping>,
    pub limit: Option<Term>,
    pub per_partition_limit: Option<Term>,
    /// `USING TIMEOUT` of the statement.
    pub timeout: Option<Duration>,
}

impl SelectPlan {
    /// One row (or one per group) is made of many.
    pub fn is_aggregate(&self) -> bool {
        self.grouping.is_some() || self.selection.is_aggregate()
    }

    /// The plan of a client that may not see what is masked; `None`: nothing that it selects is.
    pub fn masked(&self, catalog: &Catalog) -> Result<Option<Arc<SelectPlan>>> {
        if self.table.masks.is_empty() {
            return Ok(None);
        }
        let selection = self.selection.masked(&self.table, catalog, &Work::small())?;
        Ok(Some(Arc::new(SelectPlan { selection, ..self.clone() })))
    }

    /// A warning that is sent with each execution.
    pub fn warning(&self) -> Option<&'static str> {
        if !self.is_aggregate() {
            None
        } else if !self.restrictions.key_restricted {
            Some("Aggregation query used without partition key")
        } else if self.restrictions.keys_in {
            Some("Aggregation query used on multiple partition keys (IN restriction)")
        } else {
            None
        }
    }

    /// No clustering or regular column is read: only whether a row is there, or static ones.
    pub fn only_statics(&self) -> bool {
        self.selection
            .fetch
            .iter()
            .all(|f| matches!(f.column.kind, ColumnKind::PartitionKey | ColumnKind::Static))
    }
}
