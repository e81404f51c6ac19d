//! Why a task failed, as Cassandra must know it.

use std::path::Path;

use halcyon_compaction::Error;
use halcyon_sstable::{Descriptor, Error as SSTableError};

use crate::messages::{Failed, FailureKind};

pub(crate) fn failed(error: &Error, inputs: &[Descriptor]) -> Failed {
    let (kind, path) = match error {
        Error::Cancelled => (FailureKind::Stopped, None),
        Error::NoSpace { directory, .. } => (FailureKind::DiskFull, Some(directory.as_path())),
        Error::Io(error) | Error::SSTable(SSTableError::Io(error)) => io(error, inputs),
        Error::SSTable(SSTableError::Corrupt { path, .. } | SSTableError::Missing { path, .. }) => {
            let kind =
                if is_of(path, inputs) { FailureKind::CorruptInput } else { FailureKind::Other };
            (kind, Some(path.as_path()))
        }
        Error::Invalid(_)
        | Error::SSTable(
            SSTableError::Invalid(_)
            | SSTableError::DuplicateRow(_)
            | SSTableError::Unsupported { .. },
        ) => (FailureKind::Invalid, None),
        _ => (FailureKind::Other, None),
    };
    let path = path.map(|path| path.display().to_string()).unwrap_or_default();
    Failed { kind, path, message: error.to_string() }
}

fn io<'a>(error: &'a halcyon_io::Error, inputs: &[Descriptor]) -> (FailureKind, Option<&'a Path>) {
    use halcyon_io::Error;
    match error {
        Error::NoSpace { path, .. } => (FailureKind::DiskFull, Some(path)),
        // A file that ends too early has lost something.
        Error::ShortRead { path, .. } if is_of(path, inputs) => {
            (FailureKind::CorruptInput, Some(path))
        }
        _ => (FailureKind::Other, None),
    }
}

/// Whether the file belongs to an input.
fn is_of(path: &Path, inputs: &[Descriptor]) -> bool {
    Descriptor::of_path(path).is_ok_and(|(descriptor, _)| inputs.contains(&descriptor))
}
