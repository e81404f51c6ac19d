//! A memory cgroup around a process that was there before, so that it has room for so much page cache and no more.
//!
//! What a process holds when it is put in stays charged where it was; only what comes afterwards counts. So the limit is
//! page cache, and whatever else the process allocates in the cage: that is looked up after a while and added.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;

pub(super) struct Cage {
    folder: PathBuf,
    parent: PathBuf,
    pid: u32,
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

/// The cgroup that a process is in, as far as memory is concerned.
fn group_of(pid: u32) -> Result<(PathBuf, &'static Names)> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
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
    pub(super) fn around(pid: u32, limit: u64) -> Result<Cage> {
        let (parent, names) = group_of(pid)?;
        let folder = parent.join(format!("halcyon-bench-{pid}"));
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let cage = Cage { folder, parent, pid, names };
        cage.limit(limit)?;
        cage.put(&cage.folder)?;
        Ok(cage)
    }

    fn put(&self, group: &Path) -> Result<()> {
        let path = group.join("cgroup.procs");
        Ok(fs::write(&path, self.pid.to_string())
            .map_err(|e| format!("{}: {e}", path.display()))?)
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

impl Drop for Cage {
    fn drop(&mut self) {
        let _ = self.put(&self.parent);
        let _ = fs::remove_dir(&self.folder);
    }
}
