//! Connections to the servers of an experiment, and the statements that all experiments send.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use halcyon_client::Credentials;
use halcyon_client::blocking::Connection;
use halcyon_oracle::Result;
use halcyon_protocol::{Compression, Version};

/// For one answer. Chosen: a flush of a full memtable takes seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// Of connections to servers that ask for one, and its password.
pub(super) const ROLE: &str = "bench";

/// The number in a cell of eight bytes.
pub(super) fn bigint(cell: Option<&Vec<u8>>) -> Option<u64> {
    Some(u64::from_be_bytes(*cell?.first_chunk::<8>()?))
}

/// A port on which nothing listens now.
pub(super) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(local(0))?.local_addr()?.port())
}

/// A port of this machine.
pub(super) fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A connection to this machine, in version 4.
pub(super) fn open(port: u16) -> Result<Connection> {
    to(local(port))
}

/// The same, wherever the server listens.
pub(super) fn to(server: SocketAddr) -> Result<Connection> {
    let same = |text: &str| Some(text.to_owned());
    let credentials = Credentials { username: same(ROLE), password: same(ROLE), encryption: None };
    as_role(server, &credentials)
}

/// The same, for a role if the server asks for one.
pub(super) fn as_role(server: SocketAddr, credentials: &Credentials) -> Result<Connection> {
    let mut connection = Connection::connect(server, Version::V4, Compression::None, PATIENCE)?;
    connection.start_as(credentials)?;
    Ok(connection)
}

pub(super) fn create_keyspace(connection: &mut Connection, name: &str) -> Result<()> {
    create_replicated(connection, name, 1)
}

/// Small tables `t0`, `t1`, … in a keyspace, one after the other.
pub(super) fn create_tables(connection: &mut Connection, keyspace: &str, count: u32) -> Result<()> {
    for number in 0..count {
        connection.query(&format!(
            "CREATE TABLE {keyspace}.t{number} (pk bigint PRIMARY KEY, number int, word text)"
        ))?;
    }
    Ok(())
}

/// A keyspace of which `factor` nodes hold each row.
pub(super) fn create_replicated(connection: &mut Connection, name: &str, factor: u8) -> Result<()> {
    let replication = format!("{{'class': 'SimpleStrategy', 'replication_factor': {factor}}}");
    let create = format!("CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = {replication}");
    connection.query(&create)?;
    Ok(())
}

/// A command of nodetool, as Halcyon takes it: empty names mean all. Answered when it is done.
pub(super) fn command(
    connection: &mut Connection,
    verb: &str,
    (keyspace, table): (&str, &str),
    argument: &str,
) -> Result<()> {
    let insert = format!(
        "INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) VALUES ('{verb}', '{keyspace}', '{table}', '{argument}')"
    );
    connection.query(&insert)?;
    Ok(())
}
