//! `cargo x bench observers`: whether reads wait for those who look at the node.
//!
//! ```text
//!   reads of hot rows, at a fixed rate  ─────────────────────────────────────────────────────────►
//!   warm-up │ at rest │ scrapes │ pages │ top │ nodetool │ all of them │ … and the same in turn
//! ```
//! 1. One node as it comes, with many tables. Its own metrics, page, `top` and `nodetool` are the observers (`observer.rs`).
//! 2. Each stretch lasts as long as the next, and every round has all of them, so that what the machine does meets each alike.

mod observer;
mod page;

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use halcyon_oracle::Result;
use observer::{Observer, Watched};
use page::AT_REST;
use serde::Serialize;

use crate::connection::{self, create_keyspace, create_tables};
use crate::invocation::{Experiment, Invocation, Listed};
use crate::latency::about;
use crate::load::Table;
use crate::paced::Paced;
use crate::process::Watch;
use crate::record::Measurements;
use crate::rows::{Reads, WARMS, make_hot};
use crate::server::{Plan, Server};

const HOT: &str = "hot";

#[derive(clap::Args, Serialize)]
pub(crate) struct Arguments {
    /// Reads a second of hot rows
    #[arg(long, default_value_t = 2000.0)]
    reads: f64,
    #[arg(long, default_value_t = 50_000)]
    hot_rows: u64,
    /// Bytes of a row's value
    #[arg(long, default_value_t = 1024)]
    value: usize,
    /// Tables beside the one that is read
    #[arg(long, default_value_t = 1000)]
    tables: u32,
    /// Pages that are open
    #[arg(long, default_value_t = 3)]
    pages: u32,
    /// Seconds of reads before anything is measured
    #[arg(long, default_value_t = 20.0)]
    warm_up: f64,
    /// Seconds of each stretch
    #[arg(long, default_value_t = 15.0)]
    seconds: f64,
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "observers",
        asks: "Do reads wait for those who look at the node?",
        page: page::page,
    };
    const DATA: &'static str = "observers";

    fn shrink(&mut self) {
        (self.reads, self.hot_rows, self.tables) = (100.0, 200, 5);
        (self.warm_up, self.seconds, self.rounds) = (0.2, 1.2, 1);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        let dir = invocation.fresh("halcyon")?;
        let metrics = connection::free_port()?;
        let plan = Plan::halcyon("as it comes", dir).set(format!("metrics_port: {metrics}"));
        let server = Server::start(&invocation.programs, &plan)?;
        let hot = Table { name: HOT, rows: self.hot_rows, blob: self.value };
        make_hot(&server, hot, WARMS)?;
        self.make_tables(server.port)?;
        let program = invocation.programs.halcyon().to_owned();
        let watched = Watched { program, port: server.port, metrics, pages: self.pages };
        let reads = Paced::start(server.port, self.reads, Reads::at_random(hot, 1))?;
        sleep(Duration::from_secs_f64(self.warm_up));
        let data = invocation.data.clone();
        let mut stretches = Vec::new();
        for _ in 0..self.rounds {
            stretches.push(self.stretch(&data, &server, &reads, (AT_REST, &[], &watched))?);
            for (heading, observers) in Observer::TOGETHER {
                let who = (heading, observers, &watched);
                stretches.push(self.stretch(&data, &server, &reads, who)?);
            }
        }
        let asked = reads.stop()?;
        for (heading, from, until, figures) in stretches {
            let samples: Vec<_> = asked.between(from, until).collect();
            let unanswered = asked.unanswered.iter().filter(|due| (from..until).contains(*due));
            let figures = figures.with("unanswered", unanswered.count() as f64);
            invocation.record.add(heading, &server.contender, about(figures, "read_", &samples));
        }
        server.stop()
    }
}

type Stretch = (&'static str, Duration, Duration, Measurements);

impl Arguments {
    fn make_tables(&self, port: u16) -> Result<()> {
        const MANY: &str = "many";
        let mut connection = connection::open(port)?;
        create_keyspace(&mut connection, MANY)?;
        create_tables(&mut connection, MANY, self.tables)
    }

    fn stretch(
        &self,
        data: &Path,
        server: &Server,
        reads: &Paced,
        (heading, observers, watched): (&'static str, &[Observer], &Watched),
    ) -> Result<Stretch> {
        let begun: Vec<_> = observers.iter().map(|of| of.begin(watched)).collect::<Result<_>>()?;
        // What an observer asks once, when it begins, is not what it costs.
        sleep(Duration::from_secs_f64(self.seconds / 10.0));
        let watch = Watch::process(server.pid, data)?;
        let from = reads.now();
        sleep(Duration::from_secs_f64(self.seconds));
        let until = reads.now();
        let cores = watch.stop()?.cpu_seconds / self.seconds;
        let figures = Measurements::default().with("server_cores", cores);
        let figures = begun.into_iter().try_fold(figures, |figures, of| of.end(figures))?;
        sleep(Duration::from_secs_f64(self.seconds / 10.0));
        Ok((heading, from, until, figures))
    }
}
