//! Data.db: the grammar of partitions, rows and cells; chunks and their compression; the scanner and the writer.
mod bases;
mod chunk;
pub(crate) mod chunk_read;
pub(crate) mod chunk_write;
pub(crate) mod compress;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod scanner;
pub(crate) mod window;

pub use bases::Bases;
