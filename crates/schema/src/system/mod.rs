//! Cassandra's own keyspaces that have storage: their tables are in `system/*.cql`, as 5.0.9 describes them. The server defines the
//! virtual ones and parses them with [`virtual_keyspace`].
//!
//! Options that have their defaults are left out of the texts. A table's id is the name-based UUID of keyspace and table, as
//! Cassandra makes it.

mod names;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::Schema;
use crate::catalog::{Catalog, Keyspace, Table, TableKind};
use crate::function::Functions;
use crate::{Error, Result};

pub(crate) use names::not_modifiable;
pub use names::{is_local, is_replicated_system, refuse_modification};

struct System {
    keyspace: &'static str,
    tables: &'static str,
    /// The class of its replication, and the factor if it has one.
    replication: (&'static str, Option<&'static str>),
}

const LOCAL: (&str, Option<&str>) = ("org.apache.cassandra.locator.LocalStrategy", None);
const SIMPLE: &str = "org.apache.cassandra.locator.SimpleStrategy";

const SYSTEM: [System; 5] = [
    System { keyspace: "system", tables: include_str!("system.cql"), replication: LOCAL },
    System {
        keyspace: "system_schema",
        tables: include_str!("system_schema.cql"),
        replication: LOCAL,
    },
    System {
        keyspace: "system_auth",
        tables: include_str!("system_auth.cql"),
        replication: (SIMPLE, Some("1")),
    },
    System {
        keyspace: "system_distributed",
        tables: include_str!("system_distributed.cql"),
        replication: (SIMPLE, Some("3")),
    },
    System {
        keyspace: "system_traces",
        tables: include_str!("system_traces.cql"),
        replication: (SIMPLE, Some("2")),
    },
];

/// The keyspaces with storage that every node has: `system`, `system_schema`, …
pub fn system_tables() -> Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(read).clone()
}

fn read() -> Catalog {
    let mut catalog = Catalog::default();
    for system in &SYSTEM {
        // The texts are part of the program, and a test reads them.
        let schema = Schema::parse(system.tables, system.keyspace).unwrap_or_default();
        let keyspace = keyspace(system.keyspace, system.replication, &schema, TableKind::Regular);
        catalog.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
    }
    super::rows::set_version(&Catalog::default(), &mut catalog);
    catalog
}

/// The keyspace of virtual tables that a script creates.
pub fn virtual_keyspace(script: &str) -> Result<Keyspace> {
    let schema = Schema::parse(script, "")?;
    let mut names = schema.tables().map(|table| table.keyspace.as_str());
    let name = names.next().unwrap_or_default();
    if name.is_empty() || names.any(|other| other != name) {
        return Err(Error::invalid_request("virtual tables of one named keyspace expected"));
    }
    Ok(keyspace(name, LOCAL, &schema, TableKind::Virtual))
}

fn keyspace(
    name: &str,
    (class, factor): (&str, Option<&str>),
    schema: &Schema,
    kind: TableKind,
) -> Keyspace {
    let mut replication = BTreeMap::from([("class".to_owned(), class.to_owned())]);
    if let Some(factor) = factor {
        replication.insert("replication_factor".to_owned(), factor.to_owned());
    }
    let mut tables = BTreeMap::new();
    for table in schema.tables() {
        let mut table = table.clone();
        table.options.complete();
        let id = table.id.unwrap_or_default();
        tables.insert(table.name.clone(), Arc::new(Table::new(id, kind, table)));
    }
    Keyspace {
        name: name.to_owned(),
        replication,
        durable_writes: true,
        is_virtual: kind == TableKind::Virtual,
        tables,
        types: BTreeMap::new(),
        functions: Functions::default(),
    }
}
