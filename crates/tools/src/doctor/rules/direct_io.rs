//! Kernel and file system: whether direct I/O works and is safe.
//!
//! Direct I/O keeps compaction out of the page cache that buffered reads need. Linux 6.1.64 and 6.1.65 lose data of direct
//! appends on ext4 (Debian bug 1057843).

use halcyon_io::Alignment;

use crate::doctor::facts::{Facts, Machine};
use crate::doctor::finding::{Finding, Severity};

/// File systems in the page cache.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let Some(machine) = &facts.machine else { return Vec::new() };
    corrupting_kernel(machine).into_iter().chain(no_direct_io(machine)).collect()
}

fn kind_of(machine: &Machine) -> &str {
    machine.file_system.as_ref().map_or("unknown", |file_system| file_system.kind.as_str())
}

fn corrupting_kernel(machine: &Machine) -> Option<Finding> {
    let why = machine.kernel.ext4_direct_write_corruption()?;
    let is_ext4 = kind_of(machine) == "ext4";
    Some(Finding {
        severity: if is_ext4 { Severity::Critical } else { Severity::Note },
        kind: "direct_io",
        of: machine.directory.display().to_string(),
        what: "this kernel corrupts files that are written directly".to_owned(),
        evidence: vec![why, format!("the file system is {}", kind_of(machine))],
        bytes_per_query: None,
        cost: if is_ext4 { "data" } else { "nothing: the fault concerns ext4 only" }.to_owned(),
        cure: vec![
            "apt install linux-image-amd64 && reboot   # any kernel but 6.1.64 and 6.1.65".to_owned(),
            "# until then: commitlog_disk_access_mode: standard, background_write_disk_access_mode: standard (cassandra.yaml)".to_owned(),
        ],
    })
}

fn no_direct_io(machine: &Machine) -> Option<Finding> {
    let kind = kind_of(machine);
    let refused = matches!(machine.alignment, Some(Alignment { offset: 0, .. }));
    if !refused && !IN_MEMORY.contains(&kind) {
        return None;
    }
    let source =
        machine.file_system.as_ref().map_or("?", |file_system| file_system.source.as_str());
    Some(Finding {
        severity: Severity::Warning,
        kind: "direct_io",
        of: machine.directory.display().to_string(),
        what: "files cannot be read directly there".to_owned(),
        evidence: vec![
            format!("the file system is {kind} (from {source})"),
            if refused {
                "statx(STATX_DIOALIGN) says: no direct I/O".to_owned()
            } else {
                "its files are in the page cache and nowhere else".to_owned()
            },
        ],
        bytes_per_query: None,
        cost: "compaction and reads share the page cache: reads wait while it compacts".to_owned(),
        cure: vec!["# put the directory on ext4, XFS or btrfs on a block device".to_owned()],
    })
}

#[cfg(test)]
mod tests {
    use halcyon_io::KernelVersion;
    use halcyon_io::device::FileSystem;

    use super::*;

    fn machine(kernel: &str, kind: &str, alignment: Option<u32>) -> Facts {
        let file_system =
            FileSystem { kind: kind.into(), source: "/dev/x".into(), mounted_at: "/".into() };
        let machine = Machine {
            directory: "/data".into(),
            kernel: KernelVersion::parse(kernel, ""),
            device: None,
            file_system: Some(file_system),
            alignment: alignment.map(|n| Alignment { memory: n, offset: n }),
        };
        Facts { machine: Some(machine), ..Facts::default() }
    }

    /// Proves on which kernels and file systems direct I/O is safe.
    #[test]
    fn fitness_for_direct_io() {
        let severities = |kernel, kind, alignment| -> Vec<Severity> {
            examine(&machine(kernel, kind, alignment)).iter().map(|f| f.severity).collect()
        };
        assert_eq!(severities("6.1.64", "ext4", Some(512)), [Severity::Critical]);
        assert_eq!(severities("6.1.65", "xfs", Some(512)), [Severity::Note]);
        assert_eq!(severities("6.1.66", "ext4", Some(512)), []);
        assert_eq!(severities("6.12.0", "overlay", Some(0)), [Severity::Warning]);
        assert_eq!(severities("5.15.0", "xfs", None), []);
        assert_eq!(severities("5.15.0", "tmpfs", None), [Severity::Warning]);
    }
}
