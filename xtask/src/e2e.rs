//! `cargo x e2e`: the binary against golden files and against Cassandra, by pytest.

use std::path::{Path, PathBuf};
use std::process::Command;

use halcyon_oracle::{self as oracle, Version, python};

use crate::{Result, bounded, call, needs, plugin, repository};

/// Of a run by hand. A test that hangs ends before: see e2e/pytest.ini.
const MINUTES: u32 = 85;
/// One more than cores are usual: a third of the time tests wait for a Cassandra to start or for a clock.
const PROCESSES: &str = "3";
/// Further failures say little that is new.
pub(crate) const MOST_FAILURES: u64 = 10;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only what needs no JVM: the golden files
    #[arg(long)]
    golden_only: bool,
    /// Passed to pytest, e.g. -k 'deletions and oa'
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pytest: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    needs::meet()?;
    call(Command::new("cargo").args(["build", "--workspace", "--bins"]).current_dir(repository()))?;
    call(&mut pytest(!arguments.golden_only, MINUTES, &arguments.pytest)?)
}

/// The pytest command; with `oracle`, both releases of Cassandra are fetched for it.
pub(crate) fn pytest(oracle: bool, minutes: u32, arguments: &[String]) -> Result<Command> {
    let mut command = bounded(minutes, python::interpreter()?);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pytest.ini"]);
    command.arg(format!("--maxfail={MOST_FAILURES}"));
    // The order in which tests are collected is that of `schedule.py`: what takes longest begins first.
    command.args(["-n", PROCESSES, "--dist", "loadgroup", "--no-loadscope-reorder"]);
    command.current_dir(repository().join("e2e"));
    // With '=', for pytest takes other existing paths to be tests.
    command.arg(option("--halcyon", &built("halcyon")));
    command.arg(option("--xtask", &own_program()?));
    if oracle {
        fetch_oracle()?;
        command.arg(option("--oracle", &std::path::absolute(oracle::home())?));
        let jar = built(plugin::NAME);
        plugin::build(&jar)?;
        command.arg(option("--plugin", &jar));
    }
    command.args(arguments);
    Ok(command)
}

/// Makes both releases of Cassandra ready.
pub(crate) fn fetch_oracle() -> std::result::Result<(), String> {
    Version::ALL
        .into_iter()
        .try_for_each(|version| oracle::open(version).map(drop))
        .map_err(|error| error.to_string())
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

/// This program's file. A build meanwhile may have replaced it; the system marks the path of a running program then.
pub(crate) fn own_program() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let text = own.to_string_lossy();
    Ok(text.strip_suffix(" (deleted)").map_or_else(|| own.clone(), PathBuf::from))
}

/// The dev build of a program of this workspace: it is in the same target folder as this program.
pub(crate) fn built(name: &str) -> PathBuf {
    let found = own_program().ok().and_then(|own| own.parent().map(|folder| folder.join(name)));
    found.unwrap_or_else(|| repository().join("target/debug").join(name))
}
