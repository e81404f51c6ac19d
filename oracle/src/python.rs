//! The Python of the tests: a virtual environment at `.venv` with pinned packages.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{Result, call, repository};

/// The interpreter of `.venv`, which is made, or brought to `e2e/requirements.txt`, if need be.
pub fn interpreter() -> Result<PathBuf> {
    let root = repository();
    let venv = root.join(".venv");
    let python = venv.join("bin/python");
    let wanted = fs::read_to_string(root.join("e2e/requirements.txt"))?;
    let installed = venv.join("requirements.installed");
    if fs::read_to_string(&installed).ok().as_ref() != Some(&wanted) {
        call(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let install = ["-m", "pip", "install", "--quiet", "--requirement"];
        call(Command::new(&python).args(install).arg(root.join("e2e/requirements.txt")))?;
        fs::write(installed, wanted)?;
    }
    Ok(python)
}
