//! The node that is asked.

use std::collections::BTreeMap;
use std::net::IpAddr;

use halcyon_client::{Cause, Connection, Credentials, Row, Rows};
use halcyon_io::{Disk, DiskOptions};
use halcyon_model::uuid;
use halcyon_server::command::Command;

use super::arguments::Destination;
use super::failure::{Failure, Result};
use crate::encryption;

pub(super) fn uuid_of(row: &Row<'_>, column: &str) -> String {
    row.bytes(column).and_then(|id| id.try_into().ok()).map_or(String::new(), uuid::text)
}

pub(super) fn address_of(row: &Row<'_>) -> String {
    row.address("broadcast_address").map_or("?".to_owned(), |address| address.to_string())
}

/// The row of `system.local`.
pub(super) fn local_of(local: &Rows) -> Result<Row<'_>> {
    match local.iter().next() {
        Some(row) => Ok(row),
        None => Failure::failed("system.local is empty"),
    }
}

pub(super) struct Node(Connection);

/// The node's `nodetool_port` by default: that of JMX, where scripts expect it.
const NODETOOL_PORT: &str = "7199";

/// A connection that is ready for requests. A node of this machine whose ports for clients are closed is reached through its other one.
pub(crate) async fn connect(to: &Destination) -> Result<Connection> {
    let disk = Disk::real(DiskOptions::default());
    let encryption = encryption::client(&disk, &to.encryption).await;
    let credentials = Credentials {
        username: to.username.clone(),
        password: to.password.clone(),
        encryption: encryption.map_err(Failure::Failed)?,
    };
    let address = address(&to.host, &to.port);
    let error = match Connection::open(&address, &credentials).await {
        Ok(connection) => return Ok(connection),
        Err(error) => error,
    };
    if matches!(error.cause, Cause::Unreachable(_))
        && let Some(connection) = behind_closed_port(to, &credentials).await
    {
        return Ok(connection);
    }
    let why = halcyon_tools::Error::from(error);
    let what = format!("Failed to connect to '{}:{}' - {why}", to.host, to.port);
    Err(Failure::Unreachable(what))
}

/// A connection through [`NODETOOL_PORT`], if the node that listens there has the port for clients that is meant.
async fn behind_closed_port(to: &Destination, credentials: &Credentials) -> Option<Connection> {
    let is_local = to.host.parse().map_or(to.host == "localhost", |ip: IpAddr| ip.is_loopback());
    if !is_local {
        return None;
    }
    let address = address(&to.host, NODETOOL_PORT);
    let mut connection = Connection::open(&address, credentials).await.ok()?;
    let local = connection.query("SELECT rpc_port FROM system.local", &[]).await.ok()?;
    let port = local.iter().next()?.count("rpc_port").to_string();
    (port == to.port).then_some(connection)
}

fn address(host: &str, port: &str) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

impl Node {
    pub(super) async fn connect(to: &Destination) -> Result<Node> {
        Ok(Node(connect(to).await?))
    }

    pub(super) async fn ask(&mut self, statement: &str, values: &[&str]) -> Result<Rows> {
        self.0.query(statement, values).await.map_err(|error| {
            Failure::Failed(match error.cause {
                Cause::Refused { message, .. } if message.contains("halcyon_views") => {
                    format!("{message}: the node is not Halcyon, or too old for this nodetool")
                }
                Cause::Refused { message, .. } => message,
                _ => error.to_string(),
            })
        })
    }

    pub(super) async fn rows(&mut self, statement: &str) -> Result<Rows> {
        self.ask(statement, &[]).await
    }

    /// The rows of a statement about one table.
    pub(super) async fn rows_of(
        &mut self,
        statement: &str,
        keyspace: &str,
        table: &str,
    ) -> Result<Rows> {
        self.ask(statement, &[keyspace, table]).await
    }

    /// Returns when the node has done it.
    pub(super) async fn command(
        &mut self,
        command: &Command,
        (keyspace, table): (&str, &str),
    ) -> Result<()> {
        let (verb, argument) = command.encode();
        let insert = "INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) VALUES (?, ?, ?, ?)";
        self.ask(insert, &[&verb, keyspace, table, &argument]).await.map(drop)
    }

    /// Begins a compaction of a table; an argument limits it.
    pub(super) async fn compact(
        &mut self,
        keyspace: &str,
        table: &str,
        argument: &str,
    ) -> Result<()> {
        let insert = "INSERT INTO halcyon_views.major_compactions (keyspace_name, table_name, argument) VALUES (?, ?, ?)";
        self.ask(insert, &[keyspace, table, argument]).await.map(drop)
    }

    pub(super) async fn set(&mut self, setting: &str, value: &str) -> Result<()> {
        let update = "UPDATE system_views.settings SET value = ? WHERE name = ?";
        self.ask(update, &[value, setting]).await.map(drop)
    }

    /// The same; what the node does not allow is wrong use.
    pub(super) async fn set_or_usage(&mut self, setting: &str, value: &str) -> Result<()> {
        self.set(setting, value).await.map_err(|failure| match failure {
            Failure::Failed(why) => Failure::Usage(why),
            failure => failure,
        })
    }

    /// Sets it to null.
    pub(super) async fn unset(&mut self, setting: &str) -> Result<()> {
        let update = "UPDATE system_views.settings SET value = null WHERE name = ?";
        self.ask(update, &[setting]).await.map(drop)
    }

    /// All settings; one that is null is empty.
    pub(super) async fn settings(&mut self) -> Result<BTreeMap<String, String>> {
        let rows = self.rows("SELECT name, value FROM system_views.settings").await?;
        Ok(rows.iter().map(|row| (row.text("name"), row.text("value"))).collect())
    }

    pub(super) async fn setting(&mut self, name: &str) -> Result<String> {
        Ok(self.settings().await?.remove(name).unwrap_or_default())
    }

    /// `system.local`; [`local_of`] is its row.
    pub(super) async fn local(&mut self) -> Result<Rows> {
        self.rows("SELECT * FROM system.local").await
    }

    /// `NORMAL`, or `DRAINED`.
    pub(super) async fn mode(&mut self) -> Result<String> {
        let rows = self.rows("SELECT mode FROM halcyon_views.node").await?;
        Ok(rows.iter().next().map_or(String::new(), |row| row.text("mode")))
    }

    /// Whether the ports of clients are open.
    pub(super) async fn has_native_transport(&mut self) -> Result<bool> {
        let rows = self.rows("SELECT native_transport_active FROM halcyon_views.node").await?;
        Ok(rows.iter().next().is_some_and(|row| row.is_true("native_transport_active")))
    }

    /// Bytes of all live SSTables.
    pub(super) async fn load(&mut self) -> Result<u64> {
        let rows = self.rows("SELECT load FROM halcyon_views.node").await?;
        Ok(rows.iter().next().map_or(0, |row| row.count("load")))
    }

    /// The node's own.
    pub(super) async fn address(&mut self) -> Result<String> {
        let rows = self.rows("SELECT broadcast_address FROM system.local").await?;
        Ok(rows.iter().next().map_or(String::new(), |row| address_of(&row)))
    }

    pub(super) async fn keyspaces(&mut self) -> Result<Vec<String>> {
        let rows = self.rows("SELECT keyspace_name FROM system_schema.keyspaces").await?;
        Ok(rows.iter().map(|row| row.text("keyspace_name")).collect())
    }

    /// Keyspace and name of all tables that have storage.
    pub(super) async fn tables(&mut self) -> Result<Vec<(String, String)>> {
        let rows = self
            .rows("SELECT keyspace_name, table_name FROM halcyon_views.table_statistics")
            .await?;
        let names = |row: Row<'_>| (row.text("keyspace_name"), row.text("table_name"));
        Ok(rows.iter().map(names).collect())
    }

    /// The keyspaces that are meant: the one that is named, which must be there, or all.
    pub(super) async fn meant(&mut self, arguments: &[String]) -> Result<Vec<String>> {
        let all = self.keyspaces().await?;
        match arguments.first() {
            None => Ok(all),
            Some(named) if all.contains(named) => Ok(vec![named.clone()]),
            Some(named) => Failure::usage(format!("Keyspace [{named}] does not exist.")),
        }
    }

    /// Runs a command on the tables behind the keyspace among the arguments, on all of the keyspace, or on all.
    pub(super) async fn on_tables(
        &mut self,
        command: &Command,
        arguments: &[String],
    ) -> Result<()> {
        self.meant(arguments).await?;
        match arguments {
            [] => self.command(command, ("", "")).await,
            [keyspace] => self.command(command, (keyspace, "")).await,
            [keyspace, tables @ ..] => {
                for table in tables {
                    self.command(command, (keyspace, table)).await?;
                }
                Ok(())
            }
        }
    }
}
