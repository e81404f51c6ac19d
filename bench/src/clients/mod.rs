//! `cargo x bench E5`: durable writes by the number of clients, by Halcyon, Cassandra and PostgreSQL. Does a request wait until a
//! thread wakes up?
//!
//! 1. A client is a connection with one request under way. Each has a thread of the generator; PostgreSQL has `pgbench`.
//! 2. Before the turns at one client, the device's own flush and an empty round trip are measured: what a durable write cannot be below.
//! 3. Little's law is checked in each row: clients = throughput × mean latency. And N clients get at most N times what one gets: more
//!    would mean that one client's requests waited for something that more clients keep awake.
//! 4. Halcyon tells itself how long a request waited between socket and statement (`halcyon_views.request_wait`).

mod postgres;

use std::time::Duration;

use halcyon_oracle::{Result, Version, free_ports};
use postgres::Postgres;
use serde::Serialize;
use serde_json::json;

use crate::flush;
use crate::histogram::{Histogram, counted};
use crate::invocation::{Experiment, Invocation, Listed};
use crate::load::{Load, Request, Table};
use crate::page::Page;
use crate::record::{Contender, Measurements, Record, Target, listed};
use crate::server::{Plan, Server, Sync};

/// Every write makes a new row.
const TABLE: Table = Table { name: "clients", rows: 1 << 40, blob: 200 };
/// Halcyon, asked on each connection for keys of its shard.
const SHARD_AWARE: &str = "batch, shard-aware";
const P50: &str = "p50_us";
const ROUND_TRIP: &str = "empty round trip, 1 client";

#[derive(clap::Args, Serialize)]
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
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "E5",
        asks: "Does more load ever make a write faster: are wake-ups lost?",
        page: Self::page,
    };
    const DATA: &'static str = "clients";

    fn shrink(&mut self) {
        (self.seconds, self.rounds, self.clients) = (0.3, 1, vec![1, 10]);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        let mut bench =
            Bench { arguments: &self, invocation, servers: Vec::new(), postgres: None, seed: 1 };
        bench.start()?;
        for clients in &self.clients {
            for _ in 0..self.rounds {
                bench.round(*clients)?;
            }
            bench.invocation.write()?;
        }
        Ok(())
    }

    fn page(record: &mut Record) -> Result<Page> {
        let headings = record.headings().into_iter();
        let headings: Vec<&str> = headings.filter(|h| clients_of(h).is_some()).collect();
        Ok(Page {
            template: include_str!("../../E5/page.md"),
            targets: targets(record, &headings),
            names: json!({
                "by_clients": headings,
                "blob": TABLE.blob,
                "flush_us": flush::median(record),
                "round_trip_us": round_trip(record),
            }),
            ..Page::default()
        })
    }
}

struct Bench<'a> {
    arguments: &'a Arguments,
    invocation: &'a mut Invocation,
    servers: Vec<Server>,
    postgres: Option<Postgres>,
    seed: u64,
}

fn heading(clients: usize) -> String {
    format!("{clients} client{}", if clients == 1 { "" } else { "s" })
}

impl Bench<'_> {
    fn start(&mut self) -> Result<()> {
        let mode = Sync::Batch.name();
        if self.invocation.takes_part("halcyon") {
            let plan = Plan::halcyon(mode, self.invocation.fresh("halcyon")?).sync(Sync::Batch);
            self.ready(&plan, 1.0)?;
        }
        if self.invocation.takes_part(Version::V5.name()) {
            let dir = self.invocation.data.join("cassandra");
            let plan = Plan::cassandra(Version::V5, mode, dir).sync(Sync::Batch);
            self.ready(&plan, self.arguments.warm_up)?;
        }
        if self.invocation.takes_part("postgresql") {
            match Postgres::start(&self.invocation.data.join("postgresql"), free_ports()?) {
                Ok(postgres) => {
                    postgres.freeze()?;
                    self.postgres = Some(postgres);
                }
                Err(error) => self.invocation.record.miss(format!("no PostgreSQL: {error}")),
            }
        }
        Ok(())
    }

    fn ready(&mut self, plan: &Plan<'_>, warm_up: f64) -> Result<()> {
        let server = Server::start(&self.invocation.programs, plan)?;
        TABLE.create(server.port)?;
        let seconds = warm_up.max(self.arguments.seconds);
        Load { connections: 50, ..self.load(Request::Write, seconds) }.run(server.port)?;
        server.freeze()?;
        self.servers.push(server);
        Ok(())
    }

    fn load(&self, request: Request, seconds: f64) -> Load {
        Load { seed: self.seed, ..Load::lasting(request, TABLE, seconds) }
    }

    /// A turn of each contender.
    fn round(&mut self, clients: usize) -> Result<()> {
        if clients == 1 {
            let time = Duration::from_secs_f64(self.arguments.seconds / 4.0);
            flush::measure(&mut self.invocation.record, &self.invocation.data, time)?;
        }
        for server in std::mem::take(&mut self.servers) {
            self.turn(&server, clients, false)?;
            if server.is_halcyon() {
                self.turn(&server, clients, true)?;
            }
            self.servers.push(server);
        }
        if let Some(postgres) = &self.postgres {
            postgres.thaw()?;
            let figures = postgres.turn(TABLE, clients, self.arguments.seconds)?;
            postgres.freeze()?;
            let figures = by_clients(clients, figures, &Histogram::default());
            self.invocation.record.add(&heading(clients), &postgresql(), figures);
        }
        Ok(())
    }

    fn turn(&mut self, server: &Server, clients: usize, shard_aware: bool) -> Result<()> {
        self.seed += 1;
        let seconds = self.arguments.seconds;
        server.thaw()?;
        if clients == 1 && server.is_halcyon() {
            let empty = self.load(Request::Empty, seconds / 4.0);
            let all = Load { in_flight: 1, ..empty }.run(server.port)?.latencies;
            let figures = Measurements::default().fields("", &all);
            self.invocation.record.add(ROUND_TRIP, &server.contender, figures);
        }
        let before = waits(server)?;
        let load = self.load(Request::Write, seconds);
        let load = Load { in_flight: clients, connections: clients, shard_aware, ..load };
        let figures = server.asked(|port| load.run(port))?;
        let waited = waits(server)?.since(Some(&before));
        server.freeze()?;
        let mut who = server.contender.clone();
        if shard_aware {
            who.mode = SHARD_AWARE.to_owned();
        }
        let figures = by_clients(clients, figures, &waited);
        self.invocation.record.add(&heading(clients), &who, figures);
        Ok(())
    }
}

/// How long requests waited from socket to statement, as Halcyon counts it over all shards.
fn waits(server: &Server) -> Result<Histogram> {
    const WAITS: &str = "SELECT shard, below_ns, requests FROM halcyon_views.request_wait";
    let mut all = Histogram::default();
    if server.is_halcyon() {
        counted(server.port, WAITS)?.values().for_each(|of_shard| all.add_all(of_shard));
    }
    Ok(all)
}

fn by_clients(clients: usize, figures: Measurements, waits: &Histogram) -> Measurements {
    let of = |key| figures.get(key).unwrap_or(f64::NAN);
    let under_way = of("per_second") * of("mean_us") / 1e6;
    let wait = |share| waits.below(share).map_or(f64::NAN, |nanos| nanos / 1000.0);
    figures
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
    let by_the_device = |ours: &Contender| {
        let latency = record.median(&heading(1), ours, P50)?;
        let what = format!("{}: latency of one client", ours.name());
        flush::target(record, what, latency, round_trip(record)?)
    };
    let mut targets: Vec<Target> = ours.iter().filter_map(by_the_device).collect();
    targets.extend(ours.iter().filter_map(|ours| below_postgres(record, headings, ours)));
    targets.extend(never_more_than_proportional(record, headings, &ours[0]));
    targets
}

fn below_postgres(record: &Record, headings: &[&str], ours: &Contender) -> Option<Target> {
    let ratio = |heading: &&str| {
        let of = |who| record.median(heading, who, P50);
        Some((clients_of(heading)?, of(ours)? / of(&postgresql())?))
    };
    let ratios: Vec<(usize, f64)> = headings.iter().map(ratio).collect::<Option<_>>()?;
    let reached = ratios.iter().all(|(_, ratio)| *ratio < 1.0);
    let what = format!("{}: latency (p50) by PostgreSQL's, at each number of clients", ours.name());
    Some(Target::new(what, "< 1", listed(&ratios, 2), reached))
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
    let reached = gains.iter().all(|(_, gain)| *gain <= NOISE);
    let what = "throughput by clients × that of one client";
    Some(Target::new(what, "≤ 1", listed(&gains, 2), reached))
}
