//! What the jar would find on a node, before anything is changed.
//!
//! It looks itself (`plugin/cassandra/halcyon/cassandra/Check.java`), with the node's class path: at what it uses of the release, member by
//! member, at its options, and at the service, which it starts and ends.

use std::path::Path;
use std::time::Duration;

use halcyon_io::child::{self, Program};
use halcyon_model::Cursor;

use super::home::Installed;
use crate::failure::{Failure, Result};

const CLASS: &str = "halcyon.cassandra.Check";
/// Half of it is how long a service may take to answer.
const ANSWER: Duration = Duration::from_secs(60);

/// `ok`, `warning` or `problem`, and a text.
pub(super) fn ask(
    installed: &Installed,
    jar: &Path,
    program: &Path,
) -> Result<Vec<(String, String)>> {
    let java = child::find_program("JAVA_HOME", "java").ok_or_else(|| {
        Failure::unreadable(
            "no java in JAVA_HOME or PATH: set JAVA_HOME to the one that Cassandra runs on",
        )
    })?;
    let class_path = format!("{}:{}", jar.display(), installed.class_path);
    let binary = format!("-Dhalcyon.binary={}", program.display());
    let flags = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", &class_path];
    let words = flags.into_iter().chain([binary.as_str(), CLASS, &installed.release]);
    let arguments: Vec<String> = words.map(str::to_owned).collect();
    let answer = Program { path: &java, arguments: &arguments, confined: None }
        .start()
        .and_then(|mut child| child.receive(child::deadline(ANSWER)));
    let failed = |what: &dyn std::fmt::Display| {
        Failure::unreadable(format!(
            "{} does not run {CLASS} of {} ({what}): it takes Java 11 or later, and the jar of this release",
            java.display(),
            jar.display()
        ))
    };
    found(&answer.map_err(|error| failed(&error))?)
        .ok_or_else(|| failed(&"its answer is not understood"))
}

fn found(answer: &[u8]) -> Option<Vec<(String, String)>> {
    let mut cursor = Cursor::new(answer);
    let mut text = || Some(String::from_utf8_lossy(cursor.ibytes().ok()?).into_owned());
    let mut found = Vec::new();
    while let Some(kind) = text() {
        found.push((kind, text()?));
    }
    Some(found)
}
