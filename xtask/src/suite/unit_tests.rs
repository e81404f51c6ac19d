//! The test programs of all crates, as cargo built them, run one after the other.
//!
//! `cargo test` does not report how long a test takes, and waits for a hung test without a bound. libtest names a test that has run for a
//! minute; if the test is still running a minute later, its program is killed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::report::{Count, Printer, counted};
use crate::e2e::MOST_FAILURES;
use crate::{Result, repository};

/// After libtest has named it.
const HUNG_AFTER: Duration = Duration::from_secs(60);
const NAMED_BY_LIBTEST: &str = " has been running for over ";

/// A program with tests, and the folder of its package, where cargo would run it.
struct Program {
    path: PathBuf,
    package: PathBuf,
    name: String,
}

/// Builds the test programs.
pub(super) fn build(cargo: &mut Command) -> Result<Programs> {
    cargo.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let mut child = cargo.current_dir(repository()).stdout(Stdio::piped()).spawn()?;
    let mut programs = Vec::new();
    for line in BufReader::new(child.stdout.take().ok_or("no output")?).lines() {
        let message: Value = serde_json::from_str(&line?)?;
        programs.extend(program(&message));
    }
    if !child.wait()?.success() {
        return Err("the tests do not compile".into());
    }
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Programs(programs))
}

pub(super) struct Programs(Vec<Program>);

fn program(message: &Value) -> Option<Program> {
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let path = is_test.then(|| message["executable"].as_str())??;
    let package = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let (crate_name, target) =
        (package.file_name()?.to_str()?, message["target"]["name"].as_str()?);
    Some(Program { path: path.into(), name: format!("{crate_name}/{target}"), package })
}

impl Programs {
    pub(super) fn run(&self, printer: &Printer<'_>) -> Result<Count> {
        let mut all = Count::default();
        for program in &self.0 {
            if all.failed >= MOST_FAILURES {
                printer.line("too many have failed: the other programs are not run");
                break;
            }
            all += program.run(printer)?;
        }
        Ok(all)
    }
}

impl Program {
    fn run(&self, printer: &Printer<'_>) -> Result<Count> {
        let mut command = Command::new(&self.path);
        // libtest reports durations on nightly only, or with this variable.
        command.args(["-Zunstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "1");
        command.env("CARGO_MANIFEST_DIR", &self.package).current_dir(&self.package);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let lines = lines(&mut child)?;
        let count = self.follow(&lines, printer, &mut child);
        let status = child.wait()?;
        match count {
            Some(count) if status.success() || count.failed > 0 => Ok(count),
            _ => {
                printer.line(&format!("{}: {status}", self.name));
                Ok(Count { passed: 0, failed: 1 })
            }
        }
    }

    /// Until the program has no more to say. None if it said no result.
    fn follow(
        &self,
        lines: &Receiver<String>,
        printer: &Printer<'_>,
        child: &mut Child,
    ) -> Option<Count> {
        let mut result = None;
        let mut slow = BTreeMap::new();
        loop {
            match lines.recv_timeout(Duration::from_secs(1)) {
                Ok(line) => {
                    if let Some((test, _)) = line.split_once(NAMED_BY_LIBTEST) {
                        slow.insert(test.to_owned(), Instant::now());
                    }
                    if let Some((test, seconds)) = ended(&line) {
                        slow.remove(test);
                        printer.took(
                            &format!("{} {}", self.name, test.trim_start_matches("test ")),
                            seconds,
                        );
                    }
                    result = counted(&line).or(result);
                    if !is_dull(&line) {
                        printer.line(&line);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return result,
            }
            if let Some((test, _)) = slow.iter().find(|(_, named)| named.elapsed() > HUNG_AFTER) {
                printer.line(&format!("{} {test} hangs, and is killed", self.name));
                let _ = child.kill();
                return None;
            }
        }
    }
}

fn lines(child: &mut Child) -> Result<Receiver<String>> {
    let (sender, receiver) = channel();
    let output = BufReader::new(child.stdout.take().ok_or("no output")?);
    thread::spawn(move || {
        for line in output.lines().map_while(std::io::Result::ok) {
            let _ = sender.send(line);
        }
    });
    Ok(receiver)
}

/// `test a::b ... ok <0.012s>`: the words before the dots, and the seconds.
fn ended(line: &str) -> Option<(&str, f64)> {
    let (test, outcome) = line.split_once(" ... ")?;
    let seconds = outcome.split_once('<')?.1.strip_suffix("s>")?.parse().ok()?;
    test.starts_with("test ").then_some((test, seconds))
}

/// Lines about tests that passed: the summary counts them.
fn is_dull(line: &str) -> bool {
    line.is_empty()
        || line.starts_with("running ")
        || ended(line).is_some_and(|_| line.contains(" ... ok "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_libtest_are_understood() {
        assert_eq!(ended("test io::a ... ok <0.012s>"), Some(("test io::a", 0.012)));
        assert_eq!(
            ended("test b - should panic ... FAILED <61.500s>"),
            Some(("test b - should panic", 61.5))
        );
        assert_eq!(ended("test result: ok. 3 passed; 0 failed"), None);
        assert!(
            is_dull("test io::a ... ok <0.012s>") && !is_dull("test io::a ... FAILED <0.012s>")
        );
        let named = "test io::a has been running for over 60 seconds";
        assert_eq!(named.split_once(NAMED_BY_LIBTEST).map(|(test, _)| test), Some("test io::a"));
    }
}
