//! The device's read-ahead: the bytes that a buffered or mapped read fetches in addition to its chunk.
//!
//! - A page fault in a *mapped* file (`disk_access_mode: mmap`, the default before 5.0; index files also with
//!   `mmap_index_only`, the default since) reads the whole read-ahead around the page.
//! - A *buffered* read at a random offset reads only its range, unless neighbouring pages are in the page cache: then the kernel
//!   takes it for sequential.
//! - A *direct* read (Halcyon) reads only its range.

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Severity};
use halcyon_model::units;

/// More than this helps only sequential readers.
const MAX: u64 = 32 << 10;

enum Reads {
    Direct,
    Mapped,
    IndexMapped,
    Buffered,
    Unknown,
}

fn how(facts: &Facts) -> Reads {
    let Some(live) = &facts.live else { return Reads::Unknown };
    if live.is_halcyon {
        return match live.io_modes.get("user_read").map(String::as_str) {
            Some("direct") => Reads::Direct,
            _ => Reads::Unknown,
        };
    }
    match live.settings.get("disk_access_mode").map(String::as_str) {
        Some("mmap") => Reads::Mapped,
        Some("mmap_index_only") => Reads::IndexMapped,
        Some("standard") => Reads::Buffered,
        _ => Reads::Unknown,
    }
}

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let device = facts.machine.as_ref().and_then(|machine| machine.device.as_ref());
    let Some(device) = device else { return Vec::new() };
    let Some(ahead) = device.read_ahead_kib.map(|kib| kib.saturating_mul(1024)) else {
        return Vec::new();
    };
    if ahead <= MAX {
        return Vec::new();
    }
    let largest = facts.largest();
    let sstables = largest.map_or(1.0, |table| table.sstables_of_a_read());
    let wanted = largest.map_or(0.0, |table| table.device_bytes_of_a_chunk());
    let in_vain = sstables * (ahead as f64 - wanted).max(0.0);
    let shown = units::bytes(in_vain as u64);
    let (severity, cost) = match how(facts) {
        Reads::Direct => (
            Severity::Note,
            "nothing for Halcyon, which reads directly; other programs pay".to_owned(),
        ),
        Reads::Mapped => (
            Severity::Warning,
            format!("{shown} a query that misses the page cache (disk_access_mode: mmap)"),
        ),
        Reads::IndexMapped => (
            Severity::Warning,
            format!(
                "{shown} a query whose index pages miss the page cache (disk_access_mode: mmap_index_only)"
            ),
        ),
        Reads::Buffered => (
            Severity::Note,
            format!(
                "up to {shown} for a query that seems to continue what is cached; nothing at random places (disk_access_mode: standard)"
            ),
        ),
        Reads::Unknown => (
            Severity::Warning,
            format!(
                "up to {shown} a query where files are mapped (Cassandra before 5.0, and index files since); nothing where they are read directly (Halcyon)"
            ),
        ),
    };
    let mut evidence =
        vec![format!("{} is {}", device.setting("read_ahead_kb").display(), ahead >> 10)];
    if let Some(table) = largest {
        evidence.push(format!(
            "a row of {} takes {} from each of {sstables:.1} SSTables",
            table.cql_name(),
            units::bytes(wanted as u64)
        ));
    }
    vec![Finding {
        severity,
        kind: "read_ahead",
        of: device.node(),
        what: format!("the device reads {} ahead", units::bytes(ahead)),
        evidence,
        bytes_per_query: (severity > Severity::Note).then_some(in_vain as u64),
        cost,
        cure: vec![
            format!("blockdev --setra 0 {}", device.node()),
            format!(
                "echo 'ACTION==\"add|change\", KERNEL==\"{}\", ATTR{{queue/read_ahead_kb}}=\"0\"' > /etc/udev/rules.d/60-read-ahead.rules   # to stay so",
                device.name
            ),
        ],
    }]
}

#[cfg(test)]
mod tests {
    use halcyon_io::KernelVersion;
    use halcyon_io::device::BlockDevice;

    use super::*;
    use crate::doctor::facts::{Machine, Server};
    use crate::doctor::rules::sound_table;

    fn facts(kib: &str, live: Option<Server>) -> Facts {
        let kib = kib.to_owned();
        let queue = |file: &str| (file == "read_ahead_kb").then(|| kib.clone());
        let machine = Machine {
            directory: "/data".into(),
            kernel: KernelVersion::parse("6.12.0", ""),
            device: Some(BlockDevice::parse("nvme0n1", queue)),
            file_system: None,
            alignment: None,
        };
        Facts { machine: Some(machine), tables: vec![sound_table()], live, ..Facts::default() }
    }

    /// Proves the cost of 4 MiB by access mode: the read-ahead without the bytes that the read needs (2 KiB and a block).
    #[test]
    fn read_ahead_costs_by_mode() {
        let in_vain = (4 << 20) - 2048 - 4096;
        let unknown = examine(&facts("4096\n", None));
        assert_eq!(unknown[0].bytes_per_query, Some(in_vain));
        assert_eq!(unknown[0].cure[0], "blockdev --setra 0 /dev/nvme0n1");
        assert_eq!(unknown[0].evidence[0], "/sys/block/nvme0n1/queue/read_ahead_kb is 4096");
        let halcyon = Server {
            is_halcyon: true,
            io_modes: [("user_read".to_owned(), "direct".to_owned())].into(),
            ..Server::default()
        };
        let direct = examine(&facts("4096\n", Some(halcyon)));
        assert_eq!((direct[0].severity, direct[0].bytes_per_query), (Severity::Note, None));
        let settings = [("disk_access_mode".to_owned(), "mmap".to_owned())].into();
        let mapped = examine(&facts("4096\n", Some(Server { settings, ..Server::default() })));
        assert!(mapped[0].cost.contains("disk_access_mode: mmap"), "{}", mapped[0].cost);
        assert_eq!(examine(&facts("0\n", None)), []);
        assert_eq!(examine(&facts("?", None)), []);
    }
}
