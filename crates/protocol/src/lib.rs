//! Cassandra's native protocol, versions 3, 4 and 5: frames ↔ typed messages. No sockets, no clock.
//!
//! ```text
//!  bytes ─► v5 outer frames (CRC24 header, CRC32 payload, LZ4) ─► envelopes ─► Request
//!  Response ─► envelope (LZ4 or Snappy body in v3 and v4) ─► v5 outer frames ─► bytes
//! ```
//!
//! A connection has one [`Decoder`] and one [`Encoder`]:
//!
//! 1. Pass the bytes from the socket to [`Decoder::feed`], then call [`Decoder::next`] until it returns none.
//! 2. [`Request::decode`] decodes an envelope's body and borrows from it. Both steps fail with a [`ProtocolError`], which has the
//!    answer ([`Encoder::push_error`]) and says whether to close the connection.
//! 3. [`Encoder::push`] appends a response, [`Encoder::take`] returns the bytes for the socket.
//! 4. When STARTUP is accepted, call `start(version, compression)` of both *before* you push the answer or ask for the next
//!    envelope. v5 sends this one answer without a frame; the encoder handles that.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod client;
mod compressed;
mod decoder;
mod encoder;
mod envelope;
mod error;
mod frame;
mod ids;
mod options;
mod packed;
mod read;
mod request;
mod response;
mod result;
mod version;
mod write;

pub use decoder::{Decoder, Limits};
pub use encoder::{Encoder, Notes};
pub use envelope::{Envelope, Flags, Opcode, ReplyTo};
pub use error::{Error, ErrorKind, ProtocolError};
pub use frame::MAX_PAYLOAD;
/// The words of a request, for clients of this crate.
pub use halcyon_model::request::{BatchKind, Consistency, Value};
pub use ids::{result_metadata_id, statement_id};
pub use packed::{Outline, Packed};
pub use request::{BatchQuery, Body, EventType, QueryParameters, Request, Startup, Values};
pub use response::{Event, Response, StatusChange, TopologyChange};
pub use result::{Prepared, PreparedMetadata, Rows, RowsMetadata};
pub use version::{Compression, Version};
