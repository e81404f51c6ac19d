//! What a start could not use, as the log, the clients and `halcyon_views.set_apart` name it.

use halcyon_model::schema::TableSchema;
use halcyon_schema::catalog::Catalog;

/// Something in the directories that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetApart {
    pub keyspace: String,
    pub table: String,
    /// The file of an SSTable; `None`: the whole table.
    pub sstable: Option<String>,
    pub why: String,
}

impl SetApart {
    /// An SSTable, by what the names of its files have in common.
    pub(crate) fn sstable(
        schema: &TableSchema,
        name: &str,
        why: &impl std::fmt::Display,
    ) -> SetApart {
        SetApart {
            keyspace: schema.keyspace.clone(),
            table: schema.name.clone(),
            sstable: Some(name.trim_end_matches('-').to_owned()),
            why: why.to_string(),
        }
    }

    /// The text for clients: no paths.
    pub(crate) fn answer(&self, all: usize) -> String {
        let SetApart { keyspace, table, sstable, .. } = self;
        format!(
            "{all} SSTables of {keyspace}.{table} cannot be used and were set apart at the start, e.g. {}: see halcyon_views.set_apart",
            sstable.as_deref().unwrap_or("all")
        )
    }

    /// A line of the log.
    pub(crate) fn note(&self) -> String {
        let SetApart { keyspace, table, sstable, why } = self;
        match sstable {
            None if table.is_empty() => {
                format!("keyspace {keyspace} cannot be used and is set apart: {why}")
            }
            None => format!("{keyspace}.{table} cannot be used and is set apart: {why}"),
            Some(sstable) => format!(
                "SSTable {sstable} of {keyspace}.{table} cannot be used and is set apart: {why}. Its files stay as they are. \
                 Damaged ones can be restored from a backup; a start with disk_failure_policy best_effort reads the table without it"
            ),
        }
    }
}

/// The tables of the schema that are set apart.
pub(crate) fn of_schema(catalog: &Catalog) -> impl Iterator<Item = SetApart> {
    catalog.set_apart.iter().map(|((keyspace, table), apart)| SetApart {
        keyspace: keyspace.clone(),
        table: table.clone(),
        sstable: None,
        why: apart.why.clone(),
    })
}
