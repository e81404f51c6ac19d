//! Consistency levels on one node: what a write may ask for, and whether one replica is enough.

use halcyon_cql::catalog::{Catalog, Table};

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
const QUORUM: u16 = 4;
const LOCAL_QUORUM: u16 = 6;
const EACH_QUORUM: u16 = 7;
const SERIAL: u16 = 8;
const LOCAL_SERIAL: u16 = 9;

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

    /// The serial level of a conditional write: a majority must be there.
    pub(crate) fn check_serial(self, catalog: &Catalog, keyspace: &str) -> Result<()> {
        match self.0 {
            SERIAL => Consistency(QUORUM).check_replicas(catalog, keyspace),
            LOCAL_SERIAL => Consistency(LOCAL_QUORUM).check_replicas(catalog, keyspace),
            _ => refuse(
                "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL",
            ),
        }
    }

    /// Whether this node alone can answer for a keyspace.
    pub(crate) fn check_replicas(self, catalog: &Catalog, keyspace: &str) -> Result<()> {
        let replicas = replication_factor(catalog, keyspace);
        let required = match self.0 {
            ANY => return Ok(()),
            2 => 2,
            3 => 3,
            QUORUM | LOCAL_QUORUM | EACH_QUORUM | SERIAL | LOCAL_SERIAL => replicas / 2 + 1,
            5 => replicas,
            _ => 1,
        };
        let alive = replicas.min(1);
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

/// How many replicas a keyspace wants, over all data centres; `3/1` has three.
fn replication_factor(catalog: &Catalog, keyspace: &str) -> i32 {
    let Some(keyspace) = catalog.keyspace(keyspace) else { return 1 };
    let is_local = keyspace.replication.get("class").is_none_or(|c| c.ends_with("LocalStrategy"));
    if is_local {
        return 1;
    }
    let factor = |text: &String| {
        let whole = text.split_once('/').map_or(text.as_str(), |(whole, _)| whole);
        whole.trim().parse::<i32>().unwrap_or(0)
    };
    let factors = keyspace.replication.iter().filter(|(key, _)| *key != "class");
    factors.map(|(_, value)| factor(value)).sum()
}
