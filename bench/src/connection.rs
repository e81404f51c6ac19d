//! One connection of the native protocol, by crate `protocol`: a question, its answer.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use halcyon_oracle::Result;
use halcyon_protocol::client::{Answer, Client, Page};
use halcyon_protocol::{Compression, Consistency, QueryParameters, Version};

const PATIENCE: Duration = Duration::from_secs(120);

/// The number in a cell of eight bytes.
pub(super) fn bigint(cell: Option<&Vec<u8>>) -> Option<u64> {
    Some(u64::from_be_bytes(*cell?.first_chunk::<8>()?))
}

/// A port of this machine.
pub(super) fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A read with a timeout is interrupted when the process was frozen meanwhile, without any signal's handler: it is repeated.
pub(super) fn read(mut from: &TcpStream, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) client: Client,
    buffer: Vec<u8>,
}

impl Connection {
    /// In version 4.
    pub(super) fn open(port: u16) -> Result<Connection> {
        Connection::to(local(port))
    }

    /// The same, wherever the server listens.
    pub(super) fn to(server: SocketAddr) -> Result<Connection> {
        Connection::with(server, Version::V4, Compression::None)
    }

    pub(super) fn with(
        server: SocketAddr,
        version: Version,
        compression: Compression,
    ) -> Result<Connection> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let client = Client::new(version, compression);
        let mut connection = Connection { stream, client, buffer: vec![0; 64 << 10] };
        connection.client.startup(0);
        match connection.answer()? {
            Answer::Ready => connection.client.started(),
            other => return Err(format!("STARTUP: {other:?}").into()),
        }
        Ok(connection)
    }

    /// Sends what was asked.
    pub(super) fn send(&mut self) -> Result<()> {
        let bytes = self.client.take();
        Ok(self.stream.write_all(&bytes)?)
    }

    /// Waits for bytes and gives them to the client.
    pub(super) fn receive(&mut self) -> Result<()> {
        match read(&self.stream, &mut self.buffer)? {
            0 => Err("the server closed the connection".into()),
            length => {
                self.client.feed(&self.buffer[..length]);
                Ok(())
            }
        }
    }

    /// Sends what was asked and waits for an answer; an error is an error.
    pub(super) fn answer(&mut self) -> Result<Answer> {
        self.send()?;
        loop {
            match self.client.next_answer()? {
                Some((_, Answer::Error { code, message, .. })) => {
                    return Err(format!("{message} (code 0x{code:04x})").into());
                }
                Some((_, answer)) => return Ok(answer),
                None => self.receive()?,
            }
        }
    }

    pub(super) fn execute(&mut self, statement: &str) -> Result<Answer> {
        self.client.query(0, statement, &QueryParameters::new(Consistency::One));
        self.answer().map_err(|e| format!("{statement}: {e}").into())
    }

    pub(super) fn create_keyspace(&mut self, name: &str) -> Result<()> {
        self.create_replicated(name, 1)
    }

    /// A keyspace of which `factor` nodes hold each row.
    pub(super) fn create_replicated(&mut self, name: &str, factor: u8) -> Result<()> {
        let replication = format!("{{'class': 'SimpleStrategy', 'replication_factor': {factor}}}");
        let create =
            format!("CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = {replication}");
        self.execute(&create).map(drop)
    }

    /// A command of nodetool, as Halcyon takes it: empty names mean all. Answered when it is done.
    pub(super) fn command(
        &mut self,
        verb: &str,
        keyspace: &str,
        table: &str,
        argument: &str,
    ) -> Result<()> {
        let insert = format!(
            "INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) VALUES ('{verb}', '{keyspace}', '{table}', '{argument}')"
        );
        self.execute(&insert).map(drop)
    }

    pub(super) fn rows(&mut self, statement: &str) -> Result<Page> {
        match self.execute(statement)? {
            Answer::Rows(page) => Ok(page),
            other => Err(format!("{statement}: {other:?}").into()),
        }
    }

    pub(super) fn prepare(&mut self, statement: &str) -> Result<Vec<u8>> {
        Ok(self.prepare_v5(statement)?.0)
    }

    /// With the id of the result's metadata, which is empty before version 5.
    pub(super) fn prepare_v5(&mut self, statement: &str) -> Result<(Vec<u8>, Vec<u8>)> {
        self.client.prepare(0, statement);
        match self.answer().map_err(|e| format!("{statement}: {e}"))? {
            Answer::Prepared { id, result_metadata_id } => {
                Ok((id, result_metadata_id.unwrap_or_default()))
            }
            other => Err(format!("{statement}: {other:?}").into()),
        }
    }

    /// What SUPPORTED says under a name.
    pub(super) fn option(&mut self, name: &str) -> Result<Option<String>> {
        self.client.options(0);
        let Answer::Supported(options) = self.answer()? else { return Ok(None) };
        let found = options.into_iter().find(|(option, _)| option == name);
        Ok(found.and_then(|(_, values)| values.into_iter().next()))
    }
}
