//! `cargo x test`: everything that must pass, in the order of what fails soonest.
//!
//! What the tests need is installed before; without it nothing is run.
//! Each step runs even if an earlier one failed; the last line adds up all tests, a step that has no tests
//! of its own (format, clippy, tidy) counting as one.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::{Result, bounded, needs, repository, tidy};

const STEP_MINUTES: u32 = 20;
/// Of a step of cargo's: the first one compiles everything, on two cores for a quarter of an hour.
const CARGO_MINUTES: u32 = 40;
const SIM_SEEDS: &str = "20";

#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    /// Each step with its seconds.
    steps: Vec<(String, f64)>,
}

pub(crate) fn run(oracle: bool) -> ExitCode {
    if let Err(error) = needs::meet() {
        eprintln!("cargo x test: {error}");
        println!("0 passed, 1 failed");
        return ExitCode::FAILURE;
    }
    let mut tally = Tally::default();
    // The network is waited for while the processors compile; what fails here fails again, and is counted, where it is needed.
    let fetched = oracle.then(|| std::thread::spawn(crate::e2e::fetch_oracle));
    tally.step("format", &mut cargo(&["fmt", "--all", "--check"]));
    tally.step(
        "clippy",
        &mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
    );
    tally.check("tidy", tidy::run());
    tally.step("cargo test", &mut cargo(&["test", "--workspace", "--no-fail-fast"]));
    tally.step("binary", &mut cargo(&["build", "--workspace", "--bins"]));
    let _ = fetched.map(JoinHandle::join);
    let alone = [
        "compaction",
        "node",
        "cql",
        "E1",
        "E3",
        "E4",
        "E5",
        "E6",
        "mixed",
        "steps",
        "chores",
        "cold",
    ];
    // Even when tiny, this one needs a Cassandra.
    for experiment in alone.into_iter().chain(oracle.then_some("ring")) {
        let mut tiny = bounded(STEP_MINUTES, crate::e2e::built("halcyon-bench"));
        tiny.args([experiment, "--tiny"]).current_dir(repository());
        tally.step(&format!("bench {experiment}"), &mut tiny);
    }
    let mut sim = bounded(STEP_MINUTES, crate::e2e::built("halcyon-sim"));
    sim.args(["--campaign", "--seeds", SIM_SEEDS]).current_dir(repository());
    tally.step("sim", &mut sim);
    match crate::e2e::pytest(oracle, &[]) {
        Ok(mut pytest) => tally.step("e2e", &mut pytest),
        Err(error) => tally.check("e2e", Err(error)),
    }
    tally.print_durations();
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = bounded(CARGO_MINUTES, "cargo");
    command.args(arguments).current_dir(repository());
    command
}

impl Tally {
    /// Runs a command, shows what it prints, and adds the tests that it reports.
    fn step(&mut self, name: &str, command: &mut Command) {
        println!("== {name}");
        let began = Instant::now();
        let before = self.passed + self.failed;
        let failed_before = self.failed;
        let done = self.run_and_count(command);
        let failure_counted = self.failed > failed_before;
        match done {
            Ok(true) if self.passed + self.failed > before => {}
            Ok(false) if failure_counted => {}
            Ok(true) => self.passed += 1,
            Ok(false) => self.failed += 1,
            Err(error) => self.check(name, Err(error)),
        }
        self.steps.push((name.to_owned(), began.elapsed().as_secs_f64()));
    }

    fn print_durations(&self) {
        println!("== seconds of each step");
        for (name, seconds) in &self.steps {
            println!("{seconds:7.1} {name}");
        }
        println!("{:7.1} in all", self.steps.iter().map(|(_, seconds)| seconds).sum::<f64>());
    }

    fn check(&mut self, name: &str, done: Result<()>) {
        match done {
            Ok(()) => self.passed += 1,
            Err(error) => {
                eprintln!("{name}: {error}");
                self.failed += 1;
            }
        }
    }

    fn run_and_count(&mut self, command: &mut Command) -> Result<bool> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        for line in BufReader::new(child.stdout.take().ok_or("no output")?).lines() {
            let line = line?;
            println!("{line}");
            self.count(&line);
        }
        Ok(child.wait()?.success())
    }

    /// `test result: ok. 3 passed; 0 failed; …` of cargo, `3 passed, 1 failed in 2.1s` of pytest.
    fn count(&mut self, line: &str) {
        let of_pytest =
            line.starts_with(|letter: char| letter.is_ascii_digit()) && line.contains(" in ");
        let summary = line.strip_prefix("test result:").or(of_pytest.then_some(line));
        let Some(summary) = summary else { return };
        let words: Vec<&str> = summary.split_whitespace().collect();
        for pair in words.windows(2) {
            let Ok(number) = pair[0].parse::<u64>() else { continue };
            match pair[1].trim_end_matches([',', ';']) {
                "passed" => self.passed += number,
                "failed" | "error" | "errors" => self.failed += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_counted() {
        let mut tally = Tally::default();
        tally.count(
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
        );
        tally.count("2 failed, 10 passed, 1 error in 3.21s");
        tally.count("I see 7 passed by");
        assert_eq!((tally.passed, tally.failed), (13, 4));
    }
}
