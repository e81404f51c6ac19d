//! The tables, in Markdown.

use std::fmt::Write;

use super::modes::THROTTLE_MIB;
use super::record::{Held, Record, median};
use super::turn::{Answers, Phase, Stretch, Turn};
use crate::contender::{Contender, Spread};
use crate::taken_where;
use halcyon_oracle::Version;

const MIB: f64 = 1_048_576.0;

pub(super) fn markdown(record: &Record) -> String {
    let mut text = String::from("# E1 and E2: read latency while it compacts\n\n");
    text += &taken_where(&record.machine);
    text += ".\n\nMade by `cargo x bench E1`. Ratios of one run are results; absolute times belong to this machine.\n\n\
             ![Read latency over time](timeline.svg)\n";
    text += &goals(record);
    for phase in Phase::ALL {
        text += &latency_table(record, phase);
    }
    text += &work_table(record);
    text += &who_waited(record);
    text += &target_table(&record.held);
    if !record.missing.is_empty() {
        let _ = write!(text, "\n## Missing\n\n- {}\n", record.missing.join("\n- "));
    }
    text + &how(record)
}

fn title(phase: Phase) -> String {
    match phase {
        Phase::Idle => "Idle".to_owned(),
        Phase::FullSpeed => "During a major compaction at full speed".to_owned(),
        Phase::Afterwards => "In the seconds after it".to_owned(),
        Phase::Throttled => format!("During one throttled to {THROTTLE_MIB} MiB/s"),
    }
}

/// In milliseconds.
fn latency_table(record: &Record, phase: Phase) -> String {
    let mut text = String::new();
    for (contender, turns) in record.contenders() {
        if median(&turns, phase, |_| 0.0).is_none() {
            continue;
        }
        let of = |of: fn(&Stretch) -> f64| median(&turns, phase, of).unwrap_or(f64::NAN);
        let p99 = spread(&turns, phase, |stretch| stretch.hot.latencies.p99);
        let _ = writeln!(
            text,
            "| {} | {:.2} | {:.2} | **{:.2}** ({:.2}–{:.2}) | {:.2} | {:.1} | {:.3} % | {:.2} | {:.1} | {:.2} | {:.2} | {:.2} |",
            contender.name(),
            of(|s| s.hot.latencies.mean / 1e3),
            of(|s| s.hot.latencies.p50 / 1e3),
            p99.median / 1e3,
            p99.min / 1e3,
            p99.max / 1e3,
            of(|s| s.hot.latencies.p999 / 1e3),
            of(|s| s.hot.latencies.max / 1e3),
            of(|s| 100.0 * s.hot.slow),
            of(|s| s.undisturbed.p99 / 1e3),
            of(|s| s.standstill),
            of(|s| s.cold.latencies.p50 / 1e3),
            of(|s| s.cold.latencies.p99 / 1e3),
            of(|s| s.cold.latencies.p999 / 1e3),
        );
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "\n## {}\n\n| ms | hot: mean | p50 | p99 | p99.9 | max | over 2 ms | p99 undisturbed | a core stood still | cold: p50 | p99 | p99.9 |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n{text}",
        title(phase)
    )
}

fn spread(turns: &[&Turn], phase: Phase, of: impl Fn(&Stretch) -> f64) -> Spread {
    Spread::of(turns.iter().filter_map(|turn| turn.of(phase)).map(of))
}

/// What the compaction did, and to whom.
fn work_table(record: &Record) -> String {
    let mut text = String::from(
        "\n## The compaction's work and price\n\nAt full speed. Growth is the whole machine's; stalls are those that the kernel accounts (PSI), seconds of the \
         compaction's.\n\n\
         | | memory MiB | seconds | MiB/s of raw rows | server CPU s | page cache + MiB | dirty MiB at most | pages reclaimed | stalled for I/O s | for memory s | for a core s |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (contender, turns) in record.contenders() {
        let of = |of: fn(&Stretch) -> f64| median(&turns, Phase::FullSpeed, of).unwrap_or(f64::NAN);
        let rate = Spread::of(turns.iter().map(|turn| turn.rate()));
        let memory = turns.first().and_then(|turn| turn.memory);
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} | {:.0} ({:.0}–{:.0}) | {:.1} | {:.0} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} |",
            contender.name(),
            memory.map_or("–".to_owned(), |bytes| (bytes >> 20).to_string()),
            of(|s| s.seconds),
            rate.median,
            rate.min,
            rate.max,
            of(|s| s.measured.cost.cpu_seconds),
            of(|s| s.measured.cost.cache_peak as f64 / MIB),
            of(|s| s.measured.cost.dirty_peak as f64 / MIB),
            of(|s| s.measured.pressure.pages("pgsteal_file") as f64),
            of(|s| s.measured.pressure.stalled("io some").unwrap_or(f64::NAN)),
            of(|s| s.measured.pressure.stalled("memory some").unwrap_or(f64::NAN)),
            of(|s| s.measured.pressure.stalled("cpu some").unwrap_or(f64::NAN)),
        );
    }
    text
}

/// E2.
fn who_waited(record: &Record) -> String {
    let mut text = String::from(
        "\n## E2: who made the read wait\n\nRequests during the compaction at full speed: by Halcyon's own purposes (submission to completion; read-ahead and write-behind that are done before \
         anybody waits for them have no such time and are left out), and as the block device saw them (issue to completion, everybody's).\n\n![Latency by purpose](purposes.svg)\n\n\
         | | | requests | p50 µs | p99 µs | over 1 ms | over 2 ms |\n|---|---|---|---|---|---|---|\n",
    );
    for (contender, turns) in record.contenders() {
        let Some(stretch) = turns.first().and_then(|turn| turn.of(Phase::FullSpeed)) else {
            continue;
        };
        let device =
            stretch.measured.device.iter().map(|(kind, all)| (format!("device {kind}"), all));
        let own = stretch.measured.purposes.iter().map(|(purpose, all)| (purpose.clone(), all));
        for (name, all) in own.chain(device) {
            let _ = writeln!(
                text,
                "| {} | {name} | {} | {:.0} | {:.0} | {:.3} % | {:.3} % |",
                contender.name(),
                all.count(),
                all.quantile(0.5) / 1e3,
                all.quantile(0.99) / 1e3,
                100.0 * all.share_over(1_000_000),
                100.0 * all.share_over(2_000_000),
            );
        }
    }
    text
}

fn target_table(held: &[Held]) -> String {
    if held.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "\n## Latency targets\n\n`compaction_latency_target` above the p99 that reads have in the idle stretch; one read in two is cold.\n\n\
         ![Latency targets](targets.svg)\n\n\
         | above idle | idle p99 ms | target ms | measured p99 ms | measured by target | | compaction s | MiB/s of raw rows |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for Held { above_ms, target_ms, idle_p99, turn } in held {
        let Some(stretch) = turn.of(Phase::FullSpeed) else { continue };
        let measured = stretch.all.p99 / 1e3;
        let ratio = measured / *target_ms;
        let _ = writeln!(
            text,
            "| {above_ms} ms | {idle_p99:.2} | {target_ms:.2} | {measured:.2} | {ratio:.2} | {} | {:.1} | {:.0} |",
            if ratio <= 1.2 { "held" } else { "missed" },
            stretch.seconds,
            turn.rate(),
        );
    }
    text
}

/// A goal of the project, and what was measured.
fn goals(record: &Record) -> String {
    let contenders = record.contenders();
    let p99 = |turns: &[&Turn], phase| median(turns, phase, |s| s.hot.latencies.p99);
    let find = |wanted: &Contender| contenders.iter().find(|(contender, _)| contender == wanted);
    let Some((_, halcyon)) = find(&Contender::new("halcyon", "direct")) else {
        return String::new();
    };
    let mut rows: Vec<(String, f64, f64, bool)> = Vec::new();
    if let (Some(idle), Some(during)) = (p99(halcyon, Phase::Idle), p99(halcyon, Phase::FullSpeed))
    {
        let what = "p99 of hot reads during the compaction, by Halcyon's idle p99".to_owned();
        rows.push((what, 1.25, during / idle, true));
        let undisturbed = |phase| median(halcyon, phase, |s| s.undisturbed.p99);
        if let (Some(idle), Some(during)) =
            (undisturbed(Phase::Idle), undisturbed(Phase::FullSpeed))
        {
            let what = "the same of reads that no core's standing still kept waiting".to_owned();
            rows.push((what, 1.25, during / idle, true));
        }
        let newest = contenders.iter().filter(|(c, _)| c.peer == Version::V6.name());
        let best = newest.clone().filter_map(|(_, turns)| p99(turns, Phase::FullSpeed));
        let best = best.fold(f64::INFINITY, f64::min);
        if best.is_finite() {
            let what = "p99 during it, by that of Cassandra 6's best mode".to_owned();
            rows.push((what, 0.2, during / best, true));
        }
        let rate = |turns: &[&Turn]| Spread::of(turns.iter().map(|turn| turn.rate())).median;
        let fastest = newest.map(|(_, turns)| rate(turns)).fold(0.0, f64::max);
        if fastest > 0.0 {
            let what = "speed of the compaction, by that of Cassandra 6's fastest mode".to_owned();
            rows.push((what, 1.0, rate(halcyon) / fastest, false));
        }
    }
    let slow = |stretch: &Stretch| {
        let reads = stretch.measured.purposes.get("user_read");
        100.0 * reads.map_or(f64::NAN, |reads| reads.share_over(2_000_000))
    };
    if let Some(slow) = median(halcyon, Phase::FullSpeed, slow).filter(|slow| !slow.is_nan()) {
        let what = "user reads at the device that take over 2 ms, in per cent".to_owned();
        rows.push((what, 0.01, slow, true));
    }
    let mut text = String::from(
        "\n## Goals\n\nHalcyon `direct`.\n\n| | to reach | measured | |\n|---|---|---|---|\n",
    );
    for (what, bound, measured, is_most) in rows {
        let reached = if is_most { measured <= bound } else { measured >= bound };
        let sign = if is_most { '≤' } else { '≥' };
        let verdict = if reached { "reached" } else { "missed" };
        let _ = writeln!(text, "| {what} | {sign} {bound} | {measured:.3} | {verdict} |");
    }
    text
}

fn how(record: &Record) -> String {
    let setting = |name: &str| record.settings[name].to_string().replace('"', "");
    let number = |name: &str| record.inputs[name].as_f64().unwrap_or(0.0);
    let turns = || record.turns.iter();
    let empty = |answers: &Answers| answers.empty as f64 / answers.latencies.count.max(1) as f64;
    let failed: u64 =
        turns().flat_map(|t| &t.stretches).map(|s| s.hot.failed + s.cold.failed).sum();
    let unanswered: u64 = turns().map(|turn| turn.unanswered).sum();
    let empty = Spread::of(turns().flat_map(|t| &t.stretches).map(|s| empty(&s.hot))).max;
    let load = Spread::of(turns().map(|turn| turn.load));
    let generator = Spread::of(turns().map(|turn| turn.generator_cpu)).max;
    format!(
        "
## How it was measured

- Everybody gets the same files: {} SSTables of version `oa`, {:.0} MiB of rows of about 1 KiB, {:.0} MiB stored (LZ4 in 4 KiB chunks), half of the \
  partitions in 2–4 of them, with overwritten cells, tombstones and TTLs.
- Every server starts in a memory cgroup of {} MiB that is charged for all it does, page cache included (*a quarter*: of a quarter of that); Cassandra \
  with a heap of {}, G1 and C2, and with a compaction of half of the set and {} s of reads before, for its compiler.
- An open loop of {} single-row reads per second on two connections, from one sender that does not wait for answers; each read is timed from the \
  moment at which it was due, so a stall counts for every read that it kept waiting (no coordinated omission). All times are kept; quantiles are of all of them. \
  The generator runs under `SCHED_FIFO` ({}), so that its own waiting for a core is not taken for the server's; it took {:.1} % of a core at most.
- On each core a thread that goes before all others sleeps a millisecond at a time, and sees when the core stands still: when the host takes it away. *Undisturbed* are the   hot reads that were not under way meanwhile; nothing that Halcyon or Cassandra could do would have answered the others earlier.
- {} hot rows, read at random; one read in {} is of another row, drawn from all the others (cold). Before each stretch the page cache is dropped \
  and the hot rows are read twice.
- {} s idle, then the major compaction with reads going on, and {} s afterwards. Then the files again, with `compaction_throughput: {THROTTLE_MIB}MiB/s`, for {} s.
- Median of the turns (least–most); {} turns of each mode of Halcyon, {} of Cassandra's. The device's view comes from the kernel's tracer.
- {failed} reads failed, {unanswered} were never answered; of the hot reads {:.2} % found a deleted row. Load of the machine before a turn: {:.1} ({:.1}–{:.1}); above one or two, \
  somebody else was busy, and latencies say as much about them.
",
        number("sstables"),
        number("data_bytes") / MIB,
        number("file_bytes") / MIB,
        setting("memory_mib"),
        setting("heap"),
        setting("warm_up_seconds"),
        setting("rate"),
        if turns().all(|turn| turn.generator_first) { "allowed here" } else { "not allowed here" },
        100.0 * generator,
        setting("hot_rows"),
        setting("cold_every"),
        setting("idle_seconds"),
        setting("afterwards_seconds"),
        setting("throttled_seconds"),
        setting("rounds"),
        setting("cassandra_rounds"),
        100.0 * empty,
        load.median,
        load.min,
        load.max,
    )
}
