//! The tables, in Markdown.

use std::fmt::Write;

use super::Asks;
use super::record::{Measured, Record, Work};
use crate::contender::{Contender, Spread};
use crate::flush::Flush;
use crate::profile::Share;
use crate::sheet::Target;
use crate::taken_where;

const MIB: f64 = 1_048_576.0;

pub(super) fn markdown(record: &Record) -> String {
    let mut text =
        String::from("# The node: Halcyon and Apache Cassandra under the same requests\n\n");
    text += &taken_where(&record.machine);
    text += ".\n\nMade by `cargo x bench node`. Ratios of one run are results; absolute times belong to this machine.\n\n\
             ![Throughput, latency and CPU](plot.svg)\n";
    text += &targets(record);
    for work in Work::ALL {
        text += &work_table(record, work);
    }
    text += &device_table(record);
    text += &start_table(record);
    for (work, shares) in &record.profiles {
        let _ = write!(
            text,
            "\n## Where Halcyon's time goes: {}\n\n50 in flight, by `perf`, in one more turn (`k`: in the kernel).\n\n{}",
            work.title().to_lowercase(),
            Share::table(shares)
        );
    }
    if !record.missing.is_empty() {
        let _ = write!(text, "\n## Missing\n\n- {}\n", record.missing.join("\n- "));
    }
    text + &how(record)
}

fn how(record: &Record) -> String {
    let setting = |name: &str| record.settings[name].clone();
    format!(
        "
## How it was measured

- A generator of our own, the same for both, is a closed loop: one thread for each of at most two connections (native protocol v4, no compression), each \
  with its share of the requests in flight. A request's time runs from before it is written until its answer is decoded. \
  *In flight* is what the generator keeps up; it does not send at a rate, so a stall counts for the requests that \
  met it and not for those that would have come meanwhile (coordinated omission): quantiles compare the two servers at the same number \
  in flight, they do not promise anything at a rate.
- Generator and server share the machine. Throughput is what they reach together; CPU is told apart: *server CPU* is user and system \
  time of the server's process by completed requests, garbage collector and compiler included, *client CPU* the generator's.
- Prepared single-row statements on random keys. Small table: {} rows, a 200-byte blob, an int, a short text, overwritten all \
  the time; large table: 4,000-byte blobs that do not compress, ten times {} MiB.
- Turns of {} s, {} of each server at each number in flight: Halcyon, Cassandra, Halcyon, Cassandra; the other servers are frozen \
  (SIGSTOP) meanwhile. Shown are medians.
- *latte*: the same statements by `latte` 0.29, one thread, one connection for each shard, as many to Cassandra. Its driver knows shards.
- *Shard-aware*: each connection asks for keys of the shard that it lies on, as drivers do that know shards; else keys are random, as other drivers ask.
- Durable: `commitlog_sync: batch` on both. Halcyon otherwise with its defaults; Cassandra with G1, 2 GiB heap, C2, warmed up with {} s of writes \
  and as long of reads.
- Ten times the cache: everything in SSTables; Halcyon with `file_cache_size`, Cassandra in a memory cgroup with that much page cache beside \
  what it holds. Page cache dropped before.
- Device: 4 KiB with `O_DIRECT | O_DSYNC` into a preallocated file that was written before; 4 KiB appended, and `fdatasync`. Before each round of \
  one write in flight.
- Start-up: from the start of the process on an empty directory to the first answered query. Memory: `VmRSS`, 4 s later, before any load.
",
        setting("rows"),
        setting("cache_mib"),
        setting("seconds"),
        setting("rounds"),
        setting("warm_up_seconds"),
    )
}

fn targets(record: &Record) -> String {
    let mut all = Vec::new();
    for work in [Work::DurableWrites, Work::MemoryReads, Work::DeviceReads] {
        all.extend(Asks::ALL.into_iter().filter_map(|asks| cpu_target(record, work, asks)));
    }
    for asks in Asks::ALL {
        all.extend(latency_target(record, &batch("halcyon", asks)));
    }
    let starts = |of: fn(&super::server::Started) -> f64| {
        let median = |is_halcyon: bool| {
            let starts = record.starts.iter().filter(|(who, _)| who.is_halcyon() == is_halcyon);
            let values: Vec<f64> = starts.map(|(_, started)| of(started)).collect();
            (!values.is_empty()).then(|| Spread::of(values).median)
        };
        Some(median(false)? / median(true)?)
    };
    let of_starts = [
        ("Start to first answer: Cassandra's by Halcyon's", 50.0, starts(|s| s.seconds)),
        ("Memory at rest: Cassandra's by Halcyon's", 20.0, starts(|s| s.resident as f64)),
    ];
    for (what, least, ratio) in of_starts {
        let Some(ratio) = ratio else { continue };
        all.push(Target {
            what: what.to_owned(),
            wanted: format!("≥ {least}"),
            measured: format!("{ratio:.1}"),
            is_met: ratio >= least,
        });
    }
    Target::table(&all)
}

fn batch(peer: &str, asks: Asks) -> Contender {
    Contender::new(peer, &format!("batch{}", asks.suffix()))
}

/// Server CPU per operation, Cassandra's by Halcyon's, at each number in flight. All have to reach it.
fn cpu_target(record: &Record, work: Work, asks: Asks) -> Option<Target> {
    const LEAST: f64 = 8.0;
    let mut ratios = Vec::new();
    for in_flight in record.in_flight(work) {
        let median =
            |wanted: &Contender| record.median(work, in_flight, wanted, Measured::server_cpu);
        let halcyon = median(&batch("halcyon", asks))?;
        let cassandra = median(&batch("5.0.9", asks.of_cassandra()))?;
        ratios.push((in_flight, cassandra / halcyon));
    }
    let shown: Vec<String> =
        ratios.iter().map(|(in_flight, ratio)| format!("{ratio:.1} ({in_flight})")).collect();
    Some(Target {
        what: format!(
            "{}{}: server CPU per operation, Cassandra's by Halcyon's (requests in flight)",
            work.title(),
            asks.suffix()
        ),
        wanted: format!("≥ {LEAST}"),
        measured: shown.join(", "),
        is_met: ratios.iter().all(|(_, ratio)| *ratio >= LEAST),
    })
}

/// One durable write at a time, by the device's flush and an empty round trip.
fn latency_target(record: &Record, wanted: &Contender) -> Option<Target> {
    let median = |work, wanted: &Contender| record.median(work, 1, wanted, |m| m.latencies.p50);
    let write = median(Work::DurableWrites, wanted)?;
    let round_trip = median(Work::RoundTrip, &Contender::new("halcyon", "batch"))?;
    let what = format!("{}: one durable write at a time", wanted.name());
    Some(Flush::target(what, write, &record.flushes, round_trip))
}

fn work_table(record: &Record, work: Work) -> String {
    let mut text = String::new();
    for in_flight in record.in_flight(work) {
        let contenders = record.contenders(work, in_flight);
        let median = |all: &[&Measured], of: fn(&Measured) -> f64| {
            Spread::of(all.iter().map(|measured| of(measured))).median
        };
        for (contender, all) in &contenders {
            let by_latte = |who: &Contender| who.mode.ends_with(Asks::Latte.suffix());
            let rival = contenders
                .iter()
                .find(|(who, _)| !who.is_halcyon() && by_latte(who) == by_latte(contender))
                .filter(|_| contender.is_halcyon());
            let by_rival = |of: fn(&Measured) -> f64| {
                rival.map(|(_, theirs)| median(all, of) / median(theirs, of))
            };
            let times = by_rival(Measured::rate).map(|ratio| format!("{ratio:.2} ×"));
            let fewer =
                by_rival(Measured::server_cpu).map(|ratio| format!("1 / {:.1}", 1.0 / ratio));
            let _ = writeln!(
                text,
                "| {in_flight} | {} | {:.0} | {} | {:.0} | {:.0} | {:.0} | {:.1} | {} | {:.1} |",
                contender.name(),
                median(all, Measured::rate),
                times.unwrap_or_default(),
                median(all, |m| m.latencies.p50),
                median(all, |m| m.latencies.p99),
                median(all, |m| m.latencies.p999),
                median(all, Measured::server_cpu),
                fewer.unwrap_or_default(),
                median(all, Measured::client_cpu),
            );
        }
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "\n## {}\n\n| in flight | | per second | of Cassandra's | p50 µs | p99 µs | p99.9 µs | server CPU µs | of Cassandra's | client CPU µs |\n\
         |---|---|---|---|---|---|---|---|---|---|\n{text}",
        work.title()
    )
}

fn device_table(record: &Record) -> String {
    if record.flushes.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "\n## The device's own flush\n\n| 4 KiB | p50 µs | p99 µs | p99.9 µs |\n|---|---|---|---|\n",
    );
    for (round, flush) in (1..).zip(&record.flushes) {
        for (how, latencies) in [("direct", flush.direct), ("appended", flush.append)] {
            let (p50, p99, p999) = (latencies.p50, latencies.p99, latencies.p999);
            let _ = writeln!(text, "| {how}, round {round} | {p50:.0} | {p99:.0} | {p999:.0} |");
        }
    }
    text
}

fn start_table(record: &Record) -> String {
    let mut text = String::from(
        "\n## Start and rest\n\n| | seconds to the first answer | MiB at rest |\n|---|---|---|\n",
    );
    for (contender, started) in &record.starts {
        let mib = started.resident as f64 / MIB;
        let _ = writeln!(text, "| {} | {:.3} | {mib:.0} |", contender.name(), started.seconds);
    }
    text
}
