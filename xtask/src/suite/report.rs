//! What the steps of a run did: how many tests passed, and how long steps and tests took.
//!
//! Two lanes report at once, so each line is printed whole, behind the name of its step.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::Result;

const SLOWEST: usize = 20;

#[derive(Default)]
pub(super) struct Report {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    count: Count,
    /// Each step with its seconds, in the order in which they ended.
    steps: Vec<(String, f64)>,
    tests: Vec<(String, f64)>,
    failures: Vec<String>,
}

/// Tests that passed and failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) passed: u64,
    pub(super) failed: u64,
}

impl Report {
    /// Runs a step, and adds the tests that it reports. A step without tests of its own counts as one.
    pub(super) fn step(&self, name: &str, run: impl FnOnce(&Printer<'_>) -> Result<Count>) {
        let printer = Printer { report: self, step: name };
        printer.line("begins");
        let began = Instant::now();
        let done = run(&printer);
        let seconds = began.elapsed().as_secs_f64();
        let count = match done {
            Ok(Count { passed: 0, failed: 0 }) => Count { passed: 1, failed: 0 },
            Ok(count) => count,
            Err(error) => {
                printer.line(&error.to_string());
                Count { passed: 0, failed: 1 }
            }
        };
        let outcome = if count.failed == 0 { "ok" } else { "FAILED" };
        printer.line(&format!("{outcome}, {seconds:.0} s"));
        self.with(|inner| {
            inner.count += count;
            inner.steps.push((name.to_owned(), seconds));
            if count.failed > 0 {
                inner.failures.push(format!("{name}: {} failed", count.failed));
            }
        });
    }

    /// Prints the seconds of steps and of the slowest tests; at the end how many passed and failed. Answers whether none failed.
    pub(super) fn print(&self, began: Instant) -> bool {
        self.with(|inner| {
            println!("== seconds of each step");
            for (name, seconds) in &inner.steps {
                println!("{seconds:7.1} {name}");
            }
            println!("{:7.1} in all; steps run side by side", began.elapsed().as_secs_f64());
            println!("== the slowest tests, in seconds");
            inner.tests.sort_by(|(_, one), (_, other)| other.total_cmp(one));
            for (name, seconds) in inner.tests.iter().take(SLOWEST) {
                println!("{seconds:7.1} {name}");
            }
            for failure in &inner.failures {
                println!("{failure}");
            }
            let Count { passed, failed } = inner.count;
            println!("{passed} passed, {failed} failed");
            failed == 0
        })
    }

    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Prints the lines of one step.
pub(super) struct Printer<'a> {
    report: &'a Report,
    step: &'a str,
}

impl Printer<'_> {
    pub(super) fn line(&self, line: &str) {
        println!("{}: {line}", self.step);
    }

    /// Notes how long a test took.
    pub(super) fn took(&self, test: &str, seconds: f64) {
        self.report.with(|inner| inner.tests.push((format!("{}: {test}", self.step), seconds)));
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// What a summary says: `test result: ok. 3 passed; 0 failed; …` of cargo, `3 passed, 1 failed in 2.1s` of pytest.
pub(super) fn counted(line: &str) -> Option<Count> {
    let line = line.trim_matches(['=', ' ']);
    let of_pytest =
        line.starts_with(|letter: char| letter.is_ascii_digit()) && line.contains(" in ");
    let summary = line.strip_prefix("test result:").or(of_pytest.then_some(line))?;
    let words: Vec<&str> = summary.split_whitespace().collect();
    let mut count = Count::default();
    for pair in words.windows(2) {
        let Ok(number) = pair[0].parse::<u64>() else { continue };
        match pair[1].trim_end_matches([',', ';']) {
            "passed" => count.passed += number,
            "failed" | "error" | "errors" => count.failed += number,
            _ => {}
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_counted() {
        let cargo =
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(counted(cargo), Some(Count { passed: 3, failed: 1 }));
        let pytest = "2 failed, 10 passed, 1 error in 3.21s";
        assert_eq!(counted(pytest), Some(Count { passed: 10, failed: 3 }));
        assert_eq!(counted("== 10 passed in 3.21s =="), Some(Count { passed: 10, failed: 0 }));
        assert_eq!(counted("I see 7 passed by"), None);
    }
}
