//! The text of CQL: lexer, parser and syntax tree. Names are not resolved here. Pure and synchronous.
//!
//! ```text
//!  text ─► lexer ─► parser ─► ast
//!          tokens             Statement, or Cassandra's syntax error
//! ```
//!
//! `parse_statement` reads one statement as a client sends it. `parse_statements` reads a script (`schema.cql`, the output of
//! `DESCRIBE`) and skips statements that do not change the schema.
#![forbid(unsafe_code)]
// Text and rows come from outside.
#![deny(clippy::indexing_slicing, clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod ast;
mod error;
pub mod lexer;
mod parser;
pub mod password;

pub use error::{Error, Result};
pub use parser::{parse_relations, parse_statement, parse_statements, parse_term};
