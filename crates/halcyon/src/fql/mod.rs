//! `halcyon fql`: what Cassandra's fqltool does, with full query logs of Halcyon.

mod dump;
mod logs;
mod replay;

use clap::Subcommand;
use halcyon_io::block_on;

use crate::console::Console;
use crate::failure::Result;

#[derive(Debug, Subcommand)]
pub(crate) enum FqlVerb {
    Dump(dump::DumpArgs),
    Replay(replay::ReplayArgs),
}

pub(crate) fn run(verb: &FqlVerb, console: Console) -> Result<()> {
    match verb {
        FqlVerb::Dump(args) => dump::run(args, console),
        FqlVerb::Replay(args) => block_on(replay::run(args, console)),
    }
}
