//! Which outputs are expected to be rewritten soon.

use halcyon_model::options::{Compaction, MapOption};

use super::super::{Candidate, Output, Reason, Task, is_soon_rewritten};
use super::picks::table;

const MIB: u64 = 1 << 20;

fn compaction(class: &str) -> Compaction {
    let entries = [("class".to_owned(), class.to_owned())].into_iter().collect();
    MapOption::<Compaction>::checked(entries).expect("options").value().clone()
}

fn task(inputs: &[u64], output: Output) -> Task {
    Task { inputs: inputs.to_vec(), expired: Vec::new(), reason: Reason::Compaction, output }
}

fn of_size(id: u64, mib: u64) -> Candidate {
    Candidate { size: mib * MIB, ..table(id) }
}

/// Proves that only the largest tier stays, whether tiers are of sizes or of densities.
#[test]
fn tiers_below_the_last_are_soon_rewritten() {
    let tables = [of_size(1, 10), of_size(2, 10), of_size(3, 1000), of_size(4, 1000)];
    let outputs = [
        ("SizeTieredCompactionStrategy", Output::Single { level: 0 }),
        ("UnifiedCompactionStrategy", Output::Sharded { shards: 4 }),
    ];
    for (class, output) in outputs {
        let soon =
            |inputs: &[u64]| is_soon_rewritten(&compaction(class), &tables, &task(inputs, output));
        assert!(soon(&[1, 2]), "{class}");
        assert!(!soon(&[3, 4]), "{class}");
        assert!(!soon(&[1, 2, 3, 4]), "{class}");
        let reason = Reason::TombstoneCompaction;
        let alone = Task { reason, ..task(&[1], output) };
        assert!(!is_soon_rewritten(&compaction(class), &tables, &alone), "{class}");
    }
}

/// Proves that a small SSTable of a small share of the tokens can be of the last tier.
#[test]
fn density_counts_and_not_size() {
    let unified = compaction("UnifiedCompactionStrategy");
    let eighth = |id| Candidate { last: i64::MIN + (1 << 61), ..of_size(id, 100) };
    let tables = [eighth(1), eighth(2), of_size(3, 1000)];
    let output = Output::Sharded { shards: 8 };
    assert!(!is_soon_rewritten(&unified, &tables, &task(&[1, 2], output)));
}

/// Proves that levels from 2 on stay.
#[test]
fn the_first_two_levels_are_soon_rewritten() {
    let leveled = compaction("LeveledCompactionStrategy");
    let tables = [table(1), table(2)];
    for (level, soon) in [(0, true), (1, true), (2, false), (5, false)] {
        let output = Output::Sized { level, max_size: 160 * MIB };
        assert_eq!(is_soon_rewritten(&leveled, &tables, &task(&[1, 2], output)), soon, "{level}");
    }
    let output = Output::Single { level: 0 };
    assert!(is_soon_rewritten(&leveled, &tables, &task(&[1, 2], output)));
}

/// Proves that a window which is over stays.
#[test]
fn the_newest_window_is_soon_rewritten() {
    let windows = compaction("TimeWindowCompactionStrategy");
    let day = 86_400_000_000;
    let at = |id, days: i64| Candidate { max_timestamp: days * day, ..table(id) };
    let tables = [at(1, 10), at(2, 10), at(3, 11), at(4, 11)];
    let output = Output::Single { level: 0 };
    assert!(!is_soon_rewritten(&windows, &tables, &task(&[1, 2], output)));
    assert!(is_soon_rewritten(&windows, &tables, &task(&[3, 4], output)));
}
