//! The node that is asked.

use halcyon_client::{Cause, Connection, Credentials, Row, Rows};
use halcyon_io::{Disk, DiskOptions};

use super::arguments::Destination;
use super::failure::{Failure, Result};
use crate::encryption;

pub(super) struct Node(Connection);

impl Node {
    pub(super) async fn connect(to: &Destination) -> Result<Node> {
        let disk = Disk::real(DiskOptions::default());
        let encryption = encryption::client(&disk, &to.encryption).await;
        let credentials = Credentials {
            username: to.username.clone(),
            password: to.password.clone(),
            encryption: encryption.map_err(Failure::Failed)?,
        };
        let address = match to.host.contains(':') && !to.host.starts_with('[') {
            true => format!("[{}]:{}", to.host, to.port),
            false => format!("{}:{}", to.host, to.port),
        };
        let cannot = |error: halcyon_client::Error| {
            let why = halcyon_tools::Error::from(error);
            Failure::Unreachable(format!("Failed to connect to '{}:{}' - {why}", to.host, to.port))
        };
        Ok(Node(Connection::open(&address, &credentials).await.map_err(cannot)?))
    }

    async fn ask(&mut self, statement: &str, values: &[&str]) -> Result<Rows> {
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
        verb: &str,
        (keyspace, table): (&str, &str),
        argument: &str,
    ) -> Result<()> {
        let insert = "INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) VALUES (?, ?, ?, ?)";
        self.ask(insert, &[verb, keyspace, table, argument]).await.map(drop)
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
    pub(super) async fn on_tables(&mut self, verb: &str, arguments: &[String]) -> Result<()> {
        self.meant(arguments).await?;
        match arguments {
            [] => self.command(verb, ("", ""), "").await,
            [keyspace] => self.command(verb, (keyspace, ""), "").await,
            [keyspace, tables @ ..] => {
                for table in tables {
                    self.command(verb, (keyspace, table), "").await?;
                }
                Ok(())
            }
        }
    }
}
