//! Halcyon's programs: `halcyon` itself, `measure`, which makes and looks at data, `commitlog_bench`, the log without a server.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::cage::Cage;
use crate::{Result, call, repository};

pub(super) struct Programs {
    measure: PathBuf,
    halcyon: PathBuf,
    commitlog_bench: PathBuf,
}

impl Programs {
    /// Builds them; `tiny` takes the dev build, which tests have made already.
    pub(super) fn build(tiny: bool) -> Result<Programs> {
        if tiny {
            return Programs::cargo(tiny, &["--workspace", "--bins", "--examples"]);
        }
        let packages = ["--package", "halcyon", "--package", "halcyon-compaction"];
        let what = ["--release", "--bin", "halcyon", "--example", "measure"];
        Programs::cargo(tiny, &[&packages[..], &what].concat())
    }

    /// Only `halcyon`.
    pub(super) fn build_server(tiny: bool) -> Result<Programs> {
        match tiny {
            true => Programs::cargo(tiny, &["--workspace", "--bins"]),
            false => Programs::cargo(tiny, &["--package", "halcyon", "--release"]),
        }
    }

    /// `halcyon` and the log's own benchmark.
    pub(super) fn build_with_log(tiny: bool) -> Result<Programs> {
        let what = ["--bin", "halcyon", "--example", "commitlog_bench"];
        let packages = ["--package", "halcyon", "--package", "halcyon-commitlog"];
        let how: &[&str] = if tiny { &[] } else { &["--release"] };
        Programs::cargo(tiny, &[&packages[..], &what, how].concat())
    }

    fn cargo(tiny: bool, what: &[&str]) -> Result<Programs> {
        let mut cargo = Command::new("cargo");
        call(cargo.args(["build", "--quiet"]).args(what).current_dir(repository()))?;
        let folder = target_folder().join(if tiny { "debug" } else { "release" });
        Ok(Programs {
            measure: folder.join("examples/measure"),
            halcyon: folder.join("halcyon"),
            commitlog_bench: folder.join("examples/commitlog_bench"),
        })
    }

    /// Runs a verb of `measure`; its answer.
    pub(super) fn measure<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Value> {
        answer_of(Command::new(&self.measure).args(arguments))
    }

    /// One measurement of the log alone.
    pub(super) fn commitlog_bench(&self, arguments: &[String]) -> Result<Value> {
        answer_of(Command::new(&self.commitlog_bench).args(arguments))
    }

    /// What `halcyon doctor` says of a data directory, whether there is something to cure or not.
    pub(super) fn doctor(&self, directory: &Path) -> Result<Value> {
        let mut doctor = Command::new(&self.halcyon);
        let output = doctor.args(["doctor", "--json", "--data-dir"]).arg(directory).output()?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(serde_json::from_slice(&output.stdout).map_err(|_| said())?)
    }

    /// The command that serves, in a cage if there is one; directory and port are to be added.
    pub(super) fn serve(&self, cage: Option<&Cage>) -> Command {
        let launcher = cage.map(Cage::launcher).unwrap_or_default();
        let mut words = launcher.iter().map(OsString::as_os_str).chain([self.halcyon.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command.arg("serve");
        command
    }

    /// The command that compacts; folders and flags are to be added.
    pub(super) fn compact(&self) -> Command {
        let mut command = Command::new(&self.halcyon);
        command.args(["compact", "--json", "--gc-grace", "10d"]);
        command
    }
}

/// What a program prints, as JSON.
fn answer_of(command: &mut Command) -> Result<Value> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Cargo's target folder.
fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}
