//! What a view takes from its base: which of its columns, for which rows.

use std::sync::Arc;

use halcyon_cql::plan::view::{ViewRows, restricted};
use halcyon_model::schema::ColumnKind;
use halcyon_schema::catalog::{Catalog, ColumnRef, Table};
use halcyon_syntax::parse_relations;

use crate::{Error, Result};

#[derive(Debug)]
pub(crate) struct ViewPlan {
    pub(super) view: Arc<Table>,
    pub(super) base: Arc<Table>,
    pub(super) rows: ViewRows,
    pub(super) includes_all: bool,
    /// The base's columns that make up the view's partition key and clustering, in its order.
    pub(super) partition_key: Vec<ColumnRef>,
    pub(super) clustering: Vec<ColumnRef>,
    /// By regular column of the base: the view's column. Both stand in the same order.
    pub(super) regulars: Vec<Option<u16>>,
    /// The base's regular column that is in the view's primary key: its cell decides whether the view has a row, and how long.
    pub(super) other_key: Option<u16>,
}

impl ViewPlan {
    /// The plans of all views on a table.
    pub(super) fn of_base(catalog: &Catalog, base: &Arc<Table>) -> Result<Vec<Arc<ViewPlan>>> {
        let view = |name: &String| {
            let known = catalog.table(&base.schema.keyspace, name);
            let table = known.ok_or_else(|| unusable(base, name, "it was set apart"))?;
            ViewPlan::new(catalog, base, table).map(Arc::new)
        };
        base.views.iter().map(view).collect()
    }

    pub(super) fn new(catalog: &Catalog, base: &Arc<Table>, view: &Arc<Table>) -> Result<ViewPlan> {
        let name = &view.schema.name;
        let definition =
            view.view.as_ref().ok_or_else(|| unusable(base, name, "it is not a view"))?;
        let wrong = |why: halcyon_syntax::Error| unusable(base, name, &why.to_string());
        let relations = parse_relations(&definition.where_clause).map_err(wrong)?;
        let rows = ViewRows::prepare(catalog, base, &relations).map_err(wrong)?;
        // Cassandra takes such a view only with `cassandra.mv.allow_filtering_nonkey_columns_unsafe`.
        if !restricted(catalog, base, &relations).map_err(wrong)?.regulars.is_empty() {
            return Err(unusable(
                base,
                name,
                "its WHERE restricts columns outside of the primary key",
            ));
        }
        let in_base = |kind: ColumnKind| -> Result<Vec<ColumnRef>> {
            let found = view.columns(kind).iter().map(|column| {
                let missing = || unusable(base, name, "its base lacks a column of its key");
                base.find_column(&column.name).ok_or_else(missing)
            });
            found.collect()
        };
        let partition_key = in_base(ColumnKind::PartitionKey)?;
        let clustering = in_base(ColumnKind::Clustering)?;
        let keys = partition_key.iter().chain(&clustering);
        let other_key = keys.copied().find(|at| at.kind == ColumnKind::Regular).map(|at| at.index);
        let in_view = |column: &halcyon_model::schema::ColumnDef| {
            let found = view.find_column(&column.name)?;
            (found.kind == ColumnKind::Regular).then_some(found.index)
        };
        Ok(ViewPlan {
            regulars: base.schema.regulars.iter().map(in_view).collect(),
            includes_all: definition.includes_all,
            view: view.clone(),
            base: base.clone(),
            rows,
            partition_key,
            clustering,
            other_key,
        })
    }

    /// Whether the view shows a regular column of its base, in its key too.
    pub(super) fn shows(&self, column: u16) -> bool {
        self.other_key == Some(column)
            || self.regulars.get(usize::from(column)).is_some_and(Option::is_some)
    }
}

/// A view that cannot be kept up to date keeps its base from being written.
fn unusable(base: &Table, view: &str, why: &str) -> Error {
    Error::Invalid(format!(
        "{} cannot be written, because its materialized view {view} cannot be used: {why}; drop the view",
        base.full_name()
    ))
}
