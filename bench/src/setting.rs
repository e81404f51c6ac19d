//! A setting of the kernel's that a run changes for everybody on the machine: put back whatever happens.
//!
//! It is put back when this value is dropped; should this program be killed before, by a shell that waits for its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use halcyon_oracle::Result;

pub(crate) struct Setting {
    path: PathBuf,
    before: String,
    guard: Child,
}

/// `$1` ends, then `$3` is what `$2` had before.
const GUARD: &str = "while kill -0 \"$1\" 2>/dev/null; do sleep 0.5; done; echo \"$3\" > \"$2\"";

impl Setting {
    /// `before`: what puts it back.
    pub(crate) fn keep(path: PathBuf, before: String) -> Result<Setting> {
        // What it is already: may it be written at all?
        write(&path, &before)?;
        let mut guard = Command::new("setsid");
        guard.args(["sh", "-c", GUARD, "sh", &std::process::id().to_string()]);
        let guard = guard.arg(&path).arg(&before).stdin(Stdio::null()).spawn()?;
        Ok(Setting { path, before, guard })
    }

    /// To what is found when it is read again.
    pub(crate) fn set(&self, value: &str) -> Result<()> {
        write(&self.path, value)?;
        let now = fs::read_to_string(&self.path)?;
        if now.trim() == value {
            return Ok(());
        }
        Err(format!("{}: {value} asked for, {} is", self.path.display(), now.trim()).into())
    }
}

fn write(path: &Path, value: &str) -> Result<()> {
    Ok(fs::write(path, value).map_err(|e| format!("{}: {e}: be root", path.display()))?)
}

impl Drop for Setting {
    fn drop(&mut self) {
        match write(&self.path, &self.before) {
            Ok(()) => {
                let _ = self.guard.kill();
                let _ = self.guard.wait();
            }
            // The guard tries again at the end.
            Err(error) => eprintln!("bench: {} was {}: {error}", self.path.display(), self.before),
        }
    }
}
