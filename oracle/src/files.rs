//! Files that several processes make and read at once.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::Result;

/// Writes a file that a program which starts just now may be reading: it sees the old one or the new one, and none that has the same text.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    let fresh = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&fresh, text)?;
    Ok(fs::rename(fresh, path)?)
}

/// When a file was last written; the Unix epoch if it does not exist.
pub fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}
