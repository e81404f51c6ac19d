//! `cargo x bench E6`: a message store for a while: received, transformed, sent, deleted or expired, and a log that is searched.
//!
//! 1. One server at a time. Requests come at a fixed rate (`tables.rs`: the tables, and a message's life).
//! 2. Meanwhile, at every look: bytes of the two tables on disk, and tombstones per read as the server counts them.
//! 3. Does it stay as it was? The p99 of the last third by that of the first after the start, and the disk likewise.

mod page;
mod tables;

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use halcyon_oracle::Version;
pub(crate) use page::page;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tables::{CLASSES, Messages, statements_of_tables};

use crate::Result;
use crate::connection::Connection;
use crate::invocation::{Common, Invocation};
use crate::latency::Latencies;
use crate::load::{Random, random_bytes};
use crate::machine::files_below;
use crate::paced::{Asked, Outcome, Paced, Sample};
use crate::programs::Programs;
use crate::record::{Contender, Measurements};
use crate::server::{Plan, Server, Sync};

/// Stretches that a run is looked at in.
const SLICES: usize = 60;
const MIB: f64 = 1_048_576.0;

/// The heading of what was seen on disk.
const DISK: &str = "on disk";

#[derive(clap::Args, Clone, Serialize)]
pub(crate) struct Arguments {
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Messages a second; each is eight requests
    #[arg(long, default_value_t = 150.0)]
    messages: f64,
    /// Bytes of a message
    #[arg(long, default_value_t = 1000)]
    body: usize,
    /// Seconds of a window; messages expire after two
    #[arg(long, default_value_t = 60)]
    window: u64,
    #[command(flatten)]
    #[serde(skip)]
    common: Common,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<()> {
    if arguments.common.tiny {
        (arguments.minutes, arguments.messages, arguments.window) = (0.07, 20.0, 1);
    }
    let invocation = Invocation::begin("E6", &arguments.common, "data/messaging", &arguments)?;
    let mut bench = Bench { arguments, invocation };
    bench.all()?;
    bench.invocation.end()
}

struct Bench {
    arguments: Arguments,
    invocation: Invocation,
}

/// What was seen at a time.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Look {
    seconds: f64,
    messages_bytes: u64,
    log_bytes: u64,
    /// Tombstones that reads of the messages passed: median and p99 since the start, where the server says.
    tombstones: Option<(f64, f64)>,
}

impl Bench {
    fn all(&mut self) -> Result<()> {
        // Small, so that a run of minutes has as many flushes as a run of hours has with the default.
        const SMALL: [&str; 2] = ["memtable_heap_space: 32MiB", "memtable_offheap_space: 32MiB"];
        let programs = Programs::build_server(self.arguments.common.tiny)?;
        let mode = Sync::Batch.name();
        if self.arguments.common.takes_part("halcyon") {
            let dir = self.invocation.fresh("halcyon")?;
            let data = dir.join("data");
            let server = Server::start(&programs, &Plan::halcyon(mode, dir).set_all(&SMALL))?;
            self.course(&server, &data)?;
        }
        if self.arguments.common.takes_part(Version::V5.name()) {
            let dir = self.invocation.scratch("cassandra");
            let data = dir.join("data/data");
            let plan = Plan::cassandra(Version::V5, mode, dir).sync(Sync::Batch).set_all(&SMALL);
            self.course(&Server::start(&programs, &plan)?, &data)?;
        }
        Ok(())
    }

    fn course(&mut self, server: &Server, data: &Path) -> Result<()> {
        let mut connection = Connection::open(server.port)?;
        for statement in statements_of_tables(self.arguments.window) {
            connection.execute(&statement)?;
        }
        let messages = Messages {
            per_second: self.arguments.messages,
            window_seconds: self.arguments.window,
            body: self.arguments.body,
            bytes: random_bytes(1, 1 << 20),
            random: Random(2),
            asked: 0,
        };
        let rate = self.arguments.messages * CLASSES.len() as f64;
        let seconds = 60.0 * self.arguments.minutes;
        let slice = Duration::from_secs_f64(seconds / SLICES as f64);
        let paced = Paced::start(server.port, rate, messages)?;
        let mut looks = Vec::new();
        for number in 1..=SLICES as u32 {
            sleep((slice * number).saturating_sub(paced.now()));
            looks.push(look(paced.now(), &data.join("bench"), &mut connection)?);
        }
        let asked = paced.stop()?;
        let failed = asked.samples.iter().filter(|s| s.outcome == Outcome::Failed).count();
        if failed > 0 || asked.unanswered > 0 {
            let why = format!(
                "{}: {failed} requests failed, {} without an answer",
                server.contender.name(),
                asked.unanswered
            );
            self.invocation.record.miss(why);
        }
        self.note(&server.contender, &asked, &looks, seconds);
        self.invocation.write()
    }

    fn note(&mut self, who: &Contender, asked: &Asked, looks: &[Look], seconds: f64) {
        for (class, name) in CLASSES.iter().enumerate() {
            let of_class = || asked.samples.iter().filter(move |s| usize::from(s.class) == class);
            let part = |from: f64, until: f64| {
                let due = |sample: &&Sample| {
                    let at = sample.due.as_secs_f64() / seconds;
                    from <= at && at < until
                };
                Latencies::of(of_class().filter(due).map(|sample| sample.nanos).collect())
            };
            let figures = Measurements::default()
                .latencies("", &part(0.0, 1.0))
                // The start is left out: a JVM compiles, caches are empty.
                .with("first_p99_us", part(0.1, 0.4).p99)
                .with("last_p99_us", part(0.7, 1.0).p99);
            let step = 1.0 / SLICES as f64;
            let slices = (0..SLICES).map(|n| part(n as f64 * step, (n + 1) as f64 * step).p99);
            let details = json!({
                "slice_seconds": seconds * step,
                "p99_us": slices.collect::<Vec<f64>>(),
            });
            self.invocation.record.add_with(name, who, figures, details);
        }
        let last = looks.last().copied().unwrap_or_default();
        let most = looks.iter().map(|look| look.messages_bytes).max().unwrap_or(0);
        let received = seconds * self.arguments.messages * self.arguments.body as f64;
        let figures = Measurements::default()
            .with("received_bytes", received)
            .with("messages_bytes_at_most", most as f64)
            .with("messages_bytes_at_the_end", last.messages_bytes as f64)
            .with("log_bytes_at_the_end", last.log_bytes as f64)
            .with("tombstones_per_read_p50", last.tombstones.map_or(f64::NAN, |(p50, _)| p50))
            .with("tombstones_per_read_p99", last.tombstones.map_or(f64::NAN, |(_, p99)| p99))
            .with("growth", growth(looks, seconds));
        let details = json!({ "seconds": seconds, "looks": looks });
        self.invocation.record.add_with(DISK, who, figures, details);
    }
}

/// Of the messages on disk: most in the last third by most in the middle one.
fn growth(looks: &[Look], seconds: f64) -> f64 {
    let most = |from: f64, until: f64| {
        let inside = looks.iter().filter(|look| {
            let at = look.seconds / seconds;
            from <= at && at < until
        });
        inside.map(|look| look.messages_bytes).max().unwrap_or(0) as f64
    };
    // The least that is there at all: an SSTable's small components.
    most(0.67, 1.1) / most(0.33, 0.67).max(65_536.0)
}

/// `keyspace` is the folder of the tables.
fn look(at: Duration, keyspace: &Path, connection: &mut Connection) -> Result<Look> {
    let bytes = |table: &str| -> u64 {
        let files = files_below(keyspace).into_iter();
        let of_table = files.filter(|path| {
            let folder = path.strip_prefix(keyspace).ok().and_then(|path| path.iter().next());
            folder.is_some_and(|folder| folder.to_string_lossy().starts_with(&format!("{table}-")))
        });
        of_table.filter_map(|path| path.metadata().ok()).map(|about| about.len()).sum()
    };
    let page = connection.rows(
        "SELECT p50th, p99th FROM system_views.tombstones_per_read WHERE keyspace_name = 'bench' AND table_name = 'messages'",
    )?;
    let number = |cell: Option<&Option<Vec<u8>>>| {
        let bytes = cell?.as_ref()?.first_chunk::<8>()?;
        Some(f64::from_be_bytes(*bytes))
    };
    let row = page.rows.first();
    let tombstones = row.and_then(|row| Some((number(row.first())?, number(row.get(1))?)));
    Ok(Look {
        seconds: at.as_secs_f64(),
        messages_bytes: bytes("messages"),
        log_bytes: bytes("log"),
        tombstones: tombstones.filter(|(p50, _)| p50.is_finite()),
    })
}
