//! Golden tables, copies of them to damage, and the program to run on them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) fn halcyon(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_halcyon")).args(arguments).output().expect("runs")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn golden(version: &str, table: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(version).join(table)
}

pub(crate) fn golden_tables(version: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(golden(version, "")).expect("testdata").flatten();
    let mut tables: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_dir()).collect();
    tables.sort();
    tables
}

/// A temporary folder, deleted when dropped.
pub(crate) struct TempFolder(PathBuf);

impl TempFolder {
    pub(crate) fn empty() -> TempFolder {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("cli-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("created");
        TempFolder(path)
    }

    /// Copies the files of a folder, or of the first SSTables in it.
    pub(crate) fn copy_of(folder: &Path, sstables: Option<usize>) -> TempFolder {
        let copy = TempFolder::empty();
        let entries = std::fs::read_dir(folder).expect("golden").flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.sort();
        let prefix = |path: &Path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            name.rsplit_once('-').map(|(prefix, _)| prefix.to_owned())
        };
        let mut prefixes: Vec<_> = files.iter().map(|file| prefix(file)).collect();
        prefixes.dedup();
        prefixes.truncate(sstables.unwrap_or(usize::MAX));
        for file in files.iter().filter(|file| prefixes.contains(&prefix(file))) {
            let name = file.file_name().expect("a name");
            std::fs::copy(file, copy.0.join(name)).expect("copied");
        }
        copy
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }

    /// The file of a component, if it exists.
    pub(crate) fn component(&self, name: &str) -> Option<PathBuf> {
        let entries = std::fs::read_dir(&self.0).expect("readable").flatten();
        let wanted = format!("-{name}");
        entries.map(|e| e.path()).find(|path| path.to_string_lossy().ends_with(&wanted))
    }

    /// All files with their contents.
    pub(crate) fn listing(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = std::fs::read_dir(&self.0).expect("readable").flatten();
        let mut all: Vec<(PathBuf, Vec<u8>)> = entries
            .map(|entry| (entry.path(), std::fs::read(entry.path()).expect("readable")))
            .collect();
        all.sort();
        all
    }

    /// Calls `then` with one byte changed, for up to `most` bytes spread over the file.
    pub(crate) fn flip_each(&self, file: &Path, most: usize, then: impl Fn(usize)) {
        let sound = std::fs::read(file).expect("readable");
        let step = sound.len().div_ceil(most).max(1);
        for at in (0..sound.len()).step_by(step) {
            let mut damaged = sound.clone();
            damaged[at] ^= 0x15;
            std::fs::write(file, damaged).expect("written");
            then(at);
        }
        std::fs::write(file, sound).expect("written");
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
