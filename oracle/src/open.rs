//! Makes a release ready to run.
//!
//! A JVM spends a quarter of a tool's run, and a fifth of a node's start, on loading classes. So the classes that a node has loaded are
//! archived once (class data sharing, JEP 350), and later JVMs map them. The JVM wants a class path of jars for that, hence the desks' jar.

use std::fs::{self, File};

use crate::Result;
use crate::fetch::{archive, fetch};
use crate::installed::Oracle;
use crate::node::{Node, StartOptions};
use crate::release::Version;

/// Opens a release, fetching it first if it is not here.
pub fn open(version: Version) -> Result<Oracle> {
    let oracle = Oracle::at(version)?;
    fs::create_dir_all(oracle.root())?;
    // Tests that run side by side open a release at once; the first makes it ready.
    let lock = File::create(oracle.root().join("lock"))?;
    lock.lock()?;
    // The other releases are started too seldom for it to pay.
    if !fetch(&oracle)? && Version::ALL.contains(&version) {
        archive_classes(&oracle)?;
        fetch(&oracle)?;
    }
    Ok(oracle)
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
