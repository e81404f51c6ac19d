//! Where the time goes: one more run of Halcyon, under `perf`, that no table counts.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use halcyon_oracle::Result;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::record::Record;

/// Samples a second; no multiple of any timer's rate.
const FREQUENCY: &str = "997";
/// Symbols with a smaller share are left out, in per cent.
const LEAST: &str = "0.8";

/// A line of `perf report`: a share of all samples.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Share {
    pub(super) percent: f64,
    pub(super) thread: String,
    pub(super) symbol: String,
}

pub(super) fn is_available() -> bool {
    let mut perf = Command::new("perf");
    perf.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    perf.status().is_ok_and(|status| status.success())
}

/// Keeps samples in a record, under the name of what was done.
pub(super) fn keep(record: &mut Record, name: &str, shares: &[Share]) {
    record.beside.entry("profiles").or_insert_with(|| json!({}))[name] = json!(shares);
}

/// Runs a command under `perf`; its samples go into a file that is deleted afterwards.
pub(super) fn of(command: &Command, samples: &Path) -> Result<Vec<Share>> {
    let mut perf = record(samples);
    perf.arg("--").arg(command.get_program()).args(command.get_args());
    shares(&mut perf, samples)
}

/// Samples a running process for `seconds`.
pub(super) fn attached(pid: u32, seconds: f64, samples: &Path) -> Result<Vec<Share>> {
    let mut perf = record(samples);
    perf.args(["--pid", &pid.to_string(), "--", "sleep", &seconds.to_string()]);
    shares(&mut perf, samples)
}

fn record(samples: &Path) -> Command {
    let mut perf = Command::new("perf");
    perf.args(["record", "--event", "cpu-clock", "--freq", FREQUENCY, "--output"]).arg(samples);
    perf
}

fn shares(perf: &mut Command, samples: &Path) -> Result<Vec<Share>> {
    let recorded = perf.stdin(Stdio::null()).output()?;
    if !recorded.status.success() {
        return Err(String::from_utf8_lossy(&recorded.stderr).into_owned().into());
    }
    let mut report = Command::new("perf");
    report.args(["report", "--no-children", "--stdio", "--percent-limit", LEAST, "--input"]);
    report.arg(samples).args(["--fields", "overhead,comm,symbol", "--field-separator", "\t"]);
    let report = report.stdin(Stdio::null()).output()?;
    let _ = std::fs::remove_file(samples);
    Ok(parse(&String::from_utf8_lossy(&report.stdout)))
}

/// `12.34%<tab>thread<tab>[.] symbol`; everything else is a comment.
fn parse(report: &str) -> Vec<Share> {
    let lines = report.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut fields = line.split('\t').map(str::trim);
        let percent = fields.next()?.trim_end_matches('%').parse().ok()?;
        let thread = fields.next()?.to_owned();
        Some(Share { percent, thread, symbol: fields.next()?.to_owned() })
    });
    lines.collect()
}

impl Share {
    /// The largest, in Markdown.
    pub(super) fn table(shares: &[Share]) -> String {
        const SHOWN: usize = 14;
        let mut text = String::from("| % of samples | thread | |\n|---|---|---|\n");
        for Share { percent, thread, symbol } in shares.iter().take(SHOWN) {
            let symbol = symbol.replace("[.] ", "").replace("[k] ", "k ").replace('|', "\\|");
            let _ = writeln!(text, "| {percent:.1} | {thread} | `{symbol}` |");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_perf() {
        let report = "# Samples: 614\n#\n33.88%\tsstable-encoder\t[.] compress_internal\n 9.61%\thalcyon        \t[k] copy  \n\n# (Tip)\n";
        let share = |percent, thread: &str, symbol: &str| Share {
            percent,
            thread: thread.to_owned(),
            symbol: symbol.to_owned(),
        };
        let expected = [
            share(33.88, "sstable-encoder", "[.] compress_internal"),
            share(9.61, "halcyon", "[k] copy"),
        ];
        assert_eq!(parse(report), expected);
    }
}
