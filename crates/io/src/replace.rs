//! Replaces the content of another user's file, say a configuration, and keeps its owner.
//!
//! The content is written to a file beside it, which gets the same mode, owner and group, and then its name: a reader sees the old content
//! or the new one. A link stays a link.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::error::{Error, Operation, Result};
use crate::real;

/// What the name of the new file ends with, until it takes the other's name.
const BESIDE: &str = ".halcyon-tmp";

/// Fails without a change if the file is not there, or mode and owner cannot be kept.
pub fn replace(path: &Path, content: &[u8]) -> Result<()> {
    replaced(path, content)
        .map_err(|source| Error::from_io(source, path, Operation::Write, 0, content.len() as u64))
}

fn replaced(path: &Path, content: &[u8]) -> io::Result<()> {
    let target = fs::canonicalize(path)?;
    let beside = beside(&target);
    let written = write(&target, &beside, content).and_then(|()| fs::rename(&beside, &target));
    if written.is_err() {
        // The caller gets the reason, not whether this works.
        let _ = fs::remove_file(&beside);
    }
    written?;
    target.parent().map_or(Ok(()), real::sync_dir)
}

fn beside(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(BESIDE);
    name.into()
}

fn write(target: &Path, beside: &Path, content: &[u8]) -> io::Result<()> {
    let old = fs::metadata(target)?;
    // A directory may be writable where a file in it is not to be written.
    fs::OpenOptions::new().write(true).open(target)?;
    let mut options = fs::OpenOptions::new();
    let mut new = options.write(true).create(true).truncate(true).mode(0o600).open(beside)?;
    let own = new.metadata()?;
    if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
        fchown(&new, Some(old.uid()), Some(old.gid()))?;
    }
    new.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))?;
    new.write_all(content)?;
    new.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that mode and link stay, that nothing is left beside the file, and that a missing file is not made.
    #[test]
    fn a_replaced_file_stays_what_it_was() {
        let folder = std::env::temp_dir().join(format!("halcyon-replace-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, link) = (folder.join("file"), folder.join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        assert!(replace(&folder.join("missing"), b"new").unwrap_err().is_not_found());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        fs::remove_dir_all(&folder).unwrap();
    }
}
