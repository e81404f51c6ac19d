//! `cargo x bench E4`: durable mutations per second and what the log's writing costs, by shards, segments, blocks, modes.
//!
//! 1. The device: blocks of several lengths, each durable before the next. No log is faster per flush.
//! 2. The log alone (`commitlog_bench`): writers on each shard's thread append and wait, no server around it.
//! 3. The servers: single-row inserts, so many in flight, `batch`, `group`, `periodic`; one server at a time, Halcyon and Cassandra in
//!    turn.

use std::time::Duration;

use halcyon_oracle::Version;
use serde::Serialize;

use crate::Result;
use crate::invocation::{Common, Invocation};
use crate::load::{Load, Request, Table, Until};
use crate::page::{Column, Page, plain, table};
use crate::plot::{Bars, Section};
use crate::process::CpuOf;
use crate::programs::Programs;
use crate::record::{Contender, Measurements, Record, Target};
use crate::server::{Plan, Server, Sync};

const BLOB: usize = 200;
const ROWS: u64 = 1 << 40;

const COLUMNS: &[Column] = &[
    Column::new("per second", "per_second", 0),
    Column::new("p50 µs", "p50_us", 0),
    Column::new("p99 µs", "p99_us", 0),
    Column::new("CPU µs", "cpu_us", 2),
];

#[derive(clap::Args, Clone, Serialize)]
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
    #[serde(skip)]
    common: Common,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<()> {
    if arguments.common.tiny {
        (arguments.seconds, arguments.rounds, arguments.records) = (0.3, 1, 400);
        (arguments.segments, arguments.blocks) = (vec![1], vec![4]);
        arguments.in_flight = 10;
    }
    let invocation = Invocation::begin("E4", &arguments.common, "data/commit_log", &arguments)?;
    let programs = Programs::build_with_log(arguments.common.tiny)?;
    let mut bench = Bench { arguments, invocation, programs, seed: 1 };
    for _ in 0..bench.arguments.rounds {
        bench.device()?;
        bench.log_alone()?;
        bench.invocation.write()?;
    }
    bench.servers()?;
    bench.invocation.end()
}

struct Bench {
    arguments: Arguments,
    invocation: Invocation,
    programs: Programs,
    seed: u64,
}

/// As `commitlog_bench` takes it.
fn word(sync: Sync) -> &'static str {
    match sync {
        Sync::Batch => "batch",
        Sync::Group => "group:10",
        Sync::Periodic => "periodic:10000",
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
        let dir = self.invocation.data.join("device");
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
        let dir = self.invocation.data.join("alone");
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
            word(run.sync).to_owned(),
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
        let figures = COLUMNS.iter().fold(Measurements::default(), |figures, column| {
            figures.with(column.key, measured[column.key].as_f64().unwrap_or(f64::NAN))
        });
        self.invocation.record.add(heading, who, figures);
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
        let name = format!("{mode}, {shards} shard{}", if shards == 1 { "" } else { "s" });
        let plan = Plan::halcyon(&name, self.invocation.fresh("halcyon")?)
            .sync(sync)
            .set(format!("commitlog_disk_access_mode: {mode}"))
            .set(format!("shards: {shards}"));
        self.turns(&Server::start(&self.programs, &plan)?, sync, 1.0)
    }

    fn cassandra(&mut self, sync: Sync) -> Result<()> {
        let dir = self.invocation.scratch("cassandra");
        let plan = Plan::cassandra(Version::V5, "buffered", dir).sync(sync);
        self.turns(&Server::start(&self.programs, &plan)?, sync, self.arguments.warm_up)
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
        for _ in 0..self.arguments.rounds {
            self.seed += 1;
            let cpu = CpuOf::Process(server.pid);
            let before = cpu.seconds();
            let completed = load(self.arguments.seconds, self.seed).run(server.port)?;
            let cpu = cpu.seconds() - before;
            let by_mutation = 1e6 * cpu / completed.operations.max(1) as f64;
            let figures = completed.figures(cpu).with("cpu_us", by_mutation);
            self.invocation.record.add(&server_heading(sync), &server.contender, figures);
        }
        Ok(())
    }
}

pub(crate) fn page(record: &Record) -> Result<Page> {
    let headings = record.headings();
    let bars = Bars {
        title: "the commit log",
        columns: COLUMNS,
        sections: headings.iter().map(|heading| Section::plain(heading)).collect(),
    };
    Ok(Page {
        title: "E4: the commit log",
        targets: target(record).into_iter().collect(),
        sections: vec![format!(
            "## Measurements\n\n{}",
            table(record, Some(""), plain(&headings), COLUMNS)
        )],
        method: include_str!("../E4/method.md"),
        computed: vec![("blob", BLOB.to_string())],
        plots: vec![("plot.svg", bars.svg(record)?)],
    })
}

fn target(record: &Record) -> Option<Target> {
    const LEAST: f64 = 10.0;
    let heading = server_heading(Sync::Batch);
    let rate = |who: &Contender| record.median(&heading, who, "per_second");
    let ours = record.contenders(&heading).into_iter().filter(|who| who.is_halcyon());
    let rates = ours.filter_map(|who| Some((who, rate(who)?)));
    let (who, ours) = rates.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let theirs = rate(&Contender::new(Version::V5.name(), "buffered"))?;
    Some(Target {
        what: format!("durable mutations per second, {} by Cassandra `batch`", who.name()),
        to_reach: format!("≥ {LEAST}"),
        measured: format!("{:.1} = {ours:.0} / {theirs:.0}", ours / theirs),
        reached: ours >= LEAST * theirs,
    })
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
