//! `cargo x package`: the program as people copy it, without debug information, for every Linux with GLIBC 2.28 (2018) or later.
//!
//! 1. cargo-zigbuild links against the symbols of that GLIBC, whichever this machine has. It and zig, its C compiler, come from PyPI.
//! 2. The debug information goes into a file beside the program, and the file's name into the program: `gdb` and `perf` find it there.
//! 3. A program that needs a later GLIBC, or is larger than people expect, is an error.
//!
//! ```text
//! target/package/  halcyon-0.1.0-x86_64.tar.gz         halcyon  LICENSE  README.md
//!                  halcyon-0.1.0-x86_64-debug.tar.gz   halcyon.debug
//!                  SHA256SUMS
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use halcyon_oracle::python;

use crate::printed::{host, output};
use crate::{Result, bounded, call, repository};

const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];
const GLIBC: [u32; 2] = [2, 28];
const BYTES_MAX: u64 = 30_000_000;
const MINUTES: u32 = 60;

pub(crate) fn run() -> Result<()> {
    let target = host()?;
    let built = build(&target)?;
    let arch = target.split('-').next().unwrap_or_default();
    let name = format!("halcyon-{}-{arch}", env!("CARGO_PKG_VERSION"));
    let folder = repository().join("target/package");
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
    for file in ["LICENSE", "README.md"] {
        fs::copy(repository().join(file), content.join(file))?;
    }
    let archives = [format!("{name}.tar.gz"), format!("{name}-debug.tar.gz")];
    tar(&folder, &archives[0], &["--exclude=*.debug", &name])?;
    tar(&folder, &archives[1], &[&format!("{name}/halcyon.debug")])?;
    fs::remove_dir_all(content)?;
    let sums = fs::File::create(folder.join("SHA256SUMS"))?;
    call(Command::new("sha256sum").args(&archives).current_dir(&folder).stdout(sums))?;
    for archive in archives {
        let path = folder.join(archive);
        println!("{} ({} MB)", path.display(), fs::metadata(&path)?.len() / 1_000_000);
    }
    Ok(())
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

    #[test]
    fn versions_are_compared_as_numbers() {
        let symbols = "0000 DF *UND* (GLIBC_2.4) read\n0000 DF *UND* (GLIBC_2.28) fcntl64\n 0 (GLIBC_2.2.5) free";
        assert_eq!(newest_glibc(symbols), Some([2, 28]));
        assert_eq!(newest_glibc("none"), None);
    }
}
