//! TLS for clients of CQL: from Cassandra's `client_encryption_options` and its stores to a session of rustls, without sockets or files.
//!
//! ```text
//!  Options, bytes of the stores ─► store::read ─► keys, trusted certificates ─► server::build ─► ServerConfig
//!  socket's bytes ─► Session::receive ─► plain bytes          plain bytes ─► Session::seal ─► socket's bytes
//! ```
//!
//! 1. TLS 1.2 and 1.3 only, with rustls and ring. What Java has beside it (`names`) is refused, or dropped with a warning where
//!    Cassandra drops what its JDK lacks.
//! 2. A store is read whole, is at most [`STORE_MAX`] bytes long, and no byte of it can cause a panic.
//! 3. A client's certificate is trusted as by Java's trust manager: by a path to a certificate of the truststore, or because it is one
//!    of them (`trust`).
//! 4. The bytes of a handshake are bounded ([`Session`]); its time is the caller's to bound.
#![deny(clippy::expect_used, clippy::indexing_slicing)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod client;
mod error;
pub mod identity;
mod names;
mod options;
mod server;
mod session;
mod sniff;
mod store;
#[cfg(test)]
mod tests;
mod trust;

pub use client::{Client, ClientOptions, server_name};
pub use error::{Error, Result};
pub use options::{ClientAuth, Factory, Options, Policy, Secret};
pub use server::{Built, Server, Stores};
pub use session::{Facts, Failure, Session};
pub use sniff::{SNIFFED, is_tls};

/// Bytes of the largest store. Chosen: twenty times the JDK's own truststore.
pub const STORE_MAX: u64 = 4 << 20;
