//! A client of CQL: one connection to a server, on the runtime's sockets or on a blocking one.
//!
//! ```text
//!   requests ─► protocol::client::Client ─► bytes ─► io::Socket, TcpStream ─► server
//!   answers  ◄─ (no socket, no waiting)  ◄─ bytes ◄─
//! ```
//!
//! 1. `protocol::client::Client` encodes requests and decodes answers. A connection has one, and its owner appends requests to it: several
//!    may be in flight.
//! 2. [`Connection`] works on `io::Socket`, so a simulation replaces its network.
//! 3. [`blocking::Connection`] works on `std::net::TcpStream`, for threads that wait for nothing else.
//! 4. `handshake` decides for both what follows the answer to STARTUP.
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod address;
pub mod blocking;
mod connection;
mod encrypted;
mod error;
mod handshake;
mod rows;

pub use connection::{Connection, Prepared};
pub use error::{Cause, Error, Result};
pub use handshake::Credentials;
pub use rows::{Row, Rows};
