//! A connection to a running server, for statements with small results, one at a time.

use std::net::{SocketAddr, ToSocketAddrs};

use halcyon_io::Socket;
use halcyon_model::request::Value;
use halcyon_protocol::client::{Answer, Client, Page};
use halcyon_protocol::{Compression, Consistency, QueryParameters, Values, Version};

use crate::failure::{Failure, Result};

const PORT: u16 = 9042;
const BUFFER: usize = 64 << 10;
/// Rows per page; all pages are fetched.
const PAGE: i32 = 1000;

pub(crate) struct Session {
    socket: Socket,
    client: Client,
    buffer: Vec<u8>,
    pub(crate) address: String,
}

/// Credentials, for servers that require authentication.
pub(crate) struct Credentials {
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
}

impl Session {
    /// `host` can include a port.
    pub(crate) async fn open(host: &str, credentials: &Credentials) -> Result<Session> {
        let cannot = |why: String| {
            Failure::Unreadable(format!("{host}: {why}; is a server listening for CQL there?"))
        };
        let mut last = "no address of that name".to_owned();
        for address in resolve(host).map_err(|e| cannot(e.to_string()))? {
            match Socket::connect(address).await {
                Ok(socket) => {
                    return Session::start(socket, address.to_string(), credentials).await;
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(cannot(last))
    }

    async fn start(socket: Socket, address: String, credentials: &Credentials) -> Result<Session> {
        let client = Client::new(Version::V4, Compression::None);
        let mut session = Session { socket, client, buffer: Vec::new(), address };
        session.client.startup(0);
        let answer = session.answer().await?;
        session.client.started();
        match answer {
            Answer::Ready => Ok(session),
            Answer::Authenticate(_) => {
                let (Some(username), Some(password)) =
                    (&credentials.username, &credentials.password)
                else {
                    return Err(Failure::usage(format!(
                        "{} requires authentication: give --username, and --password or HALCYON_PASSWORD",
                        session.address
                    )));
                };
                session.client.credentials(0, username, password);
                match session.answer().await? {
                    Answer::AuthSuccess => Ok(session),
                    other => Err(session.unexpected(&other)),
                }
            }
            other => Err(session.unexpected(&other)),
        }
    }

    fn unexpected(&self, answer: &Answer) -> Failure {
        let said = match answer {
            Answer::Error { message, .. } => message.clone(),
            other => format!("an answer that was not asked for: {other:?}"),
        };
        Failure::Unreadable(format!("{}: {said}", self.address))
    }

    async fn answer(&mut self) -> Result<Answer> {
        let failed = |address: &str, why: String| Failure::Unreadable(format!("{address}: {why}"));
        let (outcome, _) = self.socket.write(self.client.take()).await;
        outcome.map_err(|e| failed(&self.address, e.to_string()))?;
        loop {
            let next = self.client.next_answer();
            if let Some((_, answer)) = next.map_err(|e| failed(&self.address, e.to_string()))? {
                return Ok(answer);
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            buffer.reserve(BUFFER);
            let (outcome, buffer) = self.socket.read(buffer).await;
            if outcome.map_err(|e| failed(&self.address, e.to_string()))? == 0 {
                return Err(failed(&self.address, "the server closed the connection".to_owned()));
            }
            self.client.feed(&buffer);
            self.buffer = buffer;
        }
    }

    /// All rows; `None` if the server refuses the statement: older ones lack tables.
    pub(crate) async fn rows(&mut self, statement: &str) -> Result<Option<Rows>> {
        Ok(self.ask(statement, &[]).await?.ok())
    }

    /// All rows of a statement with values of text, or why the server refuses it.
    pub(crate) async fn ask(
        &mut self,
        statement: &str,
        values: &[&str],
    ) -> Result<std::result::Result<Rows, String>> {
        let mut rows = Rows::default();
        let mut state: Option<Vec<u8>> = None;
        loop {
            let mut parameters = QueryParameters::new(Consistency::One);
            parameters.page_size = Some(PAGE);
            parameters.values = Values::Positional(
                values.iter().map(|text| Value::Bytes(text.as_bytes())).collect(),
            );
            parameters.paging_state = state.as_deref();
            self.client.query(0, statement, &parameters);
            match self.answer().await? {
                Answer::Rows(Page { columns, rows: page, paging_state, .. }) => {
                    rows.columns = columns;
                    rows.rows.extend(page);
                    state = paging_state;
                }
                Answer::Void => {}
                Answer::Error { message, .. } => return Ok(Err(message)),
                other => return Err(self.unexpected(&other)),
            }
            if state.is_none() {
                return Ok(Ok(rows));
            }
        }
    }
}

/// `host`, `host:port`, `::1`, `[::1]:port`.
fn resolve(host: &str) -> std::io::Result<Vec<SocketAddr>> {
    let has_port = host.rsplit_once(':').is_some_and(|(before, port)| {
        port.parse::<u16>().is_ok() && (!before.contains(':') || before.ends_with(']'))
    });
    match has_port {
        true => Ok(host.to_socket_addrs()?.collect()),
        false => {
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            Ok((bare, PORT).to_socket_addrs()?.collect())
        }
    }
}

/// Rows with column names.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<Option<Vec<u8>>>>,
}

/// One row.
pub(crate) struct Row<'a> {
    columns: &'a [String],
    values: &'a [Option<Vec<u8>>],
}

impl Rows {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|values| Row { columns: &self.columns, values })
    }
}

impl Row<'_> {
    pub(crate) fn bytes(&self, column: &str) -> Option<&[u8]> {
        let at = self.columns.iter().position(|name| name == column)?;
        self.values.get(at)?.as_deref()
    }

    pub(crate) fn text(&self, column: &str) -> String {
        self.bytes(column).map(String::from_utf8_lossy).unwrap_or_default().into_owned()
    }

    /// A bigint or int; 0 if it is negative or missing.
    pub(crate) fn count(&self, column: &str) -> u64 {
        let number = match self.bytes(column) {
            Some(&[a, b, c, d]) => i64::from(i32::from_be_bytes([a, b, c, d])),
            Some(bytes) => bytes.first_chunk::<8>().map_or(0, |bytes| i64::from_be_bytes(*bytes)),
            None => 0,
        };
        u64::try_from(number).unwrap_or(0)
    }

    pub(crate) fn is_true(&self, column: &str) -> bool {
        self.bytes(column) == Some(&[1])
    }

    /// The elements of a set or list of text.
    pub(crate) fn texts(&self, column: &str) -> Vec<String> {
        let mut rest = self.bytes(column).and_then(|bytes| bytes.get(4..)).unwrap_or_default();
        let mut texts = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>()
            && let Ok(length) = usize::try_from(i32::from_be_bytes(*length))
            && let Some((text, after)) = after.split_at_checked(length)
        {
            texts.push(String::from_utf8_lossy(text).into_owned());
            rest = after;
        }
        texts
    }

    /// The elements of a list of bigint.
    pub(crate) fn counts(&self, column: &str) -> Vec<u64> {
        let elements = self.bytes(column).and_then(|bytes| bytes.get(4..)).unwrap_or_default();
        let count = |element: &[u8]| {
            let number = element.last_chunk::<8>().map_or(0, |bytes| i64::from_be_bytes(*bytes));
            u64::try_from(number).unwrap_or(0)
        };
        elements.chunks_exact(4 + size_of::<i64>()).map(count).collect()
    }

    /// A double; 0 if it is missing or not a number.
    pub(crate) fn double(&self, column: &str) -> f64 {
        let bytes = self.bytes(column).and_then(|bytes| bytes.first_chunk::<8>());
        bytes.map(|bytes| f64::from_be_bytes(*bytes)).filter(|n| n.is_finite()).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the parsing of hosts with and without a port.
    #[test]
    fn hosts_and_ports() {
        let first = |host: &str| resolve(host).expect("an address")[0].to_string();
        assert_eq!(first("127.0.0.1"), "127.0.0.1:9042");
        assert_eq!(first("127.0.0.1:9142"), "127.0.0.1:9142");
        assert_eq!(first("::1"), "[::1]:9042");
        assert_eq!(first("[::1]:7"), "[::1]:7");
    }

    /// Proves the decoding of values: one that is missing or not a number is zero.
    #[test]
    fn values() {
        let columns = ["a", "b", "c", "d"].map(str::to_owned);
        let values = [
            Some(7i32.to_be_bytes().to_vec()),
            Some((-1i64).to_be_bytes().to_vec()),
            Some(f64::NAN.to_be_bytes().to_vec()),
            None,
        ];
        let row = Row { columns: &columns, values: &values };
        assert_eq!((row.count("a"), row.count("b"), row.count("d")), (7, 0, 0));
        assert_eq!((row.double("c"), row.double("a"), row.double("z")), (0.0, 0.0, 0.0));
        let element = |n: i64| [&8i32.to_be_bytes()[..], &n.to_be_bytes()[..]].concat();
        let list = [2i32.to_be_bytes().to_vec(), element(7), element(-1)].concat();
        let row = Row { columns: &["l".to_owned()], values: &[Some(list)] };
        assert_eq!((row.counts("l"), row.counts("z")), (vec![7, 0], Vec::new()));
    }
}
