//! The machine: what it is, what passes its page cache and its block device.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::{Result, repository};

/// Lines of /proc/meminfo, in KiB.
pub(super) fn meminfo() -> BTreeMap<String, u64> {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let lines = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        Some((name.to_owned(), rest.split_whitespace().next()?.parse().ok()?))
    });
    lines.collect()
}

/// The block device that a folder lies on, if /sys shows it.
pub(super) struct Device {
    pub(super) major: u64,
    pub(super) minor: u64,
}

/// Of a block device since the machine's start, as `/sys/dev/block/*/stat` counts.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct DeviceCounters {
    pub(super) reads: u64,
    pub(super) bytes_read: u64,
    /// Of all reads together, in the queue and at the device.
    pub(super) read_ms: u64,
    pub(super) writes: u64,
    pub(super) bytes_written: u64,
    pub(super) write_ms: u64,
    /// In which anything was under way.
    pub(super) busy_ms: u64,
}

impl Device {
    pub(super) fn of(folder: &Path) -> Result<Device> {
        let number = fs::metadata(folder)?.dev();
        Ok(Device {
            major: (number >> 8) & 0xfff,
            minor: (number & 0xff) | ((number >> 12) & 0xfff00),
        })
    }

    /// The folder of its settings; a partition's are those of its disk.
    pub(super) fn queue(&self) -> Result<PathBuf> {
        let device = format!("/sys/dev/block/{}:{}", self.major, self.minor);
        let device = fs::canonicalize(&device).map_err(|e| format!("{device}: {e}"))?;
        let folders = [Some(device.as_path()), device.parent()];
        let mut queues = folders.into_iter().flatten().map(|folder| folder.join("queue"));
        let found = queues.find(|queue| queue.is_dir());
        Ok(found.ok_or_else(|| format!("{}: no settings", device.display()))?)
    }

    /// Zero for what is no block device, such as a tmpfs or an overlay.
    pub(super) fn counters(&self) -> DeviceCounters {
        const SECTOR: u64 = 512;
        let path = format!("/sys/dev/block/{}:{}/stat", self.major, self.minor);
        let text = fs::read_to_string(path).unwrap_or_default();
        let fields: Vec<u64> =
            text.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or(0);
        DeviceCounters {
            reads: field(0),
            bytes_read: field(2) * SECTOR,
            read_ms: field(3),
            writes: field(4),
            bytes_written: field(6) * SECTOR,
            write_ms: field(7),
            busy_ms: field(9),
        }
    }
}

impl DeviceCounters {
    pub(super) fn since(self, before: DeviceCounters) -> DeviceCounters {
        DeviceCounters {
            reads: self.reads - before.reads,
            bytes_read: self.bytes_read - before.bytes_read,
            read_ms: self.read_ms - before.read_ms,
            writes: self.writes - before.writes,
            bytes_written: self.bytes_written - before.bytes_written,
            write_ms: self.write_ms - before.write_ms,
            busy_ms: self.busy_ms - before.busy_ms,
        }
    }
}

/// Empties the page cache. `false` where that is not allowed.
pub(super) fn drop_page_cache() -> bool {
    let _ = Command::new("sync").status();
    fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

/// Bytes of these files that the page cache holds; none where `fincore` is missing.
pub(super) fn cached_bytes(files: &[PathBuf]) -> Option<u64> {
    if files.is_empty() {
        return Some(0);
    }
    let columns = ["--bytes", "--noheadings", "--raw", "--output", "RES"];
    let output = Command::new("fincore").args(columns).args(files).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.lines().filter_map(|line| line.trim().parse::<u64>().ok()).sum())
}

/// All files below a folder.
pub(super) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

/// What a record says about where it was taken.
pub(super) fn describe() -> Value {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(repository()).output();
        output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
    };
    json!({
        "commit": git(&["rev-parse", "--short=12", "HEAD"]),
        "uncommitted": !git(&["status", "--porcelain", "--untracked-files=no"]).is_empty(),
        "taken_at": taken_at(),
        "cpu": model.map(|(_, model)| model),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "memory_mib": meminfo().get("MemTotal").map(|kib| kib / 1024),
        "kernel": first_line("/proc/sys/kernel/osrelease"),
    })
}

fn taken_at() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
}

/// Runnable processes over the last minute: above zero before a run, somebody else is busy.
pub(super) fn load() -> f64 {
    let line = first_line("/proc/loadavg");
    line.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}
