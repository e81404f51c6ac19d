//! `cargo x nightly`: what `cargo x test` runs, with whole matrices, and then the campaigns that are too long for it: about five hours.
//!
//! A campaign runs the checks of a test with more seeds, kills or minutes. What it finds can be repeated with the command and the seed
//! that it prints.

use std::process::ExitCode;
use std::time::Instant;

use crate::e2e::own_program;
use crate::printed::output;
use crate::{Result, bounded, repository, suite};

const MINUTES: u32 = 4 * 60;
const PAGES: &[&str] = &["bench", "report"];

/// A command of `cargo x`, and what of it a landing runs.
struct Campaign {
    arguments: &'static [&'static str],
    in_a_landing: &'static str,
}

const CAMPAIGNS: [Campaign; 12] = [
    Campaign {
        arguments: &["e2e", "--seeds=30", "--timeout=0", "-k", "differential or any_order"],
        in_a_landing: "2 to 6 seeds of each",
    },
    Campaign {
        arguments: &["differential", "--minutes", "45"],
        in_a_landing: "the sessions of a few fixed seeds",
    },
    Campaign {
        arguments: &["e2e", "--matrix", "--timeout=0", "-k", "a_patch"],
        in_a_landing: "the newest patch of Cassandra 5.0, and in short 6.0-alpha2",
    },
    Campaign {
        arguments: &["e2e", "--testssl", "--timeout=0", "-k", "testssl"],
        in_a_landing: "none of it",
    },
    Campaign { arguments: &["soak", "histories"], in_a_landing: "20 histories" },
    Campaign { arguments: &["sim", "--campaign", "--seeds", "500"], in_a_landing: "20 seeds" },
    Campaign {
        arguments: &["soak", "crash", "--kills", "300"],
        in_a_landing: "4 kills in each mode",
    },
    Campaign {
        arguments: &["fuzz", "--minutes", "5"],
        in_a_landing: "seeds and some thousand changes of them",
    },
    Campaign { arguments: PAGES, in_a_landing: "no page, all experiments tiny" },
    Campaign { arguments: &["package"], in_a_landing: "none of it" },
    Campaign { arguments: &["package", "plugin"], in_a_landing: "the archive of other files" },
    Campaign { arguments: &["apps"], in_a_landing: "none of it" },
];

pub(crate) fn run() -> ExitCode {
    let landing = suite::run(true, suite::Matrices::Whole);
    let mut failed = Vec::new();
    for Campaign { arguments, in_a_landing } in CAMPAIGNS {
        let command = format!("cargo x {}", arguments.join(" "));
        println!("== {command}");
        let began = Instant::now();
        let done = campaign(arguments);
        println!("{command}: {:.0} s", began.elapsed().as_secs_f64());
        if let Err(error) = done {
            println!("{command}: {error}");
            failed.push((command, in_a_landing));
        }
    }
    println!("== what a landing would not have seen");
    for (command, in_a_landing) in &failed {
        println!("{command}: failed; a landing runs {in_a_landing}");
    }
    if failed.is_empty() {
        println!("nothing");
        return landing;
    }
    ExitCode::FAILURE
}

fn campaign(arguments: &[&str]) -> Result<()> {
    let mut command = bounded(MINUTES, own_program()?);
    let status = command.args(arguments).current_dir(repository()).status()?;
    if !status.success() {
        return Err(status.to_string().into());
    }
    if arguments == PAGES { pages_are_as_committed() } else { Ok(()) }
}

/// Pages are made from records, so making them again changes nothing.
fn pages_are_as_committed() -> Result<()> {
    let changed = output("git", &["status", "--porcelain", "bench", "docs"])?;
    if changed.is_empty() {
        return Ok(());
    }
    Err(format!("other than committed:\n{}", String::from_utf8_lossy(&changed)).into())
}
