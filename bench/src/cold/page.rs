//! The page: latencies by the device's own, what a read takes from the device.

use halcyon_oracle::Result;
use serde_json::json;

use crate::dataset::Shape;
use crate::page::Page;
use crate::record::{Contender, Record, Spread, Target, listed};

/// p50 by that of the device's own read.
pub(super) const BY_DEVICE: &str = "p50_by_device";
/// The same, where those are as far apart as the reads.
pub(super) const BY_DEVICE_PACED: &str = "p50_by_paced_device";
/// What it takes longer than from memory, by the same.
pub(super) const BEYOND_MEMORY: &str = "p50_beyond_memory_by_paced_device";
pub(super) const READS: &str = "device_reads_per_query";
pub(super) const KIB: &str = "device_kib_per_query";
pub(super) const BY_CHUNK: &str = "bytes_by_aligned_chunk";
const COPIES: &str = "sstables_per_row";
/// Other programs read from the device too.
const NOISE: f64 = 1.05;

pub(super) fn heading(shape: Shape, chunk_kib: u64) -> String {
    format!("{}, chunks of {chunk_kib} KiB", lies(shape))
}

fn lies(shape: Shape) -> &'static str {
    if shape == Shape::Split { "four SSTables" } else { "one SSTable" }
}

pub(super) fn page(record: &mut Record) -> Result<Page> {
    record
        .derive("reads_by_sstable", |rounds| Some(rounds.median(READS)? / rounds.median(COPIES)?));
    let all = |key: &'static str| record.turns.iter().filter_map(move |turn| turn.get(key));
    let names = json!({
        "timed": timed(record),
        "all": record.headings(),
        "ran_first": all("generator_ran_first").all(|first| first == 1.0),
        "was_cold": all("page_cache_dropped").all(|dropped| dropped == 1.0),
        "block": Spread::of(blocks(record)).median,
        "load": Spread::of(all("load")).max,
    });
    let template = include_str!("../../cold/page.md");
    Ok(Page { template, targets: targets(record), names, ..Page::default() })
}

/// The headings of turns that are about latency.
fn timed(record: &Record) -> Vec<String> {
    let first = record.settings["chunks"][0].as_u64().unwrap_or(0);
    let known = |heading: &String| record.headings().contains(&heading.as_str());
    [Shape::Single, Shape::Split]
        .map(|shape| heading(shape, first))
        .into_iter()
        .filter(known)
        .collect()
}

/// Of Halcyon's reads.
fn blocks(record: &Record) -> impl Iterator<Item = f64> {
    record
        .turns
        .iter()
        .filter(|turn| turn.contender.is_halcyon())
        .filter_map(|t| t.get("block_bytes"))
}

fn targets(record: &Record) -> Vec<Target> {
    const ONE: f64 = 1.25;
    const FOUR: f64 = 1.5;
    let mut targets = Vec::new();
    for (shape, most) in [(Shape::Single, ONE), (Shape::Split, FOUR)] {
        let of_shape = timed(record).into_iter().filter(|h| h.starts_with(lies(shape)));
        let of_shape: Vec<String> = of_shape.collect();
        for (key, of, pace) in [
            (BY_DEVICE, "p50", ""),
            (BY_DEVICE_PACED, "p50", ", at the same rate"),
            (BEYOND_MEMORY, "p50 less that of the row from memory,", ", at the same rate"),
        ] {
            let ratios = of_shape.iter().flat_map(|heading| ours(record, heading, key));
            let place = lies(shape);
            let what =
                format!("Halcyon, a row in {place}: {of} by that of the device's own read{pace}");
            targets.extend(Target::at_most(what, most, &ratios.collect::<Vec<_>>()));
        }
    }
    for quantile in ["p50", "p99", "p99.9"] {
        let what = format!("Halcyon: {quantile} by that of the best Cassandra");
        let ratios = timed(record).into_iter().flat_map(|h| by_best(record, &h, quantile));
        let ratios: Vec<_> = ratios.collect();
        let reached = ratios.iter().all(|(_, ratio)| *ratio < 1.0);
        let target = Target::new(what, "< 1", listed(&ratios, 2), reached);
        targets.extend((!ratios.is_empty()).then_some(target));
    }
    for (what, key) in [
        (
            "Halcyon: device reads a query, by the SSTables that have a part of the row",
            "reads_by_sstable",
        ),
        ("Halcyon: device bytes a query, by the aligned chunks", BY_CHUNK),
    ] {
        let headings = record.headings().into_iter();
        let ratios: Vec<_> = headings.flat_map(|h| ours(record, h, key)).collect();
        targets.extend(Target::at_most(what, NOISE, &ratios));
    }
    targets
}

/// A figure of Halcyon's in each format.
fn ours(record: &Record, heading: &str, key: &str) -> Vec<(String, f64)> {
    let ours = record.contenders(heading).into_iter().filter(|who| who.is_halcyon());
    let figure = |who| Some((named(heading, who), record.median(heading, who, key)?));
    ours.filter_map(figure).collect()
}

/// Where several contenders are listed: `one SSTable, chunks of 4 KiB, BIG`.
fn named(heading: &str, who: &Contender) -> String {
    let format = who.mode.rsplit(", ").next().unwrap_or_default();
    format!("{heading}, {format}")
}

/// By the least of all Cassandras', in any format.
fn by_best(record: &Record, heading: &str, quantile: &str) -> Vec<(String, f64)> {
    let key = format!("{quantile}_us");
    let rivals = record.contenders(heading).into_iter();
    let rivals = rivals.filter(|who| !who.is_halcyon() && who.peer != "device");
    let best = rivals.filter_map(|who| record.median(heading, who, &key)).min_by(f64::total_cmp);
    let Some(best) = best else { return Vec::new() };
    ours(record, heading, &key).into_iter().map(|(of, ours)| (of, ours / best)).collect()
}
