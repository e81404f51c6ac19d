//! Random histories with many equal timestamps, merged by `Merge` and by a naive model, which keeps all writes to a point in a map
//! and takes the newest by the rules.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::text::{self, TextStream, layout, spell};
use halcyon_io::Random;
use halcyon_stream::{Merge, PartitionKey, Purge, PurgeRule};

/// (timestamp, local deletion time); the larger supersedes the smaller.
type Deletion = (i64, u32);
const NONE: Deletion = (i64::MIN, 0);

/// In the order of `Cells.resolveRegular`: fields are encoded so that the larger tuple wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    timestamp: i64,
    ends: bool,
    is_tombstone: bool,
    local: u32,
    ttl: Reverse<i32>,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct KeyLiveness {
    timestamp: i64,
    is_expiring: bool,
    local: u32,
    ttl: Reverse<i32>,
}

#[derive(Debug, Clone, Default)]
struct Row {
    live: BTreeSet<KeyLiveness>,
    deletions: BTreeSet<Deletion>,
    columns: BTreeSet<Deletion>,
    /// By column and path.
    cells: BTreeMap<(&'static str, &'static str), BTreeSet<Cell>>,
}

/// All writes to a partition. Points: 4c is row c, 4c−1 the bound before it, 4c+1 the bound after it.
#[derive(Debug, Clone, Default)]
struct Partition {
    deletions: BTreeSet<Deletion>,
    ranges: Vec<(i32, i32, Deletion)>,
    rows: BTreeMap<i32, Row>,
    statics: Row,
}

type History = BTreeMap<&'static str, Partition>;

const COLUMNS: [(&str, &str); 5] = [("a", ""), ("b", ""), ("m", "p"), ("m", "q"), ("m", "r")];

fn deletion(dice: &mut Random) -> Deletion {
    (dice.below(6) as i64, 3 + dice.below(5) as u32)
}

fn cell(dice: &mut Random) -> Cell {
    let timestamp = dice.below(7) as i64;
    let value = ["x", "y", "xy"][dice.below(3) as usize].to_string();
    let local = 3 + dice.below(12) as u32;
    match dice.below(3) {
        0 => Cell { timestamp, ends: false, is_tombstone: false, local: 0, ttl: Reverse(0), value },
        1 => {
            let ttl = Reverse(1 + dice.below(3) as i32);
            Cell { timestamp, ends: true, is_tombstone: false, local, ttl, value }
        }
        _ => {
            let value = String::new();
            Cell { timestamp, ends: true, is_tombstone: true, local, ttl: Reverse(0), value }
        }
    }
}

fn event(dice: &mut Random, history: &mut History) {
    let partition = history.entry(["j", "k", "l"][dice.below(3) as usize]).or_default();
    if dice.below(10) == 0 {
        partition.statics.cells.entry(("s", "")).or_default().insert(cell(dice));
        return;
    }
    let row = partition.rows.entry(dice.below(5) as i32).or_default();
    match dice.below(12) {
        0 => drop(partition.deletions.insert((dice.below(3) as i64, 3 + dice.below(5) as u32))),
        1 | 2 => {
            let mut bounds =
                [0, 0].map(|_| 4 * dice.below(6) as i32 + [-1, 1][dice.below(2) as usize]);
            bounds.sort_unstable();
            let [from, to] = bounds;
            if from == to {
                return;
            }
            partition.ranges.push((from, to, deletion(dice)));
        }
        3 => drop(row.deletions.insert(deletion(dice))),
        4 => drop(row.columns.insert(deletion(dice))),
        5 | 6 => {
            let expiring = dice.below(2) == 1;
            let (local, ttl) = (3 + dice.below(12) as u32, 1 + dice.below(3) as i32);
            row.live.insert(KeyLiveness {
                timestamp: dice.below(7) as i64,
                is_expiring: expiring,
                local: if expiring { local } else { 0 },
                ttl: Reverse(if expiring { ttl } else { 0 }),
            });
        }
        _ => {
            let column = COLUMNS[dice.below(5) as usize];
            row.cells.entry(column).or_default().insert(cell(dice));
        }
    }
}

fn history(dice: &mut Random) -> History {
    let mut history = History::new();
    for _ in 0..1 + dice.below(25) {
        event(dice, &mut history);
    }
    history
}

fn together<'a>(histories: impl IntoIterator<Item = &'a History>) -> History {
    let mut all = History::new();
    for (name, partition) in histories.into_iter().flatten() {
        let into = all.entry(name).or_default();
        into.deletions.extend(&partition.deletions);
        into.ranges.extend(&partition.ranges);
        add(&mut into.statics, &partition.statics);
        for (clustering, row) in &partition.rows {
            add(into.rows.entry(*clustering).or_default(), row);
        }
    }
    all
}

fn add(into: &mut Row, row: &Row) {
    into.live.extend(&row.live);
    into.deletions.extend(&row.deletions);
    into.columns.extend(&row.columns);
    for (column, cells) in &row.cells {
        into.cells.entry(*column).or_default().extend(cells.iter().cloned());
    }
}

/// The parameters of a purge.
#[derive(Debug, Clone, Copy)]
struct Purging {
    gc_before: u32,
    now: u32,
    bound: i64,
}

fn goes(purging: Option<Purging>, timestamp: i64, local: u32) -> bool {
    purging.is_some_and(|p| local < p.gc_before && timestamp < p.bound)
}

/// The history as the text of one merged stream.
fn model(history: &History, purging: Option<Purging>) -> String {
    let mut partitions: Vec<_> = history.iter().collect();
    partitions.sort_by(|a, b| layout().compare_keys(&text::key(a.0), &text::key(b.0)));
    partitions.into_iter().map(|(name, p)| model_partition(name, p, purging)).collect()
}

fn model_partition(name: &str, partition: &Partition, purging: Option<Purging>) -> String {
    let whole = partition.deletions.last().copied().unwrap_or(NONE);
    let keeps = whole != NONE && !goes(purging, whole.0, whole.1);
    let mut lines = String::new();
    let statics = model_row(&partition.statics, whole, purging);
    if !statics.is_empty() {
        lines += &format!("static{statics}\n");
    }
    let covering = |point: i32| {
        let ranges = partition.ranges.iter().filter(|r| r.0 <= point && point <= r.1);
        ranges.map(|r| r.2).max().filter(|d| *d > whole).unwrap_or(NONE)
    };
    let shown = |d: Deletion| if goes(purging, d.0, d.1) { NONE } else { d };
    for point in -2..60 {
        if point % 4 == 0 {
            let Some(row) = partition.rows.get(&(point / 4)) else { continue };
            let row = model_row(row, covering(point).max(whole), purging);
            if !row.is_empty() {
                lines += &format!("row {}{row}\n", point / 4);
            }
        } else if point % 2 != 0 {
            // The deletions just before and just after the bound.
            let (close, open) = (
                covering_between(partition, whole, point, -1),
                covering_between(partition, whole, point, 1),
            );
            if close != open {
                lines += &model_bound(point, shown(close), shown(open));
            }
        }
    }
    if lines.is_empty() && !keeps {
        return String::new();
    }
    let deletion = if keeps { format!(" del {}/{}", whole.0, whole.1) } else { String::new() };
    format!("partition {name}{deletion}\n{lines}")
}

/// The largest range deletion on one side of a bound.
fn covering_between(partition: &Partition, whole: Deletion, bound: i32, side: i32) -> Deletion {
    let ranges = partition.ranges.iter().filter(|r| match side {
        -1 => r.0 < bound && bound <= r.1,
        _ => r.0 <= bound && bound < r.1,
    });
    ranges.map(|r| r.2).max().filter(|d| *d > whole).unwrap_or(NONE)
}

fn model_bound(point: i32, close: Deletion, open: Deletion) -> String {
    let is_before = (point + 1) % 4 == 0;
    let clustering = (point + 1).div_euclid(4);
    let time = |d: Deletion| format!(" {}/{}", d.0, d.1);
    let bound = match (close != NONE, open != NONE, is_before) {
        (false, false, _) => return String::new(),
        (false, true, true) => format!("[{clustering}"),
        (false, true, false) => format!("({clustering}"),
        (true, false, true) => format!("{clustering})"),
        (true, false, false) => format!("{clustering}]"),
        (true, true, true) => format!("{clustering})["),
        (true, true, false) => format!("{clustering}]("),
    };
    let shown = |d: Deletion| if d == NONE { String::new() } else { time(d) };
    format!("{bound}{}{}\n", shown(close), shown(open))
}

fn model_row(row: &Row, outer: Deletion, purging: Option<Purging>) -> String {
    let mut text = String::new();
    let own = row.deletions.last().copied().unwrap_or(NONE);
    let active = outer.max(own);
    if let Some(live) = row.live.last().filter(|live| live.timestamp > active.0) {
        let expired = live.is_expiring && purging.is_some_and(|p| p.now >= live.local);
        if !(expired && goes(purging, live.timestamp, live.local)) {
            text += &format!(" live {}", live.timestamp);
            if live.is_expiring {
                text += &format!("/{}:{}", live.local, live.ttl.0);
            }
        }
    }
    if own > outer && !goes(purging, own.0, own.1) {
        text += &format!(" del {}/{}", own.0, own.1);
    }
    let column = row.columns.last().copied().unwrap_or(NONE);
    if column > active && !goes(purging, column.0, column.1) {
        text += &format!(" m=!!@{}/{}", column.0, column.1);
    }
    for ((name, path), cells) in &row.cells {
        let active = if *name == "m" { active.max(column) } else { active };
        let Some(cell) = cells.last().filter(|cell| cell.timestamp > active.0) else { continue };
        let dot = if path.is_empty() { "" } else { "." };
        if let Some(cell) = model_cell(cell, purging) {
            text += &format!(" {name}{dot}{path}={cell}");
        }
    }
    text
}

fn model_cell(cell: &Cell, purging: Option<Purging>) -> Option<String> {
    let Cell { timestamp, local, ttl, value, .. } = cell;
    let tombstone = |local: u32| format!("!@{timestamp}/{local}");
    if cell.ends && goes(purging, *timestamp, *local) {
        let expired = purging.is_some_and(|p| p.now >= *local);
        if cell.is_tombstone || expired {
            return None;
        }
    }
    if cell.is_tombstone {
        return Some(tombstone(*local));
    }
    if !cell.ends {
        return Some(format!("{value}@{timestamp}"));
    }
    if purging.is_some_and(|p| p.now >= *local) {
        let written = local.saturating_sub(ttl.0 as u32);
        return (!goes(purging, *timestamp, written)).then(|| tombstone(written));
    }
    Some(format!("{value}@{timestamp}/{local}:{}", ttl.0))
}

impl PurgeRule for Purging {
    fn gc_before(&self, _: &PartitionKey) -> u32 {
        self.gc_before
    }
    fn now(&self) -> u32 {
        self.now
    }
    fn strict_liveness(&self) -> bool {
        false
    }
    fn purge_bound(&mut self, _: &PartitionKey) -> i64 {
        self.bound
    }
}

fn merged(sources: &[&str]) -> String {
    let sources = sources.iter().map(|text| TextStream::parse(text)).collect();
    spell(Merge::new(layout(), sources)).expect("merges")
}

/// Proves that merging equals the model, and is commutative, associative and idempotent, whatever the histories.
#[test]
fn merging_random_histories() {
    for seed in 0..3000 {
        let mut dice = Random::seeded(seed);
        let histories: Vec<History> = (0..2 + dice.below(3)).map(|_| history(&mut dice)).collect();
        let texts: Vec<String> = histories.iter().map(|h| model(h, None)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for text in &texts {
            assert_eq!(merged(&[text]), *text, "seed {seed}: one source");
            assert_eq!(merged(&[text, text]), *text, "seed {seed}: idempotent");
        }
        let all = merged(&texts);
        assert_eq!(all, model(&together(&histories), None), "seed {seed}: {texts:#?}");
        let backwards: Vec<&str> = texts.iter().rev().copied().collect();
        assert_eq!(merged(&backwards), all, "seed {seed}: commutative");
        let (first, rest) = texts.split_at(1);
        assert_eq!(merged(&[first[0], &merged(rest)]), all, "seed {seed}: associative");
    }
}

/// Proves that purging drops what the rules drop, and nothing else.
#[test]
fn purging_random_histories() {
    for seed in 0..3000 {
        let mut dice = Random::seeded(seed ^ 0xdead);
        let histories: Vec<History> = (0..1 + dice.below(3)).map(|_| history(&mut dice)).collect();
        let now = 4 + dice.below(12);
        let purging = Purging {
            gc_before: dice.below(now + 1) as u32,
            now: now as u32,
            bound: [dice.below(7) as i64, i64::MAX][dice.below(2) as usize],
        };
        let texts: Vec<String> = histories.iter().map(|h| model(h, None)).collect();
        let sources = texts.iter().map(|text| TextStream::parse(text)).collect();
        let purged = Purge::new(Merge::new(layout(), sources), purging);
        let found = spell(purged).expect("merges");
        let expected = model(&together(&histories), Some(purging));
        assert_eq!(found, expected, "seed {seed}, {purging:?}: {texts:#?}");
    }
}
