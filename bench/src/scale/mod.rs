//! `cargo x bench scale`: what grows with the number of SSTables, tables, connections, statements and shards.
//!
//! 1. `sstables.rs`: the same rows in few and in many SSTables, in a cage: start, memory, reads, flushes beside them.
//! 2. `tables.rs`: many tables: their creation, a flush of all, a start after a kill, the end of their keyspace.
//! 3. `clients.rs`: many connections, many prepared statements: memory, and reads beside them.
//! 4. `shards.rs`: more shards than cores, in turns with as many shards as cores.
//!
//! Each part stands by itself: `--parts` says which are run.

mod arguments;
mod clients;
mod page;
mod shards;
mod sstables;
mod tables;

pub(crate) use arguments::Arguments;
use arguments::Part;
use halcyon_oracle::Result;

use crate::invocation::{Experiment, Invocation, Listed};

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "scale",
        asks: "What grows with SSTables, tables, connections, statements and shards?",
        page: page::page,
    };
    const DATA: &'static str = "scale";
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[("halcyon-compaction", "measure")];

    fn shrink(&mut self) {
        (self.size, self.few, self.many, self.flushes) = (4 << 20, 2, 40, 2);
        (self.tables, self.connections, self.statements) = (10, 20, 50);
        (self.shards, self.rounds, self.rows) = (4, 1, 400);
        (self.reads, self.seconds) = (100.0, 0.3);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        for part in self.parts.clone() {
            match part {
                Part::Sstables => sstables::run(&self, invocation)?,
                Part::Tables => tables::run(&self, invocation)?,
                Part::Clients => clients::run(&self, invocation)?,
                Part::Shards => shards::run(&self, invocation)?,
            }
            invocation.write()?;
        }
        Ok(())
    }
}
