//! `cargo x soak`: what runs for long against the real process. No part of `cargo x test`.

use std::path::PathBuf;
use std::process::Command;

use halcyon_oracle::python;

use crate::{Result, bounded, call, needs, repository};

const MINUTES: u32 = 12 * 60;

#[derive(clap::Subcommand)]
pub(crate) enum Soak {
    /// Kills the server under load and checks what was acknowledged, in each `commitlog_sync` mode
    Crash(Crash),
}

#[derive(clap::Args)]
pub(crate) struct Crash {
    /// In each mode
    #[arg(long, default_value_t = 1000)]
    kills: u32,
    /// batch, group or periodic; may be repeated [default: all]
    #[arg(long)]
    sync: Vec<String>,
    /// As a failed run printed it
    #[arg(long)]
    seed: Option<u64>,
    /// Write the figures there too, as JSON
    #[arg(long)]
    report: Option<PathBuf>,
}

pub(crate) fn run(soak: &Soak) -> Result<()> {
    let Soak::Crash(crash) = soak;
    needs::meet()?;
    let build = ["build", "--release", "--package", "halcyon"];
    call(Command::new("cargo").args(build).current_dir(repository()))?;
    let mut command = bounded(MINUTES, python::interpreter()?);
    command.arg("soak_crash.py").current_dir(repository().join("e2e"));
    command.arg("--halcyon").arg(repository().join("target/release/halcyon"));
    command.arg("--kills").arg(crash.kills.to_string());
    for sync in &crash.sync {
        command.args(["--sync", sync]);
    }
    if let Some(seed) = crash.seed {
        command.arg("--seed").arg(seed.to_string());
    }
    if let Some(report) = &crash.report {
        command.arg("--report").arg(std::path::absolute(report)?);
    }
    call(&mut command)
}
