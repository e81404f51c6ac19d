//! `cargo x bench E5`: durable writes by the number of clients, by Halcyon, Cassandra and PostgreSQL. Does a request lie about until a thread wakes up?
//!
//! 1. A client is a connection with one request under way. Each has a thread of the generator; PostgreSQL has `pgbench`.
//! 2. Before the turns at one client, the device's own flush and an empty round trip are measured: what a durable write cannot be below.
//! 3. Little's law is checked in each row: clients = throughput × mean latency. And N clients get at most N times what one gets: more
//!    would mean that one client's requests waited for something that more clients keep awake.
//! 4. Halcyon tells itself how long a request waited between socket and statement (`halcyon_views.request_wait`).

mod postgres;
mod wait;

use std::time::Duration;

use serde_json::json;

use super::contender::{Contender, Spread};
use super::flush::Flush;
use super::jvm_node::Plan;
use super::load::{Figures, Load, Request, Table, Until};
use super::process::CpuOf;
use super::programs::Programs;
use super::server::{HalcyonPlan, Server};
use super::sheet::{Column, Sheet, Target};
use super::{Common, Places};
use crate::Result;
use halcyon_oracle::Version;
use postgres::Postgres;
use wait::Waits;

const PORT: u16 = 27642;
const POSTGRES_PORT: u16 = 27652;
/// Every write makes a new row.
const ROWS: u64 = 1 << 40;
/// Halcyon, asked on each connection for keys of its shard.
const SHARD_AWARE: &str = "batch, shard-aware";
const BLOB: usize = 200;

const COLUMNS: &[Column] = &[
    Column { key: "per_second", title: "per second", decimals: 0, is_drawn: true },
    Column { key: "mean_us", title: "mean µs", decimals: 0, is_drawn: false },
    Column { key: "p50_us", title: "p50 µs", decimals: 0, is_drawn: true },
    Column { key: "p99_us", title: "p99 µs", decimals: 0, is_drawn: true },
    Column { key: "p99.9_us", title: "p99.9 µs", decimals: 0, is_drawn: false },
    Column { key: "server_cpu_us", title: "server CPU µs", decimals: 1, is_drawn: true },
    Column {
        key: "littles_law",
        title: "clients by throughput × latency",
        decimals: 2,
        is_drawn: false,
    },
    Column {
        key: "wait_p50_us",
        title: "socket to statement, p50 below µs",
        decimals: 1,
        is_drawn: false,
    },
    Column { key: "wait_p99_us", title: "p99 below µs", decimals: 1, is_drawn: false },
];

#[derive(clap::Args, Clone)]
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
    common: Common,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let mut arguments = arguments.clone();
    if arguments.common.tiny {
        (arguments.seconds, arguments.rounds) = (0.3, 1);
        arguments.clients = vec![1, 10];
    }
    let places = Places::make(&arguments.common, "bench/data/clients", "bench/E5")?;
    let mut bench = Bench::prepare(arguments, places)?;
    for clients in bench.arguments.clients.clone() {
        for _ in 0..bench.arguments.rounds {
            bench.round(clients)?;
        }
        bench.write()?;
    }
    bench.places.show()
}

struct Bench {
    arguments: Arguments,
    places: Places,
    servers: Vec<Server>,
    postgres: Option<Postgres>,
    sheet: Sheet,
    flushes: Vec<Flush>,
    round_trips: Vec<f64>,
    seed: u64,
}

fn heading(clients: usize) -> String {
    format!("{clients} client{}", if clients == 1 { "" } else { "s" })
}

impl Bench {
    fn prepare(arguments: Arguments, places: Places) -> Result<Bench> {
        let sheet = Sheet::new(
            "E5",
            "durable writes by clients",
            COLUMNS,
            json!({
                "seconds": arguments.seconds,
                "rounds": arguments.rounds,
                "warm_up_seconds": arguments.warm_up,
            }),
        );
        let mut bench = Bench {
            arguments,
            places,
            servers: Vec::new(),
            postgres: None,
            sheet,
            flushes: Vec::new(),
            round_trips: Vec::new(),
            seed: 1,
        };
        bench.start()?;
        Ok(bench)
    }

    fn start(&mut self) -> Result<()> {
        if self.arguments.common.takes_part("halcyon") {
            let programs = Programs::build_server(self.arguments.common.tiny)?;
            let dir = self.places.fresh("halcyon")?;
            let settings = ["commitlog_sync: batch".to_owned()];
            let plan = HalcyonPlan { mode: "batch", dir: &dir, settings: &settings, cage: None };
            self.ready(Server::halcyon(&programs, &plan)?.0, 1.0)?;
        }
        if self.arguments.common.takes_part(Version::V5.name()) {
            let settings = vec![
                "commitlog_sync: batch".to_owned(),
                "commitlog_sync_period: 0ms".to_owned(),
                "commitlog_segment_size: 32MiB".to_owned(),
                "write_request_timeout: 30000ms".to_owned(),
            ];
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
            self.ready(Server::cassandra("batch", &plan)?.0, self.arguments.warm_up)?;
        }
        if self.arguments.common.takes_part("postgresql") {
            match Postgres::start(&self.places.data.join("postgresql"), POSTGRES_PORT) {
                Ok(postgres) => {
                    postgres.freeze()?;
                    self.postgres = Some(postgres);
                }
                Err(error) => self.sheet.miss(format!("no PostgreSQL: {error}")),
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

    /// Everybody's turn.
    fn round(&mut self, clients: usize) -> Result<()> {
        if clients == 1 {
            let time = Duration::from_secs_f64(self.arguments.seconds / 4.0);
            self.flushes.push(Flush::measure(&self.places.data, time)?);
        }
        for number in 0..self.servers.len() {
            for shard_aware in [false, true] {
                self.turn(number, clients, shard_aware)?;
            }
        }
        if let Some(postgres) = &self.postgres {
            postgres.thaw()?;
            let figures = postgres.turn(clients, self.arguments.seconds)?;
            postgres.freeze()?;
            let who = Contender::new("postgresql", "synchronous_commit");
            let row = self.row(clients, &figures.figures, figures.server_cpu_seconds, None);
            self.sheet.add(&heading(clients), &who, row);
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
            self.round_trips.push(empty.run_with(server.port, 1)?.latencies.p50);
        }
        let waits =
            |server: &Server| server.is_halcyon().then(|| Waits::of(server.port)).transpose();
        let cpu = CpuOf::Process(server.pid);
        let (waits_before, cpu_before) = (waits(server)?, cpu.seconds());
        let load = Load { in_flight: clients, shard_aware, ..self.load(Request::Write, seconds) };
        let figures = load.run_with(server.port, clients)?;
        let cpu = cpu.seconds() - cpu_before;
        let waited = waits(server)?.zip(waits_before).map(|(after, before)| after.since(&before));
        server.freeze()?;
        let mut who = server.contender.clone();
        if shard_aware {
            who.mode = SHARD_AWARE.to_owned();
        }
        let row = self.row(clients, &figures, cpu, waited.as_ref());
        self.sheet.add(&heading(clients), &who, row);
        Ok(())
    }

    /// In the order of the columns.
    fn row(&self, clients: usize, figures: &Figures, cpu: f64, waits: Option<&Waits>) -> Vec<f64> {
        let rate = figures.operations as f64 / figures.seconds.max(1e-9);
        let latencies = figures.latencies;
        let wait = |share| waits.and_then(|waits| waits.below_us(share)).unwrap_or(f64::NAN);
        vec![
            rate,
            latencies.mean,
            latencies.p50,
            latencies.p99,
            latencies.p999,
            1e6 * cpu / figures.operations.max(1) as f64,
            clients as f64 / (rate * latencies.mean / 1e6).max(1e-9),
            wait(0.5),
            wait(0.99),
        ]
    }

    fn write(&mut self) -> Result<()> {
        let flushes = self.flushes.iter().map(|flush| flush.to_json()).collect();
        self.sheet.beside.insert("device_flushes".to_owned(), flushes);
        self.sheet.beside.insert("round_trips_us".to_owned(), json!(self.round_trips));
        let (targets, method) = (self.targets(), self.method());
        self.sheet.write(&self.places, &targets, &method)
    }

    fn round_trip(&self) -> f64 {
        Spread::of(self.round_trips.iter().copied()).median
    }

    fn targets(&self) -> Vec<Target> {
        let ours = ["batch", SHARD_AWARE].map(|mode| Contender::new("halcyon", mode));
        let mut targets = Vec::new();
        targets.extend(ours.iter().filter_map(|ours| self.by_the_device(ours)));
        targets.extend(ours.iter().filter_map(|ours| self.below_postgres(ours)));
        targets.extend(self.never_more_than_proportional(&ours[0]));
        targets
    }

    fn by_the_device(&self, ours: &Contender) -> Option<Target> {
        let latency = self.sheet.median(&heading(1), ours, "p50_us")?;
        let what = format!("{}: latency of one client", ours.name());
        Some(Flush::target(what, latency, &self.flushes, self.round_trip()))
    }

    fn below_postgres(&self, ours: &Contender) -> Option<Target> {
        let theirs = Contender::new("postgresql", "synchronous_commit");
        let mut ratios = Vec::new();
        for clients in &self.arguments.clients {
            let of = |who| self.sheet.median(&heading(*clients), who, "p50_us");
            ratios.push((clients, of(ours)? / of(&theirs)?));
        }
        let shown: Vec<String> =
            ratios.iter().map(|(n, ratio)| format!("{ratio:.2} ({n})")).collect();
        Some(Target {
            what: format!(
                "{}: latency (p50) by PostgreSQL's, at each number of clients",
                ours.name()
            ),
            wanted: "< 1".to_owned(),
            measured: shown.join(", "),
            is_met: ratios.iter().all(|(_, ratio)| *ratio < 1.0),
        })
    }

    /// Some more than that is noise.
    fn never_more_than_proportional(&self, ours: &Contender) -> Option<Target> {
        const NOISE: f64 = 1.1;
        let one = self.sheet.median(&heading(1), ours, "per_second")?;
        let gain = |clients: &usize| {
            let rate = self.sheet.median(&heading(*clients), ours, "per_second")?;
            Some((*clients, rate / one / *clients as f64))
        };
        let gains: Vec<(usize, f64)> = self.arguments.clients.iter().filter_map(gain).collect();
        let shown: Vec<String> = gains.iter().map(|(n, gain)| format!("{gain:.2} ({n})")).collect();
        Some(Target {
            what: "throughput by clients × that of one client".to_owned(),
            wanted: "≤ 1".to_owned(),
            measured: shown.join(", "),
            is_met: gains.iter().all(|(_, gain)| *gain <= NOISE),
        })
    }

    fn method(&self) -> String {
        format!(
            "- Turns of {} s, {} rounds: each server in turn, the others frozen (SIGSTOP). A client is a connection with one request under way; generator and \
             server share the machine.\n\
             - Every write is durable when it is acknowledged: `commitlog_sync: batch` (Halcyon, Cassandra), `fsync` and `synchronous_commit` on \
             (PostgreSQL, otherwise as Debian has it).\n\
             - One row each: a random key of 2⁴⁰, an int, a short text, {BLOB} bytes. Halcyon and Cassandra: prepared, native protocol v4, one thread a client. PostgreSQL: \
             `pgbench --protocol=prepared`, two threads, its per-transaction log.\n\
             - *Shard-aware*: each connection asks for keys of the shard that it lies on, as drivers do that know shards; else keys are random, and with two shards every second \
             write is handed over.\n\
             - Flush: 4 KiB with `O_DIRECT | O_DSYNC` over a file that is there: {:.0} µs. Empty round trip (OPTIONS, Halcyon): {:.0} µs. Medians of the rounds.\n\
             - Little's law: clients by throughput × mean latency; what is above 1 is time that the generator spent between requests.\n\
             - Socket to statement: `halcyon_views.request_wait`, in powers of two.",
            self.arguments.seconds,
            self.arguments.rounds,
            Flush::median(&self.flushes),
            self.round_trip()
        )
    }
}

fn table() -> Table {
    Table { name: "clients", rows: ROWS, blob: BLOB }
}
