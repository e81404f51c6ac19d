//! The same requests by `latte`, which others measure with too. Its driver (scylla's) knows shards.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use halcyon_oracle::Result;
use serde_json::Value;

use crate::latency::Latencies;
use crate::load::{Completed, Load, Request, Until};

const WORKLOAD: &str = include_str!("latte.rn");
const VERSION: &str = "0.29.0";

pub(super) struct Latte {
    program: PathBuf,
    home: PathBuf,
}

impl Latte {
    /// The one on the path, or one that is built below `home`, once.
    pub(super) fn get(home: &Path, may_install: bool) -> Result<Latte> {
        let home = home.join("latte");
        std::fs::create_dir_all(&home)?;
        std::fs::write(home.join("workload.rn"), WORKLOAD)?;
        let own = home.join("bin/latte");
        let runs = |program: &Path| {
            let mut version = Command::new(program);
            version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
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

    /// Asks for a time, over so many connections.
    pub(super) fn run(&self, load: &Load, port: u16, connections: u32) -> Result<Completed> {
        let Until::Elapsed(time) = load.until else { return Err("latte asks for a time".into()) };
        let function = match load.request {
            Request::Write => "write",
            Request::Read => "read",
            Request::Empty => return Err("latte knows no empty request".into()),
        };
        let report = self.home.join("report.json");
        let mut latte = Command::new(&self.program);
        latte.args(["run", "--quiet", "--functions", function]);
        latte.args(["--duration", &format!("{}ms", time.as_millis())]);
        latte.args(["--concurrency", &load.in_flight.to_string()]);
        latte.args(["--connections", &connections.to_string()]);
        latte.args(["-P", &format!("table=\"{}\"", load.table.name)]);
        latte.args(["-P", &format!("rows={}", load.table.rows)]);
        latte.args(["-P", &format!("blob={}", load.table.blob)]);
        latte.arg("--output").arg(&report);
        latte.arg(self.home.join("workload.rn")).arg(format!("127.0.0.1:{port}"));
        // It leaves a log where it runs.
        let ran = latte.current_dir(&self.home).stdin(Stdio::null()).output()?;
        if !ran.status.success() {
            return Err(format!("latte: {}", String::from_utf8_lossy(&ran.stderr)).into());
        }
        figures(&serde_json::from_slice(&std::fs::read(&report)?)?)
    }
}

/// From a report of latte, whose times are milliseconds.
fn figures(report: &Value) -> Result<Completed> {
    let result = &report["result"];
    let number = |value: &Value| value.as_f64().ok_or("a report of another latte");
    let at = |percentile: f64| {
        let listed = report["percentiles"].as_array().into_iter().flatten();
        let index = listed.enumerate().find(|(_, p)| p.as_f64() == Some(percentile));
        let index = index.ok_or("a report of another latte")?.0;
        number(&result["request_latency"]["percentiles"][index]["value"]).map(|ms| 1000.0 * ms)
    };
    if number(&result["error_count"])? > 0.0 {
        return Err(format!("latte: {}", result["errors"]).into());
    }
    let operations = result["request_count"].as_u64().ok_or("a report of another latte")?;
    Ok(Completed {
        operations,
        seconds: number(&result["elapsed_time_s"])?,
        latencies: Latencies {
            count: operations,
            mean: 1000.0 * number(&result["request_latency"]["mean"]["value"])?,
            p50: at(50.0)?,
            p99: at(99.0)?,
            p999: at(99.9)?,
            max: at(100.0)?,
        },
        client_cpu_seconds: number(&result["cpu_time_s"])?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A report's times become microseconds, by the percentiles that it lists; one with errors is none.
    #[test]
    fn reports() {
        let percentiles: Vec<Value> = [0.2, 0.5, 0.9, 1.5].map(|ms| json!({"value": ms})).into();
        let mut report = json!({
            "percentiles": [50.0, 99.0, 99.9, 100.0],
            "result": {
                "request_count": 1000, "error_count": 0, "errors": [], "elapsed_time_s": 2.0, "cpu_time_s": 0.5,
                "request_latency": {"mean": {"value": 0.25}, "percentiles": percentiles},
            },
        });
        let read = figures(&report).expect("a report");
        assert_eq!((read.operations, read.seconds, read.client_cpu_seconds), (1000, 2.0, 0.5));
        let Latencies { mean, p50, p99, p999, max, .. } = read.latencies;
        assert_eq!((mean, p50, p99, p999, max), (250.0, 200.0, 500.0, 900.0, 1500.0));
        report["result"]["error_count"] = 1.into();
        assert!(figures(&report).is_err());
    }
}
