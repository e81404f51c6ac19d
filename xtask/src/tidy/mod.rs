//! `cargo x tidy`: the rules of CONTRIBUTING.md that a machine can check.

mod circles;
mod floors;
mod fuzz_lock;
mod glossary;
mod libraries;
mod metadata;
mod paths;
mod policy;
mod source;
mod sources;
mod texts;
mod unused;
mod words;

use crate::Result;

#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Write docs/texts.txt, the list of what the programs say
    #[arg(long)]
    accept: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut findings = floors::check()?;
    findings.extend(fuzz_lock::check()?);
    findings.extend(libraries::check()?);
    findings.extend(paths::check()?);
    findings.extend(policy::check()?);
    findings.extend(sources::check(arguments.accept)?);
    findings.extend(words::check()?);
    findings.sort();
    for finding in &findings {
        eprintln!("tidy: {finding}");
    }
    if findings.is_empty() { Ok(()) } else { Err(format!("{} findings", findings.len()).into()) }
}
