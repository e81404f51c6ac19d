//! `cargo x soak`: what runs for long against the real process. No part of `cargo x test`.

use std::path::PathBuf;
use std::process::Command;

use halcyon_oracle::python;

use crate::{Result, bounded, call, e2e, needs, repository};

const MINUTES: u32 = 12 * 60;

#[derive(clap::Subcommand)]
pub(crate) enum Soak {
    /// Kills the server under load and checks what was acknowledged, in each `commitlog_sync` mode
    Crash(Crash),
    /// Random histories that Cassandra's own tasks and Halcyon compact inside of Cassandra, cell for cell
    Histories(Histories),
}

#[derive(clap::Args)]
pub(crate) struct Histories {
    #[arg(long, default_value_t = 200)]
    count: u32,
    /// As a failed run printed it
    #[arg(long)]
    seed: Option<u64>,
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
    needs::meet()?;
    match soak {
        Soak::Crash(crash) => self::crash(crash),
        Soak::Histories(histories) => self::histories(histories),
    }
}

/// A test of `cargo x test` with other numbers, and the release build.
fn histories(histories: &Histories) -> Result<()> {
    let mut arguments =
        vec!["test_histories.py".to_owned(), format!("--histories={}", histories.count)];
    arguments.extend(histories.seed.map(|seed| format!("--seed={seed}")));
    arguments.push(format!("--halcyon={}", release_build()?.display()));
    arguments.push("--timeout=0".to_owned());
    call(&mut e2e::pytest(true, MINUTES, &arguments)?)
}

fn release_build() -> Result<PathBuf> {
    let build = ["build", "--release", "--package", "halcyon"];
    call(Command::new("cargo").args(build).current_dir(repository()))?;
    Ok(repository().join("target/release/halcyon"))
}

fn crash(crash: &Crash) -> Result<()> {
    let program = release_build()?;
    let mut command = bounded(MINUTES, python::interpreter()?);
    command.arg("soak_crash.py").current_dir(repository().join("e2e"));
    command.arg("--halcyon").arg(program);
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
