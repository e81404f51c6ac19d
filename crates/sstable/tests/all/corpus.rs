//! The SSTables that Cassandra wrote: those in `testdata/`, or in the folder that `HALCYON_CORPUS` names.

use std::path::{Path, PathBuf};

use halcyon_sstable::Descriptor;
use halcyon_sstable::format::listing;

pub(crate) fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

pub(crate) fn corpus() -> PathBuf {
    std::env::var_os("HALCYON_CORPUS").map_or_else(testdata, PathBuf::from)
}

pub(crate) fn sstables_below(dir: &Path, found: &mut Vec<Descriptor>) {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).expect("readable folder").flatten() {
        if entry.path().is_dir() {
            sstables_below(&entry.path(), found);
        } else {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found.extend(listing::group(dir, names).sstables.into_iter().map(|s| s.descriptor));
}
