//! `cargo x bench access`: what passwords, permissions and TLS cost a request, and whether others wait for logins.
//!
//! ```text
//!   each round:  open │ password │ TLS │ the same of Cassandra       one server awake at a time, the others frozen
//!                 └─ reads, then durable writes, at a fixed rate: CPU of the server by request
//!   at the end:  of the servers with passwords: reads at rest │ beside logins and password changes
//! ```
//! 1. All servers are started at once, each with a table of its own. Requests come from a role without superuser rights (`secured.rs`).
//! 2. Traffic of TLS passes a program that seals it (`sealed.rs`), so that all generators are the same: what is measured is the server's.
//! 3. The storm (`storm.rs`) offers logins and changes whether or not the server takes them.

mod page;
mod sealed;
mod secured;
mod storm;

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use halcyon_oracle::{Result, Version};
use page::{AT_REST, BESIDE, READS, WRITES};
use sealed::Sealed;
use secured::{Access, Secured};
use serde::Serialize;
use storm::Storm;

use crate::invocation::{Experiment, Invocation, Listed};
use crate::latency::about;
use crate::load::Table;
use crate::paced::{Asked, Paced};
use crate::process::Watch;
use crate::record::Measurements;
use crate::rows::{Inserts, Reads, make_hot, read_twice};

const HOT: &str = "hot";
const WRITTEN: &str = "written";

#[derive(clap::Args, Serialize)]
pub(crate) struct Arguments {
    /// Reads a second of hot rows, where CPU is measured
    #[arg(long, default_value_t = 8000.0)]
    reads: f64,
    /// Durable writes a second
    #[arg(long, default_value_t = 2000.0)]
    writes: f64,
    /// Reads a second beside which logins are offered
    #[arg(long, default_value_t = 2000.0)]
    reads_beside: f64,
    /// Logins a second that are offered
    #[arg(long, default_value_t = 2000.0)]
    logins: f64,
    /// Password changes a second that are offered, of roles that take turns
    #[arg(long, default_value_t = 2000.0)]
    changes: f64,
    #[arg(long, default_value_t = 10_000)]
    roles: u32,
    #[arg(long, default_value_t = 20_000)]
    hot_rows: u64,
    /// Bytes of a row's value
    #[arg(long, default_value_t = 256)]
    value: usize,
    /// Seconds of requests before anything is measured, of each server
    #[arg(long, default_value_t = 15.0)]
    warm_up: f64,
    /// Seconds of each stretch: short, so that turns that are compared are near each other
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Seconds of reads at rest, and beside logins
    #[arg(long, default_value_t = 20.0)]
    seconds_beside: f64,
    /// Turns of each server
    #[arg(long, default_value_t = 25)]
    rounds: u32,
    /// Of Cassandra
    #[arg(long, default_value = "1g")]
    heap: String,
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "access",
        asks: "What do passwords, permissions and TLS cost, and do reads wait for logins?",
        page: page::page,
    };
    const DATA: &'static str = "access";

    fn shrink(&mut self) {
        (self.reads, self.writes, self.reads_beside) = (200.0, 100.0, 100.0);
        (self.logins, self.changes, self.roles) = (50.0, 50.0, 50);
        (self.hot_rows, self.rounds) = (200, 1);
        (self.warm_up, self.seconds, self.seconds_beside) = (0.2, 0.5, 1.0);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        let mut servers = Vec::new();
        let peers = [("halcyon", None), (Version::V5.name(), Some(Version::V5))];
        for (peer, version) in peers {
            if !invocation.takes_part(peer) {
                continue;
            }
            for access in Access::ALL {
                let started = self.start(invocation, version, access);
                let who = format!("{peer} {}", access.mode());
                servers.extend(invocation.or_missing(version.is_some(), &who, started)?);
            }
        }
        for _ in 0..self.rounds {
            for secured in &servers {
                secured.server.awake(|| self.turn(invocation, secured))?;
                invocation.write()?;
            }
        }
        for secured in servers.iter().filter(|secured| secured.access == Access::Password) {
            secured.server.awake(|| self.beside_logins(invocation, secured))?;
            invocation.write()?;
        }
        servers.into_iter().try_for_each(|secured| secured.server.stop())
    }
}

impl Arguments {
    fn table(&self, name: &'static str) -> Table {
        Table { name, rows: self.hot_rows, blob: self.value }
    }

    /// A server with its rows, warm and frozen.
    fn start(
        &self,
        invocation: &Invocation,
        version: Option<Version>,
        access: Access,
    ) -> Result<Secured> {
        let peer = version.map_or("halcyon", |_| "cassandra");
        let dir = invocation.fresh(&format!("{peer}-{}", access.folder()))?;
        let secured = Secured::start(&invocation.programs, version, access, dir, &self.heap)?;
        make_hot(&secured.server, self.table(HOT), self.reads)?;
        self.table(WRITTEN).create(secured.server.port)?;
        let port = secured.server.port;
        let warm = |paced: Paced| {
            sleep(Duration::from_secs_f64(self.warm_up));
            paced.stop()
        };
        warm(Paced::start(port, self.reads, Reads::at_random(self.table(HOT), 1))?)?;
        warm(Paced::start(port, self.writes, Inserts::after(self.table(WRITTEN)))?)?;
        secured.server.freeze()?;
        Ok(secured)
    }

    /// CPU by request.
    fn turn(&self, invocation: &mut Invocation, secured: &Secured) -> Result<()> {
        let sealed = secured.trust.as_ref().map(|trust| Sealed::start(secured.server.port, trust));
        let sealed = sealed.transpose()?;
        let port = sealed.as_ref().map_or(secured.server.port, |sealed| sealed.port);
        let reads = Paced::start(port, self.reads, Reads::at_random(self.table(HOT), 2))?;
        let of_reads = self.stretch(&invocation.data, secured, &reads, (READS, self.seconds))?;
        of_reads.record(invocation, secured, &reads.stop()?);
        let writes = Inserts::after(self.table(WRITTEN));
        let writes = Paced::start(port, self.writes, writes)?;
        let of_writes = self.stretch(&invocation.data, secured, &writes, (WRITES, self.seconds))?;
        of_writes.record(invocation, secured, &writes.stop()?);
        Ok(())
    }

    /// The clients that read are there before the storm: a node may refuse more logins of an address that has many under way.
    fn beside_logins(&self, invocation: &mut Invocation, secured: &Secured) -> Result<()> {
        let port = secured.server.port;
        secured.make_roles(self.roles)?;
        read_twice(port, self.table(HOT), self.reads)?;
        let reads = Paced::start(port, self.reads_beside, Reads::at_random(self.table(HOT), 3))?;
        let stretch = |heading| {
            self.stretch(&invocation.data, secured, &reads, (heading, self.seconds_beside))
        };
        let rest = stretch(AT_REST)?;
        let storm = Storm::begin(port, (self.logins, self.changes), self.roles)?;
        let beside = stretch(BESIDE);
        let told = storm.end()?;
        let asked = reads.stop()?;
        for of in [rest, beside?] {
            of.record(invocation, secured, &asked);
        }
        invocation.record.add(storm::HEADING, &secured.server.contender, told);
        Ok(())
    }

    /// What the server costs while it is asked. The first moments are those of logins, of the storm's own threads too.
    fn stretch(
        &self,
        data: &Path,
        secured: &Secured,
        paced: &Paced,
        (heading, seconds): (&'static str, f64),
    ) -> Result<Stretch> {
        sleep(Duration::from_secs_f64(seconds / 10.0));
        let watch = Watch::process(secured.server.pid, data)?;
        let from = paced.now();
        sleep(Duration::from_secs_f64(seconds));
        let until = paced.now();
        Ok(Stretch { heading, from, until, cpu_seconds: watch.stop()?.cpu_seconds })
    }
}

/// On the clock of the requests.
struct Stretch {
    heading: &'static str,
    from: Duration,
    until: Duration,
    cpu_seconds: f64,
}

impl Stretch {
    fn record(self, invocation: &mut Invocation, secured: &Secured, asked: &Asked) {
        let Stretch { heading, from, until, cpu_seconds } = self;
        let samples: Vec<_> = asked.between(from, until).collect();
        let unanswered = asked.unanswered.iter().filter(|due| (from..until).contains(*due));
        let figures = Measurements::default()
            .with("cpu_us_by_request", 1e6 * cpu_seconds / samples.len().max(1) as f64)
            .with("unanswered", unanswered.count() as f64)
            .with("server_cpu_seconds", cpu_seconds);
        invocation.record.add(heading, &secured.server.contender, about(figures, "", &samples));
    }
}
