//! `cargo x apps`: others' software against Halcyon and against Cassandra. No part of `cargo x test`.

use std::path::PathBuf;
use std::process::Command;

use halcyon_oracle::{Version, python};

use crate::e2e::own_program;
use crate::{Result, bounded, call, needs, repository};

const MINUTES: u32 = 4 * 60;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// cqlengine, gocql, spring, temporal or vectors; may be repeated [default: all]
    suites: Vec<String>,
    /// halcyon or cassandra [default: both, compared]
    #[arg(long)]
    only: Option<String>,
    /// Write the verdict on each test there too, as JSON
    #[arg(long)]
    report: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    needs::meet()?;
    let build = ["build", "--release", "--package", "halcyon"];
    call(Command::new("cargo").args(build).current_dir(repository()))?;
    halcyon_oracle::open(Version::V5)?;
    let mut command = bounded(MINUTES, python::interpreter()?);
    command.args(["-m", "apps.run"]).current_dir(repository().join("e2e"));
    command.arg("--halcyon").arg(repository().join("target/release/halcyon"));
    command.arg("--xtask").arg(own_program()?);
    command.arg("--work").arg(repository().join("target/apps"));
    if let Some(only) = &arguments.only {
        command.args(["--only", only]);
    }
    if let Some(report) = &arguments.report {
        command.arg("--report").arg(std::path::absolute(report)?);
    }
    call(command.args(&arguments.suites))
}
