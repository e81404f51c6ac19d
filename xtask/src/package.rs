//! `cargo x package`: the program as people copy it, without debug information, for every Linux with GLIBC 2.28 (2018) or later; and
//! `cargo x package plugin`: the same program and the jar for Cassandra, with the page that says how both are installed.
//!
//! 1. cargo-zigbuild links against the symbols of that GLIBC, whichever this machine has. It and zig, its C compiler, come from PyPI.
//! 2. The debug information goes into a file beside the program, and the file's name into the program: `gdb` and `perf` find it there.
//! 3. A program that needs a later GLIBC, or is larger than people expect, is an error.
//!
//! ```text
//! target/package/  halcyon-0.1.0-x86_64.tar.gz         halcyon  LICENSE  README.md
//!                  halcyon-0.1.0-x86_64-debug.tar.gz   halcyon.debug
//!                  SHA256SUMS
//! target/package-plugin/
//!                  halcyon-cassandra-0.1.0-x86_64.tar.gz   halcyon  halcyon-cassandra.jar  cassandra-plugin.md  LICENSE  SHA256SUMS
//!                  SHA256SUMS
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use halcyon_oracle::python;

use crate::printed::{host, output};
use crate::{Result, bounded, call, e2e, plugin, repository};

const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];
const GLIBC: [u32; 2] = [2, 28];
const BYTES_MAX: u64 = 30_000_000;
const MINUTES: u32 = 60;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What is packed
    #[arg(value_enum, default_value = "program")]
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// The program
    Program,
    /// The program and the jar for Apache Cassandra
    Plugin,
}

impl What {
    fn folder(self) -> &'static str {
        match self {
            What::Program => "target/package",
            What::Plugin => "target/package-plugin",
        }
    }

    fn name(self) -> &'static str {
        match self {
            What::Program => "halcyon",
            What::Plugin => "halcyon-cassandra",
        }
    }

    /// Of the repository.
    fn pages(self) -> [&'static str; 2] {
        match self {
            What::Program => ["LICENSE", "README.md"],
            What::Plugin => ["LICENSE", "docs/operate/cassandra-plugin.md"],
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let what = arguments.what;
    let target = host()?;
    let built = build(&target)?;
    let arch = target.split('-').next().unwrap_or_default();
    let name = format!("{}-{}-{arch}", what.name(), env!("CARGO_PKG_VERSION"));
    let folder = repository().join(what.folder());
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let content = folder.join(&name);
    fs::create_dir_all(&content)?;
    let (program, debug) = (content.join("halcyon"), content.join("halcyon.debug"));
    objcopy(&["--only-keep-debug"], &[&built, &debug])?;
    objcopy(
        &["--strip-all", &format!("--add-gnu-debuglink={}", debug.display())],
        &[&built, &program],
    )?;
    check(&program)?;
    let mut archives = vec![format!("{name}.tar.gz")];
    match what {
        What::Program => {
            let archive = format!("{name}-debug.tar.gz");
            tar(&folder, &archive, &[&format!("{name}/halcyon.debug")])?;
            archives.push(archive);
        }
        What::Plugin => {
            let jar = e2e::built(plugin::NAME);
            plugin::build(&jar)?;
            fs::copy(jar, content.join(plugin::NAME))?;
        }
    }
    fs::remove_file(debug)?;
    pack(&folder, &name, what)?;
    checksums(&folder, &archives)?;
    for archive in archives {
        let path = folder.join(archive);
        println!("{} ({} MB)", path.display(), fs::metadata(&path)?.len() / 1_000_000);
    }
    Ok(())
}

/// The archive of a folder, which goes; of the plug-in's files an operator checks each on each node.
fn pack(folder: &Path, name: &str, what: What) -> Result<()> {
    let content = folder.join(name);
    for page in what.pages().map(|page| repository().join(page)) {
        fs::copy(&page, content.join(page.file_name().unwrap_or_default()))?;
    }
    if what == What::Plugin {
        checksums(&content, &["halcyon".to_owned(), plugin::NAME.to_owned()])?;
    }
    tar(folder, &format!("{name}.tar.gz"), &[name])?;
    Ok(fs::remove_dir_all(content)?)
}

fn checksums(folder: &Path, files: &[String]) -> Result<()> {
    let sums = fs::File::create(folder.join("SHA256SUMS"))?;
    call(Command::new("sha256sum").args(files).current_dir(folder).stdout(sums))
}

/// Answers where the program is.
fn build(target: &str) -> Result<PathBuf> {
    let python = python::interpreter()?;
    call(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(TOOLS))?;
    let [major, minor] = GLIBC;
    let mut cargo = bounded(MINUTES, python.with_file_name("cargo-zigbuild"));
    cargo.args(["zigbuild", "--release", "--package", "halcyon"]);
    cargo.args(["--target", &format!("{target}.{major}.{minor}")]);
    cargo.env("CARGO_ZIGBUILD_PYTHON_PATH", &python);
    call(cargo.current_dir(repository()))?;
    Ok(repository().join("target").join(target).join("release/halcyon"))
}

fn objcopy(flags: &[&str], files: &[&Path]) -> Result<()> {
    call(Command::new("objcopy").args(flags).args(files))
}

fn tar(folder: &Path, archive: &str, what: &[&str]) -> Result<()> {
    let flags = ["--create", "--gzip", "--owner=0", "--group=0", "--file"];
    call(Command::new("tar").args(flags).arg(archive).args(what).current_dir(folder))
}

fn check(program: &Path) -> Result<()> {
    let bytes = fs::metadata(program)?.len();
    if bytes > BYTES_MAX {
        return Err(format!("the program has {bytes} bytes, more than {BYTES_MAX}").into());
    }
    let symbols = output("objdump", &["--dynamic-syms", &program.to_string_lossy()])?;
    match newest_glibc(&String::from_utf8_lossy(&symbols)) {
        Some(newest) if newest > GLIBC => Err(format!("the program needs GLIBC {newest:?}").into()),
        _ => Ok(()),
    }
}

/// The latest of the versions `GLIBC_2.17` that symbols have.
fn newest_glibc(symbols: &str) -> Option<[u32; 2]> {
    let version = |after: &str| {
        let digits =
            after.split(|letter: char| !letter.is_ascii_digit() && letter != '.').next()?;
        let mut numbers = digits.split('.').map(str::parse);
        Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
    };
    symbols.split("GLIBC_").skip(1).filter_map(version).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an operator can check what was unpacked, and has the page beside it.
    #[test]
    fn the_archive_of_the_plugin_checks_itself() {
        let folder = std::env::temp_dir().join(format!("halcyon-package-{}", std::process::id()));
        let content = folder.join("h");
        fs::create_dir_all(&content).unwrap();
        for file in ["halcyon", plugin::NAME] {
            fs::write(content.join(file), file).unwrap();
        }
        pack(&folder, "h", What::Plugin).unwrap();
        assert!(!content.exists());
        let tar = ["--extract", "--file", "h.tar.gz"];
        call(Command::new("tar").args(tar).current_dir(&folder)).unwrap();
        call(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(&content))
            .unwrap();
        assert!(content.join("cassandra-plugin.md").exists() && content.join("LICENSE").exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let symbols = "0000 DF *UND* (GLIBC_2.4) read\n0000 DF *UND* (GLIBC_2.28) fcntl64\n 0 (GLIBC_2.2.5) free";
        assert_eq!(newest_glibc(symbols), Some([2, 28]));
        assert_eq!(newest_glibc("none"), None);
    }
}
