//! A client with a table of its own: writes of every kind, reads that the model checks, changes of the table.
//!
//! ```text
//! generate ── statement ─► node ── answer ─► query: what the model answers ─► table: which uncertain changes that proves
//!      └──── mutation ───────────────────────► model
//! derived ── indexes, a view ─► node ── answer ─► what the table itself answers
//! ```

mod derived;
mod domain;
mod generate;
mod model;
mod query;
mod table;
mod work;

pub(crate) use table::Table;
pub(crate) use work::{create, settle, work};
