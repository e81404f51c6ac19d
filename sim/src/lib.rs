//! The node under test, for `cargo x sim` and for the fuzz targets that need one.

#![forbid(unsafe_code)]

mod node;

pub use node::{LOST_MAX, Node, settings};
