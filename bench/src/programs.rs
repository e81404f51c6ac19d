//! Halcyon's programs: `halcyon` itself, and `measure`, which makes and looks at data.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use halcyon_oracle::{Result, call, repository};
use serde_json::Value;

use super::cage::Cage;

pub(super) struct Programs {
    measure: PathBuf,
    halcyon: PathBuf,
}

impl Programs {
    /// Builds the server and the examples, by package; `tiny` takes the dev build, which tests have made already.
    pub(super) fn build(tiny: bool, examples: &[(&str, &str)]) -> Result<Programs> {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--quiet"]).current_dir(repository());
        if tiny {
            cargo.args(["--workspace", "--bins"]);
            cargo.args((!examples.is_empty()).then_some("--examples"));
        } else {
            cargo.args(["--release", "--package", "halcyon", "--bin", "halcyon"]);
            for (package, example) in examples {
                cargo.args(["--package", package, "--example", example]);
            }
        }
        call(&mut cargo)?;
        let folder = target_folder().join(if tiny { "debug" } else { "release" });
        Ok(Programs { measure: folder.join("examples/measure"), halcyon: folder.join("halcyon") })
    }

    pub(super) fn halcyon(&self) -> &Path {
        &self.halcyon
    }

    /// The jar that hands an Apache Cassandra's compactions to `halcyon`, built if it is not.
    pub(super) fn plugin(&self) -> Result<PathBuf> {
        let mut cargo = Command::new("cargo");
        let output = cargo.args(["x", "plugin"]).current_dir(repository()).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let printed = String::from_utf8(output.stdout)?;
        Ok(PathBuf::from(printed.lines().last().ok_or("cargo x plugin: no path")?))
    }

    /// Runs a verb of `measure`; its answer.
    pub(super) fn measure<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Value> {
        answer_of(Command::new(&self.measure).args(arguments))
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
