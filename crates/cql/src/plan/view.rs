//! Which rows of its base a materialized view has: the WHERE of its definition, asked of a key and a clustering.
//!
//! It restricts columns of the base's primary key only, except by `IS NOT NULL` (CASSANDRA-13798). So it is prepared as the WHERE of a
//! SELECT would be, and what that makes of it (keys, slices, filters) is asked of one row.

use std::sync::Arc;

use halcyon_model::BoundKind;
use halcyon_model::clustering::{ClusteringValue, Position};
use halcyon_model::schema::ColumnKind;
use halcyon_model::token::split_key;
use halcyon_model::uuid;
use halcyon_schema::catalog::{Catalog, ColumnRef, Keyspace, Table};
use halcyon_schema::change::RestrictedRows;
use halcyon_stream::PartitionKey;
use halcyon_syntax::ast::{
    Name, Operator, QualifiedName, Relation, RelationTarget, Select, Selection,
};
use halcyon_syntax::lexer::Location;
use halcyon_syntax::{Error, Result};

use super::execution::{Execution, Work};
use super::restrictions::{BoundKeys, find_column};
use super::select::{self, BoundSelect};

/// The rows of a base table that a view has.
#[derive(Debug, Clone)]
pub struct ViewRows {
    select: BoundSelect,
}

/// The columns that a view's WHERE restricts, if it is one that a view may have.
pub fn restricted(
    catalog: &Catalog,
    base: &Table,
    relations: &[Relation],
) -> Result<RestrictedRows> {
    let rows = ViewRows::prepare(catalog, base, relations)?;
    let filters = &rows.select.plan.restrictions.filters;
    let is_clustering = |column: &ColumnRef| column.kind == ColumnKind::Clustering;
    let filters_rows = filters.iter().any(|entry| entry.columns.iter().any(is_clustering));
    if filters_rows && has_several_keys(base, relations) {
        // Cassandra takes what filters clusterings for an index here.
        return Err(Error::invalid_request(
            "Select on indexed columns and with IN clause for the PRIMARY KEY are not supported",
        ));
    }
    let mut restricted = RestrictedRows::default();
    for relation in relations {
        for name in names(relation) {
            let column = find_column(base, name)?;
            if !column.kind.is_key() && relation.operator != Operator::IsNot {
                restricted.regulars.push(name.text.clone());
            }
            restricted.any.push(name.text.clone());
        }
    }
    Ok(restricted)
}

/// Whether a column of the partition key is restricted to several values.
fn has_several_keys(base: &Table, relations: &[Relation]) -> bool {
    let lists = relations.iter().filter(|relation| relation.operator == Operator::In);
    let columns = lists.flat_map(names).filter_map(|name| base.find_column(&name.text));
    columns.into_iter().any(|column| column.kind == ColumnKind::PartitionKey)
}

fn names(relation: &Relation) -> &[Name] {
    match &relation.target {
        RelationTarget::Column(name) | RelationTarget::Element(name, _) => {
            std::slice::from_ref(name)
        }
        RelationTarget::Columns(names) | RelationTarget::Token(names) => names,
        RelationTarget::Expression(_) => &[],
    }
}

impl ViewRows {
    pub fn prepare(catalog: &Catalog, base: &Table, relations: &[Relation]) -> Result<ViewRows> {
        for relation in relations.iter().filter(|of| of.operator == Operator::IsNot) {
            names(relation).iter().try_for_each(|name| find_column(base, name).map(drop))?;
        }
        let asked = relations.iter().filter(|relation| relation.operator != Operator::IsNot);
        let select = Select {
            json: false,
            distinct: false,
            selection: Selection::All,
            table: QualifiedName {
                location: Location { line: 1, column: 0 },
                keyspace: Some(base.schema.keyspace.clone()),
                name: base.schema.name.clone(),
            },
            relations: asked.cloned().collect(),
            group_by: Vec::new(),
            order_by: Vec::new(),
            per_partition_limit: None,
            limit: None,
            allow_filtering: true,
            timeout: None,
        };
        // The text of a definition is short, and no request waits for this shard while the schema changes.
        let work = Work::while_there_is_time(&|| true);
        let plan = select::prepare(&select, &without_indexes(catalog, base), None, &work)?.plan;
        let uuids = uuid::Generator::seeded(0);
        let execution = Execution::of_constants(&uuids, &work);
        Ok(ViewRows { select: plan.bind(&execution)? })
    }

    /// Whether the view may have rows of the partition.
    pub fn has_partition(&self, key: &PartitionKey) -> bool {
        match &self.select.keys {
            None => false,
            Some(BoundKeys::Partitions(keys)) => keys.iter().any(|known| known.bytes == key.bytes),
            Some(BoundKeys::Range(_)) => true,
        }
    }

    /// Whether the view has the row, if it is there.
    pub fn has_row(&self, key: &PartitionKey, clustering: &[u8]) -> bool {
        let table = &self.select.plan.table;
        let count = table.schema.clustering.len();
        let position = Position { kind: BoundKind::Clustering, count, serialized: clustering };
        let slices = &self.select.slices.slices;
        let is_selected =
            count == 0 || slices.iter().any(|slice| slice.contains(position, &table.layout));
        if !is_selected || !self.has_partition(key) {
            return false;
        }
        if self.select.filters.is_empty() {
            return true;
        }
        let components = split_key(&key.bytes, table.schema.partition_key.len());
        let clustering: Vec<_> = table.layout.clusterings.values(clustering, count).collect();
        // Keys are short, and no index says how they are compared.
        let work = Work::while_there_is_time(&|| true);
        self.select.filters.iter().all(|(_, filter)| {
            let at = usize::from(filter.column.index);
            let value = match filter.column.kind {
                ColumnKind::PartitionKey => components.as_ref().and_then(|c| c.get(at).copied()),
                ColumnKind::Clustering => match clustering.get(at) {
                    Some(ClusteringValue::Bytes(bytes)) => Some(*bytes),
                    _ => None,
                },
                ColumnKind::Static | ColumnKind::Regular => None,
            };
            filter.accepts(value, &work).is_ok_and(|accepts| accepts)
        })
    }
}

/// No index is asked which rows a view has.
fn without_indexes(catalog: &Catalog, base: &Table) -> Catalog {
    let mut catalog = catalog.clone();
    let plain = Arc::new(Table { indexes: Vec::new(), ..base.clone() });
    if let Some(keyspace) = catalog.keyspace(&base.schema.keyspace) {
        let mut keyspace = Keyspace::clone(keyspace);
        keyspace.tables.insert(base.schema.name.clone(), plain);
        catalog.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
    }
    catalog
}
