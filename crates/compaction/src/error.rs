//! Errors of this crate, sorted by the reader's reaction.

use std::path::PathBuf;

use halcyon_io::Process;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An input or output file; the message names it.
    #[error(transparent)]
    SSTable(#[from] halcyon_sstable::Error),
    #[error(transparent)]
    Io(#[from] halcyon_io::Error),
    /// A corrupt transaction log; no file was changed.
    #[error("{}: line {line}: {what}", path.display())]
    TransactionLog { path: PathBuf, line: usize, what: String },
    /// The inputs cannot be compacted together or with these settings; the caller must change the request.
    #[error("{0}")]
    Invalid(String),
    /// Free space, or choose another output directory.
    #[error(
        "{}: not enough space for the compaction: up to {needed} bytes are needed, {free} are free. \
         Free some, or write elsewhere with --output", directory.display()
    )]
    NoSpace { directory: PathBuf, needed: u64, free: u64 },
    /// Another process works with the files; nothing was changed.
    #[error(
        "{}: {process} has it open; stop it (Cassandra: `nodetool drain`, then stop), or write elsewhere with --output", file.display()
    )]
    InUse { process: Process, file: PathBuf },
    /// A COMMIT could be neither written nor taken back; the files stay as they are.
    #[error(
        "whether the transaction is committed is known only at the next start, which decides by what of it has reached the disk: {0}"
    )]
    InDoubt(#[source] halcyon_io::Error),
    /// The log of a running transaction is not what the transaction made of it; its files are no longer this process's to touch.
    #[error(
        "{}: another program has removed or changed this transaction log while the transaction was running, as a Cassandra does at its \
         start. Nothing more was touched: the inputs are live, and what is left of the outputs is for that program to judge. Stop it before \
         you try again", log.display()
    )]
    TakenOver { log: PathBuf },
    /// Stopped on request; the inputs are unchanged.
    #[error("the compaction was cancelled; its inputs are as they were")]
    Cancelled,
}

pub type Result<T> = std::result::Result<T, Error>;

impl From<halcyon_stream::LayoutError> for Error {
    fn from(error: halcyon_stream::LayoutError) -> Error {
        Error::Invalid(error.to_string())
    }
}
