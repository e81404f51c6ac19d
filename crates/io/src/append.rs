//! Files that grow at their end: logs, written by threads that may wait.
//!
//! Calls block, so they belong on threads of their own, and the files are the real ones also where the disk is simulated: no answer of
//! the database depends on them. A failed append leaves no part of its bytes, if the file system can shorten the file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// A file that only grows. New ones are private (0600).
#[derive(Debug)]
pub struct AppendFile {
    file: File,
    path: PathBuf,
    length: u64,
}

impl AppendFile {
    /// A new file; `AlreadyExists` if the name is taken.
    pub fn create(path: &Path) -> io::Result<AppendFile> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        Ok(AppendFile { file, path: path.to_owned(), length: 0 })
    }

    /// The file of that name, or a new one.
    pub fn open(path: &Path) -> io::Result<AppendFile> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let length = file.metadata()?.len();
        Ok(AppendFile { file, path: path.to_owned(), length })
    }

    /// Appends all of the bytes, or none of them.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A part of a record would hide those after it.
                let _ = self.file.set_len(self.length);
                Err(error)
            }
        }
    }

    /// Bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A file of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub path: PathBuf,
    /// Bytes.
    pub length: u64,
    pub changed: SystemTime,
}

/// The files of a folder, without its folders; the oldest first.
pub fn files(folder: &Path) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        if data.is_file() {
            found.push(Found { path: entry.path(), length: data.len(), changed: data.modified()? });
        }
    }
    found.sort_by(|a, b| (a.changed, &a.path).cmp(&(b.changed, &b.path)));
    Ok(found)
}

/// Makes a folder and those that it is in; new ones are private (0700).
pub fn make_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

pub fn is_taken(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

pub fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

/// A file from its beginning on.
pub fn read(path: &Path) -> io::Result<impl Read + use<>> {
    Ok(BufReader::new(File::open(path)?))
}

/// Runs a program of the operator to its end, with this process's environment; what it said if it failed.
pub fn run(words: &[String]) -> io::Result<Result<(), String>> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
    let said = || {
        let text = String::from_utf8_lossy(&output.stderr);
        format!("{}: {}", output.status, text.trim())
    };
    Ok(if output.status.success() { Ok(()) } else { Err(said()) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("halcyon-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        make_folder(&folder).unwrap();
        folder
    }

    /// Proves that a file grows across openings, is private, and that a taken name is refused.
    #[test]
    fn a_file_grows_at_its_end() {
        let folder = folder("append");
        let path = folder.join("log");
        AppendFile::create(&path).unwrap().append(b"one").unwrap();
        assert_eq!(AppendFile::create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let mut file = AppendFile::open(&path).unwrap();
        file.append(b"two").unwrap();
        assert_eq!((file.length(), file.path()), (6, path.as_path()));
        assert_eq!(fs::read(&path).unwrap(), b"onetwo");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(files(&folder).unwrap().len(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    /// Proves that an append to a full disk fails with an error and does not panic.
    #[test]
    fn a_full_device_is_an_error() {
        let mut file = AppendFile::open(Path::new("/dev/full")).unwrap();
        assert!(file.append(b"x").is_err());
        assert_eq!(file.length(), 0);
    }

    /// Proves that a program's failure is an error with what it said, and that one that is not there is an error.
    #[test]
    fn programs_are_run() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(run(&words("true")).unwrap(), Ok(()));
        assert!(run(&words("ls /nowhere/at/all")).unwrap().unwrap_err().contains("nowhere"));
        assert!(run(&words("/nowhere/at/all")).is_err() && run(&[]).is_err());
    }
}
