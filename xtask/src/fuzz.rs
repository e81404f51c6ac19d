//! `cargo x fuzz`: each target of `fuzz/`, or some, for a while, by cargo-fuzz. A campaign of its own, no part of `cargo x test`.
//!
//! 1. All targets are built. Their programs are copied, so that the next build can run beside a campaign.
//! 2. One process after the other, or `--jobs` at once, runs for the time of each target. It begins with `fuzz/seeds/`, with what
//!    Cassandra wrote and answered (`fuzz/src/bin/seed.rs`), and with what earlier campaigns added to `fuzz/corpus/`.
//! 3. One line for each target says runs, time of the processor, coverage and what was found; inputs that failed are in `fuzz/artifacts/`.
//! 4. `--minimise` replaces the seeds by the smallest inputs of both folders that reach most.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::printed::host;
use crate::{Result, bounded, call, repository};

const VERSION: &str = "0.13.2";
/// Bytes of all seeds of one target, because the repository keeps them.
const SEEDS_MAX: u64 = 40 << 10;
const BUILD_MINUTES: u32 = 60;
/// A run that takes longer hangs; so does one that takes more memory, in MiB.
const LIMITS: [&str; 2] = ["-timeout=60", "-rss_limit_mb=4096"];
/// After as many failures a target is given up.
const FAILURES_MAX: usize = 8;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Targets of fuzz/fuzz_targets [default: all]
    targets: Vec<String>,
    /// Minutes of each target
    #[arg(long, default_value_t = 2, conflicts_with = "hours")]
    minutes: u32,
    /// Hours of each target
    #[arg(long)]
    hours: Option<f64>,
    /// Targets that run at once
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Only make the seeds small
    #[arg(long)]
    minimise: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let known = targets()?;
    let unknown: Vec<&str> =
        arguments.targets.iter().filter(|t| !known.contains(t)).map(String::as_str).collect();
    if !unknown.is_empty() {
        let (unknown, known) = (unknown.join(", "), known.join(", "));
        return Err(format!("no targets: {unknown}; there are {known}").into());
    }
    let chosen = if arguments.targets.is_empty() { known } else { arguments.targets.clone() };
    install()?;
    let programs = build(&chosen)?;
    if arguments.minimise {
        return programs.iter().try_for_each(|program| minimise(program));
    }
    let seconds = match arguments.hours {
        Some(hours) => (hours * 3600.0) as u64,
        None => 60 * u64::from(arguments.minutes),
    };
    campaign(&programs, seconds, arguments.jobs)
}

fn targets() -> Result<Vec<String>> {
    let entries = fs::read_dir(folder("fuzz_targets"))?.flatten();
    let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    let mut targets: Vec<String> = entries.filter_map(|entry| stem(entry.path())).collect();
    targets.sort();
    Ok(targets)
}

fn folder(name: &str) -> PathBuf {
    repository().join("fuzz").join(name)
}

fn install() -> Result<()> {
    let mut version = Command::new("cargo");
    version.args(["fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if version.status()?.success() {
        return Ok(());
    }
    call(Command::new("cargo").args(["install", "--locked", "cargo-fuzz", "--version", VERSION]))
}

/// A target and the copy of its program.
struct Program {
    target: String,
    path: PathBuf,
}

fn build(chosen: &[String]) -> Result<Vec<Program>> {
    let mut cargo = bounded(BUILD_MINUTES, "cargo");
    cargo.args(["fuzz", "build"]);
    // Sanitizers are unstable options of rustc; with this variable a stable one takes them.
    call(cargo.env("RUSTC_BOOTSTRAP", "1").current_dir(repository()))?;
    let built = folder("target").join(format!("{}/release", host()?));
    let copies = folder("target/campaign");
    fs::create_dir_all(&copies)?;
    call(Command::new(built.join("seed")).current_dir(folder("")))?;
    let mut programs = Vec::new();
    for target in chosen {
        let path = copies.join(target);
        // A running program cannot be written to, but its name can be given away.
        let fresh = copies.join(format!("{target}.new"));
        fs::copy(built.join(target), &fresh)?;
        fs::rename(&fresh, &path)?;
        programs.push(Program { target: target.clone(), path });
    }
    Ok(programs)
}

/// What one target did.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    runs: u64,
    cpu_seconds: f64,
    /// Edges of the control flow.
    coverage: u64,
    failures: Vec<String>,
}

fn campaign(programs: &[Program], seconds: u64, jobs: usize) -> Result<()> {
    let waiting = Mutex::new(programs.iter());
    let next = || waiting.lock().ok()?.next();
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(program) = next() {
                    let target = &program.target;
                    match fuzz(program, seconds) {
                        Ok(Tally { runs, cpu_seconds, coverage, failures }) => {
                            let found = failures.len();
                            println!(
                                "{target}: {runs} runs, {cpu_seconds:.0} s of the processor, {coverage} edges, {found} failures"
                            );
                            failures.iter().for_each(|failure| println!("  {failure}"));
                            if found == 0 {
                                continue;
                            }
                        }
                        Err(error) => println!("{target}: {error}"),
                    }
                    failed.lock().into_iter().for_each(|mut failed| failed.push(target.clone()));
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_default();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

/// Runs until the time is over; after a failure, again.
fn fuzz(program: &Program, seconds: u64) -> Result<Tally> {
    let Program { target, path } = program;
    let artifacts = folder("artifacts").join(target);
    fs::create_dir_all(&artifacts)?;
    let began = Instant::now();
    let mut tally = Tally::default();
    while let Some(left) = Duration::from_secs(seconds).checked_sub(began.elapsed())
        && left.as_secs() > 0
        && tally.failures.len() < FAILURES_MAX
    {
        let log = artifacts.join("log");
        let mut command = bounded((left.as_secs() / 60) as u32 + 30, "sh");
        // The shell says what the program took.
        command.args(["-c", "\"$@\"; status=$?; times >&2; exit $status", "sh"]);
        command.arg(path).args(folders(target)?).args(LIMITS).arg("-print_final_stats=1");
        command.arg(format!("-max_total_time={}", left.as_secs()));
        command.arg(format!("-artifact_prefix={}/", artifacts.display()));
        let words = folder("dictionaries").join(format!("{target}.dict"));
        if words.exists() {
            command.arg(format!("-dict={}", words.display()));
        }
        let output = fs::File::create(&log)?;
        let status = command
            .current_dir(&artifacts)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .status()?;
        let failure = tally.add(&String::from_utf8_lossy(&fs::read(&log)?));
        if !status.success() {
            let number = tally.failures.len();
            // The inputs before it, where the target keeps them.
            let history = artifacts.join(format!("{target}.history"));
            if history.exists() {
                fs::rename(&history, artifacts.join(format!("history-{number}")))?;
            }
            fs::rename(&log, artifacts.join(format!("log-{number}")))?;
            tally.failures.push(failure.unwrap_or_else(|| status.to_string()));
        }
    }
    Ok(tally)
}

/// The folder that grows, and the seeds if there are some.
fn folders(target: &str) -> Result<Vec<PathBuf>> {
    let corpus = folder("corpus").join(target);
    fs::create_dir_all(&corpus)?;
    let seeds = folder("seeds").join(target);
    Ok(if seeds.exists() { vec![corpus, seeds] } else { vec![corpus] })
}

impl Tally {
    /// Adds what one process printed, and returns its failure.
    fn add(&mut self, log: &str) -> Option<String> {
        let number = |text: &str| text.split_whitespace().next()?.parse::<u64>().ok();
        let after = |line: &str, what: &str| number(line.split_once(what)?.1);
        let mut runs = 0;
        let mut failure = None;
        for line in log.lines() {
            runs = runs.max(line.strip_prefix('#').and_then(number).unwrap_or(0));
            runs = after(line, "stat::number_of_executed_units:").unwrap_or(runs);
            self.coverage = self.coverage.max(after(line, " cov: ").unwrap_or(0));
            if line.contains("panicked at") || line.starts_with("==") && line.contains("ERROR:") {
                failure.get_or_insert_with(|| line.to_owned());
            }
        }
        self.runs += runs;
        let times = log.lines().last().unwrap_or_default();
        self.cpu_seconds += times.split(' ').filter_map(seconds).sum::<f64>();
        failure
    }
}

/// `1m2.5s`
fn seconds(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
}

fn minimise(program: &Program) -> Result<()> {
    let Program { target, path } = program;
    let merged = folder("target/campaign").join(format!("{target}.merged"));
    let _ = fs::remove_dir_all(&merged);
    fs::create_dir_all(&merged)?;
    let mut merge = bounded(BUILD_MINUTES, path);
    merge.arg("-merge=1").arg(&merged).args(folders(target)?).args(LIMITS);
    call(merge.current_dir(&merged).stderr(Stdio::null()))?;
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(&merged)?.flatten() {
        found.push((entry.metadata()?.len(), entry.path()));
    }
    found.sort();
    let seeds = folder("seeds").join(target);
    keep(&found, &seeds)?;
    Ok(())
}

/// The smallest inputs, as many as there is room for, become the seeds.
fn keep(found: &[(u64, PathBuf)], seeds: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(seeds);
    fs::create_dir_all(seeds)?;
    let mut room = SEEDS_MAX;
    for (length, path) in found.iter().filter(|(length, _)| *length > 0) {
        let Some(left) = room.checked_sub(*length) else { break };
        room = left;
        fs::copy(path, seeds.join(path.file_name().unwrap_or_default()))?;
    }
    println!("{}: {} bytes", seeds.display(), SEEDS_MAX - room);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that runs, coverage, time and the failure are found in what libFuzzer and the shell print.
    #[test]
    fn logs_are_understood() {
        let log = "#2\tINITED cov: 10 ft: 11 corp: 1/1b exec/s: 0 rss: 30Mb\n\
                   #512\tpulse  cov: 40 ft: 41 corp: 3/9b exec/s: 200 rss: 30Mb\n\
                   thread '<unnamed>' panicked at src/a.rs:1:2:\n\
                   ==7== ERROR: libFuzzer: deadly signal\n\
                   stat::number_of_executed_units: 700\n0m0.01s 0m0.00s\n1m2.50s 0m0.50s\n";
        let mut tally = Tally::default();
        let failure = tally.add(log);
        assert_eq!(failure.as_deref(), Some("thread '<unnamed>' panicked at src/a.rs:1:2:"));
        assert_eq!((tally.runs, tally.coverage), (700, 40));
        assert!((tally.cpu_seconds - 63.0).abs() < 0.001, "{}", tally.cpu_seconds);
    }
}
