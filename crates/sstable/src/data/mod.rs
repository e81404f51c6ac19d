//! Data.db: the grammar of partitions, rows and cells; chunks and their compression; the scanner and the writer.
mod bases;
mod chunk;
mod chunk_encode;
pub(crate) mod chunk_read;
pub(crate) mod chunk_write;
pub(crate) mod compress;
pub(crate) mod data_writer;
pub(crate) mod decode;
pub(crate) mod encode;
mod encoder_threads;
pub(crate) mod read_ahead;
pub(crate) mod scanner;
pub(crate) mod window;

pub use bases::Bases;
