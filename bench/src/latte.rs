//! `latte`, a load generator that others measure with too, as it comes from crates.io. Its driver (scylla's) knows shards.
//!
//! 1. It is found on the path, or built once.
//! 2. A run is a process of one thread that asks, so that it can be put before all others as our own open loop is. It says on standard
//!    error when the run begins.
//! 3. With a rate it is an open loop too, as long as less than its concurrency waits for answers; but a request is timed from when it is
//!    sent.
//! 4. The run ends after its time, or by SIGINT. Either way latte asks nothing more and writes a report of everything that was answered
//!    until then: figures of the whole run, and of each interval. So a run of unknown length is counted without a gap, and
//!    nothing is cut off or put together from quantiles afterwards. What is under way at SIGINT is not counted.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use halcyon_oracle::Result;
use serde_json::Value;

use crate::invocation::Invocation;
use crate::latency::{Completed, Latencies};
use crate::load::CONNECTIONS;
use crate::process::{put_first, signal};
use crate::server::Server;

const VERSION: &str = "0.29.0";
/// On standard error, when the run begins.
const BEGINS: &str = "Running benchmark";
/// The end of a run that no caller stops.
const WITHOUT_END: Duration = Duration::from_secs(3600);
const ANOTHER: &str = "a report of another latte";

pub(crate) struct Latte {
    program: PathBuf,
    home: PathBuf,
}

/// Its parameters.
pub(crate) struct Work<'a> {
    pub(crate) server: &'a Server,
    /// In its language, Rune.
    pub(crate) script: &'static str,
    pub(crate) function: &'static str,
    /// Literals of the script's language, by name.
    pub(crate) parameters: Vec<(&'static str, String)>,
    /// At most.
    pub(crate) in_flight: usize,
    /// Requests a second; none: as many as are answered.
    pub(crate) rate: Option<f64>,
    /// None: until it is stopped.
    pub(crate) time: Option<Duration>,
    /// Of the report's intervals.
    pub(crate) step: Duration,
}

impl Latte {
    /// None if it is not wanted, or, which the record says, cannot be had. A tiny run takes only the one on the path.
    pub(crate) fn wanted(is_wanted: bool, invocation: &mut Invocation) -> Option<Latte> {
        let got = is_wanted.then(|| Latte::get(&invocation.data, !invocation.tiny))?;
        got.map_err(|error| invocation.record.miss(format!("latte: {error}"))).ok()
    }

    /// The one on the path, or one that is built below `home`, once.
    fn get(home: &Path, may_install: bool) -> Result<Latte> {
        let home = home.join("latte");
        std::fs::create_dir_all(&home)?;
        let own = home.join("bin/latte");
        let runs = |program: &Path| {
            let mut version = Command::new(program);
            // It leaves a log where it runs.
            version.arg("--version").current_dir(&home);
            version.stdout(Stdio::null()).stderr(Stdio::null());
            version.status().is_ok_and(|status| status.success())
        };
        if let Some(found) = [Path::new("latte"), &own].into_iter().find(|program| runs(program)) {
            return Ok(Latte { program: found.to_owned(), home });
        }
        if !may_install {
            return Err("it is not installed: cargo install latte-cli".into());
        }
        eprintln!("bench: latte {VERSION} is being built, which takes minutes");
        let mut install = Command::new("cargo");
        install.args(["install", "--quiet", "--locked", "latte-cli", "--version", VERSION]);
        // With link-time optimisation it takes three times as long to build, and asks no faster.
        install.arg("--root").arg(&home).env("CARGO_PROFILE_RELEASE_LTO", "off");
        if !install.status()?.success() {
            return Err("cargo install latte-cli failed".into());
        }
        Ok(Latte { program: own, home })
    }

    pub(crate) fn start(&self, work: &Work<'_>) -> Result<Running> {
        let (script, report) = (self.home.join("workload.rn"), self.home.join("report.json"));
        std::fs::write(&script, work.script)?;
        let milliseconds = |time: Duration| format!("{}ms", time.as_millis());
        // One for each shard, and as many of Cassandra's, which has none.
        let connections = if work.server.is_halcyon() { 1 } else { CONNECTIONS };
        let mut latte = Command::new(&self.program);
        latte.args(["run", "--quiet", "--functions", work.function]);
        latte.args(["--duration", &milliseconds(work.time.unwrap_or(WITHOUT_END))]);
        latte.args(["--sampling", &milliseconds(work.step)]);
        latte.args(["--concurrency", &work.in_flight.to_string()]);
        latte.args(["--connections", &connections.to_string()]);
        latte.args(work.rate.into_iter().flat_map(|rate| ["--rate".to_owned(), rate.to_string()]));
        for (name, literal) in &work.parameters {
            latte.args(["-P", &format!("{name}={literal}")]);
        }
        latte.arg("--output").arg(&report).arg(script).arg(work.server.address().to_string());
        // It leaves a log where it runs.
        latte.current_dir(&self.home).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = latte.stderr(Stdio::piped()).spawn()?;
        let errors = BufReader::new(child.stderr.take().ok_or("no standard error")?);
        Ok(Running { child, errors, said: String::new(), report })
    }
}

/// Ended when dropped.
pub(crate) struct Running {
    child: Child,
    errors: BufReader<ChildStderr>,
    said: String,
    report: PathBuf,
}

impl Running {
    /// Puts it before all others; `false` where that is not allowed.
    pub(crate) fn put_first(&self) -> bool {
        put_first(self.child.id().to_string().as_ref())
    }

    /// Waits until the run begins.
    pub(crate) fn wait_for_begin(&mut self) -> Result<()> {
        loop {
            let before = self.said.len();
            if self.errors.read_line(&mut self.said)? == 0 {
                return Err(format!("latte: {}", self.said).into());
            }
            if self.said[before..].contains(BEGINS) {
                return Ok(());
            }
        }
    }

    /// Ends the run now.
    pub(crate) fn stop(self) -> Result<Report> {
        signal("-INT", self.child.id())?;
        self.report()
    }

    /// Waits for the end of the run.
    pub(crate) fn report(mut self) -> Result<Report> {
        self.errors.read_to_string(&mut self.said)?;
        if !self.child.wait()?.success() {
            return Err(format!("latte: {}", self.said).into());
        }
        Report::of(&serde_json::from_slice(&std::fs::read(&self.report)?)?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

pub(crate) struct Report {
    pub(crate) completed: Completed,
    /// That were read.
    pub(crate) rows: u64,
    pub(crate) intervals: Vec<Interval>,
}

/// Of a run, in microseconds.
#[derive(PartialEq, Debug)]
pub(crate) struct Interval {
    /// Its begin, in seconds of the run.
    pub(crate) at: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Report {
    /// Its times are milliseconds.
    fn of(report: &Value) -> Result<Report> {
        let result = &report["result"];
        let at = |latency: &Value, percentile: f64| {
            let listed = report["percentiles"].as_array().into_iter().flatten();
            let index = listed.enumerate().find(|(_, p)| p.as_f64() == Some(percentile));
            number(&latency["percentiles"][index.ok_or(ANOTHER)?.0]["value"]).map(|ms| 1000.0 * ms)
        };
        if number(&result["error_count"])? > 0.0 {
            return Err(format!("latte: {}", result["errors"]).into());
        }
        let (operations, latency) = (count(&result["request_count"])?, &result["request_latency"]);
        let completed = Completed {
            operations,
            seconds: number(&result["elapsed_time_s"])?,
            latencies: Latencies {
                count: operations,
                mean: 1000.0 * number(&latency["mean"]["value"])?,
                p50: at(latency, 50.0)?,
                p99: at(latency, 99.0)?,
                p999: at(latency, 99.9)?,
                max: at(latency, 100.0)?,
            },
            client_cpu_seconds: number(&result["cpu_time_s"])?,
        };
        let intervals = result["log"].as_array().ok_or(ANOTHER)?.iter().map(|interval| {
            let latency = &interval["request_latency"];
            let (p99, max) = (at(latency, 99.0)?, at(latency, 100.0)?);
            Ok(Interval { at: number(&interval["time_s"])?, p99, max })
        });
        let intervals = intervals.collect::<Result<_>>()?;
        Ok(Report { completed, rows: count(&result["row_count"])?, intervals })
    }
}

fn number(value: &Value) -> Result<f64> {
    Ok(value.as_f64().ok_or(ANOTHER)?)
}

fn count(value: &Value) -> Result<u64> {
    Ok(value.as_u64().ok_or(ANOTHER)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A report's times become microseconds, by the percentiles that it lists, of the run and of each interval; one with errors is refused.
    #[test]
    fn reports() {
        let latency = |percentiles: [f64; 4]| {
            let percentiles: Vec<Value> = percentiles.map(|ms| json!({"value": ms})).into();
            json!({"mean": {"value": 0.25}, "percentiles": percentiles})
        };
        let mut report = json!({
            "percentiles": [50.0, 99.0, 99.9, 100.0],
            "result": {
                "request_count": 1000, "row_count": 900, "error_count": 0, "errors": [],
                "elapsed_time_s": 2.0, "cpu_time_s": 0.5,
                "request_latency": latency([0.2, 0.5, 0.9, 1.5]),
                "log": [{"time_s": 0.5, "request_latency": latency([0.1, 0.25, 0.5, 1.0])}],
            },
        });
        let Report { completed, rows, intervals } = Report::of(&report).expect("a report");
        assert_eq!((completed.operations, rows), (1000, 900));
        assert_eq!((completed.seconds, completed.client_cpu_seconds), (2.0, 0.5));
        let Latencies { mean, p50, p99, p999, max, .. } = completed.latencies;
        assert_eq!((mean, p50, p99, p999, max), (250.0, 200.0, 500.0, 900.0, 1500.0));
        assert_eq!(intervals, [Interval { at: 0.5, p99: 250.0, max: 1000.0 }]);
        report["result"]["error_count"] = 1.into();
        assert!(Report::of(&report).is_err());
    }
}
