//! Durable records per second by the number of writers, beside what the device itself does.
//!
//! ```text
//! cargo run --release -p halcyon-commitlog --example commitlog_bench -- DIRECTORY [records] [bytes] [rounds] [auto|uring|pool]
//! ```
//!
//! The device's own figure is a loop that writes one block after the other to a file of zeros, each durable before the
//! next. Each round measures the loop and then every number of writers, so a change of the machine's mood meets all of
//! them; the table has medians over the rounds, and each ratio is the median of the rounds' ratios. A writer appends a
//! record and waits until it is durable, again and again.

use std::path::Path;
use std::time::Duration;

use halcyon_commitlog::{CommitLog, LogCompression, Options, Result, SyncMode};
use halcyon_io::{
    AccessMode, BufferPool, Disk, DiskOptions, EngineChoice, Purpose, block_on, clock, spawn,
};

const WRITERS: [usize; 4] = [1, 10, 50, 200];
const SEGMENT: u32 = 32 << 20;

#[derive(Clone, Copy)]
struct Run {
    records: usize,
    bytes: usize,
    rounds: usize,
}

/// One cell of one round.
#[derive(Clone, Copy, Default)]
struct Measured {
    per_second: f64,
    p50: f64,
    p99: f64,
    cpu: f64,
}

fn measured(mut latencies: Vec<Duration>, took: Duration, cpu: Duration) -> Measured {
    latencies.sort_unstable();
    let count = latencies.len();
    let at = |share: f64| latencies[((count - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    Measured {
        per_second: count as f64 / took.as_secs_f64(),
        p50: at(0.5),
        p99: at(0.99),
        cpu: cpu.as_secs_f64() * 1e6 / count as f64,
    }
}

/// The device: one block after the other.
async fn device(disk: &Disk, dir: &Path, count: usize) -> Result<Measured> {
    let path = dir.join("commitlog_bench.device");
    let purpose = Purpose::CommitLog;
    let file = disk.create_blocks(&path, AccessMode::Auto, purpose, u64::from(SEGMENT)).await?;
    let block = file.block();
    let blocks = SEGMENT as usize / block;
    let pool = BufferPool::unbounded();
    let mut buffer = pool.try_take(block).expect("a buffer");
    let mut latencies = Vec::with_capacity(count);
    let (started, cpu) = (clock::now(), clock::process_cpu_time());
    for number in 0..count {
        let before = clock::now();
        let (outcome, returned) =
            file.write_durable((number % blocks * block) as u64, buffer, block).await;
        outcome?;
        buffer = returned;
        latencies.push(clock::now() - before);
    }
    let measured = measured(latencies, clock::now() - started, clock::process_cpu_time() - cpu);
    disk.remove(&path).await?;
    Ok(measured)
}

/// So many writers, each with its share of the records.
async fn log(disk: &Disk, dir: &Path, writers: usize, run: Run) -> Result<Measured> {
    let options = Options {
        directory: dir.join("commitlog_bench"),
        sync: SyncMode::Batch,
        mode: AccessMode::Auto,
        segment_size: SEGMENT,
        total_space: 4 * u64::from(SEGMENT),
        compression: LogCompression::None,
    };
    let log = CommitLog::open(disk.clone(), options, 0, 1).await?;
    let each = run.records.div_ceil(writers);
    let (started, cpu) = (clock::now(), clock::process_cpu_time());
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let (log, table) = (log.clone(), [writer as u8 % 4; 16]);
            spawn(async move {
                let record = vec![writer as u8; run.bytes];
                let mut latencies = Vec::with_capacity(each);
                for _ in 0..each {
                    let before = clock::now();
                    let append = log.append(&record, &[table])?;
                    let position = append.position;
                    append.durable().await?;
                    latencies.push(clock::now() - before);
                    log.discard_below(table, position);
                }
                Ok(latencies)
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        let one: Result<Vec<Duration>> = task.await.expect("a writer does not panic");
        latencies.extend(one?);
    }
    let measured = measured(latencies, clock::now() - started, clock::process_cpu_time() - cpu);
    for table in 0..4 {
        log.discard_below([table; 16], log.position());
    }
    log.close().await?;
    Ok(measured)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn run(dir: &Path, run: Run, engine: Option<EngineChoice>) -> Result<()> {
    let disk = Disk::real(DiskOptions { engine, ..DiskOptions::default() });
    let choice = disk.resolve_write_mode(dir, AccessMode::Auto)?;
    println!("engine {}, {}: {}", disk.engine().engine, choice.mode, choice.why);
    println!("{} records of {} bytes, {} rounds", run.records, run.bytes, run.rounds);
    let mut device_rounds = Vec::new();
    let mut log_rounds = vec![Vec::new(); WRITERS.len()];
    block_on(async {
        for _ in 0..run.rounds {
            device_rounds.push(device(&disk, dir, run.records.min(2000)).await?);
            for (writers, rounds) in WRITERS.iter().zip(&mut log_rounds) {
                rounds.push(log(&disk, dir, *writers, run).await?);
            }
        }
        disk.remove(&dir.join("commitlog_bench")).await?;
        Ok::<(), halcyon_commitlog::Error>(())
    })?;
    println!("| writers | records/s | × device | p50 µs | × device | p99 µs | CPU µs/record |");
    println!("|---|---|---|---|---|---|---|");
    let rows = std::iter::once(("device".to_owned(), &device_rounds));
    let rows = rows.chain(WRITERS.iter().map(ToString::to_string).zip(&log_rounds));
    for (name, rounds) in rows {
        let of = |what: fn(&Measured) -> f64| median(rounds.iter().map(what));
        let ratio = |what: fn(&Measured) -> f64| {
            median(rounds.iter().zip(&device_rounds).map(|(r, d)| what(r) / what(d)))
        };
        println!(
            "| {name} | {:.0} | {:.2} | {:.0} | {:.2} | {:.0} | {:.1} |",
            of(|m| m.per_second),
            ratio(|m| m.per_second),
            of(|m| m.p50),
            ratio(|m| m.p50),
            of(|m| m.p99),
            of(|m| m.cpu),
        );
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let Some(dir) = words.next() else {
        println!("usage: commitlog_bench DIRECTORY [records] [bytes] [rounds] [auto|uring|pool]");
        return Ok(());
    };
    let mut number = |or: usize| {
        words.next().map_or(or, |word| word.parse().expect("records, bytes and rounds are numbers"))
    };
    let settings = Run { records: number(5000), bytes: number(256), rounds: number(5) };
    let engine = words.next().map(|word| word.parse().expect("an engine's name"));
    run(Path::new(&dir), settings, engine)
}

/// Proves that the measurement itself works, on a tiny input.
#[test]
fn tiny() {
    let disk = Disk::real(DiskOptions::default());
    let dir = std::env::temp_dir().join(format!("commitlog-bench-{}", std::process::id()));
    block_on(disk.create_dir_all(&dir)).expect("a directory for temporary files");
    run(&dir, Run { records: 40, bytes: 64, rounds: 1 }, None).expect("a tiny measurement");
    block_on(disk.remove(&dir)).expect("the measurement leaves nothing");
}
