//! A node of Apache Cassandra: started once, frozen (SIGSTOP) while it is not its turn, stopped when dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::cage::Cage;
use super::process;
use crate::e2e::own_program;
use crate::oracle::{Oracle, Version};
use crate::{Result, repository};

/// The oracle's own JVM starts fast and runs slowly; this one is Cassandra's. Read by the JVM after its command line.
const JVM: &str =
    "-XX:TieredStopAtLevel=4 -XX:-UseSerialGC -XX:+UseG1GC -XX:+ParallelRefProcEnabled";

/// How to start one.
pub(super) struct Plan<'a> {
    pub(super) version: Version,
    /// Emptied first.
    pub(super) dir: PathBuf,
    /// Native port; storage and JMX take the two after it.
    pub(super) port: u16,
    /// Lines of cassandra.yaml.
    pub(super) settings: Vec<String>,
    /// Options of the JVM beside Cassandra's.
    pub(super) jvm: &'a str,
    pub(super) heap: &'a str,
    pub(super) cage: Option<&'a Cage>,
}

pub(super) struct JvmNode {
    pub(super) pid: u32,
    pub(super) native_port: u16,
    pub(super) jmx_port: u16,
    pub(super) dir: PathBuf,
    version: Version,
}

impl JvmNode {
    /// Several times, if need be: 6.0 gives up on its own log when the machine is busy.
    pub(super) fn start(plan: &Plan<'_>) -> Result<JvmNode> {
        const ATTEMPTS: u32 = 3;
        let mut about = Err("not tried".into());
        for _ in 0..ATTEMPTS {
            about = start_once(plan);
            if about.is_ok() {
                break;
            }
        }
        let about = about?;
        let number = |name: &str| about[name].as_u64().ok_or_else(|| format!("no {name}"));
        Ok(JvmNode {
            pid: u32::try_from(number("pid")?)?,
            native_port: u16::try_from(number("native_port")?)?,
            jmx_port: u16::try_from(number("jmx_port")?)?,
            dir: plan.dir.clone(),
            version: plan.version,
        })
    }

    pub(super) fn freeze(&self) -> Result<()> {
        process::signal("-STOP", self.pid)
    }

    pub(super) fn thaw(&self) -> Result<()> {
        process::signal("-CONT", self.pid)
    }

    pub(super) fn nodetool(&self, arguments: &[&str]) -> Result<Output> {
        let oracle = Oracle::open(self.version)?;
        let words: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let output = oracle.nodetool(self.jmx_port, &words).output()?;
        if output.status.success() {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("nodetool {}: {said}", arguments.join(" ")).into())
    }
}

/// Answers with what `cargo x oracle start` says: it is run as a program of its own so that its JVM, and no other,
/// has other options than those of the oracle.
fn start_once(plan: &Plan<'_>) -> Result<Value> {
    empty(&plan.dir)?;
    let format = if plan.version == Version::V5 { "oa" } else { "pa" };
    let program = own_program()?;
    let mut command = plan.cage.map_or_else(
        || Command::new(&program),
        |cage| {
            let mut command = cage.enter();
            command.arg(&program);
            command
        },
    );
    command.args(["oracle", "start", plan.version.name(), "--format", format]);
    command.args(["--port", &plan.port.to_string(), "--heap", plan.heap, "--dir"]).arg(&plan.dir);
    for line in &plan.settings {
        command.args(["--set", line]);
    }
    command.env("_JAVA_OPTIONS", format!("{JVM} {}", plan.jvm)).current_dir(repository());
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn empty(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    Ok(())
}

impl Drop for JvmNode {
    fn drop(&mut self) {
        let _ = self.thaw();
        if let Err(error) = crate::oracle::stop_recorded(Some(&self.dir)) {
            eprintln!("bench: Cassandra (pid {}) does not stop: {error}", self.pid);
        }
        // Its files are as large as what was measured.
        let _ = fs::remove_dir_all(&self.dir);
    }
}
