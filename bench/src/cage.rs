//! A memory cgroup, of version 1 or 2: below the one that this program is in, gone when dropped.
//!
//! - *Around* a process that was there before: what it holds already stays charged where it was; only what comes afterwards
//!   counts, page cache and all else.
//! - A process *started in* it is charged for everything from its first page on, the page cache that it fills included: what an
//!   operator's container does.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use halcyon_oracle::Result;

pub(super) struct Cage {
    folder: PathBuf,
    parent: PathBuf,
    names: &'static Names,
}

/// What files and statistics are called.
struct Names {
    limit: &'static str,
    usage: &'static str,
    /// In `memory.stat`.
    page_cache: &'static str,
}

const VERSION_1: Names =
    Names { limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", page_cache: "cache" };
const VERSION_2: Names = Names { limit: "memory.max", usage: "memory.current", page_cache: "file" };

/// The cgroup that this program is in, as far as memory is concerned.
fn own_group() -> Result<(PathBuf, &'static Names)> {
    let text = fs::read_to_string("/proc/self/cgroup")?;
    let fields = |line: &str| {
        let mut fields = line.splitn(3, ':').map(str::to_owned);
        Some((fields.next()?, fields.next()?, fields.next()?))
    };
    let groups: Vec<(String, String, String)> = text.lines().filter_map(fields).collect();
    let under = |root: &str, path: &str| Path::new(root).join(path.trim_start_matches('/'));
    let one = groups.iter().find(|(_, kinds, _)| kinds.split(',').any(|kind| kind == "memory"));
    if let Some((_, _, path)) = one {
        return Ok((under("/sys/fs/cgroup/memory", path), &VERSION_1));
    }
    let two = groups.iter().find(|(number, _, _)| number == "0");
    let (_, _, path) = two.ok_or("no memory cgroup")?;
    Ok((under("/sys/fs/cgroup", path), &VERSION_2))
}

impl Cage {
    pub(super) fn make(name: &str, limit: u64) -> Result<Cage> {
        let (parent, names) = own_group()?;
        let folder = parent.join(format!("halcyon-bench-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let cage = Cage { folder, parent, names };
        cage.limit(limit)?;
        Ok(cage)
    }

    /// A program, with its first arguments, that enters the cage and then becomes the program that is its next argument, as the same
    /// process.
    pub(super) fn launcher(&self) -> Vec<OsString> {
        let words = ["sh", "-c", "echo $$ > \"$0\" && exec \"$@\""];
        let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        words.push(self.folder.join("cgroup.procs").into_os_string());
        words
    }

    pub(super) fn limit(&self, bytes: u64) -> Result<()> {
        let path = self.folder.join(self.names.limit);
        Ok(fs::write(&path, bytes.to_string()).map_err(|e| format!("{}: {e}", path.display()))?)
    }

    /// Page cache, and all that is charged.
    pub(super) fn holds(&self) -> Result<(u64, u64)> {
        let usage = fs::read_to_string(self.folder.join(self.names.usage))?.trim().parse()?;
        let text = fs::read_to_string(self.folder.join("memory.stat"))?;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let cached = lines.find(|(name, _)| *name == self.names.page_cache);
        Ok((cached.map_or("0", |(_, bytes)| bytes).parse()?, usage))
    }
}

fn put(group: &Path, pid: &str) -> Result<()> {
    let path = group.join("cgroup.procs");
    Ok(fs::write(&path, pid).map_err(|e| format!("{}: {e}", path.display()))?)
}

impl Drop for Cage {
    fn drop(&mut self) {
        let inside = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        for pid in inside.lines() {
            let _ = put(&self.parent, pid);
        }
        // A process that has just ended may be counted for a moment longer.
        for _ in 0..50 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            sleep(Duration::from_millis(20));
        }
    }
}
