//! `cargo x bench E6`: a message store for a while: received, transformed, sent, deleted or expired, and a log that is searched.
//!
//! 1. One server at a time. Requests come at a fixed rate (`tables.rs`: the tables, and a message's life).
//! 2. Meanwhile, at every look: bytes of the two tables on disk, and tombstones per read as the server counts them.
//! 3. Does it stay as it was? The p99 of the last third by that of the first after the start, and the disk likewise.

mod look;
mod page;
mod tables;

use std::thread::sleep;
use std::time::Duration;

use halcyon_oracle::{Result, Version};
use look::{DISK, growth, look};
use serde::Serialize;
use serde_json::json;
use tables::{CLASSES, Messages, statements_of_tables};

use crate::connection;
use crate::invocation::{Experiment, Invocation, Listed};
use crate::latency::{Latencies, Outcome, Sample};
use crate::load::{Random, random_bytes};
use crate::paced::{Asked, Paced};
use crate::record::{Contender, Measurements, Record};
use crate::server::{Plan, Server};

/// Stretches that a run is looked at in.
const SLICES: usize = 60;
/// So that a run of minutes has as many flushes as a run of hours has with the default.
const SMALL: [&str; 2] = ["memtable_heap_space: 32MiB", "memtable_offheap_space: 32MiB"];
/// Of Cassandra.
const HEAP: &str = "2g";

#[derive(clap::Args, Serialize)]
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
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "E6",
        asks: "Does completed work of a message store compact away?",
        page: |record| page::page(record),
    };
    const DATA: &'static str = "messaging";

    fn shrink(&mut self) {
        (self.minutes, self.messages, self.window) = (0.07, 20.0, 1);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        invocation.turns(1, |invocation, version| self.course(invocation, version))
    }
}

impl Arguments {
    /// None: of Halcyon.
    fn course(&self, invocation: &mut Invocation, version: Option<Version>) -> Result<()> {
        let dir = invocation.fresh(version.map_or("halcyon", |_| "cassandra"))?;
        let data = dir.join(version.map_or("data", |_| "data/data"));
        let plan = Plan::as_it_comes(version, dir, HEAP).durable().set_all(&SMALL);
        let server = Server::start(&invocation.programs, &plan)?;
        let mut connection = connection::open(server.port)?;
        for statement in statements_of_tables(self.window) {
            connection.query(&statement)?;
        }
        let messages = Messages {
            per_second: self.messages,
            window_seconds: self.window,
            body: self.body,
            bytes: random_bytes(1, 1 << 20),
            random: Random(2),
            asked: 0,
        };
        let rate = self.messages * CLASSES.len() as f64;
        let seconds = 60.0 * self.minutes;
        let slice = Duration::from_secs_f64(seconds / SLICES as f64);
        let paced = Paced::start(server.port, rate, messages)?;
        let mut looks = Vec::new();
        for number in 1..=SLICES as u32 {
            sleep((slice * number).saturating_sub(paced.now()));
            looks.push(look(paced.now(), &data.join("bench"), &mut connection)?);
        }
        let asked = paced.stop()?;
        let (who, record) = (&server.contender, &mut invocation.record);
        let failed = asked.samples.iter().filter(|s| s.outcome == Outcome::Failed).count();
        if failed > 0 || !asked.unanswered.is_empty() {
            let (who, unanswered) = (who.name(), asked.unanswered.len());
            record.miss(format!("{who}: {failed} requests failed, {unanswered} without an answer"));
        }
        note_latencies(record, who, &asked, seconds);
        let last = looks.last().copied().unwrap_or_default();
        let most = looks.iter().map(|look| look.messages_bytes).max().unwrap_or(0);
        let figures = Measurements::default()
            .with("received_bytes", seconds * self.messages * self.body as f64)
            .with("messages_bytes_at_most", most as f64)
            .with("messages_bytes_at_the_end", last.messages_bytes as f64)
            .with("log_bytes_at_the_end", last.log_bytes as f64)
            .with("tombstones_per_read_p50", last.tombstones.map_or(f64::NAN, |(p50, _)| p50))
            .with("tombstones_per_read_p99", last.tombstones.map_or(f64::NAN, |(_, p99)| p99))
            .with("growth", growth(&looks, seconds));
        record.add_with(DISK, who, figures, json!({ "seconds": seconds, "looks": looks }));
        invocation.write()
    }
}

fn note_latencies(record: &mut Record, who: &Contender, asked: &Asked, seconds: f64) {
    for (class, name) in CLASSES.iter().enumerate() {
        let part = |from: f64, until: f64| {
            let is_part = |sample: &&Sample| {
                let at = sample.due.as_secs_f64() / seconds;
                usize::from(sample.class) == class && from <= at && at < until
            };
            Latencies::of_samples(asked.samples.iter().filter(is_part))
        };
        let figures = Measurements::default()
            .fields("", &part(0.0, 1.0))
            // The start is left out: a JVM compiles, caches are empty.
            .with("first_p99_us", part(0.1, 0.4).p99)
            .with("last_p99_us", part(0.7, 1.0).p99);
        let step = 1.0 / SLICES as f64;
        let slices = (0..SLICES).map(|n| part(n as f64 * step, (n + 1) as f64 * step).p99);
        let slices: Vec<f64> = slices.collect();
        let details = json!({ "slice_seconds": seconds * step, "p99_us": slices });
        record.add_with(name, who, figures, details);
    }
}
