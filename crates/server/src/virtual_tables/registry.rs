//! The virtual tables by id: their definitions are parsed at the start.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use halcyon_query::{Error, Result};
use halcyon_schema::catalog::{Keyspace, Table};
use halcyon_schema::virtual_keyspace;
use halcyon_stream::TableId;

use super::table::VirtualTable;

/// All virtual tables, by id, and their keyspaces.
pub(crate) struct Registry {
    pub(crate) keyspaces: Vec<Arc<Keyspace>>,
    pub(super) tables: HashMap<TableId, VirtualTable>,
}

impl Registry {
    pub(super) fn read<'a>(
        registered: impl IntoIterator<Item = &'a VirtualTable>,
    ) -> Result<Registry, halcyon_schema::Error> {
        let mut keyspaces: BTreeMap<String, Keyspace> = BTreeMap::new();
        let mut tables = HashMap::new();
        for registered in registered {
            let read = virtual_keyspace(registered.cql)?;
            tables.extend(read.tables.values().map(|table| (table.id, *registered)));
            match keyspaces.get_mut(&read.name) {
                Some(known) => known.tables.extend(read.tables),
                None => drop(keyspaces.insert(read.name.clone(), read)),
            }
        }
        Ok(Registry { keyspaces: keyspaces.into_values().map(Arc::new).collect(), tables })
    }

    pub(super) fn get(&self, table: &Table) -> Result<&VirtualTable> {
        let unknown = || Error::Server(format!("{} is not registered", table.full_name()));
        self.tables.get(&table.id).ok_or_else(unknown)
    }
}
