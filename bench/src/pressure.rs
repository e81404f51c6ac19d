//! How much the machine stood in its own way: stalls that the kernel accounts (PSI), and its work to find free pages.

use std::fs;

use super::machine::Counters;

/// In /proc/vmstat. Reclaim inside a cgroup is counted by the `_file` and `_anon` sums only.
const PAGES: [&str; 8] = [
    "allocstall_normal",
    "allocstall_movable",
    "pgscan_direct",
    "pgscan_kswapd",
    "pgsteal_direct",
    "pgsteal_file",
    "pgmajfault",
    "workingset_refault_file",
];

/// Since the machine's start: µs in which some task (`some`) or all (`full`) waited for `cpu`, `io` or `memory`, where the kernel counts
/// them; and pages.
pub(super) fn counters() -> Counters {
    let mut counters = Counters::default();
    for resource in ["cpu", "io", "memory"] {
        let text = fs::read_to_string(format!("/proc/pressure/{resource}")).unwrap_or_default();
        let stalls = text.lines().filter_map(total);
        counters.0.extend(stalls.map(|(kind, us)| (format!("stalled_us {resource} {kind}"), us)));
    }
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let known = lines.filter(|(name, _)| PAGES.contains(name));
    let pages = known.filter_map(|(name, n)| Some((format!("pages {name}"), n.parse().ok()?)));
    counters.0.extend(pages);
    counters
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=768103`
fn total(line: &str) -> Option<(&str, u64)> {
    let (kind, rest) = line.split_once(' ')?;
    Some((kind, rest.rsplit_once("total=")?.1.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_psi() {
        let line = "full avg10=0.00 avg60=1.25 avg300=0.00 total=425720";
        assert_eq!(total(line), Some(("full", 425_720)));
        assert_eq!(total("nonsense"), None);
    }
}
