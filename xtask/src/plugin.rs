//! `cargo x plugin`: the jar that hands an Apache Cassandra's compactions to Halcyon (`plugin/cassandra/`).
//!
//! The SSTables of its self-test are those of `testdata`, so that no test of ours knows others.
//!
//! It is compiled against the release that the oracle has: Java 11 bytecode, no dependency but Cassandra's. The agent alone is Java 8's:
//! a JVM that cannot load its agent does not start, and older releases of Cassandra run on Java 8.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use halcyon_oracle::{self as oracle, Version, modified};

use crate::{Result, call, repository};

const RELEASE: Version = Version::V5;
const AGENT: &str = "halcyon/cassandra/Agent.java";
/// Behind `halcyon/selftest/` in the jar.
const SSTABLES: &str = "testdata/nb/deletions/sstables";
pub(crate) const NAME: &str = "halcyon-cassandra.jar";

/// Compiles the jar if a source is newer.
pub(crate) fn build(jar: &Path) -> Result<()> {
    let mut sources = Vec::new();
    find_sources(&repository().join("plugin/cassandra"), &mut sources)?;
    let newest = sources.iter().map(|source| modified(source)).max();
    if modified(jar) <= newest.unwrap_or_else(SystemTime::now) {
        compile(jar, &sources)?;
    }
    Ok(())
}

fn compile(jar: &Path, sources: &[PathBuf]) -> Result<()> {
    oracle::open(RELEASE)?;
    let tools = oracle::java_home()?.join("bin");
    let classes = jar.with_extension("classes");
    if classes.exists() {
        fs::remove_dir_all(&classes)?;
    }
    let library = std::path::absolute(oracle::home())?.join(RELEASE.name()).join("lib/*");
    let javac = |release: &str, class_path: &Path, sources: &[PathBuf]| {
        let mut javac = Command::new(tools.join("javac"));
        javac.args(["--release", release, "-nowarn", "-Werror"]);
        javac.arg("-Xlint:all,-classfile,-options,-path,-processing,-try");
        call(javac.arg("-cp").arg(class_path).arg("-d").arg(&classes).args(sources))
    };
    let (agent, others): (Vec<_>, Vec<_>) =
        sources.iter().cloned().partition(|source| source.ends_with(AGENT));
    javac("11", &library, &others)?;
    javac("8", &classes, &agent)?;
    let self_test = classes.join("halcyon/selftest");
    fs::create_dir_all(&self_test)?;
    for entry in fs::read_dir(repository().join(SSTABLES))? {
        let path = entry?.path();
        fs::copy(&path, self_test.join(path.file_name().unwrap_or_default()))?;
    }
    let manifest = jar.with_extension("manifest");
    fs::write(&manifest, "Premain-Class: halcyon.cassandra.Agent\n")?;
    // A JVM may run the old one.
    let fresh = jar.with_extension("fresh");
    let mut pack = Command::new(tools.join("jar"));
    pack.args(["--create", "--file"]).arg(&fresh).arg("--manifest").arg(&manifest);
    call(pack.arg("-C").arg(&classes).arg("."))?;
    Ok(fs::rename(fresh, jar)?)
}

fn find_sources(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find_sources(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "java") {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}
