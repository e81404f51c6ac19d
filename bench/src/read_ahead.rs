//! The read-ahead of the device under a folder: set for a while, and put back whatever happens.
//!
//! It is put back when this value is dropped; should this program be killed before, by a shell that waits for its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use halcyon_oracle::Result;

use crate::machine::Device;

pub(crate) struct ReadAhead {
    path: PathBuf,
    before: String,
    guard: Child,
}

/// `$1` ends, then `$3` is what `$2` had before.
const GUARD: &str = "while kill -0 \"$1\" 2>/dev/null; do sleep 0.5; done; echo \"$3\" > \"$2\"";

impl ReadAhead {
    pub(crate) fn of(folder: &Path) -> Result<ReadAhead> {
        let path = Device::of(folder)?.queue()?.join("read_ahead_kb");
        let cannot = |e: std::io::Error| format!("{}: {e}: be root", path.display());
        let before = fs::read_to_string(&path).map_err(cannot)?.trim().to_owned();
        // What it is already: may it be written at all?
        fs::write(&path, &before).map_err(cannot)?;
        let mut guard = Command::new("setsid");
        guard.args(["sh", "-c", GUARD, "sh", &std::process::id().to_string()]);
        let guard = guard.arg(&path).arg(&before).stdin(Stdio::null()).spawn()?;
        Ok(ReadAhead { path, before, guard })
    }

    pub(crate) fn set(&self, kib: u64) -> Result<()> {
        fs::write(&self.path, kib.to_string())?;
        let now = fs::read_to_string(&self.path)?;
        match now.trim() == kib.to_string() {
            true => Ok(()),
            false => {
                Err(format!("{}: {kib} asked for, {} is", self.path.display(), now.trim()).into())
            }
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        match fs::write(&self.path, &self.before) {
            Ok(()) => {
                let _ = self.guard.kill();
                let _ = self.guard.wait();
            }
            // The guard tries again at the end.
            Err(error) => eprintln!("bench: {} was {}: {error}", self.path.display(), self.before),
        }
    }
}
