//! Errors, sorted by the caller's reaction.

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Refuse the request; the server is draining or its disk failure policy has stopped it.
    #[error("{0}")]
    Stopped(String),
    /// The statement's table was dropped.
    #[error("unconfigured table {0}")]
    UnknownTable(String),
    /// The request must change.
    #[error("{0}")]
    Invalid(String),
    /// The statement's table lacks an SSTable that cannot be used.
    #[error("{0}")]
    SetApart(String),
    /// An index that is not built yet, or that the table does not have any more.
    #[error("The secondary index '{0}' is not yet available")]
    IndexNotAvailable(String),
    /// Refuse to start; the text has the cure.
    #[error("{0}")]
    CannotStart(String),
    /// The disk failure policy decides.
    #[error(transparent)]
    Disk(#[from] halcyon_io::Error),
    #[error(transparent)]
    SSTable(#[from] halcyon_sstable::Error),
    #[error(transparent)]
    CommitLog(#[from] halcyon_commitlog::Error),
    #[error(transparent)]
    Schema(#[from] halcyon_schema::Error),
    #[error(transparent)]
    Compaction(#[from] halcyon_compaction::Error),
    /// Stored versions cannot be merged, because one of them is corrupt.
    #[error(transparent)]
    Merge(#[from] halcyon_stream::MergeError),
    #[error(transparent)]
    JobLost(#[from] halcyon_io::JobLost),
}

impl Error {
    /// Whether the process had no file descriptor left: no device has failed, and the next attempt may succeed.
    pub(crate) fn is_no_descriptors(&self) -> bool {
        self.of_disk().is_some_and(halcyon_io::Error::is_no_descriptors)
    }

    /// Whether the error concerns one file, not its device.
    pub(crate) fn is_of_one_file(&self) -> bool {
        self.of_disk().is_some_and(halcyon_io::Error::is_of_one_file)
    }

    /// The key for `warn_once` of an error that does not mean a failed device.
    pub(crate) fn spares_device(&self) -> Option<&'static str> {
        match self {
            _ if self.is_no_descriptors() => Some("descriptors"),
            _ if self.is_of_one_file() => Some("file"),
            Error::JobLost(_) => Some("panic"),
            _ => None,
        }
    }

    fn of_disk(&self) -> Option<&halcyon_io::Error> {
        use halcyon_compaction::Error as Compaction;
        use halcyon_sstable::Error as SSTable;
        match self {
            Error::Disk(e) | Error::SSTable(SSTable::Io(e)) => Some(e),
            Error::Compaction(Compaction::Io(e) | Compaction::SSTable(SSTable::Io(e))) => Some(e),
            _ => None,
        }
    }
}
