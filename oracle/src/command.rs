//! Commands that cannot hang, and whose failure is an error that names them.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::process::Command;

use crate::Result;

/// A command that is interrupted, so that it can clean up, when it takes too long.
pub fn bounded(minutes: u32, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    if std::io::stdin().is_terminal() {
        // Without it, Ctrl-C would not reach the command.
        command.arg("--foreground");
    }
    command.args(["--signal=INT", "--kill-after=120"]).arg(format!("{minutes}m")).arg(program);
    command
}

/// Runs a command; its failure is an error that names it.
pub fn call(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("cannot run {program}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} failed: {status}").into()) }
}
