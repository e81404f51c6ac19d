//! `cargo x bench node`: the server, and Cassandra 5.0.9, under the same requests of the same generator.
//!
//! 1. Servers are started: time to the first answered query, memory at rest. Then all are frozen (SIGSTOP), and each is thawed
//!    for its turn only.
//! 2. Tables are filled, and all servers are warmed up.
//! 3. For each kind of work and each number in flight, round after round: Halcyon, Cassandra, Halcyon, Cassandra, by a generator of our
//!    own and by `latte`. Before the turns of one durable write at a time, the device's own flush is measured.
//! 4. What was written goes into SSTables; Halcyon gets a small chunk cache and Cassandra a cage of the same size for its page
//!    cache; both read ten times as much, at random.
//! 5. One more turn of Halcyon under `perf`, if that is there.

mod latte;
mod page;

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use halcyon_oracle::{Result, Version};
use serde::Serialize;

use crate::cage::Cage;
use crate::invocation::{Experiment, Invocation, Listed};
use crate::latte::Latte;
use crate::load::{Load, Request, Table, Until};
use crate::page::Page;
use crate::process::resident;
use crate::record::{Contender, Measurements, Record};
use crate::server::{Plan, Server, Sync};
use crate::{flush, machine, profile};

const LARGE_BLOB: usize = 4000;
/// After its start a server has this long to come to rest.
const COMES_TO_REST: Duration = Duration::from_secs(4);
const START: &str = "start";

#[derive(clap::Args, Serialize)]
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
}

impl Experiment for Arguments {
    const LISTED: Listed =
        Listed { name: "node", asks: "What does a request cost?", page: Self::page };
    const DATA: &'static str = "node";

    fn shrink(&mut self) {
        (self.seconds, self.rounds, self.in_flight) = (0.3, 1, vec![1, 10]);
        (self.rows, self.cache) = (500, 1);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        let latte = Latte::wanted(self.latte, invocation);
        let mut bench = Bench { arguments: &self, invocation, servers: Vec::new(), latte, seed: 1 };
        bench.start()?;
        bench.fill(bench.small())?;
        bench.warm_up()?;
        for _ in 0..self.rounds {
            bench.turns(Work::RoundTrip, Sync::Batch, 1)?;
        }
        bench.memory()?;
        bench.invocation.write()?;
        bench.device_reads()
    }

    fn page(record: &mut Record) -> Result<Page> {
        page::page(record)
    }
}

/// What is asked of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Work {
    RoundTrip,
    DurableWrites,
    PeriodicWrites,
    MemoryReads,
    DeviceReads,
}

impl Work {
    const ALL: [Work; 5] = [
        Work::RoundTrip,
        Work::DurableWrites,
        Work::PeriodicWrites,
        Work::MemoryReads,
        Work::DeviceReads,
    ];

    fn title(self) -> &'static str {
        match self {
            Work::RoundTrip => "Empty round trips",
            Work::DurableWrites => "Writes, durable before acknowledged",
            Work::PeriodicWrites => "Writes, synced every 10 s",
            Work::MemoryReads => "Reads from memory",
            Work::DeviceReads => "Reads of ten times the cache",
        }
    }

    fn heading(self, in_flight: usize) -> String {
        format!("{}, {in_flight} in flight", self.title())
    }
}

/// The kind of client.
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

struct Bench<'a> {
    arguments: &'a Arguments,
    invocation: &'a mut Invocation,
    servers: Vec<(Server, Sync)>,
    latte: Option<Latte>,
    seed: u64,
}

impl Bench<'_> {
    fn start(&mut self) -> Result<()> {
        for sync in [Sync::Periodic, Sync::Batch] {
            if self.invocation.takes_part("halcyon") {
                let dir = self.invocation.fresh(&format!("halcyon-{}", sync.name()))?;
                self.started(&halcyon(sync, dir), sync, true)?;
            }
            if self.invocation.takes_part(Version::V5.name()) {
                // A heap that is resident from the start does not grow later; but then neither start nor memory are Cassandra's usual ones.
                let is_touched = sync == Sync::Batch;
                let dir = self.invocation.data.join(format!("cassandra-{}", sync.name()));
                let plan = Plan::cassandra(Version::V5, sync.name(), dir)
                    .sync(sync)
                    // Its default, which the oracle does without.
                    .set("key_cache_size: 100MiB")
                    .jvm(if is_touched { "-XX:+AlwaysPreTouch" } else { "" });
                self.started(&plan, sync, !is_touched)?;
            }
        }
        Ok(())
    }

    fn started(&mut self, plan: &Plan<'_>, sync: Sync, counts: bool) -> Result<()> {
        let server = Server::start(&self.invocation.programs, plan)?;
        if counts {
            sleep(COMES_TO_REST.min(Duration::from_secs_f64(self.arguments.seconds)));
            let figures = Measurements::default()
                .with("seconds", server.start_seconds)
                .with("resident_bytes", resident(server.pid) as f64);
            self.invocation.record.add(START, &server.contender, figures);
        }
        server.freeze()?;
        self.servers.push((server, sync));
        Ok(())
    }

    fn load(&self, request: Request, table: Table, seconds: f64) -> Load {
        Load { seed: self.seed, ..Load::lasting(request, table, seconds) }
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
        Table { name: "small", rows: self.arguments.rows, blob: 200 }
    }

    fn large(&self) -> Table {
        let bytes = 10 * (self.arguments.cache << 20);
        Table { name: "large", rows: bytes / LARGE_BLOB as u64, blob: LARGE_BLOB }
    }

    fn fill(&self, table: Table) -> Result<()> {
        let load = Load::new(Request::Write, table, Until::EveryKey);
        // Reads are asked of the servers that sync every write.
        for (server, _) in self.servers.iter().filter(|(_, sync)| *sync == Sync::Batch) {
            let done = server.awake(|| {
                table.create(server.port)?;
                load.run(server.port)
            })?;
            let (name, rows) = (server.contender.name(), done.operations);
            eprintln!("bench: {name:28} filled with {rows} rows in {:.1} s", done.seconds);
        }
        Ok(())
    }

    /// A JVM's compiler has to have seen everything; Halcyon only its caches.
    fn warm_up(&self) -> Result<()> {
        let table = self.small();
        for (server, sync) in &self.servers {
            let least = self.arguments.seconds;
            let long = if server.is_halcyon() { least } else { self.arguments.warm_up };
            server.awake(|| {
                table.create(server.port)?;
                self.load(Request::Write, table, long).run(server.port)?;
                // Only there everything was written.
                if *sync == Sync::Batch {
                    self.load(Request::Read, table, long).run(server.port)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// One turn of one server.
    fn turn(&mut self, number: usize, work: Work, in_flight: usize, asks: Asks) -> Result<()> {
        self.seed += 1;
        let (request, table) = self.requests_of(work);
        let shard_aware = asks == Asks::ShardAware;
        let load = self.load(request, table, self.arguments.seconds);
        let load = Load { in_flight, shard_aware, ..load };
        let (server, _) = self.servers.get(number).ok_or("no such server")?;
        let mut contender = server.contender.clone();
        contender.mode += asks.suffix();
        let busy = machine::load();
        let ask = |port| match (&self.latte, asks) {
            (Some(latte), Asks::Latte) => latte::ask(latte, &load, server),
            _ => load.run(port),
        };
        let figures = server.awake(|| server.asked(ask))?.with("load_before", busy);
        self.invocation.record.add(&work.heading(in_flight), &contender, figures);
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
            let has_latte = self.latte.is_some();
            let asks = Asks::ALL.into_iter().filter(|asks| match asks {
                Asks::Anywhere => true,
                Asks::ShardAware => is_halcyon && work != Work::RoundTrip,
                Asks::Latte => has_latte && !matches!(work, Work::RoundTrip | Work::PeriodicWrites),
            });
            for asks in asks {
                self.turn(number, work, in_flight, asks)?;
            }
        }
        Ok(())
    }

    fn memory(&mut self) -> Result<()> {
        for in_flight in &self.arguments.in_flight {
            for round in 0..self.arguments.rounds {
                if *in_flight == 1 {
                    let time = Duration::from_secs_f64(self.arguments.seconds / 4.0);
                    flush::measure(&mut self.invocation.record, &self.invocation.data, time)?;
                }
                self.turns(Work::DurableWrites, Sync::Batch, *in_flight)?;
                self.turns(Work::MemoryReads, Sync::Batch, *in_flight)?;
                // For information, so once.
                if round == 0 {
                    self.turns(Work::PeriodicWrites, Sync::Periodic, *in_flight)?;
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
        if self.invocation.tiny || !profile::is_available() {
            return Ok(());
        }
        let seconds = self.arguments.seconds;
        let (request, table) = self.requests_of(work);
        let load = self.load(request, table, seconds + 1.0);
        let (port, pid) = (server.port, server.pid);
        let samples = self.invocation.data.join("perf.data");
        let shares = server.awake(|| {
            std::thread::scope(|scope| {
                let asking = scope.spawn(|| load.run(port).map(drop).map_err(|e| e.to_string()));
                let shares = profile::attached(pid, seconds, &samples);
                asking.join().map_err(|_| "the generator panicked")??;
                Ok(shares)
            })
        })?;
        match shares {
            Ok(shares) => profile::keep(&mut self.invocation.record, work.title(), &shares),
            Err(error) => eprintln!("bench: no profile: {error}"),
        }
        Ok(())
    }

    /// Ten times as much as the cache holds, out of SSTables.
    fn device_reads(&mut self) -> Result<()> {
        // The others are of no more use, and their memory is.
        self.servers.retain(|(_, sync)| *sync == Sync::Batch);
        self.fill(self.large())?;
        for (server, sync) in std::mem::take(&mut self.servers) {
            let server = self.flushed(server, sync)?;
            server.freeze()?;
            self.servers.push((server, sync));
        }
        self.invocation.drop_page_cache();
        let _cages = self.cages()?;
        for in_flight in &self.arguments.in_flight {
            for _ in 0..self.arguments.rounds {
                self.turns(Work::DeviceReads, Sync::Batch, *in_flight)?;
            }
        }
        self.profile(Work::DeviceReads)
    }

    /// Brings everything that was written into SSTables: Cassandra on request, Halcyon by a restart with its small cache.
    fn flushed(&self, server: Server, sync: Sync) -> Result<Server> {
        server.thaw()?;
        if !server.is_halcyon() {
            server.nodetool(&["flush"])?;
            return Ok(server);
        }
        let dir = server.dir.clone();
        server.stop()?;
        let cache = format!("file_cache_size: {}MiB", self.arguments.cache);
        Server::start(&self.invocation.programs, &halcyon(sync, dir).set(cache))
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
                    // What else it allocates while it reads is taken into account.
                    let load = self.load(Request::Read, self.large(), self.arguments.seconds);
                    server.awake(|| {
                        load.run(server.port)?;
                        cage.leave_page_cache(cache)
                    })?;
                    cages.push(cage);
                    kept.push((server, sync));
                }
                Err(error) => {
                    let name = server.contender.name();
                    self.invocation.record.miss(format!("{name}: no memory cgroup: {error}"));
                }
            }
        }
        self.servers = kept;
        Ok(cages)
    }
}

fn halcyon(sync: Sync, dir: PathBuf) -> Plan<'static> {
    Plan::halcyon(sync.name(), dir).sync(sync)
}

fn batch(peer: &str, asks: Asks) -> Contender {
    Contender::new(peer, &format!("{}{}", Sync::Batch.name(), asks.suffix()))
}
