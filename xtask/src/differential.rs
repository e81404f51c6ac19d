//! `cargo x differential`: statements from a seed, sent to Cassandra and to Halcyon (e2e/differential). `cargo x test` runs some seeds.

use std::process::Command;

use halcyon_oracle::{self as oracle, Version, python};

use crate::{Result, bounded, call, e2e, needs, repository};

/// What a campaign may take beyond its minutes: starts, builds, the shrinking of what was found last.
const SLACK_MINUTES: u32 = 20;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(long, default_value_t = 30)]
    minutes: u32,
    /// Sessions at most: 1, with the seed of one that differed, repeats it
    #[arg(long)]
    sessions: Option<u32>,
    /// Of the first session; those behind it count up
    #[arg(long)]
    seed: Option<u64>,
    /// Print sessions that differ as they are, without looking for the fewest statements that do
    #[arg(long)]
    whole: bool,
    /// The native and the JMX port of a node that `cargo x oracle start 5.0.9` left running, instead of one of its own
    #[arg(long, num_args = 2, value_names = ["NATIVE", "JMX"])]
    running: Option<Vec<u16>>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    needs::meet()?;
    call(Command::new("cargo").args(["build", "--workspace", "--bins"]).current_dir(repository()))?;
    oracle::open(Version::V5)?;
    let mut command = bounded(arguments.minutes + SLACK_MINUTES, python::interpreter()?);
    command.args(["-m", "differential"]).current_dir(repository().join("e2e"));
    command.arg("--halcyon").arg(e2e::built("halcyon"));
    command.arg("--xtask").arg(e2e::own_program()?);
    command.arg("--oracle").arg(std::path::absolute(oracle::home())?);
    command.arg("--out").arg(repository().join("target/differential"));
    command.args(["--minutes", &arguments.minutes.to_string()]);
    if let Some(sessions) = arguments.sessions {
        command.args(["--sessions", &sessions.to_string()]);
    }
    if let Some(seed) = arguments.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    if let Some(ports) = &arguments.running {
        command.arg("--running").args(ports.iter().map(u16::to_string));
    }
    if arguments.whole {
        command.arg("--whole");
    }
    call(&mut command)
}
