//! Faults that are armed in advance.

use std::{io, path::Path};

use crate::error::Operation;

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The device is full.
    NoSpace,
    /// The device reports an I/O error.
    DeviceError,
    Denied,
    /// The process has no file descriptors left.
    NoDescriptors,
    /// The file system has become read-only.
    ReadOnly,
    /// The name is too long.
    NameTooLong,
}

impl Fault {
    fn error(self) -> io::Error {
        io::Error::from_raw_os_error(match self {
            Fault::NoSpace => libc::ENOSPC,
            Fault::DeviceError => libc::EIO,
            Fault::Denied => libc::EACCES,
            Fault::NoDescriptors => libc::EMFILE,
            Fault::ReadOnly => libc::EROFS,
            Fault::NameTooLong => libc::ENAMETOOLONG,
        })
    }

    /// Whether an operation of this kind can fail so.
    pub fn may_strike(self, operation: Operation) -> bool {
        use Operation::{
            Create, CreateDir, FreeSpace, HardLink, List, Lock, Open, Preallocate, Probe, Read,
            Remove, Rename, Stat, Sync, SyncDir, Truncate, Write,
        };
        match self {
            Fault::DeviceError => !matches!(operation, FreeSpace | Lock | Probe),
            Fault::NoSpace => {
                matches!(
                    operation,
                    Create | Write | Preallocate | HardLink | CreateDir | Rename | Sync
                )
            }
            Fault::NameTooLong => {
                matches!(operation, Open | Create | Rename | HardLink | CreateDir)
            }
            Fault::NoDescriptors => matches!(operation, Open | Create | List | SyncDir | Lock),
            Fault::ReadOnly => matches!(
                operation,
                Create | Write | Preallocate | HardLink | CreateDir | Rename | Remove | Truncate
            ),
            Fault::Denied => {
                !matches!(operation, Read | Write | Sync | Truncate | Stat | FreeSpace)
            }
        }
    }
}

/// Which operations fail, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRule {
    /// Text that the path contains; empty for every path.
    pub path_contains: String,
    /// `None`: every operation; of a lasting rule, every one that can fail so.
    pub operation: Option<Operation>,
    /// Matching operations that still succeed first.
    pub skip: u64,
    /// Matching operations that then fail.
    pub times: u64,
    /// From its first strike on, every operation that can fail so fails, whatever its path: the device stays as it is.
    pub lasting: bool,
    pub fault: Fault,
}

impl FaultRule {
    /// Any operation on any path, once, now.
    pub fn any(fault: Fault) -> FaultRule {
        let path_contains = String::new();
        FaultRule { path_contains, operation: None, skip: 0, times: 1, lasting: false, fault }
    }
}

/// Counts the operation against every rule; the first one that strikes decides.
pub(super) fn strike(
    rules: &mut Vec<FaultRule>,
    path: &Path,
    operation: Operation,
) -> io::Result<()> {
    let name = path.to_string_lossy();
    let mut struck = None;
    for rule in rules.iter_mut() {
        let is_of_rule = match rule.operation {
            Some(only) => only == operation,
            None => !rule.lasting || rule.fault.may_strike(operation),
        };
        if !is_of_rule || !name.contains(&rule.path_contains) {
            continue;
        }
        if rule.skip > 0 {
            rule.skip -= 1;
        } else if struck.is_none() && rule.times > 0 {
            rule.times -= 1;
            struck = Some(rule.fault);
            if rule.lasting {
                let (path_contains, times) = (String::new(), u64::MAX);
                *rule = FaultRule { path_contains, operation: None, times, ..rule.clone() };
            }
        }
    }
    rules.retain(|rule| rule.times > 0);
    struck.map_or(Ok(()), |fault| Err(fault.error()))
}
