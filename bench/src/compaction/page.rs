//! The page: a table and a section of the plot for each compressor.

use std::fmt::Write;

use crate::Result;
use crate::dataset::Codec;
use crate::page::{Column, Page, plain, profile, table};
use crate::plot::{Bars, Section};
use crate::record::{Contender, Record, Rounds};

use super::MIB;

const SPEED: Column = Column::new("MiB/s of raw rows", "raw_mib_per_second", 0);
const CPU: Column = Column::new("CPU s/GiB", "cpu_seconds_per_gib", 2);
const MEMORY: Column = Column::new("peak memory MiB", "peak_memory_bytes", 0).times(1.0 / MIB);

const COLUMNS: &[Column] = &[
    SPEED.with_spread(),
    Column::derived("of the nearer bound", |rounds| {
        let (_, bound) = Bounds::of(rounds.record, rounds.heading)?.nearer();
        Some(format!("{:.0} %", 100.0 * rounds.median(SPEED.key)? / bound))
    }),
    Column::derived("by Cassandra's best", |rounds| {
        let (_, best) = best_rival(rounds.record, rounds.heading)?;
        Some(format!("{:.2} ×", rounds.median(SPEED.key)? / best))
    }),
    CPU,
    Column::new("left in cache", "cached_share", 2).times(100.0).unit(" %"),
    Column::new("cache peak MiB", "page_cache_growth_peak_bytes", 0).times(1.0 / MIB),
    MEMORY,
    Column::new("device MiB read", "device_bytes_read", 0).times(1.0 / MIB),
    Column::new("written", "device_bytes_written", 0).times(1.0 / MIB),
];

const BARS: &[Column] = &[
    SPEED,
    Column::new("CPU seconds per GiB", CPU.key, 2),
    Column::new("left in the page cache", "cached_share", 1).times(100.0).unit(" %"),
    Column::new("peak memory, MiB", MEMORY.key, 0).times(1.0 / MIB),
];

struct Bounds<'a> {
    codec: f64,
    device: f64,
    /// MiB/s of each step of the codec.
    steps: &'a serde_json::Value,
}

impl Bounds<'_> {
    fn of<'a>(record: &'a Record, codec: &str) -> Option<Bounds<'a>> {
        let bounds = record.beside.get("bounds")?.get(codec)?;
        Some(Bounds {
            codec: bounds["codec_raw_mib_per_second"].as_f64()?,
            device: bounds["device_raw_mib_per_second"].as_f64()?,
            steps: &bounds["details"]["codec"],
        })
    }

    fn nearer(&self) -> (&'static str, f64) {
        if self.codec <= self.device { ("codec", self.codec) } else { ("device", self.device) }
    }
}

/// The rival with the best median.
fn best_rival<'a>(record: &'a Record, codec: &str) -> Option<(&'a Contender, f64)> {
    let rivals = record.contenders(codec).into_iter().filter(|who| !who.is_halcyon());
    let speeds = rivals.filter_map(|who| Some((who, record.median(codec, who, SPEED.key)?)));
    speeds.max_by(|a, b| a.1.total_cmp(&b.1))
}

pub(crate) fn page(record: &Record) -> Result<Page> {
    let headings = record.headings();
    let (buffers, codecs): (Vec<&str>, Vec<&str>) =
        headings.iter().partition(|heading| heading.starts_with("buffers "));
    let mut sections: Vec<String> = codecs.iter().map(|codec| section(record, codec)).collect();
    let of_buffers = table(
        record,
        Some("read-ahead, write"),
        plain(&buffers),
        &[SPEED.with_spread(), CPU, MEMORY],
    );
    if !of_buffers.is_empty() {
        sections.push(format!(
            "## 256 KiB against 1 MiB\n\nHalcyon direct; size × depth of each input's read-ahead, size of a write.\n\n{of_buffers}"
        ));
    }
    let of_codec = |codec: &&'_ str| {
        let bounds = Bounds::of(record, codec);
        bounds.map(|b| vec![("codec", b.codec), ("device", b.device)]).unwrap_or_default()
    };
    let bars = Bars {
        title: "Major compaction, median and spread",
        columns: BARS,
        sections: codecs
            .iter()
            .map(|codec| Section {
                heading: codec,
                title: Codec((*codec).to_owned()).title(),
                bounds: of_codec(codec),
            })
            .collect(),
    };
    let engine = record.turns.first().and_then(|turn| turn.details["output"]["engine"].as_str());
    Ok(Page {
        title: "Major compaction: Halcyon and Apache Cassandra",
        targets: Vec::new(),
        sections,
        method: include_str!("../../compaction/method.md"),
        computed: vec![("engine", engine.unwrap_or("?").to_owned())],
        plots: vec![("plot.svg", bars.svg(record)?)],
    })
}

fn section(record: &Record, codec: &str) -> String {
    let mut text = format!("## {}\n\n", Codec(codec.to_owned()).title());
    let first = record.contenders(codec).first().map(|who| record.rounds(codec, who));
    text += &first.and_then(inputs).unwrap_or_default();
    text += &table(record, None, [(codec, "")], COLUMNS);
    if let Some(bounds) = Bounds::of(record, codec) {
        let step = |name: &str| bounds.steps[name].as_f64().unwrap_or(f64::NAN);
        let _ = write!(
            text,
            "\nBounds: codec {:.0} MiB/s on one core (check {:.0}, decompress {:.0}, compress {:.0}, sum {:.0}); device {:.0} MiB/s of raw \
             rows. The {} is nearer.\n",
            bounds.codec,
            step("check"),
            step("decompress"),
            step("compress"),
            step("sum"),
            bounds.device,
            bounds.nearer().0,
        );
    }
    text += &busy_threads(record, codec);
    if let Some((rival, speed)) = best_rival(record, codec) {
        let rivals = record.contenders(codec).into_iter().filter(|who| !who.is_halcyon());
        let cpu = rivals.filter_map(|who| record.median(codec, who, CPU.key));
        let least = cpu.fold(f64::INFINITY, f64::min);
        let _ = writeln!(
            text,
            "\nCassandra's best: {} with {speed:.0} MiB/s; its least CPU: {least:.2} s/GiB.",
            rival.name()
        );
    }
    if let Some(shares) = profile(record, codec) {
        text += "\nWhere the time goes, by `perf` in one more run of Halcyon's first mode (`k`: in the kernel):\n\n";
        text += &shares;
    }
    text
}

fn inputs(rounds: Rounds<'_>) -> Option<String> {
    let turn = rounds.turns().next()?;
    let of = |key: &str| turn.get(key).unwrap_or(f64::NAN);
    Some(format!(
        "Read: {:.0} MiB raw, {:.0} MiB stored (1 : {:.2}). Written: {:.0} MiB raw, {:.0} MiB stored; {} partitions, \
         {} rows, {} cells.\n\n",
        of("input_data_bytes") / MIB,
        of("input_file_bytes") / MIB,
        of("input_data_bytes") / of("input_file_bytes").max(1.0),
        of("output_data_bytes") / MIB,
        of("output_file_bytes") / MIB,
        of("output_partitions"),
        of("output_rows"),
        of("output_cells"),
    ))
}

/// What bounds Halcyon: a thread as busy as the clock is what the run waits for.
fn busy_threads(record: &Record, codec: &str) -> String {
    const SHOWN: usize = 3;
    let mut text = String::new();
    for who in record.contenders(codec).into_iter().filter(|who| who.is_halcyon()) {
        let Some(turn) = record.rounds(codec, who).turns().next() else { continue };
        let seconds = turn.get("seconds").unwrap_or(f64::NAN);
        let threads = turn.details["cpu_seconds_by_thread"].as_array().into_iter().flatten();
        let shown = threads.take(SHOWN).map(|thread| {
            let cpu = thread[1].as_f64().unwrap_or(f64::NAN);
            format!("{} {:.0} %", thread[0].as_str().unwrap_or("?"), 100.0 * cpu / seconds)
        });
        let shown: Vec<String> = shown.collect();
        let _ = writeln!(text, "\n{}: busy by the clock: {}.", who.name(), shown.join(", "));
    }
    text
}
