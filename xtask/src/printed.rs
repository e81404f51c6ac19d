//! What cargo and rustc print.

use std::process::Command;

use crate::{Result, repository};

/// What a program prints.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(program).args(arguments).current_dir(repository()).output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
}

/// The platform that rustc compiles for.
pub(crate) fn host() -> Result<String> {
    let printed = output("rustc", &["--print", "host-tuple"])?;
    Ok(String::from_utf8_lossy(&printed).trim().to_owned())
}
