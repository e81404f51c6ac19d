//! `cargo x fuzz`: each target of `fuzz/`, or one, for a while, by cargo-fuzz. A campaign of its own, no part of `cargo x test`.

use std::process::{Command, Stdio};

use crate::{Result, bounded, call, repository};

const VERSION: &str = "0.13.2";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A target of fuzz/fuzz_targets [default: all, one after the other]
    target: Option<String>,
    /// Minutes of each target
    #[arg(long, default_value_t = 2)]
    minutes: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let known = targets()?;
    let chosen = match &arguments.target {
        None => known,
        Some(target) if known.contains(target) => vec![target.clone()],
        Some(target) => {
            return Err(format!("{target} is no target; there are {}", known.join(", ")).into());
        }
    };
    install()?;
    let mut failed = Vec::new();
    for target in chosen {
        println!("== fuzz {target}, {} minutes", arguments.minutes);
        // Beyond its own time a target needs some to be built.
        let mut cargo = bounded(arguments.minutes + 30, "cargo");
        cargo.args(["fuzz", "run", &target, "--"]);
        cargo.arg(format!("-max_total_time={}", 60 * u64::from(arguments.minutes)));
        // Sanitizers are unstable options of rustc; with this variable a stable one takes them.
        cargo.env("RUSTC_BOOTSTRAP", "1").current_dir(repository());
        if call(&mut cargo).is_err() {
            failed.push(target);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

fn targets() -> Result<Vec<String>> {
    let entries = std::fs::read_dir(repository().join("fuzz/fuzz_targets"))?.flatten();
    let stem = |path: std::path::PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    let mut targets: Vec<String> = entries.filter_map(|entry| stem(entry.path())).collect();
    targets.sort();
    Ok(targets)
}

fn install() -> Result<()> {
    let mut version = Command::new("cargo");
    version.args(["fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if version.status()?.success() {
        return Ok(());
    }
    call(Command::new("cargo").args(["install", "--locked", "cargo-fuzz", "--version", VERSION]))
}
