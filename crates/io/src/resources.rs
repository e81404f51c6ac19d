//! What this process may use of the machine, and what it uses.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const GROUPS: &str = "/sys/fs/cgroup";

/// Bytes of memory that this process may use: the machine's, or less if a control group (version 1 or 2) says so.
pub fn available_memory() -> u64 {
    let machine = machine_memory();
    match control_group_limit(Path::new(GROUPS), &read("/proc/self/cgroup")) {
        Some(limit) => limit.min(machine),
        None => machine,
    }
}

/// How long processors have been withheld from this process, added up over those `usable` to it and since the machine or the control
/// group exists: the host of a virtual machine ran something else (`steal`), or a limit of the group was used up (`throttled`).
pub fn processors_withheld(usable: usize) -> Duration {
    let groups = throttled(Path::new(GROUPS), &read("/proc/self/cgroup"));
    stolen(&read("/proc/stat"), usable) + groups.unwrap_or_default()
}

/// Bytes of memory that this process holds now; 0 if the system does not tell.
pub fn resident_memory() -> u64 {
    kib_after(&read("/proc/self/status"), "VmRSS:").unwrap_or(0)
}

/// Makes what this process creates from now on private: files 0600, directories 0700. What is there keeps its mode.
pub fn create_privately() {
    // SAFETY: no memory is passed; it cannot fail.
    unsafe { libc::umask(0o077) };
}

fn machine_memory() -> u64 {
    // No machine that runs this has less.
    kib_after(&read("/proc/meminfo"), "MemTotal:").unwrap_or(1 << 30)
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The rest of the line that begins so.
fn after<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// In bytes.
fn kib_after(text: &str, name: &str) -> Option<u64> {
    let kib = after(text, name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    Some(kib.saturating_mul(1024))
}

/// The tightest limit from this process's group up to the root.
fn control_group_limit(mount: &Path, groups: &str) -> Option<u64> {
    // Version 2 says `max` for no limit, version 1 a huge number, which the machine's size undercuts.
    let number = |text: String| text.trim().parse::<u64>().ok();
    let all = control_groups(mount, groups, "memory").into_iter();
    all.filter_map(|Group { folder, is_v2 }| {
        number(read(folder.join(if is_v2 { "memory.max" } else { "memory.limit_in_bytes" })))
    })
    .min()
}

/// How long the group that was throttled most had to wait, of those from this process's up to the root: if one waits, so does the process.
fn throttled(mount: &Path, groups: &str) -> Option<Duration> {
    let all = control_groups(mount, groups, "cpu").into_iter();
    all.filter_map(|Group { folder, is_v2 }| {
        let text = read(folder.join("cpu.stat"));
        let figure = |name| after(&text, name)?.parse().ok();
        if is_v2 {
            figure("throttled_usec ").map(Duration::from_micros)
        } else {
            figure("throttled_time ").map(Duration::from_nanos)
        }
    })
    .max()
}

/// The eighth figure of all processors, in hundredths of a second (`man 5 proc_stat`): of it the part of those that are usable.
fn stolen(stat: &str, usable: usize) -> Duration {
    let all = after(stat, "cpu ");
    let steal = all.and_then(|all| all.split_whitespace().nth(7)?.parse::<u64>().ok());
    let is_one = |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| !rest.starts_with(' '));
    let machine = stat.lines().filter(is_one).count().max(usable);
    Duration::from_millis(steal.unwrap_or(0).saturating_mul(10))
        .mul_f64(usable as f64 / machine as f64)
}

/// A control group, by where its files are.
struct Group {
    folder: PathBuf,
    /// Of the second version of control groups.
    is_v2: bool,
}

/// The groups with this controller, from this process's up to the root. `groups` is `/proc/self/cgroup`: lines of
/// `hierarchy:controllers:path`, where version 2 has `0::path`.
fn control_groups(mount: &Path, groups: &str, controller: &str) -> Vec<Group> {
    let mut all = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let is_v2 = controllers.is_empty();
        if !is_v2 && controllers.split(',').all(|name| name != controller) {
            continue;
        }
        let root = if is_v2 { mount.to_owned() } else { mount.join(controller) };
        // In a container the group's path may be the host's, of which only the mount itself is to be seen.
        let mut folder = root.join(path.trim_start_matches('/'));
        loop {
            all.push(Group { folder: folder.clone(), is_v2 });
            if folder == root || !folder.pop() {
                break;
            }
        }
    }
    all
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

    /// Proves that the tightest limit on the way to the root counts, in both versions, and that `max` is not a limit.
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

    /// Proves that throttling is found in both versions, of the group that waits longest, and what the host took.
    #[test]
    fn withheld_processors() {
        let root = group_tree(
            "throttled",
            &[
                ("a/cpu.stat", "usage_usec 9\nnr_throttled 3\nthrottled_usec 2500\n"),
                ("a/b/cpu.stat", "usage_usec 9\nthrottled_usec 700\n"),
                ("cpu/docker/cpu.stat", "nr_periods 2\nnr_throttled 1\nthrottled_time 4000000\n"),
            ],
        );
        assert_eq!(throttled(&root, "0::/a/b\n"), Some(Duration::from_micros(2500)));
        assert_eq!(throttled(&root, "4:cpu,cpuacct:/docker/x\n"), Some(Duration::from_millis(4)));
        assert_eq!(throttled(&root, "4:memory:/docker\n"), None);
        fs::remove_dir_all(root).unwrap();
        let stat = "cpu  10 1 20 4000 5 0 6 234 0 0\ncpu0 5 0 10 2000 2 0 3 117 0 0\n";
        assert_eq!(stolen(stat, 1), Duration::from_millis(2340));
        let stat = format!("{stat}cpu1 5 1 10 2000 3 0 3 117 0 0\nintr 7\n");
        assert_eq!(stolen(&stat, 2), Duration::from_millis(2340));
        assert_eq!(stolen(&stat, 1), Duration::from_millis(1170));
        assert_eq!(stolen("nonsense", 2), Duration::ZERO);
    }

    /// Proves that a process has at least as much memory as a machine must have.
    #[test]
    fn memory_is_found() {
        assert!(available_memory() >= 64 << 20);
    }
}
