//! As much of Cassandra's native protocol (version 4) as it takes to create and truncate a table.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use crate::Result;

const REQUEST: u8 = 0x04;
const ERROR: u8 = 0x00;
const STARTUP: u8 = 0x01;
const QUERY: u8 = 0x07;
const CONSISTENCY_ONE: u16 = 1;
const MAX_ANSWER: usize = 64 << 20;

pub(super) struct Connection(TcpStream);

impl Connection {
    pub(super) fn open(port: u16) -> Result<Connection> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let mut connection = Connection(stream);
        let mut options = 1u16.to_be_bytes().to_vec();
        for word in ["CQL_VERSION", "3.0.0"] {
            options.extend((word.len() as u16).to_be_bytes());
            options.extend(word.as_bytes());
        }
        connection.ask(STARTUP, &options)?;
        Ok(connection)
    }

    pub(super) fn execute(&mut self, statement: &str) -> Result<()> {
        let mut body = (statement.len() as u32).to_be_bytes().to_vec();
        body.extend(statement.as_bytes());
        body.extend(CONSISTENCY_ONE.to_be_bytes());
        // No flags.
        body.push(0);
        self.ask(QUERY, &body).map_err(|e| format!("{statement}: {e}").into())
    }

    fn ask(&mut self, opcode: u8, body: &[u8]) -> Result<()> {
        // version, flags, stream (2), opcode, length (4)
        let mut frame = vec![REQUEST, 0, 0, 0, opcode];
        frame.extend((body.len() as u32).to_be_bytes());
        frame.extend(body);
        self.0.write_all(&frame)?;
        let mut header = [0; 9];
        self.0.read_exact(&mut header)?;
        let [.., opcode, a, b, c, d] = header;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > MAX_ANSWER {
            return Err("an answer of absurd length".into());
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer)?;
        if opcode == ERROR {
            // code (4), length (2), message
            let message = String::from_utf8_lossy(answer.get(6..).unwrap_or_default()).into_owned();
            return Err(message.into());
        }
        Ok(())
    }
}
