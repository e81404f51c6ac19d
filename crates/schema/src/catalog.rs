//! The catalog: an immutable snapshot of all keyspaces, tables and types, that statements are prepared against.
//!
//! A schema change makes a new catalog; a holder of an old one keeps using it.

use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_model::schema::{ColumnDef, ColumnKind, TableSchema};
use halcyon_model::types::UserType;
use halcyon_model::{CqlType, Partitioner};
use halcyon_stream::{Layout, TableId};

use halcyon_syntax::{Error, Result};

use crate::function::Functions;
use crate::index::Index;
use crate::mask::ColumnMask;
use crate::view::View;

/// The data centre of Cassandra's `SimpleSnitch`.
pub const DATA_CENTER: &str = "datacenter1";

/// Which kind of table, as far as statements behave differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    Regular,
    View,
    /// No storage: rows are computed when they are read. Partitions are in the order of their keys' type.
    Virtual,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub id: TableId,
    pub kind: TableKind,
    pub schema: TableSchema,
    /// Statics and regulars stand in it at the same indexes as in `schema`.
    pub layout: Arc<Layout>,
    /// By name.
    pub indexes: Vec<Index>,
    /// The names of its triggers, whose classes this program cannot run.
    pub triggers: Vec<String>,
    /// Of a view only.
    pub view: Option<View>,
    /// The names of the views on it.
    pub views: Vec<String>,
    /// By column.
    pub masks: BTreeMap<String, ColumnMask>,
}

/// Where a column stands: its kind, and its index among the columns of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnRef {
    pub kind: ColumnKind,
    pub index: u16,
}

impl Table {
    pub fn new(id: TableId, kind: TableKind, schema: TableSchema) -> Table {
        let mut layout = Layout::of_table(&schema);
        if kind == TableKind::Virtual {
            layout.partitioner = Partitioner::Local(layout.key_type.clone());
        }
        Table {
            id,
            kind,
            schema,
            layout: Arc::new(layout),
            indexes: Vec::new(),
            triggers: Vec::new(),
            view: None,
            views: Vec::new(),
            masks: BTreeMap::new(),
        }
    }

    /// The same table with another schema.
    pub fn altered(&self, schema: TableSchema) -> Table {
        let mut table = Table {
            indexes: self.indexes.clone(),
            triggers: self.triggers.clone(),
            view: self.view.clone(),
            views: self.views.clone(),
            ..Table::new(self.id, self.kind, schema)
        };
        let mut masks = self.masks.clone();
        // Only keys have new names, and keep their places.
        for (before, after) in self.keys().zip(table.keys()) {
            if before.name != after.name
                && let Some(mask) = masks.remove(&before.name)
            {
                masks.insert(after.name.clone(), mask);
            }
        }
        masks.retain(|name, _| table.all_columns().any(|column| column.name == *name));
        table.masks = masks;
        table
    }

    /// The columns of the primary key.
    fn keys(&self) -> impl Iterator<Item = &ColumnDef> {
        self.schema.partition_key.iter().chain(&self.schema.clustering)
    }

    /// The columns of one kind.
    pub fn columns(&self, kind: ColumnKind) -> &[ColumnDef] {
        match kind {
            ColumnKind::PartitionKey => &self.schema.partition_key,
            ColumnKind::Clustering => &self.schema.clustering,
            ColumnKind::Static => &self.schema.statics,
            ColumnKind::Regular => &self.schema.regulars,
        }
    }

    /// The columns of every kind.
    pub fn all_columns(&self) -> impl Iterator<Item = &ColumnDef> {
        let schema = &self.schema;
        let lists = [&schema.partition_key, &schema.clustering, &schema.statics, &schema.regulars];
        lists.into_iter().flatten()
    }

    /// The columns of one kind as `*` lists them: by name, except that of names that do not begin with ASCII Cassandra takes complex
    /// columns for simple ones, and that it merges these two lists by signed bytes.
    pub fn in_select_order(&self, kind: ColumnKind) -> Vec<ColumnRef> {
        // Tables with COMPACT STORAGE have no complex columns.
        if kind.is_key() || self.schema.options.compact_storage {
            return self.visible_refs(kind).collect();
        }
        let (columns, all) = (self.columns(kind), self.refs(kind));
        let complex = |c: &ColumnDef| {
            c.cql_type.is_multi_cell() && c.name.starts_with(|c: char| c.is_ascii())
        };
        let at = columns.iter().position(complex).unwrap_or(columns.len());
        let signed = |column: &ColumnRef| -> Option<Vec<i8>> {
            Some(self.column(*column)?.name.bytes().map(|byte| byte as i8).collect())
        };
        let mut complex = all.clone().skip(at).peekable();
        let mut merged = Vec::with_capacity(columns.len());
        for simple in all.take(at) {
            while let Some(next) = complex.next_if(|next| signed(next) < signed(&simple)) {
                merged.push(next);
            }
            merged.push(simple);
        }
        merged.extend(complex);
        merged
    }

    /// All columns of one kind, those that CQL does not know too.
    pub fn refs(&self, kind: ColumnKind) -> impl Iterator<Item = ColumnRef> + Clone + use<> {
        let count = u16::try_from(self.columns(kind).len()).unwrap_or(u16::MAX);
        (0..count).map(move |index| ColumnRef { kind, index })
    }

    pub fn visible_refs(&self, kind: ColumnKind) -> impl Iterator<Item = ColumnRef> {
        let is_visible = move |column: &ColumnDef| !self.hides(kind, column);
        self.refs(kind).filter(move |at| self.column(*at).is_some_and(is_visible))
    }

    pub fn column(&self, at: ColumnRef) -> Option<&ColumnDef> {
        self.columns(at.kind).get(usize::from(at.index))
    }

    pub fn find_column(&self, name: &str) -> Option<ColumnRef> {
        let kinds = [
            ColumnKind::PartitionKey,
            ColumnKind::Clustering,
            ColumnKind::Static,
            ColumnKind::Regular,
        ];
        kinds.into_iter().find_map(|kind| {
            let is_it = |column: &ColumnDef| column.name == name && !self.hides(kind, column);
            let index = self.columns(kind).iter().position(is_it)?;
            Some(ColumnRef { kind, index: u16::try_from(index).ok()? })
        })
    }

    pub fn index(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// Where the column of one of its indexes stands.
    pub fn indexed_column(&self, index: &Index) -> Option<ColumnRef> {
        self.find_column(&index.column)
    }

    /// The type of the terms of one of its indexes.
    pub fn term_type(&self, index: &Index) -> Option<CqlType> {
        Some(index.term_type(&self.column(self.indexed_column(index)?)?.cql_type))
    }

    /// `COMPACT STORAGE`: without clustering columns in CQL, all is in the static row, and what could be beside it has no name;
    /// with them and without a value, rows have an empty one.
    pub fn hides(&self, kind: ColumnKind, column: &ColumnDef) -> bool {
        let is_static = self.schema.is_static_compact();
        self.schema.options.compact_storage
            && match kind {
                ColumnKind::PartitionKey | ColumnKind::Static => false,
                ColumnKind::Clustering => is_static,
                ColumnKind::Regular => is_static || column.cql_type == CqlType::Empty,
            }
    }

    /// What CQL knows of the columns of one kind.
    pub fn visible_columns(&self, kind: ColumnKind) -> impl Iterator<Item = &ColumnDef> {
        self.columns(kind).iter().filter(move |column| !self.hides(kind, column))
    }

    pub fn is_counter(&self) -> bool {
        self.schema.regulars.iter().chain(&self.schema.statics).any(|c| c.cql_type.is_counter())
    }

    /// `keyspace.table`, as messages name it.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.schema.keyspace, self.schema.name)
    }
}

/// Refuses a write that would leave indexes or triggers of a table behind: their data would be wrong in Cassandra, and no check would
/// find it.
pub fn refuse_derived(table: &Table, doing: &str) -> Result<()> {
    let unkept = table.indexes.iter().find(|index| !index.is_kept());
    let index = unkept.map(|index| format!("index {}", index.name));
    let trigger = table.triggers.first().map(|trigger| format!("trigger {trigger}"));
    match trigger.or(index) {
        None => Ok(()),
        Some(first) => Err(Error::NotSupportedYet(format!(
            "{doing} {}, which has the {first}: it would not be kept up to date; drop it with Cassandra first",
            table.full_name()
        ))),
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Keyspace {
    pub name: String,
    /// `class` is one of its keys.
    pub replication: BTreeMap<String, String>,
    pub durable_writes: bool,
    pub is_virtual: bool,
    pub tables: BTreeMap<String, Arc<Table>>,
    pub types: BTreeMap<String, Arc<UserType>>,
    pub functions: Functions,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Catalog {
    /// `system.local.schema_version`.
    pub version: [u8; 16],
    /// The same of the types and functions alone, which statements on any table may name.
    pub types_version: [u8; 16],
    pub keyspaces: BTreeMap<String, Arc<Keyspace>>,
    /// Data centre and rack of this node; `None`: those of the `SimpleSnitch`.
    pub data_center: Option<Arc<str>>,
    /// By keyspace and name: tables, views and types whose rows of `system_schema` cannot be used.
    pub set_apart: Arc<BTreeMap<(String, String), SetApart>>,
}

/// A table, view or type of the schema that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetApart {
    /// `None` if its row does not tell.
    pub id: Option<TableId>,
    pub why: String,
}

impl Catalog {
    /// The data centre that this node is in.
    pub fn data_center(&self) -> &str {
        self.data_center.as_deref().unwrap_or(DATA_CENTER)
    }

    /// Refuses a name that is set apart.
    pub fn check_usable(&self, keyspace: &str, name: &str) -> Result<()> {
        match self.set_apart.get(&(keyspace.to_owned(), name.to_owned())) {
            None => Ok(()),
            Some(SetApart { why, .. }) => Err(Error::InvalidRequest(format!(
                "{keyspace}.{name} cannot be used, and was set apart at the start: {why}"
            ))),
        }
    }

    /// Whether the keyspace exists and its tables are virtual.
    pub fn is_virtual(&self, keyspace: &str) -> bool {
        self.keyspace(keyspace).is_some_and(|found| found.is_virtual)
    }

    pub fn keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        self.keyspaces.get(name)
    }

    pub fn table(&self, keyspace: &str, name: &str) -> Option<&Arc<Table>> {
        self.keyspaces.get(keyspace)?.tables.get(name)
    }

    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.keyspaces.values().flat_map(|keyspace| keyspace.tables.values())
    }
}
