//! Makes a release ready to run.
//!
//! A JVM spends a quarter of a tool's run, and a fifth of a node's start, on loading classes. So the classes that a node has loaded are
//! archived once (class data sharing, JEP 350), and later JVMs map them. The JVM wants a class path of jars for that, hence the desks' jar.

use std::fs::{self, File};
use std::path::PathBuf;

use crate::Result;
use crate::fetch::{archive, fetch, fetch_jars};
use crate::installed::Oracle;
use crate::node::{Node, StartOptions};
use crate::release::Version;

/// Opens a release, fetching it first if it is not here.
pub fn open(version: Version) -> Result<Oracle> {
    let oracle = Oracle::at(version)?;
    let _alone = alone(&oracle)?;
    // The other releases are started too seldom for it to pay.
    if !fetch(&oracle)? && Version::ALL.contains(&version) {
        archive_classes(&oracle)?;
        fetch(&oracle)?;
    }
    Ok(oracle)
}

/// The folder of a release's jars, for a compiler: they are fetched, but not made ready to run.
pub fn jars(version: Version) -> Result<PathBuf> {
    let oracle = Oracle::at(version)?;
    let _alone = alone(&oracle)?;
    fetch_jars(&oracle)?;
    Ok(oracle.root().join("lib"))
}

/// Tests that run side by side open a release at once; the first makes it ready.
fn alone(oracle: &Oracle) -> Result<File> {
    fs::create_dir_all(oracle.root())?;
    let lock = File::create(oracle.root().join("lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// Starts a node that writes its classes into the archive when it ends.
fn archive_classes(oracle: &Oracle) -> Result<()> {
    let archive = archive(oracle);
    let fresh = archive.with_extension("tmp");
    let folder = oracle.root().join("node-of-archive");
    let options = StartOptions {
        dir: Some(folder.clone()),
        jvm: format!("-XX:ArchiveClassesAtExit={}", fresh.display()),
        ..StartOptions::for_format(oracle.version().newest_format())
    };
    drop(Node::start(oracle, &options)?);
    fs::remove_dir_all(folder)?;
    Ok(fs::rename(fresh, archive)?)
}
