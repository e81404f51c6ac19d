//! A server under test: Halcyon as an operator runs it, or a node of Cassandra. Frozen (SIGSTOP) while it is not its turn, stopped
//! when dropped.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::cage::Cage;
use super::connection::Connection;
use super::contender::Contender;
use super::jvm_node::{JvmNode, Plan};
use super::process;
use super::programs::Programs;
use crate::Result;

const READY_WITHIN: Duration = Duration::from_secs(180);
const STOP_WITHIN: Duration = Duration::from_secs(120);

pub(super) struct Server {
    pub(super) contender: Contender,
    pub(super) pid: u32,
    pub(super) port: u16,
    kind: Kind,
}

enum Kind {
    Halcyon(Halcyon),
    Cassandra(JvmNode),
}

struct Halcyon {
    child: Child,
    dir: PathBuf,
}

/// How to start Halcyon.
pub(super) struct HalcyonPlan<'a> {
    pub(super) mode: &'a str,
    /// May have data.
    pub(super) dir: &'a Path,
    /// Lines of its configuration.
    pub(super) settings: &'a [String],
    pub(super) cage: Option<&'a Cage>,
}

fn wait_for_answer(port: u16, mut still_there: impl FnMut() -> Result<()>) -> Result<f64> {
    let began = Instant::now();
    let ask = || Connection::open(port)?.rows("SELECT release_version FROM system.local");
    while let Err(error) = ask() {
        still_there()?;
        if began.elapsed() > READY_WITHIN {
            return Err(format!("not ready in {READY_WITHIN:?}: {error}").into());
        }
        sleep(Duration::from_millis(1));
    }
    Ok(began.elapsed().as_secs_f64())
}

impl Server {
    /// Also gives the seconds from the start of the process to its first answer.
    pub(super) fn halcyon(programs: &Programs, plan: &HalcyonPlan<'_>) -> Result<(Server, f64)> {
        fs::create_dir_all(plan.dir)?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let config = plan.dir.with_extension("yaml");
        let yaml: String = plan.settings.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&config, yaml)?;
        let log = plan.dir.with_extension("log");
        let mut command = programs.serve(plan.cage);
        command.arg("--data-dir").arg(plan.dir).arg("--config").arg(&config);
        command.args(["--port", &port.to_string()]).stdin(Stdio::null());
        let output = File::create(&log)?;
        let child = command.stdout(output.try_clone()?).stderr(output).spawn()?;
        let pid = child.id();
        let contender = Contender::new("halcyon", plan.mode);
        let mut halcyon = Halcyon { child, dir: plan.dir.to_owned() };
        let seconds = wait_for_answer(port, || match halcyon.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                let said = fs::read_to_string(&log).unwrap_or_default();
                Err(format!("halcyon serve ended ({status}):\n{said}").into())
            }
        })?;
        Ok((Server { contender, pid, port, kind: Kind::Halcyon(halcyon) }, seconds))
    }

    /// On an empty directory.
    pub(super) fn cassandra(mode: &str, plan: &Plan<'_>) -> Result<(Server, f64)> {
        let port = plan.port;
        let (node, seconds) = std::thread::scope(|scope| {
            let first_answer =
                scope.spawn(|| wait_for_answer(port, || Ok(())).map_err(|e| e.to_string()));
            let node = JvmNode::start(plan);
            (node, first_answer.join())
        });
        let contender = Contender::new(plan.version.name(), mode);
        let node = node.map_err(|e| format!("{} did not start: {e}", contender.name()))?;
        let seconds = seconds.map_err(|_| "the waiting thread panicked")??;
        Ok((Server { contender, pid: node.pid, port, kind: Kind::Cassandra(node) }, seconds))
    }

    pub(super) fn freeze(&self) -> Result<()> {
        process::signal("-STOP", self.pid)
    }

    pub(super) fn thaw(&self) -> Result<()> {
        process::signal("-CONT", self.pid)
    }

    pub(super) fn is_halcyon(&self) -> bool {
        self.contender.is_halcyon()
    }

    /// The node, of Cassandra.
    pub(super) fn node(&self) -> Option<&JvmNode> {
        match &self.kind {
            Kind::Cassandra(node) => Some(node),
            Kind::Halcyon(_) => None,
        }
    }

    /// Ends it in good order. Halcyon's directory stays and is the answer; Cassandra's goes with it.
    pub(super) fn stop(mut self) -> Result<Option<PathBuf>> {
        match &mut self.kind {
            Kind::Halcyon(halcyon) => {
                halcyon.stop()?;
                Ok(Some(halcyon.dir.clone()))
            }
            Kind::Cassandra(_) => Ok(None),
        }
    }
}

impl Halcyon {
    /// SIGTERM, which drains.
    fn stop(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        process::signal("-CONT", self.child.id())?;
        process::signal("-TERM", self.child.id())?;
        let asked = Instant::now();
        while asked.elapsed() < STOP_WITHIN {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("halcyon serve did not drain: {status}").into()),
                None => sleep(Duration::from_millis(5)),
            }
        }
        Err(format!("halcyon serve did not drain in {STOP_WITHIN:?}").into())
    }
}

impl Drop for Halcyon {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("bench: {error}");
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
