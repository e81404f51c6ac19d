//! A node of Apache Cassandra: started once, frozen (SIGSTOP) while it is not its turn, stopped when dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use halcyon_oracle::{Format, Node, Oracle, StartOptions, Version};

use super::cage::Cage;
use super::process;
use crate::Result;

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
    /// Dropped, and with it stopped, before the folder goes.
    node: Option<Node>,
    pub(super) pid: u32,
    pub(super) native_port: u16,
    pub(super) jmx_port: u16,
    pub(super) dir: PathBuf,
    version: Version,
}

impl JvmNode {
    /// Tries several times: 6.0 gives up on its own log when the machine is busy.
    pub(super) fn start(plan: &Plan<'_>) -> Result<JvmNode> {
        const ATTEMPTS: u32 = 3;
        let mut started = start_once(plan);
        for _ in 1..ATTEMPTS {
            if started.is_ok() {
                break;
            }
            started = start_once(plan);
        }
        let node = started?;
        Ok(JvmNode {
            pid: node.pid().ok_or("no process")?,
            native_port: node.native_port(),
            jmx_port: node.jmx_port(),
            node: Some(node),
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

fn start_once(plan: &Plan<'_>) -> Result<Node> {
    empty(&plan.dir)?;
    let format = if plan.version == Version::V5 { Format::Oa } else { Format::Pa };
    let options = StartOptions {
        format,
        dir: Some(plan.dir.clone()),
        port: Some(plan.port),
        heap: plan.heap.to_owned(),
        settings: plan.settings.clone(),
        jvm: format!("{JVM} {}", plan.jvm),
        launcher: plan.cage.map(Cage::launcher).unwrap_or_default(),
    };
    Node::start(&Oracle::open(plan.version)?, &options)
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
        self.node = None;
        // Its files are as large as what was measured.
        let _ = fs::remove_dir_all(&self.dir);
    }
}
