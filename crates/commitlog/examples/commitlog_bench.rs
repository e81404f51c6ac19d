//! Durable records per second by number of writers, compared with the device's own rate of durable writes.
//!
//! ```text
//! cargo run --release -p halcyon-commitlog --example commitlog_bench -- DIRECTORY [records] [bytes] [rounds] [auto|uring|pool]
//! ```
//!
//! The device's rate comes from a loop that writes blocks to a file of zeros, each durable before the next. Each round measures the
//! loop and then every number of writers, so a slow phase of the machine affects all of them alike. The table shows medians
//! over the rounds; each ratio is the median of the rounds' ratios. A writer appends a record, waits until it is durable, and repeats.
//!
//! Experiment E4 runs single measurements, each reported as a line of JSON; each shard is a thread with its own log:
//!
//! ```text
//! commitlog_bench DIRECTORY one SHARDS SEGMENT_BYTES direct|standard batch|group:MS|periodic:MS WRITERS BYTES RECORDS
//! commitlog_bench DIRECTORY device BLOCK_BYTES WRITES
//! ```

use std::path::Path;
use std::time::Duration;

use halcyon_commitlog::{CommitLog, LogCompression, Options, Result, SyncMode};
use halcyon_io::{
    AccessMode, BackendChoice, BufferPool, Disk, DiskOptions, Purpose, block_on, clock, spawn,
};

const WRITERS: [usize; 4] = [1, 10, 50, 200];
const SEGMENT: u32 = 32 << 20;

#[derive(Clone, Copy)]
struct Run {
    records: usize,
    bytes: usize,
    rounds: usize,
}

/// One measurement.
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

/// The device: `len` bytes after `len` bytes, each durable before the next.
async fn device(disk: &Disk, dir: &Path, len: usize, count: usize) -> Result<Measured> {
    let path = dir.join("commitlog_bench.device");
    let purpose = Purpose::CommitLog;
    let file = disk.create_blocks(&path, AccessMode::Auto, purpose, u64::from(SEGMENT)).await?;
    let len = len.next_multiple_of(file.block());
    let places = SEGMENT as usize / len;
    let pool = BufferPool::unbounded();
    let mut buffer = pool.try_take(len).expect("a buffer");
    let mut latencies = Vec::with_capacity(count);
    let (started, cpu) = (clock::now(), clock::process_cpu_time());
    for number in 0..count {
        let before = clock::now();
        let (outcome, returned) =
            file.write_durable((number % places * len) as u64, buffer, len).await;
        outcome?;
        buffer = returned;
        latencies.push(clock::now() - before);
    }
    let measured = measured(latencies, clock::now() - started, clock::process_cpu_time() - cpu);
    disk.remove(&path).await?;
    Ok(measured)
}

/// How a log is opened and written.
#[derive(Clone, Copy)]
struct Setting {
    segment: u32,
    mode: AccessMode,
    sync: SyncMode,
    writers: usize,
    bytes: usize,
    records: usize,
}

/// Runs the writers, each with its share of the records; returns the latency of each record.
async fn log(disk: &Disk, dir: &Path, shard: u32, setting: Setting) -> Result<Vec<Duration>> {
    let options = Options {
        directory: dir.join(format!("commitlog_bench-{shard}")),
        sync: setting.sync,
        mode: setting.mode,
        segment_size: setting.segment,
        total_space: 4 * u64::from(setting.segment).max(u64::from(SEGMENT)),
        compression: LogCompression::None,
    };
    let directory = options.directory.clone();
    let log = CommitLog::open(disk.clone(), options, shard, 1).await?;
    let each = setting.records.div_ceil(setting.writers);
    let tasks: Vec<_> = (0..setting.writers)
        .map(|writer| {
            let (log, table) = (log.clone(), [writer as u8 % 4; 16]);
            spawn(async move {
                let record = vec![writer as u8; setting.bytes];
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
    for table in 0..4 {
        log.discard_below([table; 16], log.position());
    }
    log.close().await?;
    disk.remove(&directory).await?;
    Ok(latencies)
}

/// Runs a log on each of `count` threads, which share the records and writers.
fn shards(disk: &Disk, dir: &Path, count: u32, setting: Setting) -> Result<Measured> {
    let share = |n: usize| n.div_ceil(count as usize);
    let setting =
        Setting { writers: share(setting.writers), records: share(setting.records), ..setting };
    let (started, cpu) = (clock::now(), clock::process_cpu_time());
    let ended: Vec<Result<Vec<Duration>>> = std::thread::scope(|scope| {
        let run = |shard| scope.spawn(move || block_on(log(disk, dir, shard, setting)));
        let running: Vec<_> = (0..count).map(run).collect();
        running.into_iter().map(|shard| shard.join().expect("a shard does not panic")).collect()
    });
    let (took, cpu) = (clock::now() - started, clock::process_cpu_time() - cpu);
    let mut latencies = Vec::new();
    for shard in ended {
        latencies.extend(shard?);
    }
    Ok(measured(latencies, took, cpu))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn run(dir: &Path, run: Run, engine: Option<BackendChoice>) -> Result<()> {
    let disk = Disk::real(DiskOptions { backend: engine, ..DiskOptions::default() });
    let choice = disk.resolve_write_mode(dir, AccessMode::Auto)?;
    println!("engine {}, {}: {}", disk.backend().backend, choice.mode, choice.why);
    println!("{} records of {} bytes, {} rounds", run.records, run.bytes, run.rounds);
    let mut device_rounds = Vec::new();
    let mut log_rounds = vec![Vec::new(); WRITERS.len()];
    block_on(async {
        for _ in 0..run.rounds {
            device_rounds.push(device(&disk, dir, 1, run.records.min(2000)).await?);
            for (writers, rounds) in WRITERS.iter().zip(&mut log_rounds) {
                let (started, cpu) = (clock::now(), clock::process_cpu_time());
                let setting = Setting {
                    segment: SEGMENT,
                    mode: AccessMode::Auto,
                    sync: SyncMode::Batch,
                    writers: *writers,
                    bytes: run.bytes,
                    records: run.records,
                };
                let latencies = log(&disk, dir, 0, setting).await?;
                let (took, cpu) = (clock::now() - started, clock::process_cpu_time() - cpu);
                rounds.push(measured(latencies, took, cpu));
            }
        }
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

/// `batch`, `group:10`, `periodic:10000`: milliseconds.
fn sync_mode(word: &str) -> SyncMode {
    let (name, millis) = word.split_once(':').unwrap_or((word, "0"));
    let time = Duration::from_millis(millis.parse().expect("milliseconds"));
    match name {
        "group" => SyncMode::Group { window: time },
        "periodic" => SyncMode::Periodic { period: time },
        _ => SyncMode::Batch,
    }
}

/// One measurement for E4.
fn one(dir: &Path, what: &str, words: &[String]) -> Result<Measured> {
    let word = |at: usize| words.get(at).expect("all words are there").as_str();
    let number = |at: usize| word(at).parse::<usize>().expect("a number");
    let disk = Disk::real(DiskOptions::default());
    block_on(disk.create_dir_all(dir))?;
    if what == "device" {
        return block_on(device(&disk, dir, number(0), number(1)));
    }
    let setting = Setting {
        segment: number(1) as u32,
        mode: word(2).parse().expect("an access mode"),
        sync: sync_mode(word(3)),
        writers: number(4),
        bytes: number(5),
        records: number(6),
    };
    shards(&disk, dir, number(0) as u32, setting)
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((dir, rest)) = words.split_first() else {
        println!("usage: commitlog_bench DIRECTORY [records] [bytes] [rounds] [auto|uring|pool]");
        return Ok(());
    };
    let dir = Path::new(dir);
    if let Some((what, words)) = rest.split_first().filter(|(w, _)| *w == "one" || *w == "device") {
        let Measured { per_second, p50, p99, cpu } = one(dir, what, words)?;
        println!(
            "{{\"per_second\": {per_second:.1}, \"p50_us\": {p50:.2}, \"p99_us\": {p99:.2}, \"cpu_us\": {cpu:.3}}}"
        );
        return Ok(());
    }
    let number = |at: usize, or: usize| {
        let word = rest.get(at).map(|word| word.parse());
        word.map_or(or, |number| number.expect("records, bytes and rounds are numbers"))
    };
    let settings = Run { records: number(0, 5000), bytes: number(1, 256), rounds: number(2, 5) };
    let engine = rest.get(3).map(|word| word.parse().expect("an engine's name"));
    run(dir, settings, engine)
}

/// Proves that the measurement itself works, on a tiny input.
#[test]
fn tiny() {
    let disk = Disk::real(DiskOptions::default());
    let dir = std::env::temp_dir().join(format!("commitlog-bench-{}", std::process::id()));
    block_on(disk.create_dir_all(&dir)).expect("a directory for temporary files");
    run(&dir, Run { records: 40, bytes: 64, rounds: 1 }, None).expect("a tiny measurement");
    for sync in ["batch", "group:1", "periodic:1"] {
        let words = ["2", "1048576", "standard", sync, "4", "64", "40"].map(str::to_owned);
        assert!(one(&dir, "one", &words).expect("one measurement").per_second > 0.0);
    }
    block_on(disk.remove(&dir)).expect("the measurement leaves nothing");
}
