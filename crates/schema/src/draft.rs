//! A table while its statements are read: columns still have their types as text, since a later `ALTER TYPE` changes
//! what they mean.

use std::collections::BTreeMap;

use halcyon_model::CqlType;
use halcyon_model::options::TableOptions;
use halcyon_model::schema::{ColumnDef, ColumnKind, DroppedColumn, TableSchema};

use super::types::UserTypeCatalog;
use halcyon_syntax::lexer::Location;

/// Why a draft is not a valid table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftError {
    pub location: Option<Location>,
    pub what: String,
}

/// A column of a draft; its name is the key that it is kept under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDraft {
    /// In CQL.
    pub type_text: String,
    pub kind: ColumnKind,
    /// Location in the partition key or among the clustering columns.
    pub position: usize,
    /// Clustering columns only.
    pub descending: bool,
    /// Where the type stands, if in a text.
    pub location: Option<Location>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedDraft {
    pub name: String,
    pub type_text: String,
    pub kind: ColumnKind,
    pub location: Option<Location>,
    /// µs; `i64::MIN` if the time is unknown, so that no cell counts as dropped.
    pub dropped_time: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TableDraft {
    pub keyspace: String,
    pub name: String,
    pub id: Option<[u8; 16]>,
    pub columns: BTreeMap<String, ColumnDraft>,
    pub dropped: Vec<DroppedDraft>,
    pub options: TableOptions,
    pub strict_liveness: bool,
}

impl TableDraft {
    pub fn new(keyspace: &str, name: &str) -> TableDraft {
        TableDraft {
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            id: None,
            columns: BTreeMap::new(),
            dropped: Vec::new(),
            options: TableOptions::default(),
            strict_liveness: false,
        }
    }

    /// Whether the other is equal, apart from the locations in the text.
    pub(super) fn same_shape(&self, other: &TableDraft) -> bool {
        let shape = |draft: &TableDraft| {
            let mut draft = draft.clone();
            draft.columns.values_mut().for_each(|column| column.location = None);
            draft.dropped.iter_mut().for_each(|column| column.location = None);
            draft
        };
        shape(self) == shape(other)
    }

    /// Resolves the types and puts the columns into the order of files.
    pub fn finish(&self, types: &UserTypeCatalog) -> Result<TableSchema, DraftError> {
        let parse = |column: &str, text: &str, location: Option<Location>| {
            types.parse(text).map_err(|e| {
                let what = format!("column {column} of table {}.{}: {e}", self.keyspace, self.name);
                DraftError { location, what }
            })
        };
        let mut of_kind: BTreeMap<u8, Vec<(usize, ColumnDef)>> = BTreeMap::new();
        for (name, draft) in &self.columns {
            let mut cql_type = parse(name, &draft.type_text, draft.location)?;
            if draft.descending {
                cql_type = CqlType::Reversed(Box::new(cql_type));
            }
            let column = ColumnDef { name: name.clone(), cql_type };
            of_kind.entry(draft.kind as u8).or_default().push((draft.position, column));
        }
        let mut take = |kind: ColumnKind| {
            let mut columns = of_kind.remove(&(kind as u8)).unwrap_or_default();
            columns.sort_by(|(p, a), (q, b)| p.cmp(q).then_with(|| a.compare(b)));
            columns.into_iter().map(|(_, column)| column).collect::<Vec<_>>()
        };
        let mut dropped = Vec::with_capacity(self.dropped.len());
        for column in &self.dropped {
            dropped.push(DroppedColumn {
                name: column.name.clone(),
                cql_type: parse(&column.name, &column.type_text, column.location)?,
                kind: column.kind,
                dropped_time: column.dropped_time,
            });
        }
        let schema = TableSchema {
            keyspace: self.keyspace.clone(),
            name: self.name.clone(),
            id: self.id,
            partition_key: take(ColumnKind::PartitionKey),
            clustering: take(ColumnKind::Clustering),
            statics: take(ColumnKind::Static),
            regulars: take(ColumnKind::Regular),
            dropped,
            options: self.options.clone(),
            strict_liveness: self.strict_liveness,
        };
        if schema.partition_key.is_empty() {
            let what = format!("table {}.{} has no partition key", self.keyspace, self.name);
            return Err(DraftError { location: None, what });
        }
        Ok(schema)
    }
}
