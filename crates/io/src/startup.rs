//! What to check about the machine before serving from it: each finding with its evidence and its
//! cure.

use std::{fmt, path::Path};

use crate::{
    device::BlockDevice,
    disk::Disk,
    error::Result,
    kernel::KernelVersion,
    mode::AccessMode,
    real,
    runtime::backend::{self, BackendChoice},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth a line in the log.
    Note,
    /// Works, but slower or riskier than it could.
    Warning,
    /// Do not start.
    Refusal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// What was found, with the evidence.
    pub text: String,
    /// Empty where there is nothing to cure.
    pub cure: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Refusal => "refusal",
        };
        write!(f, "{severity}: {}", self.text)?;
        if self.cure.is_empty() { Ok(()) } else { write!(f, "; {}", self.cure) }
    }
}

fn finding(severity: Severity, text: String, cure: &str) -> Finding {
    Finding { severity, text, cure: cure.to_owned() }
}

/// All checks for the directories that data will be in. Blocks for a few system calls.
pub fn check(disk: &Disk, directories: &[&Path]) -> Vec<Finding> {
    if disk.is_simulated() {
        // It has no machine under it.
        return Vec::new();
    }
    let mut findings = vec![check_backend(disk)];
    findings.extend(check_locked_memory());
    findings.extend(check_open_files());
    for directory in directories {
        findings.extend(check_directory(disk, directory));
    }
    findings
}

fn check_backend(disk: &Disk) -> Finding {
    let report = disk.backend();
    match (&report.refusal, &report.warning) {
        (Some(refusal), _) => finding(
            Severity::Refusal,
            refusal.clone(),
            "or set the I/O engine (HALCYON_IO_ENGINE) to `auto` or `pool`",
        ),
        (None, Some(warning)) => finding(Severity::Warning, warning.clone(), ""),
        (None, None) => {
            let why = match report.choice {
                BackendChoice::Pool => "as asked",
                _ => "io_uring is available",
            };
            finding(Severity::Note, format!("I/O engine {}: {why}", report.backend), "")
        }
    }
}

/// Rings of kernels before 5.12 are charged to the locked-memory limit.
const LOCKED_MEMORY_MIN: u64 = 8 << 20;
const OPEN_FILES_MIN: u64 = 100_000;

fn limit_of(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a live, writable local.
    (unsafe { libc::getrlimit(resource, &mut limit) } == 0).then_some(limit.rlim_cur)
}

fn check_locked_memory() -> Option<Finding> {
    let limit = limit_of(libc::RLIMIT_MEMLOCK)?;
    if limit >= LOCKED_MEMORY_MIN || backend::ring_refusal().is_some() {
        return None;
    }
    Some(finding(
        Severity::Warning,
        format!(
            "the locked-memory limit is {limit} bytes, less than the {LOCKED_MEMORY_MIN} that the \
             rings of many threads may need on kernels before 5.12"
        ),
        "raise it (ulimit -l unlimited, LimitMEMLOCK=infinity)",
    ))
}

fn check_open_files() -> Option<Finding> {
    let limit = limit_of(libc::RLIMIT_NOFILE)?;
    (limit < OPEN_FILES_MIN).then(|| {
        finding(
            Severity::Warning,
            format!("only {limit} files may be open; every SSTable has several"),
            "raise the limit to 100000 or more (ulimit -n, LimitNOFILE=)",
        )
    })
}

/// File system, alignment, kernel, device: what a directory's data will meet.
fn check_directory(disk: &Disk, directory: &Path) -> Vec<Finding> {
    let mut findings = vec![
        check_mode("reads", directory, disk.resolve_mode(directory, AccessMode::Auto)),
        check_mode("writes", directory, disk.resolve_write_mode(directory, AccessMode::Auto)),
    ];
    if let Ok(magic) = real::file_system(directory)
        && magic == crate::probe::EXT4
        && let Some(text) = KernelVersion::running().ext4_direct_write_corruption()
    {
        let cure = "boot kernel 6.1.66 or later, or another series";
        findings.push(finding(Severity::Warning, text, cure));
    }
    findings.extend(check_device(directory));
    findings
}

fn check_mode(what: &str, directory: &Path, choice: Result<crate::mode::ModeChoice>) -> Finding {
    match choice {
        Err(e) => finding(Severity::Refusal, format!("{}: {e}", directory.display()), ""),
        Ok(choice) => {
            let text = format!("{}: {what} {}: {}", directory.display(), choice.mode, choice.why);
            match choice.mode {
                AccessMode::Direct => finding(Severity::Note, text, ""),
                _ => finding(
                    Severity::Warning,
                    text,
                    "put the directory on ext4, XFS or btrfs on a block device, so that background \
                     I/O stays out of the page cache",
                ),
            }
        }
    }
}

const READ_AHEAD_KIB_MAX: u64 = 128;

/// The device's read-ahead and scheduler. A directory without a block device of its own has neither.
fn check_device(directory: &Path) -> Vec<Finding> {
    let Some(device) = BlockDevice::under(directory) else { return Vec::new() };
    let mut findings = Vec::new();
    if let Some(read_ahead) = device.read_ahead_kib.filter(|kib| *kib > READ_AHEAD_KIB_MAX) {
        findings.push(finding(
            Severity::Warning,
            format!(
                "{}: its device reads {read_ahead} KiB ahead ({}): a buffered read of one chunk \
                 fetches that much",
                directory.display(),
                device.setting("read_ahead_kb").display()
            ),
            "set it to 8 (blockdev --setra 16), or read in direct mode",
        ));
    }
    if let (true, Some(scheduler)) = (device.is_scheduled_in_vain(), &device.scheduler) {
        findings.push(finding(
            Severity::Warning,
            format!(
                "{}: its device is not rotating and schedules with {scheduler} ({})",
                directory.display(),
                device.setting("scheduler").display()
            ),
            "choose none or mq-deadline: echo none > that file, or a udev rule",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the checks run on this machine and that every warning has a cure.
    #[test]
    fn checks_run_here() {
        let disk = Disk::real(crate::DiskOptions::default());
        let here = std::env::temp_dir();
        let findings = check(&disk, &[&here]);
        assert!(findings.len() >= 3);
        for finding in findings {
            eprintln!("{finding}");
            assert!(finding.severity == Severity::Note || finding.to_string().contains("; "));
        }
        let gone = check(&disk, &[Path::new("/no/such/directory")]);
        assert!(gone.iter().any(|finding| finding.severity == Severity::Refusal));
    }
}
