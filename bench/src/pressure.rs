//! How much the machine stood in its own way: stalls that the kernel accounts (PSI), and its work to find free pages.

use std::collections::BTreeMap;
use std::fs;

use super::record::Measurements;

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

    /// µs in which some task (`some`) or all (`full`) waited for `cpu`, `io` or `memory`, where the kernel counts them; and pages.
    pub(super) fn figures(&self, to: Measurements) -> Measurements {
        let stalls =
            self.stalls.iter().map(|(what, micros)| (format!("stalled_us {what}"), micros));
        let pages = self.pages.iter().map(|(name, count)| (format!("pages {name}"), count));
        stalls.chain(pages).fold(to, |to, (name, value)| to.with(&name, *value as f64))
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
