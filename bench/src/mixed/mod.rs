//! `cargo x bench mixed`: rows are inserted while few others, the hot ones, are read; memtables are flushed, SSTables compacted.
//!
//! 1. One server at a time, in a cage, as its maker configures it. The hot rows are written and flushed, then read twice in their order.
//! 2. Reads and inserts come at fixed rates (open loops), for a while before anything is measured.
//! 3. A stall is a time in which a request was under way that took over 5 ms; what else was seen then says why (`stall.rs`).

mod page;
mod stall;

use std::thread::sleep;
use std::time::Duration;

use halcyon_model::units::arguments::size;
use halcyon_oracle::{Result, Version};
use page::{MIXED, STEP};
use serde::Serialize;
use serde_json::json;
use stall::{Evidence, Stall};

use crate::block_trace::BlockTrace;
use crate::cage::Cage;
use crate::gauge::Gauge;
use crate::invocation::{Experiment, Invocation, Listed};
use crate::latency::{Sample, about};
use crate::load::Table;
use crate::machine;
use crate::paced::Paced;
use crate::rows::{Inserts, Reads, make_hot};
use crate::server::{Plan, Server};
use crate::standstill::{Standstill, since};
use crate::timeline::slowest;

#[derive(clap::Args, Serialize)]
pub(crate) struct Arguments {
    /// Measured seconds
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Inserts a second, each of a new row
    #[arg(long, default_value_t = 10_000.0)]
    inserts: f64,
    /// Reads a second of hot rows
    #[arg(long, default_value_t = 2000.0)]
    reads: f64,
    /// Bytes of a row's value
    #[arg(long, default_value_t = 1024)]
    value: usize,
    #[arg(long, default_value_t = 100_000)]
    hot_rows: u64,
    /// Seconds of the same load before
    #[arg(long, default_value_t = 20.0)]
    warm_up: f64,
    /// Turns of each server
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Memory of the cgroup
    #[arg(long, default_value = "2400MiB", value_parser = size)]
    memory: u64,
    /// Of Cassandra
    #[arg(long, default_value = "1200m")]
    heap: String,
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "mixed",
        asks: "Does anything stand still while rows are inserted, flushed and compacted?",
        page: page::page,
    };
    const DATA: &'static str = "mixed";

    fn shrink(&mut self) {
        (self.seconds, self.warm_up, self.rounds) = (1.0, 0.5, 1);
        (self.inserts, self.reads, self.hot_rows) = (400.0, 100.0, 200);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        let memory = invocation.memory(self.memory);
        invocation.turns(self.rounds, |invocation, version| self.turn(invocation, memory, version))
    }
}

impl Arguments {
    /// None: of Halcyon.
    fn turn(
        &self,
        invocation: &mut Invocation,
        memory: Option<u64>,
        version: Option<Version>,
    ) -> Result<()> {
        let cage = memory.map(|bytes| Cage::make("mixed", bytes)).transpose()?;
        let dir = invocation.fresh(version.map_or("halcyon", |_| "cassandra"))?;
        let plan = Plan::as_it_comes(version, dir, &self.heap).cage(cage.as_ref());
        let server = Server::start(&invocation.programs, &plan)?;
        let hot = Table { name: "mixed", rows: self.hot_rows, blob: self.value };
        make_hot(&server, hot, self.reads)?;
        let trace = BlockTrace::under(&invocation.data).map_err(|error| {
            let why = format!("stalls for the device: no trace of it ({error})");
            invocation.record.miss(why);
        });
        let trace = trace.ok();
        let reads = Paced::start(server.port, self.reads, Reads::at_random(hot, 1))?;
        let inserts = Paced::start(server.port, self.inserts, Inserts::after(hot))?;
        sleep(Duration::from_secs_f64(self.warm_up));

        let still = Standstill::watch();
        let gauge = Gauge::begin(&server, &invocation.data, trace.as_ref())?;
        let (read_from, inserted_from) = (reads.now(), inserts.now());
        sleep(Duration::from_secs_f64(self.seconds));
        let (read_until, inserted_until) = (reads.now(), inserts.now());
        let (figures, mut details) = gauge.end(&server, trace.as_ref())?;
        let gaps = still.stop();
        let (starts, reads) = ((reads.start, inserts.start), reads.stop()?);
        let inserts = inserts.stop()?;
        let slow = trace.as_ref().map(BlockTrace::slow).transpose()?.unwrap_or_default();

        let evidence = |start| Evidence {
            cores: since(start, gaps.clone()),
            device: since(start, slow.requests.clone()),
            discards: since(start, slow.discards.clone()),
        };
        let of_reads: Vec<&Sample> = reads.between(read_from, read_until).collect();
        let of_inserts: Vec<&Sample> = inserts.between(inserted_from, inserted_until).collect();
        let stalls = |samples, start, from| Stall::all(samples, from, &evidence(start));
        let (read_stalls, insert_stalls) =
            (stalls(&of_reads, starts.0, read_from), stalls(&of_inserts, starts.1, inserted_from));
        let figures = figures
            .with("load", machine::load())
            .with("generator_ran_first", f64::from(u8::from(reads.first && inserts.first)))
            .with("unanswered", (reads.unanswered.len() + inserts.unanswered.len()) as f64);
        let figures = about(about(figures, "read_", &of_reads), "insert_", &of_inserts);
        let figures = stall::counted(figures, "read_", &read_stalls);
        let figures = stall::counted(figures, "insert_", &insert_stalls);
        details["reads"] = json!(slowest(&of_reads, read_from, self.seconds, STEP));
        details["inserts"] = json!(slowest(&of_inserts, inserted_from, self.seconds, STEP));
        details["stalls"] = json!({ "reads": read_stalls, "inserts": insert_stalls });
        invocation.record.add_with(MIXED, &server.contender, figures, details);
        server.stop()?;
        invocation.write()
    }
}
