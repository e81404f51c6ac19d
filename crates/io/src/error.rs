//! One error enum, its variants sorted by what the reader should do about them.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use crate::processes::{self, Process};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What was being done when an error happened; also what the simulated disk matches faults on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    Open,
    Create,
    Read,
    Write,
    Sync,
    Truncate,
    Preallocate,
    Stat,
    List,
    Remove,
    Rename,
    HardLink,
    CreateDir,
    SyncDir,
    FreeSpace,
    Lock,
    Probe,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Open => "open",
            Operation::Create => "create",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Sync => "sync",
            Operation::Truncate => "truncate",
            Operation::Preallocate => "preallocate",
            Operation::Stat => "stat",
            Operation::List => "list",
            Operation::Remove => "remove",
            Operation::Rename => "rename",
            Operation::HardLink => "hard link",
            Operation::CreateDir => "create directory",
            Operation::SyncDir => "sync directory",
            Operation::FreeSpace => "free space",
            Operation::Lock => "lock",
            Operation::Probe => "probe",
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    // ---- look again at the name ----
    #[error("{operation} {}: no such file or directory", path.display())]
    NotFound { path: PathBuf, operation: Operation },
    #[error("{operation} {}: already exists", path.display())]
    AlreadyExists { path: PathBuf, operation: Operation },

    /// Too long, a loop of links, a folder where a file was expected: other files of the device are sound.
    #[error("{operation} {}: {source}; this is about the one file, not about its device", path.display())]
    Path { path: PathBuf, operation: Operation, source: io::Error },

    #[error("{}: {} is at work in it; wait until it is done, or stop it", path.display(), holder_name(holder))]
    Busy { path: PathBuf, operation: Operation, holder: Option<Process> },

    // ---- make room, or ask for less ----
    #[error("{operation} {} at offset {offset}: no space left on the device (needed {needed} bytes); free space or add a data directory", path.display())]
    NoSpace { path: PathBuf, operation: Operation, offset: u64, needed: u64 },
    #[error(
        "{operation} {}: no file descriptors are left; raise the limit (ulimit -n, LimitNOFILE=) or close connections", path.display()
    )]
    NoDescriptors { path: PathBuf, operation: Operation },
    #[error("{} is {len} bytes, more than the {max} bytes that were allowed for it", path.display())]
    TooLarge { path: PathBuf, len: u64, max: u64 },
    #[error(
        "no buffer of {asked} bytes: {held} of the {budget} bytes of the I/O buffer budget are held, {why}; raise `io_buffer_budget`"
    )]
    BufferBudget { asked: u64, held: u64, budget: u64, why: String },

    // ---- change a setting or a permission ----
    #[error("{operation} {}: permission denied; give the user that runs this process access to it", path.display())]
    Denied { path: PathBuf, operation: Operation },
    #[error("{operation} {}: {why}; {cure}", path.display())]
    Unsupported { path: PathBuf, operation: Operation, why: String, cure: String },

    // ---- restore the data, or replace the device ----
    #[error("{operation} {} at offset {offset}: wanted {wanted} bytes, the file gave {got}: it is shorter than it was when opened", path.display())]
    ShortRead { path: PathBuf, operation: Operation, offset: u64, wanted: u64, got: u64 },
    #[error("{operation} {} at offset {offset}: {source}", path.display())]
    Device { path: PathBuf, operation: Operation, offset: u64, source: io::Error },

    // ---- only the simulated disk ----
    #[error("{operation} {}: the simulated machine has crashed", path.display())]
    Crashed { path: PathBuf, operation: Operation },
}

impl Error {
    /// Sorts an operating system error; `needed` is only used when the device is full.
    pub(crate) fn from_io(
        source: io::Error,
        path: &Path,
        operation: Operation,
        offset: u64,
        needed: u64,
    ) -> Error {
        let path = path.to_path_buf();
        match (source.kind(), source.raw_os_error()) {
            (_, Some(SIMULATED_CRASH)) => Error::Crashed { path, operation },
            (io::ErrorKind::NotFound, _) => Error::NotFound { path, operation },
            (io::ErrorKind::AlreadyExists, _) => Error::AlreadyExists { path, operation },
            (io::ErrorKind::WouldBlock, _) if operation == Operation::Lock => {
                let holder = processes::lock_holder(&path);
                Error::Busy { path, operation, holder }
            }
            (io::ErrorKind::PermissionDenied, _) => Error::Denied { path, operation },
            (_, Some(libc::ENOSPC | libc::EDQUOT)) => {
                Error::NoSpace { path, operation, offset, needed }
            }
            (_, Some(code)) if OF_ONE_FILE.contains(&code) => {
                Error::Path { path, operation, source }
            }
            (_, Some(libc::EMFILE | libc::ENFILE)) => Error::NoDescriptors { path, operation },
            _ => Error::Device { path, operation, offset, source },
        }
    }

    /// As `from_io`, for operations on a name rather than on bytes.
    pub(crate) fn on_name(source: io::Error, path: &Path, operation: Operation) -> Error {
        Error::from_io(source, path, operation, 0, 0)
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::NotFound { .. })
    }

    pub fn is_no_space(&self) -> bool {
        matches!(self, Error::NoSpace { .. })
    }

    /// Whether other files of the same device can be used all the same.
    pub fn is_of_one_file(&self) -> bool {
        matches!(self, Error::Path { .. })
    }

    pub fn is_no_descriptors(&self) -> bool {
        matches!(self, Error::NoDescriptors { .. })
    }
}

fn holder_name(holder: &Option<Process>) -> String {
    match holder {
        Some(own) if own.pid == std::process::id() => {
            "this process, whose settings name it twice,".to_owned()
        }
        Some(other) => other.to_string(),
        None => "another process".to_owned(),
    }
}

/// What the kernel answers because of a name, or of what the name leads to.
const OF_ONE_FILE: [i32; 10] = [
    libc::ENAMETOOLONG,
    libc::EINVAL,
    libc::ELOOP,
    libc::ENOTDIR,
    libc::EISDIR,
    libc::ENOTEMPTY,
    libc::EXDEV,
    libc::EMLINK,
    libc::EFBIG,
    libc::ETXTBSY,
];

/// The errno by which the simulated disk says that the machine is down: none that Linux uses.
pub(crate) const SIMULATED_CRASH: i32 = 0x7fff_c4a5;
