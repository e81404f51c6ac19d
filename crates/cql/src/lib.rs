//! CQL: text in, meaning out.  Pure and synchronous; nothing here reads a file or a clock.
//!
//! ```text
//!  text ─► lexer ─► parser ─► ast ─► schema
//!          tokens   Statement        TableSchema of the model
//! ```
//!
//! Today the statements that shape tables are understood; the others are stepped over and named (`Skipped`).
#![forbid(unsafe_code)]

pub mod ast;
pub mod catalog;
mod error;
pub mod lexer;
mod parser;
pub mod plan;
pub mod schema;

#[cfg(test)]
mod tests;

pub use error::{Error, Result};
pub use lexer::Place;
pub use parser::{parse_statement, parse_statements};
pub use schema::Schema;
