//! `cargo x tidy`: the rules of CONTRIBUTING.md that a machine can check.

mod circles;
mod floors;
mod libraries;
mod metadata;
mod paths;
mod policy;
mod source;
mod sources;
mod unused;
mod words;

use crate::Result;

pub(crate) fn run() -> Result<()> {
    let mut findings = floors::check()?;
    findings.extend(libraries::check()?);
    findings.extend(paths::check()?);
    findings.extend(policy::check()?);
    findings.extend(sources::check()?);
    findings.extend(words::check()?);
    findings.sort();
    for finding in &findings {
        eprintln!("tidy: {finding}");
    }
    if findings.is_empty() { Ok(()) } else { Err(format!("{} findings", findings.len()).into()) }
}
