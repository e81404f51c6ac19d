//! What this process may use of the machine, and what it uses.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of memory that this process may use: the machine's, or less if a control group (version 1 or 2) says so.
pub fn available_memory() -> u64 {
    let machine = machine_memory();
    match control_group_limit(Path::new("/sys/fs/cgroup"), &read("/proc/self/cgroup")) {
        Some(limit) => limit.min(machine),
        None => machine,
    }
}

/// Bytes of memory that this process holds now; 0 if the system does not tell.
pub fn resident_memory() -> u64 {
    let text = read("/proc/self/status");
    let kib = text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB"));
    kib.and_then(|kib| kib.trim().parse::<u64>().ok()).map_or(0, |kib| kib.saturating_mul(1024))
}

/// Makes what this process creates from now on private: files 0600, directories 0700. What is there keeps its mode.
pub fn create_privately() {
    // SAFETY: no memory is passed; it cannot fail.
    unsafe { libc::umask(0o077) };
}

fn machine_memory() -> u64 {
    let text = read("/proc/meminfo");
    let kib = text.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    // No machine that runs this has less.
    kib.map_or(1 << 30, |kib| kib.saturating_mul(1024))
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The tightest limit from this process's group up to the root. `groups` is `/proc/self/cgroup`: lines of
/// `hierarchy:controllers:path`, where version 2 has `0::path`.
fn control_group_limit(mount: &Path, groups: &str) -> Option<u64> {
    groups
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            if controllers.is_empty() {
                tightest(mount, path, "memory.max")
            } else if controllers.split(',').any(|name| name == "memory") {
                tightest(&mount.join("memory"), path, "memory.limit_in_bytes")
            } else {
                None
            }
        })
        .min()
}

fn tightest(mount: &Path, group: &str, file: &str) -> Option<u64> {
    // In a container the group's path may be the host's, of which only the mount itself is to be seen.
    let mut folder: PathBuf = mount.join(group.trim_start_matches('/'));
    let mut limit = None;
    loop {
        // Version 2 says `max` for no limit, version 1 a huge number, which the machine's size undercuts.
        if let Ok(found) = read(folder.join(file)).trim().parse::<u64>() {
            limit = Some(limit.map_or(found, |known: u64| known.min(found)));
        }
        if folder == mount || !folder.pop() {
            return limit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group_tree(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("halcyon-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    /// Proves that the tightest limit on the way to the root counts, in both versions, and that `max` is none.
    #[test]
    fn the_tightest_group_counts() {
        let root = group_tree(
            "groups",
            &[
                ("a/memory.max", "max\n"),
                ("a/b/memory.max", "4096\n"),
                ("memory/docker/x/memory.limit_in_bytes", "9223372036854771712\n"),
                ("memory/docker/memory.limit_in_bytes", "8192\n"),
            ],
        );
        assert_eq!(control_group_limit(&root, "0::/a/b\n"), Some(4096));
        assert_eq!(control_group_limit(&root, "0::/a\n"), None);
        assert_eq!(control_group_limit(&root, "5:cpu,memory:/docker/x\n1:cpu:/y\n"), Some(8192));
        assert_eq!(control_group_limit(&root, "nonsense"), None);
        fs::remove_dir_all(root).unwrap();
    }

    /// Proves that a process has at least as much memory as a machine must have.
    #[test]
    fn memory_is_found() {
        assert!(available_memory() >= 64 << 20);
    }
}
