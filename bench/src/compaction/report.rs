//! The table, in Markdown.

use std::fmt::Write;

use super::record::{Bounds, Record, Run};
use crate::contender::{Contender, Spread};
use crate::dataset::Codec;
use crate::profile::Share;
use crate::taken_where;

const MIB: f64 = 1_048_576.0;

pub(super) fn markdown(record: &Record) -> String {
    let mut text = String::from("# Major compaction: Halcyon and Apache Cassandra\n\n");
    let engine = record.runs.first().and_then(|run| run.content["engine"].as_str());
    let taken = taken_where(&record.machine);
    let _ = writeln!(text, "{taken}; I/O engine of Halcyon: {}.\n", engine.unwrap_or("?"));
    text += "Made by `cargo x bench compaction`. Ratios of one run are results; absolute times belong to this machine.\n\n\
             ![Speed, CPU, page cache and memory](plot.svg)\n";
    for codec in record.codecs() {
        text += &codec_table(record, &codec);
    }
    if !record.buffer_runs.is_empty() {
        text += &buffer_table(&record.buffer_runs);
    }
    text + HOW
}

const HOW: &str = "
## How it was measured

- Inputs: SSTables of version `oa`, half of the partitions in 2–4 of them, with overwritten cells, tombstones and TTLs; \
  the same rows for every compressor. Every run starts with an empty page cache and hard links of the same files.
- Contenders take turns. MiB/s are uncompressed input bytes by wall time: median (least–most). Halcyon: start to end of a \
  process. Cassandra: the JMX call `forceKeyspaceCompaction` on a running node with a warmed-up JVM (G1, 2 GiB heap, no \
  throttle); other nodes are frozen meanwhile.
- CPU: user and system time of the process, garbage collector and compiler included. Memory: `VmHWM`, reset before; of a JVM, \
  heap and all.
- Left in cache: pages of input and output files that are in the page cache afterwards (`fincore`), by the bytes of these \
  files. Cache peak: growth of the machine's `Cached` at its highest.
- Codec bound: decompress and check what is read, compress and sum what is written, from memory, on one core, by the same \
  libraries. Device bound: the inputs read and as many bytes as the output written at the same time, directly, best of the rounds.
- Partitions, rows and cells of all outputs are equal, or the run fails.
";

/// The best median of a rival.
fn best_rival<'a>(contenders: &'a [(Contender, Vec<&Run>)]) -> Option<(&'a Contender, Spread)> {
    let rivals = contenders.iter().filter(|(contender, _)| !contender.is_halcyon());
    let speeds = rivals.map(|(contender, runs)| (contender, speed(runs)));
    speeds.max_by(|a, b| a.1.median.total_cmp(&b.1.median))
}

fn speed(runs: &[&Run]) -> Spread {
    Spread::of(runs.iter().map(|run| run.rate()))
}

fn median(runs: &[&Run], of: impl Fn(&Run) -> f64) -> f64 {
    Spread::of(runs.iter().map(|run| of(run))).median
}

fn codec_table(record: &Record, codec: &str) -> String {
    let contenders = record.contenders(codec);
    let bounds = record.bounds_of(codec);
    let best = best_rival(&contenders);
    let mut text = format!("\n## {}\n\n", Codec(codec.to_owned()).title());
    if let Some((_, runs)) = contenders.first() {
        text += &inputs_line(runs);
    }
    text += "| | MiB/s of raw rows | of the nearer bound | by Cassandra's best | CPU s/GiB | left in cache | cache peak MiB | peak memory MiB | device MiB read, written |\n\
             |---|---|---|---|---|---|---|---|---|\n";
    for (contender, runs) in &contenders {
        let speed = speed(runs);
        let of_bound = bounds.map(|b| format!("{:.0} %", 100.0 * speed.median / b.nearer().1));
        let by_best = best.map(|(_, best)| format!("{:.2} ×", speed.median / best.median));
        let left = runs.iter().filter_map(|run| run.cached_share());
        let _ = writeln!(
            text,
            "| {} | {:.0} ({:.0}–{:.0}) | {} | {} | {:.2} | {:.2} % | {:.0} | {:.0} | {:.0}, {:.0} |",
            contender.name(),
            speed.median,
            speed.min,
            speed.max,
            of_bound.unwrap_or_default(),
            by_best.unwrap_or_default(),
            median(runs, Run::cpu_per_gib),
            100.0 * Spread::of(left).median,
            median(runs, |run| run.cost.cache_peak as f64 / MIB),
            median(runs, |run| run.cost.peak_memory as f64 / MIB),
            median(runs, |run| run.cost.device.bytes_read as f64 / MIB),
            median(runs, |run| run.cost.device.bytes_written as f64 / MIB),
        );
    }
    if let Some(bounds) = bounds {
        text += &bounds_lines(bounds);
    }
    text += &verdict(&contenders, best);
    if let Some((_, shares)) = record.profiles.iter().find(|(of, _)| of == codec) {
        text += "\nWhere the time goes, by `perf` in one more run of Halcyon's first mode (`k`: in the kernel):\n\n";
        text += &Share::table(shares);
    }
    text
}

fn inputs_line(runs: &[&Run]) -> String {
    let Some(run) = runs.first() else { return String::new() };
    let out = |name: &str| run.content[name].as_f64().unwrap_or(0.0);
    format!(
        "Read: {:.0} MiB raw, {:.0} MiB stored (1 : {:.2}). Written: {:.0} MiB raw, {:.0} MiB stored; {} partitions, {} rows, {} cells.\n\n",
        run.data_bytes as f64 / MIB,
        run.file_bytes as f64 / MIB,
        run.data_bytes as f64 / run.file_bytes.max(1) as f64,
        out("data_bytes") / MIB,
        out("file_bytes") / MIB,
        out("partitions"),
        out("rows"),
        out("cells"),
    )
}

fn bounds_lines(bounds: &Bounds) -> String {
    let codec = |name: &str| bounds.details["codec"][name].as_f64().unwrap_or(f64::NAN);
    format!(
        "\nBounds: codec {:.0} MiB/s on one core (check {:.0}, decompress {:.0}, compress {:.0}, sum {:.0}); device {:.0} MiB/s of raw rows. \
         The {} is nearer.\n",
        bounds.codec_rate,
        codec("check"),
        codec("decompress"),
        codec("compress"),
        codec("sum"),
        bounds.device_rate,
        bounds.nearer().0,
    )
}

/// What bounds Halcyon: its busiest threads against the clock; and what it costs against the cheapest rival.
fn verdict(contenders: &[(Contender, Vec<&Run>)], best: Option<(&Contender, Spread)>) -> String {
    let mut text = String::new();
    for (contender, runs) in contenders.iter().filter(|(contender, _)| contender.is_halcyon()) {
        let Some(run) = runs.first() else { continue };
        let threads: Vec<String> = run
            .cost
            .threads
            .iter()
            .take(3)
            .map(|(name, cpu)| format!("{name} {:.0} %", 100.0 * cpu / run.cost.seconds))
            .collect();
        let _ =
            writeln!(text, "\n{}: busy by the clock: {}.", contender.name(), threads.join(", "));
    }
    if let Some((rival, speed)) = best {
        let cheapest = contenders.iter().filter(|(contender, _)| !contender.is_halcyon());
        let cheapest =
            cheapest.map(|(_, runs)| median(runs, Run::cpu_per_gib)).fold(f64::INFINITY, f64::min);
        let _ = writeln!(
            text,
            "\nCassandra's best: {} with {:.0} MiB/s; its least CPU: {cheapest:.2} s/GiB.",
            rival.name(),
            speed.median
        );
    }
    text
}

fn buffer_table(runs: &[Run]) -> String {
    let mut text = String::from(
        "\n## 256 KiB against 1 MiB\n\nHalcyon direct; size × depth of each input's read-ahead, size of a write.\n\n\
         | read-ahead, write | MiB/s of raw rows | CPU s/GiB | peak memory MiB |\n|---|---|---|---|\n",
    );
    let mut names: Vec<&str> = Vec::new();
    for name in runs.iter().filter_map(|run| run.buffers.as_deref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let of_name: Vec<&Run> =
            runs.iter().filter(|run| run.buffers.as_deref() == Some(name)).collect();
        let speed = speed(&of_name);
        let _ = writeln!(
            text,
            "| {name} | {:.0} ({:.0}–{:.0}) | {:.2} | {:.0} |",
            speed.median,
            speed.min,
            speed.max,
            median(&of_name, Run::cpu_per_gib),
            median(&of_name, |run| run.cost.peak_memory as f64 / MIB),
        );
    }
    text
}
