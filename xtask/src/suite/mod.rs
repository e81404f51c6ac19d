//! `cargo x test`: everything that must pass.
//!
//! Two lanes run side by side, since tests with Cassandra wait for much of their time and compilers never do:
//!
//! ```text
//! cargo   format, tidy, binaries ─┬─ unit tests, a fifth of the experiments, simulation, clippy
//! e2e     Cassandra ──────────────┴─ pytest, in three processes
//! ```
//!
//! 1. What the tests need is installed before; without it nothing is run.
//! 2. A step that fails stops no other step, but a step stops after ten failed tests. The last line adds up all tests; a step without
//!    tests of its own counts as one.
//! 3. Each step may take the time that the run has left. `unit_tests` and the timeout in e2e/pytest.ini kill a test that hangs.

mod report;
mod unit_tests;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use report::{Count, Printer, Report, counted};

use crate::{Result, bounded, needs, repository, tidy};

/// Of a whole run, less than what CI gives it.
const RUN_MAX: Duration = Duration::from_secs(85 * 60);
const SIM_SEEDS: &str = "20";
const EXPERIMENTS: [&str; 11] = [
    "cql",
    "E1",
    "E6",
    "mixed",
    "steps",
    "chores",
    "access",
    "observers",
    "scale",
    "cold",
    WITH_CASSANDRA,
];
/// Even when tiny, this one needs a Cassandra.
const WITH_CASSANDRA: &str = "ring";

struct Suite {
    report: Report,
    began: Instant,
    oracle: bool,
    matrices: Matrices,
}

/// How much of a matrix a run covers; see e2e/rotation.py.
#[derive(Clone, Copy)]
pub(crate) enum Matrices {
    /// A fifth, chosen by the commit.
    OfALanding,
    Whole,
}

/// How many in a row run each case.
const LANDINGS: usize = 5;

pub(crate) fn run(oracle: bool, matrices: Matrices) -> ExitCode {
    let suite = Suite { report: Report::default(), began: Instant::now(), oracle, matrices };
    if let Err(error) = needs::meet() {
        eprintln!("cargo x test: {error}");
        println!("0 passed, 1 failed");
        return ExitCode::FAILURE;
    }
    let binaries = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| suite.lane_of_e2e(&binaries));
        suite.lane_of_cargo(&binaries);
    });
    if suite.report.print(suite.began) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Suite {
    fn lane_of_cargo(&self, binaries: &Barrier) {
        self.step("format", || self.cargo(&["fmt", "--all", "--check"]));
        self.report
            .step("tidy", |_| tidy::run(&tidy::Arguments::default()).map(|()| Count::default()));
        self.step("binaries", || self.cargo(&["build", "--workspace", "--bins", "--examples"]));
        binaries.wait();
        let mut programs = None;
        self.report.step("compile the unit tests", |_| {
            programs = Some(unit_tests::build(&mut self.patient_cargo())?);
            Ok(Count::default())
        });
        if let Some(programs) = programs {
            self.report.step("unit tests", |printer| programs.run(printer));
        }
        for experiment in self.experiments() {
            self.step(&format!("bench {experiment}"), || {
                let mut tiny = self.bounded(crate::e2e::built("halcyon-bench"));
                tiny.args([experiment, "--tiny"]);
                tiny
            });
        }
        self.step("sim", || {
            let mut sim = self.bounded(crate::e2e::built("halcyon-sim"));
            sim.args(["--campaign", "--seeds", SIM_SEEDS]);
            sim
        });
        self.step("clippy", || {
            let mut clippy = self.patient_cargo();
            clippy.args(["clippy", "--workspace", "--all-targets", "--quiet"]);
            clippy.args(["--", "-D", "warnings"]);
            clippy
        });
    }

    fn lane_of_e2e(&self, binaries: &Barrier) {
        // The network is waited for while the processors compile; what fails here fails again, and is counted, where it is needed.
        if self.oracle {
            let _ = crate::e2e::fetch_oracle();
        }
        binaries.wait();
        self.report.step("e2e", |printer| {
            let mut pytest = crate::e2e::pytest(self.oracle, self.minutes_left(), &[])?;
            if let Matrices::OfALanding = self.matrices {
                pytest.arg("--landing");
            }
            follow(&mut pytest, printer)
        });
    }

    fn experiments(&self) -> impl Iterator<Item = &'static str> {
        let number = fs::read_to_string(repository().join("e2e/landing.txt")).ok();
        let number = number.and_then(|number| number.trim().parse::<usize>().ok());
        let (skipped, step) = match (self.matrices, number) {
            (Matrices::OfALanding, Some(number)) => (number % LANDINGS, LANDINGS),
            // A landing whose number cannot be read runs them all.
            (Matrices::OfALanding, None) | (Matrices::Whole, _) => (0, 1),
        };
        let chosen = EXPERIMENTS.into_iter().skip(skipped).step_by(step);
        chosen.filter(|name| self.oracle || *name != WITH_CASSANDRA)
    }

    /// A step that is a command.
    fn step(&self, name: &str, command: impl FnOnce() -> Command) {
        self.report.step(name, |printer| follow(&mut command(), printer));
    }

    fn minutes_left(&self) -> u32 {
        let left = RUN_MAX.saturating_sub(self.began.elapsed());
        u32::try_from(left.as_secs() / 60).unwrap_or(0).max(1)
    }

    fn bounded(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = bounded(self.minutes_left(), program);
        command.current_dir(repository());
        command
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.bounded("cargo");
        command.args(arguments);
        command
    }

    /// What takes the time that the tests of the other lane leave. It ends before them anyway.
    fn patient_cargo(&self) -> Command {
        let mut command = self.bounded("nice");
        command.args(["-n", "5", "cargo"]);
        command
    }
}

/// Runs a command to its end, shows what it prints, and adds up the tests that it reports.
fn follow(command: &mut Command, printer: &Printer<'_>) -> Result<Count> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut count = Count::default();
    for line in BufReader::new(child.stdout.take().ok_or("no output")?).lines() {
        let line = line?;
        printer.line(&line);
        count += counted(&line).unwrap_or_default();
        if let Some((test, seconds)) = duration_of_pytest(&line) {
            printer.took(test, seconds);
        }
    }
    let status = child.wait()?;
    if status.success() || count.failed > 0 {
        return Ok(count);
    }
    printer.line(&status.to_string());
    Ok(Count { failed: 1, ..count })
}

/// `12.34s call     test_x.py::test_y`, as `--durations` prints it.
fn duration_of_pytest(line: &str) -> Option<(&str, f64)> {
    let (seconds, rest) = line.split_once("s ")?;
    let test = rest.strip_prefix("call ")?.trim();
    Some((test, seconds.trim().parse().ok()?))
}
