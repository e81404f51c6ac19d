//! What a table is at one time, and what is derived from that once.

use std::sync::Arc;
use std::time::Duration;

use halcyon_model::options::CachedRows;
use halcyon_model::schema::TableSchema;
use halcyon_schema::catalog::{Catalog, Table};
use halcyon_stream::Layout;

use crate::index::{self, TableIndex};

/// A table's definition and the values derived from it.
pub(crate) struct Definition {
    pub(crate) table: Arc<Table>,
    pub(crate) schema: Arc<TableSchema>,
    /// Of reversed reads.
    pub(crate) reversed: Arc<Layout>,
    /// Whether writes are logged (`durable_writes` of the keyspace).
    pub(crate) durable: bool,
    pub(crate) indexes: Arc<[TableIndex]>,
    pub(crate) caching: Caching,
    /// Neither counters nor collections: the newest cell of a column is the column's value.
    pub(crate) single_cells: bool,
    /// `memtable_flush_period_in_ms`
    pub(crate) flush_period: Option<Duration>,
}

/// The table's `caching`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caching {
    pub(crate) keys: bool,
    /// Live rows of each partition's head that the row cache takes; `None`: the table is not in it.
    pub(crate) rows: Option<usize>,
}

impl Caching {
    fn of(schema: &TableSchema) -> Caching {
        let caching = schema.options.caching();
        let rows = match caching.rows {
            CachedRows::None => None,
            CachedRows::All => Some(usize::MAX),
            CachedRows::Head(rows) => usize::try_from(rows).ok(),
        };
        // One row is the whole partition there.
        let whole = schema.clustering.is_empty();
        Caching { keys: caching.keys, rows: rows.map(|rows| if whole { usize::MAX } else { rows }) }
    }
}

impl Definition {
    /// A copy with reference counts of its own.
    pub(crate) fn for_shard(&self) -> Arc<Definition> {
        let layout = Arc::new(Layout::clone(&self.table.layout));
        let table = Table { layout, ..Table::clone(&self.table) };
        Arc::new(Definition {
            table: Arc::new(table),
            schema: Arc::new(TableSchema::clone(&self.schema)),
            reversed: Arc::new(Layout::clone(&self.reversed)),
            indexes: Arc::from(&*self.indexes),
            ..*self
        })
    }

    /// Whether it is that of the table in the catalog, which most of them are after a change of another.
    pub(crate) fn is_of(&self, table: &Arc<Table>, catalog: &Catalog) -> bool {
        Arc::ptr_eq(&self.table, table) && self.durable == is_durable(table, catalog)
    }

    pub(crate) fn of(table: Arc<Table>, catalog: &Catalog) -> Arc<Definition> {
        let durable = is_durable(&table, catalog);
        let schema = Arc::new(table.schema.clone());
        let reversed = Arc::new(table.layout.reversed());
        let caching = Caching::of(&schema);
        let period = u64::try_from(schema.options.memtable_flush_period_in_ms).ok();
        let period = period.filter(|ms| *ms > 0);
        let flush_period = period.map(Duration::from_millis);
        let indexes = index::of_table(&table).into();
        let columns = || table.layout.regulars.iter().chain(&table.layout.statics);
        let single_cells = !table.is_counter() && !columns().any(|column| column.is_complex());
        Arc::new(Definition {
            table,
            schema,
            reversed,
            durable,
            indexes,
            caching,
            single_cells,
            flush_period,
        })
    }
}

fn is_durable(table: &Table, catalog: &Catalog) -> bool {
    catalog.keyspace(&table.schema.keyspace).is_none_or(|keyspace| keyspace.durable_writes)
}
