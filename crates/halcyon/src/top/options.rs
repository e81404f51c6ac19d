//! The command line: the options of `nodetool` that name a node, and those of `top`.

use std::sync::LazyLock;
use std::time::Duration;

use crate::failure::{Failure, Result};
use crate::nodetool::{self, Choice, Destination, GLOBAL};

const OWN: [Choice; 3] = [
    Choice::value(&["-i", "--interval"], "seconds", "Time between two looks (1), at least 0.1"),
    Choice::flag(&["--once"], "Print all pages once, as text; so without a terminal"),
    Choice::flag(&["--help"], "Print this help"),
];

static CHOICES: LazyLock<Vec<Choice>> =
    LazyLock::new(|| GLOBAL.iter().chain(&OWN).copied().collect());

pub(super) struct Options {
    pub(super) destination: Destination,
    pub(super) interval: Duration,
    pub(super) once: bool,
}

pub(super) enum Asked {
    Watch(Options),
    Help(String),
}

pub(super) fn read(words: &[String]) -> Result<Asked> {
    let (mut given, rest) = nodetool::options(&CHOICES, words).map_err(of_nodetool)?;
    if let Some(word) = rest.first() {
        return Err(Failure::usage(format!("unknown argument '{word}'; see halcyon top --help")));
    }
    if given.contains_key("--help") {
        return Ok(Asked::Help(help()));
    }
    let once = given.remove("--once").is_some();
    let interval = match given.remove("-i") {
        None => Duration::from_secs(1),
        Some(text) => interval(&text)?,
    };
    let destination = nodetool::destination(&mut given).map_err(of_nodetool)?;
    Ok(Asked::Watch(Options { destination, interval, once }))
}

fn interval(text: &str) -> Result<Duration> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(Failure::usage(format!(
            "invalid interval '{text}'; expected seconds from 0.1 to 3600"
        ))),
    }
}

/// As this command tells it.
pub(super) fn of_nodetool(failure: nodetool::Failure) -> Failure {
    match failure {
        nodetool::Failure::Usage(what) => Failure::usage(what),
        nodetool::Failure::Unreachable(what) | nodetool::Failure::Failed(what) => {
            Failure::unreadable(what)
        }
        // Only verbs of nodetool fail so.
        nodetool::Failure::Told
        | nodetool::Failure::NotFound(_)
        | nodetool::Failure::AskedForHelp => Failure::OutputClosed,
    }
}

fn help() -> String {
    let mut out = String::from(
        "Watch a running node: latency of requests, and what causes it\n\nUsage: halcyon top [OPTIONS]\n\nOptions:\n",
    );
    for choice in CHOICES.iter() {
        let value = choice.value.map_or(String::new(), |title| format!(" <{title}>"));
        out += &format!("  {}{value}\n          {}\n", choice.names.join(", "), choice.about);
    }
    out += "\nKeys: q quits, ? explains the others. NO_COLOR is respected.\n\
        Exit codes: 0 done, 2 wrong command line, 3 no connection (with --once; else it is tried again).\n";
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(line: &str) -> Result<Asked> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        read(&words)
    }

    /// Proves that options of nodetool and of top stand in any order, in all spellings of nodetool.
    #[test]
    fn options_of_both() {
        let asked = read_line("--interval 2.5 -h db -p19 --once -u me -pw=secret");
        let Ok(Asked::Watch(options)) = asked else { panic!("it is refused") };
        assert!(options.once && options.interval == Duration::from_millis(2500));
        let Destination { host, port, username, password, .. } = options.destination;
        let given = [Some(host), Some(port), username, password].map(Option::unwrap_or_default);
        assert_eq!(given, ["db", "19", "me", "secret"]);
    }

    /// Proves that each error names the wrong argument and exits with code 2.
    #[test]
    fn wrong_lines_are_refused() {
        for (line, why) in [
            ("status", "unknown argument 'status'; see halcyon top --help"),
            ("--interval 0", "invalid interval '0'; expected seconds from 0.1 to 3600"),
            ("--interval NaN", "invalid interval 'NaN'; expected seconds from 0.1 to 3600"),
            ("-p x", "For input string: \"x\""),
            ("--truststore f", "--truststore and --keystore need --ssl"),
        ] {
            let Err(failure) = read_line(line) else { panic!("{line} is not refused") };
            assert_eq!(failure.to_string(), why);
            assert_eq!(failure.exit_code(), std::process::ExitCode::from(2));
        }
    }
}
