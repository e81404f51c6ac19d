//! `cargo x bench E5`: durable writes by the number of clients, by Halcyon, Cassandra and PostgreSQL. Does a request wait until a
//! thread wakes up?
//!
//! 1. A client is a connection with one request under way. Each has a thread of the generator; PostgreSQL has `pgbench`.
//! 2. Before the turns at one client, the device's own flush and an empty round trip are measured: what a durable write cannot be below.
//! 3. Little's law is checked in each row: clients = throughput × mean latency. And N clients get at most N times what one gets: more
//!    would mean that one client's requests waited for something that more clients keep awake.
//! 4. Halcyon tells itself how long a request waited between socket and statement (`halcyon_views.request_wait`).

mod postgres;
mod wait;

use std::time::Duration;

use halcyon_oracle::{Version, free_ports};
use postgres::Postgres;
use serde::Serialize;
use wait::Waits;

use crate::invocation::{Common, Invocation};
use crate::load::{Completed, Load, Request, Table, Until};
use crate::page::{Column, Page, plain};
use crate::plot::{Bars, Section};
use crate::process::CpuOf;
use crate::programs::Programs;
use crate::record::{Contender, Measurements, Record, Target};
use crate::server::{Plan, Server, Sync};
use crate::{Result, flush};

/// Every write makes a new row.
const ROWS: u64 = 1 << 40;
/// Halcyon, asked on each connection for keys of its shard.
const SHARD_AWARE: &str = "batch, shard-aware";
const BLOB: usize = 200;

const COLUMNS: &[Column] = &[
    Column::new("per second", "per_second", 0),
    Column::new("mean µs", "mean_us", 0),
    Column::new("p50 µs", P50, 0),
    Column::new("p99 µs", "p99_us", 0),
    Column::new("p99.9 µs", "p99.9_us", 0),
    Column::new("server CPU µs", "server_cpu_us", 1),
    Column::new("clients by throughput × latency", "littles_law", 2),
    Column::new("socket to statement, p50 below µs", "wait_p50_us", 1),
    Column::new("p99 below µs", "wait_p99_us", 1),
];
const DRAWN: &[Column] = &[COLUMNS[0], COLUMNS[2], COLUMNS[3], COLUMNS[5]];
const P50: &str = "p50_us";
const ROUND_TRIP: &str = "empty round trip, 1 client";

#[derive(clap::Args, Clone, Serialize)]
pub(crate) struct Arguments {
    #[arg(long, value_delimiter = ',', default_value = "1,10,50,200")]
    clients: Vec<usize>,
    /// Seconds of each turn
    #[arg(long, default_value_t = 8.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Seconds that Cassandra's JVM is warmed up
    #[arg(long, default_value_t = 30.0)]
    warm_up: f64,
    #[command(flatten)]
    #[serde(skip)]
    common: Common,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<()> {
    if arguments.common.tiny {
        (arguments.seconds, arguments.rounds) = (0.3, 1);
        arguments.clients = vec![1, 10];
    }
    let invocation = Invocation::begin("E5", &arguments.common, "data/clients", &arguments)?;
    let mut bench = Bench { arguments, invocation, servers: Vec::new(), postgres: None, seed: 1 };
    bench.start()?;
    for clients in bench.arguments.clients.clone() {
        for _ in 0..bench.arguments.rounds {
            bench.round(clients)?;
        }
        bench.invocation.write()?;
    }
    bench.invocation.end()
}

struct Bench {
    arguments: Arguments,
    invocation: Invocation,
    servers: Vec<Server>,
    postgres: Option<Postgres>,
    seed: u64,
}

fn heading(clients: usize) -> String {
    format!("{clients} client{}", if clients == 1 { "" } else { "s" })
}

impl Bench {
    fn start(&mut self) -> Result<()> {
        let mode = Sync::Batch.name();
        let programs = Programs::build_server(self.arguments.common.tiny)?;
        if self.arguments.common.takes_part("halcyon") {
            let plan = Plan::halcyon(mode, self.invocation.fresh("halcyon")?).sync(Sync::Batch);
            self.ready(Server::start(&programs, &plan)?, 1.0)?;
        }
        if self.arguments.common.takes_part(Version::V5.name()) {
            let dir = self.invocation.scratch("cassandra");
            let plan = Plan::cassandra(Version::V5, mode, dir).sync(Sync::Batch);
            self.ready(Server::start(&programs, &plan)?, self.arguments.warm_up)?;
        }
        if self.arguments.common.takes_part("postgresql") {
            match Postgres::start(&self.invocation.scratch("postgresql"), free_ports()?) {
                Ok(postgres) => {
                    postgres.freeze()?;
                    self.postgres = Some(postgres);
                }
                Err(error) => self.invocation.record.miss(format!("no PostgreSQL: {error}")),
            }
        }
        Ok(())
    }

    fn ready(&mut self, server: Server, warm_up: f64) -> Result<()> {
        table().create(server.port)?;
        let seconds = warm_up.max(self.arguments.seconds);
        self.load(Request::Write, seconds).run_with(server.port, 50)?;
        server.freeze()?;
        self.servers.push(server);
        Ok(())
    }

    fn load(&self, request: Request, seconds: f64) -> Load {
        Load {
            request,
            table: table(),
            in_flight: 50,
            until: Until::Elapsed(Duration::from_secs_f64(seconds)),
            shard_aware: false,
            seed: self.seed,
        }
    }

    /// A turn of each contender.
    fn round(&mut self, clients: usize) -> Result<()> {
        if clients == 1 {
            let time = Duration::from_secs_f64(self.arguments.seconds / 4.0);
            let Invocation { record, data, .. } = &mut self.invocation;
            flush::measure(record, data, time)?;
        }
        for number in 0..self.servers.len() {
            for shard_aware in [false, true] {
                self.turn(number, clients, shard_aware)?;
            }
        }
        if let Some(postgres) = &self.postgres {
            postgres.thaw()?;
            let turn = postgres.turn(clients, self.arguments.seconds)?;
            postgres.freeze()?;
            let figures = figures(clients, &turn.completed, turn.server_cpu_seconds, None);
            self.invocation.record.add(&heading(clients), &postgresql(), figures);
        }
        Ok(())
    }

    fn turn(&mut self, number: usize, clients: usize, shard_aware: bool) -> Result<()> {
        self.seed += 1;
        let server = self.servers.get(number).ok_or("no such server")?;
        if shard_aware && !server.is_halcyon() {
            return Ok(());
        }
        let seconds = self.arguments.seconds;
        server.thaw()?;
        if clients == 1 && server.is_halcyon() {
            let empty = Load { in_flight: 1, ..self.load(Request::Empty, seconds / 4.0) };
            let all = empty.run_with(server.port, 1)?.latencies;
            let figures = Measurements::default().latencies("", &all);
            self.invocation.record.add(ROUND_TRIP, &server.contender, figures);
        }
        let waits =
            |server: &Server| server.is_halcyon().then(|| Waits::of(server.port)).transpose();
        let cpu = CpuOf::Process(server.pid);
        let (waits_before, cpu_before) = (waits(server)?, cpu.seconds());
        let load = Load { in_flight: clients, shard_aware, ..self.load(Request::Write, seconds) };
        let completed = load.run_with(server.port, clients)?;
        let cpu = cpu.seconds() - cpu_before;
        let waited = waits(server)?.zip(waits_before).map(|(after, before)| after.since(&before));
        server.freeze()?;
        let mut who = server.contender.clone();
        if shard_aware {
            who.mode = SHARD_AWARE.to_owned();
        }
        let figures = figures(clients, &completed, cpu, waited.as_ref());
        self.invocation.record.add(&heading(clients), &who, figures);
        Ok(())
    }
}

fn figures(clients: usize, completed: &Completed, cpu: f64, waits: Option<&Waits>) -> Measurements {
    let under_way = completed.rate() * completed.latencies.mean / 1e6;
    let wait = |share| waits.and_then(|waits| waits.below_us(share)).unwrap_or(f64::NAN);
    completed
        .figures(cpu)
        .with("littles_law", clients as f64 / under_way.max(1e-9))
        .with("wait_p50_us", wait(0.5))
        .with("wait_p99_us", wait(0.99))
}

fn halcyon(mode: &str) -> Contender {
    Contender::new("halcyon", mode)
}

fn postgresql() -> Contender {
    Contender::new("postgresql", "synchronous_commit")
}

pub(crate) fn page(record: &Record) -> Result<Page> {
    let headings = record.headings().into_iter();
    let headings: Vec<&str> = headings.filter(|heading| clients_of(heading).is_some()).collect();
    let bars = Bars {
        title: "durable writes by clients",
        columns: DRAWN,
        sections: headings.iter().map(|heading| Section::plain(heading)).collect(),
    };
    let round_trip = round_trip(record);
    let micros = |value: Option<f64>| value.map_or("?".to_owned(), |value| format!("{value:.0}"));
    Ok(Page {
        title: "E5: durable writes by clients",
        targets: targets(record, &headings),
        sections: vec![format!(
            "## Measurements\n\n{}",
            crate::page::table(record, Some(""), plain(&headings), COLUMNS)
        )],
        method: include_str!("../../E5/method.md"),
        computed: vec![
            ("blob", BLOB.to_string()),
            ("flush_us", micros(flush::median(record))),
            ("round_trip_us", micros(round_trip)),
        ],
        plots: vec![("plot.svg", bars.svg(record)?)],
    })
}

/// Of the headings of writes.
fn clients_of(heading: &str) -> Option<usize> {
    let (number, word) = heading.split_once(' ')?;
    word.starts_with("client").then(|| number.parse().ok())?
}

fn round_trip(record: &Record) -> Option<f64> {
    record.median(ROUND_TRIP, &halcyon(Sync::Batch.name()), P50)
}

fn targets(record: &Record, headings: &[&str]) -> Vec<Target> {
    let ours = [Sync::Batch.name(), SHARD_AWARE].map(halcyon);
    let mut targets = Vec::new();
    targets.extend(ours.iter().filter_map(|ours| by_the_device(record, ours)));
    targets.extend(ours.iter().filter_map(|ours| below_postgres(record, headings, ours)));
    targets.extend(never_more_than_proportional(record, headings, &ours[0]));
    targets
}

fn by_the_device(record: &Record, ours: &Contender) -> Option<Target> {
    let latency = record.median(&heading(1), ours, P50)?;
    let what = format!("{}: latency of one client", ours.name());
    flush::target(record, what, latency, round_trip(record)?)
}

fn below_postgres(record: &Record, headings: &[&str], ours: &Contender) -> Option<Target> {
    let mut ratios = Vec::new();
    for heading in headings {
        let of = |who| record.median(heading, who, P50);
        ratios.push((clients_of(heading)?, of(ours)? / of(&postgresql())?));
    }
    let shown: Vec<String> = ratios.iter().map(|(n, ratio)| format!("{ratio:.2} ({n})")).collect();
    Some(Target {
        what: format!("{}: latency (p50) by PostgreSQL's, at each number of clients", ours.name()),
        to_reach: "< 1".to_owned(),
        measured: shown.join(", "),
        reached: ratios.iter().all(|(_, ratio)| *ratio < 1.0),
    })
}

/// Some more than that is noise.
fn never_more_than_proportional(
    record: &Record,
    headings: &[&str],
    ours: &Contender,
) -> Option<Target> {
    const NOISE: f64 = 1.1;
    let one = record.median(&heading(1), ours, "per_second")?;
    let gain = |heading: &&str| {
        let (clients, rate) = (clients_of(heading)?, record.median(heading, ours, "per_second")?);
        Some((clients, rate / one / clients as f64))
    };
    let gains: Vec<(usize, f64)> = headings.iter().filter_map(gain).collect();
    let shown: Vec<String> = gains.iter().map(|(n, gain)| format!("{gain:.2} ({n})")).collect();
    Some(Target {
        what: "throughput by clients × that of one client".to_owned(),
        to_reach: "≤ 1".to_owned(),
        measured: shown.join(", "),
        reached: gains.iter().all(|(_, gain)| *gain <= NOISE),
    })
}

fn table() -> Table {
    Table { name: "clients", rows: ROWS, blob: BLOB }
}
