//! `cargo x bench E4`: durable mutations per second and what the log's writing costs, by shards, segments, blocks, modes.
//!
//! 1. The device: blocks of several lengths, each durable before the next. No log is faster per flush.
//! 2. The log alone (`commitlog_bench`): writers on each shard's thread append and wait, no server around it.
//! 3. The servers: single-row inserts, a fixed number in flight, `batch`, `group`, `periodic`; one server at a time, Halcyon, Cassandra in
//!    turn.

use halcyon_oracle::{Result, Version};
use serde::Serialize;
use serde_json::json;

use crate::invocation::{Experiment, Invocation, Listed};
use crate::load::{Load, Request, Table};
use crate::page::Page;
use crate::record::{Contender, Measurements, Record, Target};
use crate::server::{Plan, Server, Sync};

const TABLE: Table = Table { name: "commit_log", rows: 1 << 40, blob: 200 };
/// What `commitlog_bench` measures.
const FIGURES: [&str; 4] = ["per_second", "p50_us", "p99_us", "cpu_us"];

#[derive(clap::Args, Serialize)]
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
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "E4",
        asks: "How many durable writes does the commit log take?",
        page: Self::page,
    };
    const DATA: &'static str = "commit_log";
    const EXAMPLES: &'static [(&'static str, &'static str)] =
        &[("halcyon-commitlog", "commitlog_bench")];

    fn shrink(&mut self) {
        (self.seconds, self.rounds, self.records) = (0.3, 1, 400);
        (self.segments, self.blocks, self.in_flight) = (vec![1], vec![4], 10);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        let mut bench = Bench { arguments: &self, invocation, seed: 1 };
        for _ in 0..self.rounds {
            bench.device()?;
            bench.log_alone()?;
            bench.invocation.write()?;
        }
        bench.servers()
    }

    fn page(record: &mut Record) -> Result<Page> {
        Ok(Page {
            template: include_str!("../E4/page.md"),
            targets: target(record).into_iter().collect(),
            names: json!({ "blob": TABLE.blob }),
            ..Page::default()
        })
    }
}

struct Bench<'a> {
    arguments: &'a Arguments,
    invocation: &'a mut Invocation,
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

fn in_shards(shards: usize) -> String {
    format!("{shards} shard{}", if shards == 1 { "" } else { "s" })
}

/// One run of the log without a server.
#[derive(Clone, Copy, PartialEq)]
struct Alone {
    shards: usize,
    segment_mib: u64,
    mode: &'static str,
    sync: Sync,
    bytes: usize,
}

impl Bench<'_> {
    fn device(&mut self) -> Result<()> {
        for kib in &self.arguments.blocks {
            let writes = self.arguments.records.min(4000).to_string();
            let words = ["device", &(kib << 10).to_string(), &writes].map(str::to_owned);
            let heading = format!("the device, blocks of {kib} KiB");
            self.measured_alone("device", &words, &heading, &Contender::new("device", "direct"))?;
        }
        Ok(())
    }

    /// Every combination but of what is not asked about: segments and shards are varied in the default mode, record lengths beside.
    fn log_alone(&mut self) -> Result<()> {
        let plain =
            Alone { shards: 1, segment_mib: 32, mode: "direct", sync: Sync::Batch, bytes: 256 };
        let mut runs = Vec::new();
        for shards in self.arguments.shards.iter().copied() {
            let segments = self.arguments.segments.iter();
            runs.extend(segments.map(|mib| Alone { shards, segment_mib: *mib, ..plain }));
            for mode in ["direct", "standard"] {
                runs.extend(Sync::ALL.map(|sync| Alone { shards, mode, sync, ..plain }));
            }
        }
        runs.extend([1024, 4096, 16_384].map(|bytes| Alone { bytes, ..plain }));
        for (number, run) in runs.iter().enumerate() {
            if !runs[..number].contains(run) {
                self.one_alone(*run)?;
            }
        }
        Ok(())
    }

    fn one_alone(&mut self, run: Alone) -> Result<()> {
        let Alone { shards, segment_mib, mode, sync, bytes } = run;
        // A window of 10 ms lets each writer have a hundred records a second.
        let records = match sync {
            Sync::Group => self.arguments.records / 10,
            _ if bytes > 256 => self.arguments.records / 4,
            _ => self.arguments.records,
        };
        let words = [
            "one".to_owned(),
            shards.to_string(),
            (segment_mib << 20).to_string(),
            mode.to_owned(),
            word(sync).to_owned(),
            self.arguments.in_flight.to_string(),
            bytes.to_string(),
            records.to_string(),
        ];
        let heading = format!(
            "the log alone, {}, {}, segments of {segment_mib} MiB, records of {bytes} bytes",
            sync.name(),
            in_shards(shards),
        );
        self.measured_alone("alone", &words, &heading, &Contender::new("halcyon", mode))
    }

    fn measured_alone(
        &mut self,
        folder: &str,
        words: &[String],
        heading: &str,
        who: &Contender,
    ) -> Result<()> {
        let mut arguments = vec![self.invocation.data.join(folder).display().to_string()];
        arguments.extend_from_slice(words);
        let measured = self.invocation.programs.commitlog_bench(&arguments)?;
        let figures = FIGURES.iter().fold(Measurements::default(), |figures, key| {
            figures.with(key, measured[key].as_f64().unwrap_or(f64::NAN))
        });
        self.invocation.record.add(heading, who, figures);
        Ok(())
    }

    /// A server of each kind at a time: started, warmed up, measured in all rounds, stopped; memory is short.
    fn servers(&mut self) -> Result<()> {
        for sync in Sync::ALL {
            if self.invocation.takes_part("halcyon") {
                for shards in &self.arguments.shards {
                    for mode in ["direct", "standard"] {
                        let name = format!("{mode}, {}", in_shards(*shards));
                        let plan = Plan::halcyon(&name, self.invocation.fresh("halcyon")?)
                            .sync(sync)
                            .set(format!("commitlog_disk_access_mode: {mode}"))
                            .set(format!("shards: {shards}"));
                        self.turns(&plan, sync, 1.0)?;
                    }
                }
            }
            if self.invocation.takes_part(Version::V5.name()) {
                let dir = self.invocation.data.join("cassandra");
                let plan = Plan::cassandra(Version::V5, "buffered", dir).sync(sync);
                self.turns(&plan, sync, self.arguments.warm_up)?;
            }
        }
        Ok(())
    }

    fn turns(&mut self, plan: &Plan<'_>, sync: Sync, warm_up: f64) -> Result<()> {
        let server = Server::start(&self.invocation.programs, plan)?;
        TABLE.create(server.port)?;
        let Arguments { seconds, in_flight, rounds, .. } = *self.arguments;
        let load = |seconds: f64, seed| {
            let load = Load::lasting(Request::Write, TABLE, seconds);
            Load { in_flight, seed, ..load }
        };
        load(warm_up.max(seconds), self.seed).run(server.port)?;
        for _ in 0..rounds {
            self.seed += 1;
            let figures = server.asked(|port| load(seconds, self.seed).run(port))?;
            let by_mutation = figures.get("server_cpu_us").unwrap_or(f64::NAN);
            let figures = figures.with("cpu_us", by_mutation);
            self.invocation.record.add(&server_heading(sync), &server.contender, figures);
        }
        Ok(())
    }
}

fn target(record: &Record) -> Option<Target> {
    const LEAST: f64 = 10.0;
    let heading = server_heading(Sync::Batch);
    let rate = |who: &Contender| record.median(&heading, who, "per_second");
    let ours = record.contenders(&heading).into_iter().filter(|who| who.is_halcyon());
    let rates = ours.filter_map(|who| Some((who, rate(who)?)));
    let (who, ours) = rates.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let theirs = rate(&Contender::new(Version::V5.name(), "buffered"))?;
    let what = format!("durable mutations per second, {} by Cassandra `batch`", who.name());
    let measured = format!("{:.1} = {ours:.0} / {theirs:.0}", ours / theirs);
    Some(Target::new(what, format!("≥ {LEAST}"), measured, ours >= LEAST * theirs))
}

fn server_heading(sync: Sync) -> String {
    format!("servers, {}", sync.name())
}
