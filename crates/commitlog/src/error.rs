//! Errors, sorted by what the reader should do. They are cheap to clone, because every waiter of a group gets the same one.

use std::path::PathBuf;
use std::sync::Arc;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    // ---- ask for less ----
    #[error(
        "a record of {len} bytes is larger than the {max} bytes that half a commit log segment allows; raise `commitlog_segment_size`"
    )]
    RecordTooLarge { len: usize, max: usize },

    // ---- make room, or free descriptors; the log continues once there are some ----
    #[error("the commit log cannot grow: {0}")]
    NoSpace(Arc<halcyon_io::Error>),

    // ---- `commit_failure_policy` decides; nothing more is written ----
    #[error(
        "the commit log has failed and takes no more writes: {0}; repair the device and restart: acknowledged writes will be replayed"
    )]
    Failed(Arc<halcyon_io::Error>),
    #[error(
        "an internal error has stopped the commit log, which takes no more writes; the next start replays what was acknowledged"
    )]
    Broken,
    #[error("the commit log is closed")]
    Closed,

    // ---- repair, or choose to lose it ----
    #[error(
        "commit log segment {} is corrupt at offset {offset}: {what}; restore the file from a copy, or start once with \
         `commit_failure_policy: ignore`, which skips the damaged records and loses those writes", path.display()
    )]
    Corrupt { path: PathBuf, offset: u64, what: String },
    #[error(
        "{} is missing or empty: {what}; put it back from a copy, or start once with `commit_failure_policy: ignore`, which continues without \
         it and loses its writes", path.display()
    )]
    Missing { path: PathBuf, what: String },
    #[error(
        "{} is a commit log in format version {version}, newer than version {known} of this release; start the newer release once \
         more and stop it, which flushes the log, or keep running it", path.display()
    )]
    Newer { path: PathBuf, version: u32, known: u32 },
    #[error(
        "{} is a commit log of Apache Cassandra: start Cassandra, run `nodetool drain` and stop it, then start again", .0.display()
    )]
    Foreign(PathBuf),
    #[error(transparent)]
    Io(Arc<halcyon_io::Error>),

    // ---- the visitor of a replay refused ----
    #[error("{0}")]
    Refused(String),
}

impl Error {
    /// The error that a log reports to its waiters after its device has failed.
    pub(crate) fn failed(self) -> Error {
        match self {
            Error::Io(e) => Error::Failed(e),
            other => other,
        }
    }
}

impl From<halcyon_io::Error> for Error {
    fn from(error: halcyon_io::Error) -> Error {
        Error::Io(Arc::new(error))
    }
}
