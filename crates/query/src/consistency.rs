//! Consistency levels on one node: what a request may ask for, and whether one replica is enough.

use halcyon_schema::catalog::{Catalog, Table, TableKind};

use crate::{Error, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Consistency(u16);

const NAMES: [&str; 11] = [
    "ANY",
    "ONE",
    "TWO",
    "THREE",
    "QUORUM",
    "ALL",
    "LOCAL_QUORUM",
    "EACH_QUORUM",
    "SERIAL",
    "LOCAL_SERIAL",
    "LOCAL_ONE",
];

const ANY: u16 = 0;
const ONE: u16 = 1;
const TWO: u16 = 2;
const THREE: u16 = 3;
const QUORUM: u16 = 4;
const ALL: u16 = 5;
const LOCAL_QUORUM: u16 = 6;
const EACH_QUORUM: u16 = 7;
const SERIAL: u16 = 8;
const LOCAL_SERIAL: u16 = 9;
const LOCAL_ONE: u16 = 10;

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::Invalid(message.into()))
}

impl Consistency {
    pub(crate) fn new(code: u16) -> Result<Consistency> {
        if usize::from(code) < NAMES.len() {
            return Ok(Consistency(code));
        }
        Err(Error::Protocol(format!("Unknown code {code} for a consistency level")))
    }

    fn name(self) -> &'static str {
        NAMES.get(usize::from(self.0)).copied().unwrap_or_default()
    }

    fn is_serial(self) -> bool {
        matches!(self.0, SERIAL | LOCAL_SERIAL)
    }

    /// A write without conditions.
    pub(crate) fn check_write(self, table: &Table) -> Result<()> {
        if table.is_counter() {
            if self.0 == ANY {
                return refuse(format!(
                    "Consistency level ANY is not yet supported for counter table {}",
                    table.schema.name
                ));
            }
            if self.is_serial() {
                return refuse("Counter operations are inherently non-serializable");
            }
        } else if self.is_serial() {
            return refuse("You must use conditional updates for serializable writes");
        }
        Ok(())
    }

    pub(crate) fn check_read_before_write(self) -> Result<()> {
        if self.0 == ANY {
            return refuse(
                "Write operation require a read but consistency ANY is not supported on reads",
            );
        }
        Ok(())
    }

    /// The commit of a conditional write.
    pub(crate) fn check_commit(self, catalog: &Catalog, keyspace: &str) -> Result<()> {
        if self.0 == EACH_QUORUM {
            let class = strategy(catalog, keyspace);
            if !class.ends_with("NetworkTopologyStrategy") {
                return refuse(format!(
                    "consistency level EACH_QUORUM not compatible with replication strategy ({class})"
                ));
            }
        }
        if self.is_serial() {
            return refuse(format!(
                "{} is not supported as conditional update commit consistency. Use ANY if you mean \"make sure it is accepted but I don't care how many replicas commit it for non-SERIAL reads\"",
                self.name()
            ));
        }
        Ok(())
    }

    /// What a conditional write names as its serial level.
    pub(crate) fn check_is_serial(self) -> Result<()> {
        if self.is_serial() {
            return Ok(());
        }
        refuse("Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL")
    }

    /// A serial level: a majority must be there.
    pub(crate) fn check_serial(self, catalog: &Catalog, keyspace: &str) -> Result<()> {
        let majority = if self.0 == LOCAL_SERIAL { LOCAL_QUORUM } else { QUORUM };
        Consistency(majority).check_replicas(catalog, keyspace)
    }

    pub(crate) fn check_read_level(self) -> Result<()> {
        if self.0 == ANY {
            return refuse("ANY ConsistencyLevel is only supported for writes");
        }
        Ok(())
    }

    /// A read. `partitions` says how many keys it names; `None` is a range.
    pub(crate) fn check_read(
        self,
        catalog: &Catalog,
        table: &Table,
        partitions: Option<usize>,
    ) -> Result<()> {
        if table.kind == TableKind::Virtual {
            return Ok(());
        }
        let keyspace = &table.schema.keyspace;
        match partitions {
            Some(2..) if self.is_serial() => refuse(
                "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time",
            ),
            // What a conditional write left unfinished would be finished first, by a majority.
            Some(_) if self.is_serial() => self.check_serial(catalog, keyspace),
            _ => self.check_replicas(catalog, keyspace),
        }
    }

    /// Whether this node alone can answer for a keyspace.
    pub(crate) fn check_replicas(self, catalog: &Catalog, keyspace: &str) -> Result<()> {
        let replicas = Replicas::of(catalog, keyspace);
        let majority = |replicas: i32| replicas / 2 + 1;
        let (required, alive) = match self.0 {
            ANY => return Ok(()),
            ONE => (1, replicas.alive),
            TWO => (2, replicas.alive),
            THREE => (3, replicas.alive),
            ALL => (replicas.all, replicas.alive),
            EACH_QUORUM if replicas.by_center => {
                return self.check_each_center(catalog, keyspace);
            }
            LOCAL_QUORUM | LOCAL_SERIAL => (majority(replicas.local), replicas.alive),
            LOCAL_ONE => (1, replicas.alive),
            _ => (majority(replicas.all), replicas.alive),
        };
        if alive >= required {
            return Ok(());
        }
        Err(Error::Unavailable {
            consistency: self.name().to_owned(),
            code: self.0,
            required,
            alive,
        })
    }

    /// A majority in each data centre. Cassandra tells the living in the place of the full replicas, so they are none.
    fn check_each_center(self, catalog: &Catalog, keyspace: &str) -> Result<()> {
        let Some(keyspace) = catalog.keyspace(keyspace) else { return Ok(()) };
        for (center, text) in keyspace.replication.iter().filter(|(key, _)| *key != "class") {
            let required = factor(text) / 2 + 1;
            let alive = i32::from(center == catalog.data_center());
            if alive < required {
                let consistency = format!("{} in DC {center}", self.name());
                return Err(Error::Unavailable { consistency, code: self.0, required, alive: 0 });
            }
        }
        Ok(())
    }
}

/// How many replicas a keyspace wants, and whether this node is one of them.
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
