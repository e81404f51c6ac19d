//! The servers: Halcyon as an operator runs it, Cassandra as a node of its own; each frozen while it is not its turn.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Result;
use crate::bench::connection::Connection;
use crate::bench::contender::Contender;
use crate::bench::jvm_node::{JvmNode, Plan};
use crate::bench::process::{self, resident};
use crate::bench::programs::Programs;
use crate::oracle::Version;

const READY_WITHIN: Duration = Duration::from_secs(180);
const STOP_WITHIN: Duration = Duration::from_secs(120);
const FIRST_PORT: u16 = 27142;

/// How a write becomes durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sync {
    Batch,
    Periodic,
}

impl Sync {
    pub(super) fn name(self) -> &'static str {
        match self {
            Sync::Batch => "batch",
            Sync::Periodic => "periodic",
        }
    }

    fn period(self) -> &'static str {
        match self {
            Sync::Batch => "0ms",
            Sync::Periodic => "10000ms",
        }
    }
}

/// What a start cost.
#[derive(Clone, Copy)]
pub(super) struct Started {
    /// From the start of the process to the first answered query.
    pub(super) seconds: f64,
    /// At rest, in bytes.
    pub(super) resident: u64,
}

pub(super) struct Server {
    pub(super) contender: Contender,
    pub(super) sync: Sync,
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
    /// Halcyon on a directory, which may have data; `settings` are further lines of its configuration.
    pub(super) fn halcyon(
        programs: &Programs,
        dir: &Path,
        sync: Sync,
        settings: &[String],
    ) -> Result<(Server, f64)> {
        fs::create_dir_all(dir)?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let config = dir.with_extension("yaml");
        let mut yaml = format!("commitlog_sync: {}\n", sync.name());
        if sync == Sync::Periodic {
            yaml += &format!("commitlog_sync_period: {}\n", sync.period());
        }
        yaml.extend(settings.iter().map(|line| format!("{line}\n")));
        fs::write(&config, yaml)?;
        let log = dir.with_extension("log");
        let mut command = programs.serve();
        command.arg("--data-dir").arg(dir).arg("--config").arg(&config);
        command.args(["--port", &port.to_string()]).stdin(Stdio::null());
        let output = File::create(&log)?;
        let child = command.stdout(output.try_clone()?).stderr(output).spawn()?;
        let pid = child.id();
        let contender = Contender::new("halcyon", sync.name());
        let mut halcyon = Halcyon { child, dir: dir.to_owned() };
        let seconds = wait_for_answer(port, || match halcyon.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                let said = fs::read_to_string(&log).unwrap_or_default();
                Err(format!("halcyon serve ended ({status}):\n{said}").into())
            }
        })?;
        let kind = Kind::Halcyon(halcyon);
        Ok((Server { contender, sync, pid, port, kind }, seconds))
    }

    /// Cassandra on an empty directory. `touched`: its heap is resident from the start, so that nothing grows later.
    pub(super) fn cassandra(
        home: &Path,
        sync: Sync,
        number: u16,
        touched: bool,
    ) -> Result<(Server, f64)> {
        let port = FIRST_PORT + 3 * number;
        let plan = Plan {
            version: Version::V5,
            dir: home.join(format!("cassandra-{}", sync.name())),
            port,
            settings: vec![
                format!("commitlog_sync: {}", sync.name()),
                format!("commitlog_sync_period: {}", sync.period()),
                // Its defaults, which the oracle does without.
                "commitlog_segment_size: 32MiB".to_owned(),
                "key_cache_size: 100MiB".to_owned(),
                "write_request_timeout: 30000ms".to_owned(),
                "read_request_timeout: 30000ms".to_owned(),
            ],
            jvm: if touched { "-XX:+AlwaysPreTouch" } else { "" },
        };
        let (node, seconds) = std::thread::scope(|scope| {
            let first_answer =
                scope.spawn(|| wait_for_answer(port, || Ok(())).map_err(|e| e.to_string()));
            let node = JvmNode::start(&plan);
            (node, first_answer.join())
        });
        let node = node?;
        let seconds = seconds.map_err(|_| "the waiting thread panicked")??;
        let contender = Contender::new(Version::V5.name(), sync.name());
        let pid = node.pid;
        Ok((Server { contender, sync, pid, port, kind: Kind::Cassandra(node) }, seconds))
    }

    /// What it holds when nobody has asked it anything for a while.
    pub(super) fn at_rest(&self, seconds: f64, after: Duration) -> Started {
        sleep(after);
        Started { seconds, resident: resident(self.pid) }
    }

    pub(super) fn freeze(&self) -> Result<()> {
        process::signal("-STOP", self.pid)
    }

    pub(super) fn thaw(&self) -> Result<()> {
        process::signal("-CONT", self.pid)
    }

    /// Brings everything that was written into SSTables: Cassandra on request, Halcyon by a restart with further settings.
    pub(super) fn flushed(mut self, programs: &Programs, settings: &[String]) -> Result<Server> {
        self.thaw()?;
        match &mut self.kind {
            Kind::Cassandra(node) => {
                node.nodetool(&["flush"])?;
                Ok(self)
            }
            Kind::Halcyon(halcyon) => {
                halcyon.stop()?;
                let (dir, sync) = (halcyon.dir.clone(), self.sync);
                Ok(Server::halcyon(programs, &dir, sync, settings)?.0)
            }
        }
    }

    pub(super) fn is_halcyon(&self) -> bool {
        matches!(self.kind, Kind::Halcyon(_))
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
