//! `cargo x bench node`: the server, and Cassandra 5.0.9, under the same requests of the same generator.
//!
//! 1. Servers are started: time to the first answered query, memory at rest. Then all are frozen (SIGSTOP), and each is thawed
//!    for its turn only.
//! 2. Tables are filled, and everybody is warmed up.
//! 3. For each kind of work and each number in flight, round after round: Halcyon, Cassandra, Halcyon, Cassandra, by a generator of our
//!    own and by `latte`. Before the turns
//!    of one durable write at a time, the device's own flush is measured.
//! 4. What was written goes into SSTables; Halcyon gets a small chunk cache and Cassandra a cage of the same size for its page
//!    cache; both read ten times as much, at random.
//! 5. One more turn of Halcyon under `perf`, if that is there. Then table, plot and records are written.

mod latte;
mod plot;
mod record;
mod report;
mod server;

use std::time::Duration;

use latte::Latte;
use record::{Measured, Record, Work};
use serde_json::json;
use server::Sync;

use super::cage::Cage;
use super::flush::Flush;
use super::load::{CONNECTIONS, Load, Request, Table, Until};
use super::machine::{self, drop_page_cache};
use super::process::CpuOf;
use super::programs::Programs;
use super::server::Server;
use super::{Common, Places, profile};
use crate::Result;

const SMALL_BLOB: usize = 200;
const LARGE_BLOB: usize = 4000;
/// Requests in flight while tables are filled and servers warmed up.
const BUSY: usize = 50;
/// After its start a server has this long to come to rest.
const COMES_TO_REST: Duration = Duration::from_secs(4);

#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// Seconds of each turn
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Turns of each server at each number in flight
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    #[arg(long, value_delimiter = ',', default_value = "1,10,50,200")]
    in_flight: Vec<usize>,
    /// Rows of the table that stays in memory
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// MiB of cache for a table ten times as large
    #[arg(long, default_value_t = 32)]
    cache: u64,
    /// Seconds that Cassandra's JVM is warmed up with writes, and as long with reads
    #[arg(long, default_value_t = 20.0)]
    warm_up: f64,
    /// Ask with `latte` too; where it is not on the path it is built, once
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    latte: bool,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let mut arguments = arguments.clone();
    if arguments.common.tiny {
        arguments.seconds = 0.3;
        arguments.rounds = 1;
        arguments.in_flight = vec![1, 10];
        (arguments.rows, arguments.cache) = (500, 1);
    }
    let places = Places::make(&arguments.common, "bench/data/node", "bench/node")?;
    let mut bench = Bench::prepare(arguments, places)?;
    bench.fill(Bench::small)?;
    bench.warm_up()?;
    bench.round_trips()?;
    bench.memory()?;
    bench.write()?;
    bench.device_reads()?;
    bench.write()?;
    bench.places.show()
}

struct Bench {
    arguments: Arguments,
    places: Places,
    programs: Programs,
    servers: Vec<(Server, Sync)>,
    latte: Option<Latte>,
    record: Record,
    seed: u64,
}

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asks {
    /// Our generator: any key on any connection, as most drivers do.
    Anywhere,
    /// Our generator: on each connection the keys of its shard, as drivers do that know shards.
    ShardAware,
    Latte,
}

impl Asks {
    const ALL: [Asks; 3] = [Asks::Anywhere, Asks::ShardAware, Asks::Latte];

    /// Behind the mode of the server.
    fn suffix(self) -> &'static str {
        match self {
            Asks::Anywhere => "",
            Asks::ShardAware => ", shard-aware",
            Asks::Latte => ", latte",
        }
    }

    /// What Cassandra's turn is to be compared with.
    fn of_cassandra(self) -> Asks {
        if self == Asks::Latte { Asks::Latte } else { Asks::Anywhere }
    }
}

impl Bench {
    fn prepare(arguments: Arguments, places: Places) -> Result<Bench> {
        let programs = Programs::build_server(arguments.common.tiny)?;
        let settings = json!({
            "seconds": arguments.seconds,
            "rounds": arguments.rounds,
            "rows": arguments.rows,
            "cache_mib": arguments.cache,
            "warm_up_seconds": arguments.warm_up,
        });
        let record = Record {
            machine: machine::describe(),
            settings,
            starts: Vec::new(),
            flushes: Vec::new(),
            measured: Vec::new(),
            profiles: Vec::new(),
            missing: Vec::new(),
        };
        let mut bench = Bench {
            arguments,
            places,
            programs,
            servers: Vec::new(),
            latte: None,
            record,
            seed: 1,
        };
        if bench.arguments.latte {
            let tiny = bench.arguments.common.tiny;
            match Latte::get(&bench.places.data, !tiny) {
                Ok(latte) => bench.latte = Some(latte),
                Err(error) => bench.miss(format!("latte: {error}")),
            }
        }
        bench.start()?;
        Ok(bench)
    }

    fn miss(&mut self, why: String) {
        eprintln!("bench: {why}");
        self.record.missing.push(why);
    }

    fn turn_time(&self) -> Duration {
        Duration::from_secs_f64(self.arguments.seconds)
    }

    fn start(&mut self) -> Result<()> {
        for (number, sync) in [(0, Sync::Periodic), (1, Sync::Batch)] {
            if self.arguments.common.takes_part("halcyon") {
                let dir = self.places.data.join(format!("halcyon-{}", sync.name()));
                if dir.exists() {
                    std::fs::remove_dir_all(&dir)?;
                }
                let (server, seconds) = server::halcyon(&self.programs, &dir, sync, &[])?;
                self.started(server, sync, seconds, true)?;
            }
            if self.arguments.common.takes_part("5.0.9") {
                let is_touched = sync == Sync::Batch;
                let home = &self.places.data;
                let (server, seconds) = server::cassandra(home, sync, number, is_touched)?;
                // With its heap touched, neither would be Cassandra's usual.
                self.started(server, sync, seconds, !is_touched)?;
            }
        }
        Ok(())
    }

    fn started(&mut self, server: Server, sync: Sync, seconds: f64, counts: bool) -> Result<()> {
        if counts {
            let rest = COMES_TO_REST.min(self.turn_time());
            let started = server::at_rest(&server, seconds, rest);
            eprintln!(
                "bench: {:28} answers after {seconds:.3} s, {} MiB at rest",
                server.contender.name(),
                started.resident >> 20
            );
            self.record.starts.push((server.contender.clone(), started));
        }
        server.freeze()?;
        self.servers.push((server, sync));
        Ok(())
    }

    fn load(&self, request: Request, table: Table, seconds: f64) -> Load {
        Load {
            request,
            table,
            in_flight: BUSY,
            until: Until::Elapsed(Duration::from_secs_f64(seconds)),
            shard_aware: false,
            seed: self.seed,
        }
    }

    fn requests_of(&self, work: Work) -> (Request, Table) {
        match work {
            Work::RoundTrip => (Request::Empty, self.small()),
            Work::DurableWrites | Work::PeriodicWrites => (Request::Write, self.small()),
            Work::MemoryReads => (Request::Read, self.small()),
            Work::DeviceReads => (Request::Read, self.large()),
        }
    }

    fn small(&self) -> Table {
        Table { name: "small", rows: self.arguments.rows, blob: SMALL_BLOB }
    }

    fn large(&self) -> Table {
        let bytes = 10 * (self.arguments.cache << 20);
        Table { name: "large", rows: bytes / LARGE_BLOB as u64, blob: LARGE_BLOB }
    }

    fn fill(&self, table: impl Fn(&Bench) -> Table) -> Result<()> {
        let table = table(self);
        let load = Load { until: Until::EveryKey, ..self.load(Request::Write, table, 0.0) };
        // Whoever syncs every write reads it afterwards.
        for (server, _) in self.servers.iter().filter(|(_, sync)| *sync == Sync::Batch) {
            server.thaw()?;
            table.create(server.port)?;
            let figures = load.run(server.port)?;
            eprintln!(
                "bench: {:28} filled with {} rows in {:.1} s",
                server.contender.name(),
                figures.operations,
                figures.seconds
            );
            server.freeze()?;
        }
        Ok(())
    }

    /// A JVM's compiler has to have seen everything; Halcyon only its caches.
    fn warm_up(&mut self) -> Result<()> {
        let table = self.small();
        for (server, sync) in &self.servers {
            let least = self.arguments.seconds;
            let long = if server.is_halcyon() { least } else { self.arguments.warm_up };
            server.thaw()?;
            table.create(server.port)?;
            for request in [Request::Write, Request::Read] {
                // Only there everything was written.
                if request == Request::Read && *sync == Sync::Periodic {
                    continue;
                }
                self.load(request, table, long).run(server.port)?;
            }
            server.freeze()?;
        }
        Ok(())
    }

    /// One turn of one server.
    fn turn(&mut self, number: usize, work: Work, in_flight: usize, asks: Asks) -> Result<()> {
        self.seed += 1;
        let (request, table) = self.requests_of(work);
        let load = Load {
            in_flight,
            shard_aware: asks == Asks::ShardAware,
            ..self.load(request, table, self.arguments.seconds)
        };
        let (server, _) = self.servers.get(number).ok_or("no such server")?;
        let mut contender = server.contender.clone();
        contender.mode += asks.suffix();
        server.thaw()?;
        let busy = machine::load();
        let cpu = CpuOf::Process(server.pid);
        let before = cpu.seconds();
        let figures = match (&self.latte, asks) {
            (Some(latte), Asks::Latte) => {
                // One for each shard, and as many of Cassandra's, which has none.
                let connections = if server.is_halcyon() { 1 } else { CONNECTIONS as u32 };
                latte.run(&load, server.port, connections)
            }
            _ => load.run(server.port),
        };
        let figures = figures.map_err(|e| format!("{}: {e}", contender.name()))?;
        let cpu = cpu.seconds() - before;
        server.freeze()?;
        let measured = Measured::new(work, contender, in_flight, &figures, cpu, busy);
        say(&measured);
        self.record.measured.push(measured);
        Ok(())
    }

    /// All servers that sync so, in turn, each asked in all ways that are its.
    fn turns(&mut self, work: Work, sync: Sync, in_flight: usize) -> Result<()> {
        for number in 0..self.servers.len() {
            let (server, syncs) = &self.servers[number];
            if *syncs != sync {
                continue;
            }
            let is_halcyon = server.is_halcyon();
            let asks = Asks::ALL.into_iter().filter(|asks| match asks {
                Asks::Anywhere => true,
                Asks::ShardAware => is_halcyon && work != Work::RoundTrip,
                Asks::Latte => {
                    self.latte.is_some() && !matches!(work, Work::RoundTrip | Work::PeriodicWrites)
                }
            });
            for asks in asks.collect::<Vec<_>>() {
                self.turn(number, work, in_flight, asks)?;
            }
        }
        Ok(())
    }

    fn round_trips(&mut self) -> Result<()> {
        for _ in 0..self.arguments.rounds {
            self.turns(Work::RoundTrip, Sync::Batch, 1)?;
        }
        Ok(())
    }

    fn memory(&mut self) -> Result<()> {
        for in_flight in self.arguments.in_flight.clone() {
            for round in 0..self.arguments.rounds {
                if in_flight == 1 {
                    let time = Duration::from_secs_f64(self.arguments.seconds / 4.0);
                    let flush = Flush::measure(&self.places.data, time)?;
                    self.record.flushes.push(flush);
                }
                self.turns(Work::DurableWrites, Sync::Batch, in_flight)?;
                self.turns(Work::MemoryReads, Sync::Batch, in_flight)?;
                // For information, so once.
                if round == 0 {
                    self.turns(Work::PeriodicWrites, Sync::Periodic, in_flight)?;
                }
            }
        }
        self.profile(Work::MemoryReads)?;
        self.profile(Work::DurableWrites)
    }

    /// One more turn of Halcyon, under `perf`.
    fn profile(&mut self, work: Work) -> Result<()> {
        let is_wanted =
            |(server, sync): &&(Server, Sync)| server.is_halcyon() && *sync == Sync::Batch;
        let Some((server, _)) = self.servers.iter().find(is_wanted) else { return Ok(()) };
        if self.arguments.common.tiny || !profile::is_available() {
            return Ok(());
        }
        let seconds = self.arguments.seconds;
        let (request, table) = self.requests_of(work);
        let load = self.load(request, table, seconds + 1.0);
        server.thaw()?;
        let (port, pid) = (server.port, server.pid);
        let samples = self.places.data.join("perf.data");
        let shares = std::thread::scope(|scope| {
            let asking = scope.spawn(|| load.run(port).map(|_| ()).map_err(|e| e.to_string()));
            let shares = profile::attached(pid, seconds, &samples);
            asking.join().map_err(|_| "the generator panicked")??;
            shares
        });
        server.freeze()?;
        match shares {
            Ok(shares) => self.record.profiles.push((work, shares)),
            Err(error) => eprintln!("bench: no profile: {error}"),
        }
        Ok(())
    }

    /// Ten times as much as the cache holds, out of SSTables.
    fn device_reads(&mut self) -> Result<()> {
        // The others are of no more use, and their memory is.
        self.servers.retain(|(_, sync)| *sync == Sync::Batch);
        self.fill(Bench::large)?;
        let settings = [format!("file_cache_size: {}MiB", self.arguments.cache)];
        for (server, sync) in std::mem::take(&mut self.servers) {
            let server = server::flushed(server, sync, &self.programs, &settings)?;
            server.freeze()?;
            self.servers.push((server, sync));
        }
        if !self.arguments.common.tiny && !drop_page_cache() {
            eprintln!("bench: the page cache cannot be dropped: be root");
        }
        let _cages = self.cages()?;
        for in_flight in self.arguments.in_flight.clone() {
            for _ in 0..self.arguments.rounds {
                self.turns(Work::DeviceReads, Sync::Batch, in_flight)?;
            }
        }
        self.profile(Work::DeviceReads)
    }

    fn write(&self) -> Result<()> {
        let Bench { record, places, .. } = self;
        places.write(&record.to_json(), &report::markdown(record), plot::svg(record))
    }

    /// Page cache for Cassandra as large as Halcyon's chunk cache; without, Cassandra takes no part.
    fn cages(&mut self) -> Result<Vec<Cage>> {
        const AT_FIRST: u64 = 64 << 20;
        let cache = self.arguments.cache << 20;
        let (mut cages, mut kept) = (Vec::new(), Vec::new());
        for (server, sync) in std::mem::take(&mut self.servers) {
            if server.is_halcyon() {
                kept.push((server, sync));
                continue;
            }
            match Cage::around(server.pid, cache + AT_FIRST) {
                Ok(cage) => {
                    self.settle(&server, &cage)?;
                    cages.push(cage);
                    kept.push((server, sync));
                }
                Err(error) => {
                    self.miss(format!("{}: no memory cgroup: {error}", server.contender.name()));
                }
            }
        }
        self.servers = kept;
        Ok(cages)
    }

    /// Lets a server read in its cage, and takes what else it allocated there into account.
    fn settle(&self, server: &Server, cage: &Cage) -> Result<()> {
        let load = self.load(Request::Read, self.large(), self.arguments.seconds);
        server.thaw()?;
        load.run(server.port)?;
        cage.leave_page_cache(self.arguments.cache << 20)?;
        server.freeze()
    }
}

fn say(measured: &Measured) {
    eprintln!(
        "bench: {:34} {:16} {:4} in flight {:8.0}/s  p50 {:7.0} p99 {:7.0} p99.9 {:7.0} µs  CPU {:6.1} µs (client {:.1})  load {:.1}",
        measured.contender.name(),
        format!("{:?}", measured.work),
        measured.in_flight,
        measured.rate(),
        measured.latencies.p50,
        measured.latencies.p99,
        measured.latencies.p999,
        measured.server_cpu(),
        measured.client_cpu(),
        measured.load,
    );
}
