//! The page: a table for each part.

use halcyon_oracle::Result;
use serde_json::json;

use crate::page::Page;
use crate::record::{Contender, Record, Target};

pub(super) const SSTABLES: &str = "SSTables";
pub(super) const TABLES: &str = "tables";
pub(super) const CLIENTS: &str = "clients";
pub(super) const SHARDS: &str = "shards";

pub(super) fn shards(count: u32) -> String {
    format!("{count} shards")
}

pub(super) fn page(record: &mut Record) -> Result<Page> {
    let names = json!({ "headings": record.headings() });
    let template = include_str!("../../scale/page.md");
    Ok(Page { template, targets: targets(record), names, ..Page::default() })
}

fn targets(record: &Record) -> Vec<Target> {
    let at_most = |what: &str, most: f64, value: f64| {
        Target::new(what, format!("≤ {most}"), format!("{value:.2}"), value <= most)
    };
    let mut targets = Vec::new();
    // Few and many, as they were measured.
    let of = |heading: &str, key: &str| -> Option<(f64, f64)> {
        let [few, many] = record.contenders(heading)[..] else { return None };
        Some((record.median(heading, few, key)?, record.median(heading, many, key)?))
    };
    if let Some((_, seconds)) = of(SSTABLES, "start_seconds") {
        targets.push(at_most("start with many SSTables, s", 2.0, seconds));
    }
    for (what, key, most) in [
        ("p50 of reads of many SSTables, by that of few", "read_p50_us", 1.3),
        ("CPU of a read of many SSTables, by that of few", "read_cpu_us", 1.3),
        ("a flush beside many SSTables, by one beside few", "flush_p50_us", 1.3),
    ] {
        targets.extend(of(SSTABLES, key).map(|(few, many)| at_most(what, most, many / few)));
    }
    for (what, key) in [
        ("reads a second with more shards than cores, by those with as many", "reads_by_second"),
        ("writes a second with more shards than cores, by those with as many", "writes_by_second"),
    ] {
        targets.extend(of(SHARDS, key).map(|(as_many, more)| {
            let ratio = more / as_many;
            Target::new(what, "≥ 0.9", format!("{ratio:.2}"), ratio >= 0.9)
        }));
    }
    targets.extend(by_cassandra(record));
    targets
}

/// What many tables take, by what they take Cassandra.
fn by_cassandra(record: &Record) -> Vec<Target> {
    let all = record.contenders(TABLES);
    let find = |ours: bool| all.iter().copied().find(|who: &&Contender| who.is_halcyon() == ours);
    let (Some(ours), Some(theirs)) = (find(true), find(false)) else { return Vec::new() };
    let ratio =
        |key: &str| Some(record.median(TABLES, ours, key)? / record.median(TABLES, theirs, key)?);
    let named = [
        ("CREATE TABLE, by Cassandra", "create_seconds"),
        ("a flush of all tables, by Cassandra", "flush_seconds"),
        ("DROP KEYSPACE, by Cassandra", "drop_seconds"),
    ];
    let target = |(what, key): (&str, &str)| {
        let ratio = ratio(key)?;
        Some(Target::new(what, "≤ 1", format!("{ratio:.2}"), ratio <= 1.0))
    };
    named.into_iter().filter_map(target).collect()
}
