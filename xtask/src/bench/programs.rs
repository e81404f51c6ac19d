//! Halcyon's programs: `halcyon` itself, and `measure`, which makes and looks at data.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::cage::Cage;
use crate::{Result, call, repository};

pub(super) struct Programs {
    measure: PathBuf,
    halcyon: PathBuf,
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

    fn cargo(tiny: bool, what: &[&str]) -> Result<Programs> {
        let mut cargo = Command::new("cargo");
        call(cargo.args(["build", "--quiet"]).args(what).current_dir(repository()))?;
        let folder = target_folder().join(if tiny { "debug" } else { "release" });
        Ok(Programs { measure: folder.join("examples/measure"), halcyon: folder.join("halcyon") })
    }

    /// Runs a verb of `measure`; its answer.
    pub(super) fn measure<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Value> {
        let output = Command::new(&self.measure).args(arguments).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// The command that serves, in a cage if there is one; directory and port are to be added.
    pub(super) fn serve(&self, cage: Option<&Cage>) -> Command {
        let mut command = cage.map_or_else(
            || Command::new(&self.halcyon),
            |cage| {
                let mut command = cage.enter();
                command.arg(&self.halcyon);
                command
            },
        );
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

/// Cargo's target folder.
fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}
