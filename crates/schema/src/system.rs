//! Cassandra's own keyspaces: what tables they have is in `system/*.cql`, as 5.0.9 describes them. `halcyon_views` is Halcyon's.
//!
//! Options that have their defaults are left out there. A table's id is the name-based UUID of keyspace and table, as
//! Cassandra makes it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::Schema;
use crate::catalog::{Catalog, Keyspace, Table, TableKind};

struct System {
    keyspace: &'static str,
    tables: &'static str,
    /// The class of its replication, and the factor if it has one.
    replication: (&'static str, Option<&'static str>),
    is_virtual: bool,
}

const LOCAL: (&str, Option<&str>) = ("org.apache.cassandra.locator.LocalStrategy", None);
const SIMPLE: &str = "org.apache.cassandra.locator.SimpleStrategy";

const SYSTEM: [System; 8] = [
    System {
        keyspace: "system",
        tables: include_str!("system/system.cql"),
        replication: LOCAL,
        is_virtual: false,
    },
    System {
        keyspace: "system_schema",
        tables: include_str!("system/system_schema.cql"),
        replication: LOCAL,
        is_virtual: false,
    },
    System {
        keyspace: "system_auth",
        tables: include_str!("system/system_auth.cql"),
        replication: (SIMPLE, Some("1")),
        is_virtual: false,
    },
    System {
        keyspace: "system_distributed",
        tables: include_str!("system/system_distributed.cql"),
        replication: (SIMPLE, Some("3")),
        is_virtual: false,
    },
    System {
        keyspace: "system_traces",
        tables: include_str!("system/system_traces.cql"),
        replication: (SIMPLE, Some("2")),
        is_virtual: false,
    },
    System {
        keyspace: "system_views",
        tables: include_str!("system/system_views.cql"),
        replication: LOCAL,
        is_virtual: true,
    },
    System {
        keyspace: "halcyon_views",
        tables: include_str!("system/halcyon_views.cql"),
        replication: LOCAL,
        is_virtual: true,
    },
    System {
        keyspace: "system_virtual_schema",
        tables: include_str!("system/system_virtual_schema.cql"),
        replication: LOCAL,
        is_virtual: true,
    },
];

/// Keyspaces that exist once per node and that no statement can change.
pub fn is_local(keyspace: &str) -> bool {
    keyspace == "system" || keyspace == "system_schema"
}

/// Keyspaces whose tables no statement can change, though their replication can be.
pub fn is_replicated_system(keyspace: &str) -> bool {
    matches!(keyspace, "system_auth" | "system_distributed" | "system_traces")
}

pub fn is_virtual(keyspace: &str) -> bool {
    matches!(keyspace, "halcyon_views" | "system_views" | "system_virtual_schema")
}

/// The keyspaces that every node has: `system`, `system_schema`, …, `system_views`.
pub fn system_tables() -> Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(read).clone()
}

fn read() -> Catalog {
    let mut catalog = Catalog::default();
    for system in &SYSTEM {
        // The texts are part of the program, and a test reads them.
        let schema = Schema::parse(system.tables, system.keyspace).unwrap_or_default();
        let (class, factor) = system.replication;
        let mut replication = BTreeMap::from([("class".to_owned(), class.to_owned())]);
        if let Some(factor) = factor {
            replication.insert("replication_factor".to_owned(), factor.to_owned());
        }
        let mut tables = BTreeMap::new();
        for table in schema.tables() {
            let mut table = table.clone();
            table.options.complete();
            let kind = if system.is_virtual { TableKind::Virtual } else { TableKind::Regular };
            let id = table.id.unwrap_or_default();
            tables.insert(table.name.clone(), Arc::new(Table::new(id, kind, table)));
        }
        let keyspace = Keyspace {
            name: system.keyspace.to_owned(),
            replication,
            durable_writes: true,
            is_virtual: system.is_virtual,
            tables,
            types: BTreeMap::new(),
        };
        catalog.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
    }
    catalog.version = super::rows::version(&catalog);
    catalog
}
