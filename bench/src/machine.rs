//! The machine: what it is, what passes its page cache and its block device.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use halcyon_oracle::{Result, repository};
use serde::Serialize;
use serde_json::{Value, json};

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

    /// Bytes of the least that can be read from it.
    pub(super) fn block(&self) -> u64 {
        const LEAST: u64 = 512;
        let text = self
            .queue()
            .and_then(|queue| Ok(fs::read_to_string(queue.join("logical_block_size"))?));
        text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(LEAST)
    }

    /// The disk of a partition.
    pub(super) fn whole(&self) -> Result<Device> {
        let disk = self.queue()?.with_file_name("dev");
        let text = fs::read_to_string(&disk).map_err(|e| format!("{}: {e}", disk.display()))?;
        let (major, minor) = text.trim().split_once(':').ok_or("no device number")?;
        Ok(Device { major: major.parse()?, minor: minor.parse()? })
    }

    /// `device_reads` and the like, as `/sys/dev/block/*/stat` counts them; the times are of all requests together, but for the one in
    /// which anything was under way. Zero for anything but a block device, such as a tmpfs or an overlay.
    pub(super) fn counters(&self) -> Counters {
        const SECTOR: u64 = 512;
        const FIELDS: [(usize, &str, u64); 7] = [
            (0, "device_reads", 1),
            (2, "device_bytes_read", SECTOR),
            (3, "device_read_ms", 1),
            (4, "device_writes", 1),
            (6, "device_bytes_written", SECTOR),
            (7, "device_write_ms", 1),
            (9, "device_busy_ms", 1),
        ];
        let path = format!("/sys/dev/block/{}:{}/stat", self.major, self.minor);
        let text = fs::read_to_string(path).unwrap_or_default();
        let fields: Vec<&str> = text.split_whitespace().collect();
        let field = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        let named = FIELDS.map(|(at, name, unit)| (name.to_owned(), unit * field(at).unwrap_or(0)));
        Counters(named.into())
    }
}

/// Counters by name, as the kernel has them since its start.
#[derive(Clone, Default, Serialize)]
pub(super) struct Counters(pub(super) BTreeMap<String, u64>);

impl Counters {
    pub(super) fn since(&self, before: &Counters) -> Counters {
        let after = self.0.iter();
        let grown = after.map(|(name, now)| (name.clone(), now.saturating_sub(before.of(name))));
        Counters(grown.collect())
    }

    pub(super) fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// Writes whatever is dirty: half a minute later the kernel would, in the middle of a measurement.
pub(super) fn write_back() {
    let _ = Command::new("sync").status();
}

/// Empties the page cache. `false` where that is not allowed.
pub(super) fn drop_page_cache() -> bool {
    write_back();
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

/// Runnable processes over the last minute: above zero before a run, another program is busy.
pub(super) fn load() -> f64 {
    let line = first_line("/proc/loadavg");
    line.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}
