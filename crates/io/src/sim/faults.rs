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
}

impl Fault {
    fn error(self) -> io::Error {
        io::Error::from_raw_os_error(match self {
            Fault::NoSpace => libc::ENOSPC,
            Fault::DeviceError => libc::EIO,
            Fault::Denied => libc::EACCES,
            Fault::NoDescriptors => libc::EMFILE,
        })
    }
}

/// Which operations fail, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRule {
    /// Text that the path contains; empty for every path.
    pub path_contains: String,
    /// `None`: every operation.
    pub operation: Option<Operation>,
    /// Matching operations that still succeed first.
    pub skip: u64,
    /// Matching operations that then fail.
    pub times: u64,
    pub fault: Fault,
}

impl FaultRule {
    /// Any operation on any path, once, now.
    pub fn any(fault: Fault) -> FaultRule {
        FaultRule { path_contains: String::new(), operation: None, skip: 0, times: 1, fault }
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
        if !name.contains(&rule.path_contains)
            || rule.operation.is_some_and(|only| only != operation)
        {
            continue;
        }
        if rule.skip > 0 {
            rule.skip -= 1;
        } else if struck.is_none() && rule.times > 0 {
            rule.times -= 1;
            struck = Some(rule.fault);
        }
    }
    rules.retain(|rule| rule.times > 0);
    struck.map_or(Ok(()), |fault| Err(fault.error()))
}
