//! Consistency levels on one node: which levels a request may have, and whether one replica satisfies them.

use halcyon_model::request::Consistency;
use halcyon_schema::catalog::{Catalog, Table, TableKind};

use crate::{Error, Result};

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::Invalid(message.into()))
}

/// A write without conditions.
pub(crate) fn check_write(level: Consistency, table: &Table) -> Result<()> {
    if table.is_counter() {
        if level == Consistency::Any {
            return refuse(format!(
                "Consistency level ANY is not yet supported for counter table {}",
                table.schema.name
            ));
        }
        if level.is_serial() {
            return refuse("Counter operations are inherently non-serializable");
        }
    } else if level.is_serial() {
        return refuse("You must use conditional updates for serializable writes");
    }
    Ok(())
}

pub(crate) fn check_read_before_write(level: Consistency) -> Result<()> {
    if level == Consistency::Any {
        return refuse(
            "Write operation require a read but consistency ANY is not supported on reads",
        );
    }
    Ok(())
}

/// The commit of a conditional write.
pub(crate) fn check_commit(level: Consistency, catalog: &Catalog, keyspace: &str) -> Result<()> {
    if level == Consistency::EachQuorum {
        let class = strategy(catalog, keyspace);
        if !class.ends_with("NetworkTopologyStrategy") {
            return refuse(format!(
                "consistency level EACH_QUORUM not compatible with replication strategy ({class})"
            ));
        }
    }
    if level.is_serial() {
        return refuse(format!(
            "{} is not supported as conditional update commit consistency. Use ANY if you mean \"make sure it is accepted but I don't care how many replicas commit it for non-SERIAL reads\"",
            level.name()
        ));
    }
    Ok(())
}

/// The serial level of a conditional write.
pub(crate) fn check_is_serial(level: Consistency) -> Result<()> {
    if level.is_serial() {
        return Ok(());
    }
    refuse("Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL")
}

/// A serial level requires a majority.
pub(crate) fn check_serial(level: Consistency, catalog: &Catalog, keyspace: &str) -> Result<()> {
    let majority = if level == Consistency::LocalSerial {
        Consistency::LocalQuorum
    } else {
        Consistency::Quorum
    };
    check_replicas(majority, catalog, keyspace)
}

pub(crate) fn check_read_level(level: Consistency) -> Result<()> {
    if level == Consistency::Any {
        return refuse("ANY ConsistencyLevel is only supported for writes");
    }
    Ok(())
}

/// A read of `partitions` keys together, or of a range (`None`).
pub(crate) fn check_read(
    level: Consistency,
    catalog: &Catalog,
    table: &Table,
    partitions: Option<usize>,
) -> Result<()> {
    if table.kind == TableKind::Virtual {
        return Ok(());
    }
    let keyspace = &table.schema.keyspace;
    match partitions {
        Some(2..) if level.is_serial() => refuse(
            "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time",
        ),
        // An unfinished conditional write would be completed first, by a majority.
        Some(_) if level.is_serial() => check_serial(level, catalog, keyspace),
        _ => check_replicas(level, catalog, keyspace),
    }
}

/// Whether this node alone can answer for a keyspace.
pub(crate) fn check_replicas(level: Consistency, catalog: &Catalog, keyspace: &str) -> Result<()> {
    let replicas = Replicas::of(catalog, keyspace);
    let majority = |replicas: i32| replicas / 2 + 1;
    let (required, alive) = match level {
        Consistency::Any => return Ok(()),
        Consistency::One | Consistency::LocalOne | Consistency::NodeLocal => (1, replicas.alive),
        Consistency::Two => (2, replicas.alive),
        Consistency::Three => (3, replicas.alive),
        Consistency::All => (replicas.all, replicas.alive),
        Consistency::EachQuorum if replicas.by_center => {
            return check_each_center(level, catalog, keyspace);
        }
        Consistency::LocalQuorum | Consistency::LocalSerial => {
            (majority(replicas.local), replicas.alive)
        }
        _ => (majority(replicas.all), replicas.alive),
    };
    if alive >= required {
        return Ok(());
    }
    Err(Error::Unavailable { consistency: level.name().to_owned(), level, required, alive })
}

/// A majority in each data centre. Cassandra reports the number of live replicas as 0 here.
fn check_each_center(level: Consistency, catalog: &Catalog, keyspace: &str) -> Result<()> {
    let Some(keyspace) = catalog.keyspace(keyspace) else { return Ok(()) };
    for (center, text) in keyspace.replication.iter().filter(|(key, _)| *key != "class") {
        let required = factor(text) / 2 + 1;
        let alive = i32::from(center == catalog.data_center());
        if alive < required {
            let consistency = format!("{} in DC {center}", level.name());
            return Err(Error::Unavailable { consistency, level, required, alive: 0 });
        }
    }
    Ok(())
}

/// Whether no other node has the rows of a keyspace, so that nothing is reconciled.
pub(crate) fn has_one_replica(catalog: &Catalog, keyspace: &str) -> bool {
    Replicas::of(catalog, keyspace).all <= 1
}

/// The replication factor of a keyspace, and whether this node is a replica.
struct Replicas {
    all: i32,
    /// Wanted in this node's data centre.
    local: i32,
    alive: i32,
    /// Each data centre has its own factor.
    by_center: bool,
}

impl Replicas {
    fn of(catalog: &Catalog, name: &str) -> Replicas {
        let one = Replicas { all: 1, local: 1, alive: 1, by_center: false };
        let Some(keyspace) = catalog.keyspace(name) else { return one };
        let class = keyspace.replication.get("class").map_or("LocalStrategy", String::as_str);
        if class.ends_with("LocalStrategy") {
            return one;
        }
        let factors = keyspace.replication.iter().filter(|(key, _)| *key != "class");
        let all = factors.map(|(_, text)| factor(text)).sum();
        if !class.ends_with("NetworkTopologyStrategy") {
            return Replicas { all, local: all, alive: i32::min(all, 1), by_center: false };
        }
        let local = keyspace.replication.get(catalog.data_center()).map_or(0, |text| factor(text));
        Replicas { all, local, alive: local.min(1), by_center: true }
    }
}

/// `3/1` is three.
fn factor(text: &str) -> i32 {
    let whole = text.split_once('/').map_or(text, |(whole, _)| whole);
    whole.trim().parse().unwrap_or(0)
}

fn strategy(catalog: &Catalog, keyspace: &str) -> String {
    let class = catalog.keyspace(keyspace).and_then(|k| k.replication.get("class"));
    let class = class.map_or("SimpleStrategy", String::as_str);
    if class.contains('.') {
        class.to_owned()
    } else {
        format!("org.apache.cassandra.locator.{class}")
    }
}
