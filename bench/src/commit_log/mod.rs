//! `cargo x bench E4`: durable mutations per second and what the log's writing costs, by shards, segments, blocks, modes.
//!
//! 1. The device: blocks of several lengths, each durable before the next. No log is faster per flush.
//! 2. The log alone (`commitlog_bench`): writers on each shard's thread append and wait, no server around it.
//! 3. The servers: single-row inserts, so many in flight, `batch`, `group`, `periodic`; one server at a time, Halcyon and Cassandra in turn.

use std::time::Duration;

use serde_json::json;

use super::contender::Contender;
use super::jvm_node::Plan;
use super::load::{Load, Request, Table, Until};
use super::process::CpuOf;
use super::programs::Programs;
use super::server::{HalcyonPlan, Server};
use super::sheet::{Column, Sheet, Target};
use super::{Common, Places};
use crate::Result;
use halcyon_oracle::Version;

const PORT: u16 = 27742;
const BLOB: usize = 200;
const ROWS: u64 = 1 << 40;

const COLUMNS: &[Column] = &[
    Column { key: "per_second", title: "per second", decimals: 0, is_drawn: true },
    Column { key: "p50_us", title: "p50 µs", decimals: 0, is_drawn: true },
    Column { key: "p99_us", title: "p99 µs", decimals: 0, is_drawn: true },
    Column { key: "cpu_us", title: "CPU µs", decimals: 2, is_drawn: true },
];

#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// Seconds of each turn of a server
    #[arg(long, default_value_t = 6.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    shards: Vec<usize>,
    /// MiB of a segment
    #[arg(long, value_delimiter = ',', default_value = "8,32,128")]
    segments: Vec<u64>,
    /// KiB that the device writes at once
    #[arg(long, value_delimiter = ',', default_value = "4,16,64,256")]
    blocks: Vec<u64>,
    /// Mutations in flight, and writers of the log alone
    #[arg(long, default_value_t = 200)]
    in_flight: usize,
    /// Records of each run of the log alone
    #[arg(long, default_value_t = 200_000)]
    records: u64,
    /// Seconds that Cassandra's JVM is warmed up in each mode
    #[arg(long, default_value_t = 20.0)]
    warm_up: f64,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let mut arguments = arguments.clone();
    if arguments.common.tiny {
        (arguments.seconds, arguments.rounds, arguments.records) = (0.3, 1, 400);
        (arguments.segments, arguments.blocks) = (vec![1], vec![4]);
        arguments.in_flight = 10;
    }
    let places = Places::make(&arguments.common, "bench/data/commit_log", "bench/E4")?;
    let programs = Programs::build_with_log(arguments.common.tiny)?;
    let sheet = Sheet::new(
        "E4",
        "the commit log",
        COLUMNS,
        json!({
            "seconds": arguments.seconds,
            "rounds": arguments.rounds,
            "in_flight": arguments.in_flight,
            "records": arguments.records,
        }),
    );
    let mut bench = Bench { arguments, places, programs, sheet, seed: 1 };
    for _ in 0..bench.arguments.rounds {
        bench.device()?;
        bench.log_alone()?;
        bench.write()?;
    }
    bench.servers()?;
    bench.write()?;
    bench.places.show()
}

struct Bench {
    arguments: Arguments,
    places: Places,
    programs: Programs,
    sheet: Sheet,
    seed: u64,
}

/// How writes become durable, in Cassandra's words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sync {
    Batch,
    Group,
    Periodic,
}

impl Sync {
    const ALL: [Sync; 3] = [Sync::Batch, Sync::Group, Sync::Periodic];

    fn name(self) -> &'static str {
        match self {
            Sync::Batch => "batch",
            Sync::Group => "group",
            Sync::Periodic => "periodic",
        }
    }

    /// As `commitlog_bench` takes it.
    fn word(self) -> &'static str {
        match self {
            Sync::Batch => "batch",
            Sync::Group => "group:10",
            Sync::Periodic => "periodic:10000",
        }
    }

    /// Lines of cassandra.yaml.
    fn settings(self) -> Vec<String> {
        let mut lines = vec![format!("commitlog_sync: {}", self.name())];
        // The oracle's own settings have a period already, which only the periodic mode may have.
        lines.push(match self {
            Sync::Batch | Sync::Group => "commitlog_sync_period: 0ms".to_owned(),
            Sync::Periodic => "commitlog_sync_period: 10000ms".to_owned(),
        });
        if self == Sync::Group {
            lines.push("commitlog_sync_group_window: 10ms".to_owned());
        }
        lines
    }
}

/// One run of the log without a server.
#[derive(Clone, Copy)]
struct Alone {
    shards: usize,
    segment_mib: u64,
    mode: &'static str,
    sync: Sync,
    bytes: usize,
}

impl Bench {
    fn device(&mut self) -> Result<()> {
        let dir = self.places.data.join("device");
        for kib in self.arguments.blocks.clone() {
            let writes = self.arguments.records.min(4000).to_string();
            let words = ["device", &(kib << 10).to_string(), &writes].map(str::to_owned);
            let heading = format!("the device, blocks of {kib} KiB");
            self.measured_alone(&dir, &words, &heading, &Contender::new("device", "direct"))?;
        }
        Ok(())
    }

    /// Every combination but of what is not asked about: segments and shards are varied in the default mode, record lengths beside.
    fn log_alone(&mut self) -> Result<()> {
        let plain =
            Alone { shards: 1, segment_mib: 32, mode: "direct", sync: Sync::Batch, bytes: 256 };
        let mut runs = Vec::new();
        for shards in self.arguments.shards.clone() {
            for segment_mib in self.arguments.segments.clone() {
                runs.push(Alone { shards, segment_mib, ..plain });
            }
            for (mode, sync) in ["direct", "standard"]
                .into_iter()
                .flat_map(|mode| Sync::ALL.map(|sync| (mode, sync)))
            {
                runs.push(Alone { shards, mode, sync, ..plain });
            }
        }
        runs.extend([1024, 4096, 16_384].map(|bytes| Alone { bytes, ..plain }));
        for (number, run) in runs.iter().enumerate() {
            let is_again = runs
                .iter()
                .take(number)
                .any(|before| before.heading() == run.heading() && before.mode == run.mode);
            if !is_again {
                self.one_alone(*run)?;
            }
        }
        Ok(())
    }

    fn one_alone(&mut self, run: Alone) -> Result<()> {
        let dir = self.places.data.join("alone");
        // A window of 10 ms lets each writer have a hundred records a second.
        let records = match run.sync {
            Sync::Group => self.arguments.records / 10,
            _ if run.bytes > 256 => self.arguments.records / 4,
            _ => self.arguments.records,
        };
        let words = [
            "one".to_owned(),
            run.shards.to_string(),
            (run.segment_mib << 20).to_string(),
            run.mode.to_owned(),
            run.sync.word().to_owned(),
            self.arguments.in_flight.to_string(),
            run.bytes.to_string(),
            records.to_string(),
        ];
        self.measured_alone(&dir, &words, &run.heading(), &Contender::new("halcyon", run.mode))
    }

    fn measured_alone(
        &mut self,
        dir: &std::path::Path,
        words: &[String],
        heading: &str,
        who: &Contender,
    ) -> Result<()> {
        let mut arguments = vec![dir.display().to_string()];
        arguments.extend_from_slice(words);
        let measured = self.programs.commitlog_bench(&arguments)?;
        let figure = |column: &Column| measured[column.key].as_f64().unwrap_or(f64::NAN);
        self.sheet.add(heading, who, COLUMNS.iter().map(figure).collect());
        Ok(())
    }

    /// A server of each kind at a time: started, warmed up, measured in all rounds, stopped; memory is short.
    fn servers(&mut self) -> Result<()> {
        for sync in Sync::ALL {
            if self.arguments.common.takes_part("halcyon") {
                for shards in self.arguments.shards.clone() {
                    for mode in ["direct", "standard"] {
                        self.halcyon(sync, shards, mode)?;
                    }
                }
            }
            if self.arguments.common.takes_part(Version::V5.name()) {
                self.cassandra(sync)?;
            }
        }
        Ok(())
    }

    fn halcyon(&mut self, sync: Sync, shards: usize, mode: &str) -> Result<()> {
        let dir = self.places.fresh("halcyon")?;
        let mut settings: Vec<String> =
            sync.settings().into_iter().filter(|line| !line.ends_with(": 0ms")).collect();
        settings.push(format!("commitlog_disk_access_mode: {mode}"));
        settings.push(format!("shards: {shards}"));
        let name = format!("{mode}, {shards} shard{}", if shards == 1 { "" } else { "s" });
        let plan = HalcyonPlan { mode: &name, dir: &dir, settings: &settings, cage: None };
        let (server, _) = Server::halcyon(&self.programs, &plan)?;
        self.turns(&server, sync, 1.0)
    }

    fn cassandra(&mut self, sync: Sync) -> Result<()> {
        let mut settings = sync.settings();
        settings.push("commitlog_segment_size: 32MiB".to_owned());
        settings.push("write_request_timeout: 30000ms".to_owned());
        let dir = self.places.data.join("cassandra");
        let plan = Plan {
            version: Version::V5,
            dir,
            port: PORT,
            settings,
            jvm: "",
            heap: "2g",
            cage: None,
        };
        let (server, _) = Server::cassandra("buffered", &plan)?;
        self.turns(&server, sync, self.arguments.warm_up)
    }

    fn turns(&mut self, server: &Server, sync: Sync, warm_up: f64) -> Result<()> {
        let table = Table { name: "commit_log", rows: ROWS, blob: BLOB };
        table.create(server.port)?;
        let load = |seconds: f64, seed| Load {
            request: Request::Write,
            table,
            in_flight: self.arguments.in_flight,
            until: Until::Elapsed(Duration::from_secs_f64(seconds)),
            shard_aware: false,
            seed,
        };
        load(warm_up.max(self.arguments.seconds), self.seed).run(server.port)?;
        let mut rows = Vec::new();
        for _ in 0..self.arguments.rounds {
            self.seed += 1;
            let cpu = CpuOf::Process(server.pid);
            let before = cpu.seconds();
            let figures = load(self.arguments.seconds, self.seed).run(server.port)?;
            let cpu = cpu.seconds() - before;
            rows.push(vec![
                figures.operations as f64 / figures.seconds.max(1e-9),
                figures.latencies.p50,
                figures.latencies.p99,
                1e6 * cpu / figures.operations.max(1) as f64,
            ]);
        }
        for row in rows {
            self.sheet.add(&server_heading(sync), &server.contender, row);
        }
        Ok(())
    }

    fn write(&self) -> Result<()> {
        let (targets, method) = (self.targets(), self.method());
        self.sheet.write(&self.places, &targets, &method)
    }

    fn targets(&self) -> Vec<Target> {
        const LEAST: f64 = 10.0;
        let heading = server_heading(Sync::Batch);
        let theirs = Contender::new(Version::V5.name(), "buffered");
        let rate = |who: &Contender| self.sheet.median(&heading, who, "per_second");
        let best = self.sheet.contenders(&heading).into_iter().filter(|who| who.is_halcyon());
        let best =
            best.filter_map(|who| Some((who, rate(who)?))).max_by(|a, b| a.1.total_cmp(&b.1));
        let (Some((who, ours)), Some(theirs)) = (best, rate(&theirs)) else { return Vec::new() };
        vec![Target {
            what: format!("durable mutations per second, {} by Cassandra `batch`", who.name()),
            wanted: format!("≥ {LEAST}"),
            measured: format!("{:.1} = {ours:.0} / {theirs:.0}", ours / theirs),
            is_met: ours >= LEAST * theirs,
        }]
    }

    fn method(&self) -> String {
        format!(
            "- The device: blocks one after the other into a file of zeros, `O_DIRECT` and `RWF_DSYNC`: its own flush, in the same run.\n\
             - The log alone (`crates/commitlog/examples/commitlog_bench.rs`): {} writers shared out over the shards, a thread and a log for each shard; a writer appends a record \
             and waits until it is durable. CPU is the process's, of log and writers, by record.\n\
             - The servers: prepared inserts of one row with a blob of {BLOB} bytes, {} in flight on two connections, turns of {} s; generator and server \
             share the machine. CPU is the server's by mutation, the whole request and not only the log. Only one server at a time has memory.\n\
             - `group`: a window of 10 ms. `periodic`: synced every 10 s, acknowledged before. Cassandra otherwise with its defaults (memory-mapped or buffered log), G1, 2 GiB heap, warmed up with {} s in each mode.\n\
             - Medians of {} rounds.",
            self.arguments.in_flight,
            self.arguments.in_flight,
            self.arguments.seconds,
            self.arguments.warm_up,
            self.arguments.rounds
        )
    }
}

impl Alone {
    fn heading(&self) -> String {
        format!(
            "the log alone, {}, {} shard{}, segments of {} MiB, records of {} bytes",
            self.sync.name(),
            self.shards,
            if self.shards == 1 { "" } else { "s" },
            self.segment_mib,
            self.bytes
        )
    }
}

fn server_heading(sync: Sync) -> String {
    format!("servers, {}", sync.name())
}
