//! `cargo x plugin`: the jar that hands an Apache Cassandra's compactions to Halcyon (`plugin/cassandra/`).
//!
//! The SSTables of its self-test are those of `testdata`, so that no test of ours knows others.
//!
//! Java 11 bytecode, no dependency but Cassandra's. The agent alone is Java 8's: a JVM that cannot load its agent does not start, and
//! older releases of Cassandra run on Java 8.
//!
//! ```text
//! plugin/cassandra        common to all lines of releases: compiled with each, so that each has what it needs
//! plugin/lines/6.0        of one line: compiled against its release, and named in the jar's halcyon/lines/6.0
//! plugin/lines/since-5.0  of several lines, in the same way
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use halcyon_oracle::{self as oracle, Version, modified};

use crate::{Result, call, repository};

/// Each line of releases, the release that it is compiled against, and its folders in `plugin/lines`.
const LINES: [(&str, Version, &[&str]); 3] = [
    ("5.0", Version::V5, &["5.0", "since-5.0"]),
    ("6.0", Version::V6, &["6.0", "since-5.0"]),
    ("4.1", Version::V41, &["4.1"]),
];
const COMMON: &str = "plugin/cassandra";
const OF_LINES: &str = "plugin/lines";
const AGENT: &str = "halcyon/cassandra/Agent.java";
/// Behind `halcyon/selftest/` in the jar.
const SSTABLES: &str = "testdata/nb/deletions/sstables";
pub(crate) const NAME: &str = "halcyon-cassandra.jar";

/// Compiles the jar if a source is newer.
pub(crate) fn build(jar: &Path) -> Result<()> {
    let mut sources = Vec::new();
    for folder in [COMMON, OF_LINES] {
        find(&repository().join(folder), "java", &mut sources)?;
    }
    let newest = sources.iter().map(|source| modified(source)).max();
    if modified(jar) <= newest.unwrap_or_else(SystemTime::now) {
        compile(jar)?;
    }
    Ok(())
}

fn compile(jar: &Path) -> Result<()> {
    let classes = fresh(&jar.with_extension("classes"))?;
    let names = classes.join("halcyon/lines");
    let mut common = Vec::new();
    find(&repository().join(COMMON), "java", &mut common)?;
    let (agent, common): (Vec<_>, Vec<_>) =
        common.into_iter().partition(|source| source.ends_with(AGENT));
    fs::create_dir_all(&names)?;
    for (line, release, folders) in LINES {
        let of_line = fresh(&jar.with_extension(line))?;
        compile_line(release, folders, &common, &of_line)?;
        let own = add_line(folders, &of_line, &classes)?;
        fs::write(names.join(line), own.join("\n"))?;
        fs::remove_dir_all(of_line)?;
    }
    javac("8", &classes, &agent, &classes)?;
    add_self_test(&classes)?;
    pack(jar, &classes)
}

/// The common classes and those of the line.
fn compile_line(release: Version, folders: &[&str], common: &[PathBuf], to: &Path) -> Result<()> {
    let mut sources = common.to_vec();
    for folder in folders {
        find(&repository().join(OF_LINES).join(folder), "java", &mut sources)?;
    }
    javac("11", &oracle::jars(release)?.join("*"), &sources, to)
}

/// Copies what no line before had; the names of the classes that are not common.
fn add_line(folders: &[&str], compiled: &Path, classes: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    find(compiled, "class", &mut found)?;
    let mut own = Vec::new();
    for class in found {
        let name = class.strip_prefix(compiled)?;
        if folders.iter().any(|folder| is_of(folder, name)) {
            own.push(name.with_extension("").display().to_string());
        }
        let to = classes.join(name);
        if !to.exists() {
            fs::create_dir_all(to.parent().unwrap_or(classes))?;
            fs::copy(&class, to)?;
        }
    }
    Ok(own)
}

/// By the source that the class, or the class around it, was compiled from.
fn is_of(folder: &str, class: &Path) -> bool {
    let name = class.file_stem().unwrap_or_default().to_string_lossy();
    let outer = name.split('$').next().unwrap_or_default();
    let source = class.with_file_name(format!("{outer}.java"));
    repository().join(OF_LINES).join(folder).join(source).exists()
}

fn javac(release: &str, class_path: &Path, sources: &[PathBuf], to: &Path) -> Result<()> {
    let mut javac = Command::new(oracle::java_home()?.join("bin/javac"));
    javac.args(["--release", release, "-nowarn", "-Werror"]);
    javac.arg("-Xlint:all,-classfile,-options,-path,-processing,-try");
    call(javac.arg("-cp").arg(class_path).arg("-d").arg(to).args(sources))
}

fn add_self_test(classes: &Path) -> Result<()> {
    let self_test = classes.join("halcyon/selftest");
    fs::create_dir_all(&self_test)?;
    for entry in fs::read_dir(repository().join(SSTABLES))? {
        let path = entry?.path();
        fs::copy(&path, self_test.join(path.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

fn pack(jar: &Path, classes: &Path) -> Result<()> {
    let manifest = jar.with_extension("manifest");
    fs::write(&manifest, "Premain-Class: halcyon.cassandra.Agent\n")?;
    // A JVM may run the old one.
    let packed = jar.with_extension("fresh");
    let mut pack = Command::new(oracle::java_home()?.join("bin/jar"));
    pack.args(["--create", "--file"]).arg(&packed).arg("--manifest").arg(&manifest);
    call(pack.arg("-C").arg(classes).arg("."))?;
    Ok(fs::rename(packed, jar)?)
}

fn fresh(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    Ok(folder.to_owned())
}

fn find(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, extension, found)?;
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}
