//! How much the machine stood in its own way: stalls that the kernel accounts (PSI), and its work to find free pages.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

/// Counters of the whole machine, since its start.
#[derive(Clone, Default)]
pub(super) struct Pressure {
    /// `io some` and the like, in µs.
    stalls: BTreeMap<String, u64>,
    pages: BTreeMap<&'static str, u64>,
}

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

impl Pressure {
    pub(super) fn now() -> Pressure {
        let mut stalls = BTreeMap::new();
        for resource in ["cpu", "io", "memory"] {
            let text = fs::read_to_string(format!("/proc/pressure/{resource}")).unwrap_or_default();
            for (kind, micros) in text.lines().filter_map(total) {
                stalls.insert(format!("{resource} {kind}"), micros);
            }
        }
        let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
        let lines: BTreeMap<&str, u64> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(name, number)| Some((name, number.parse().ok()?)))
            .collect();
        let pages = PAGES.into_iter().filter_map(|name| Some((name, *lines.get(name)?)));
        Pressure { stalls, pages: pages.collect() }
    }

    pub(super) fn since(&self, before: &Pressure) -> Pressure {
        let less = |now: u64, before: Option<&u64>| now.saturating_sub(*before.unwrap_or(&0));
        let stalls = self.stalls.iter();
        let pages = self.pages.iter();
        Pressure {
            stalls: stalls.map(|(n, v)| (n.clone(), less(*v, before.stalls.get(n)))).collect(),
            pages: pages.map(|(n, v)| (*n, less(*v, before.pages.get(n)))).collect(),
        }
    }

    /// Seconds in which some task (`some`) or all (`full`) waited for `cpu`, `io` or `memory`; none without PSI.
    pub(super) fn stalled(&self, what: &str) -> Option<f64> {
        self.stalls.get(what).map(|micros| *micros as f64 / 1e6)
    }

    pub(super) fn pages(&self, name: &str) -> u64 {
        self.pages.get(name).copied().unwrap_or(0)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "stalled_us": self.stalls, "pages": self.pages })
    }
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
