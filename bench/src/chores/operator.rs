//! What an operator tells a server: by CQL, and where Cassandra has no CQL for it by JMX. The connections are there before, so that no
//! chore waits for a JVM of nodetool's, which would take a core from the reads besides.

use halcyon_client::blocking::Connection;
use halcyon_oracle::Result;

use crate::connection::{self, command};
use crate::jmx::Jmx;
use crate::load::KEYSPACE;
use crate::server::Server;

const STORAGE: &str = "org.apache.cassandra.db:type=StorageService";

pub(super) struct Operator {
    connection: Connection,
    /// None of Halcyon.
    jmx: Option<Jmx>,
}

impl Operator {
    pub(super) fn of(server: &Server) -> Result<Operator> {
        let jmx = (!server.is_halcyon()).then(|| server.jmx()).transpose()?;
        Ok(Operator { connection: connection::open(server.port)?, jmx })
    }

    pub(super) fn says(&mut self, statement: &str) -> Result<()> {
        self.connection.query(statement)?;
        Ok(())
    }

    pub(super) fn flush(&mut self, table: &str) -> Result<()> {
        match &mut self.jmx {
            Some(jmx) => jmx.ask(&["flush", KEYSPACE, table]).map(drop),
            None => command(&mut self.connection, "flush", (KEYSPACE, table), ""),
        }
    }

    pub(super) fn snapshot(&mut self, table: &str, name: &str) -> Result<()> {
        match &mut self.jmx {
            Some(jmx) => {
                let fields = ["call", STORAGE, "takeTableSnapshot", KEYSPACE, table, name];
                jmx.ask(&fields).map(drop)
            }
            None => command(&mut self.connection, "snapshot", (KEYSPACE, table), &named(name)),
        }
    }

    /// An empty name means all.
    pub(super) fn clear_snapshots(&mut self, name: &str) -> Result<()> {
        match &mut self.jmx {
            Some(jmx) => jmx.ask(&["clear-snapshot", name, KEYSPACE]).map(drop),
            None if name.is_empty() => {
                command(&mut self.connection, "clearsnapshot", (KEYSPACE, ""), "")
            }
            None => command(&mut self.connection, "clearsnapshot", (KEYSPACE, ""), &named(name)),
        }
    }
}

/// The argument of a command about a snapshot.
fn named(name: &str) -> String {
    serde_json::json!({ "name": name }).to_string()
}
