//! The contenders' servers: Halcyon as an operator runs it, or a node of Cassandra. Frozen (SIGSTOP) while it is not its turn, stopped
//! when dropped.
//!
//! One [`Plan`] starts either, so that an experiment says once what both get and apart what only one of them needs.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use halcyon_client::Cause;
use halcyon_oracle::{Format, Node, Result, StartOptions, Version, free_ports};

use crate::cage::Cage;
use crate::connection::{self, command};
use crate::jmx::Jmx;
use crate::latency::Completed;
use crate::process::{self, CpuOf};
use crate::programs::Programs;
use crate::record::{Contender, Measurements};

const READY_WITHIN: Duration = Duration::from_secs(180);
const STOP_WITHIN: Duration = Duration::from_secs(120);

/// The oracle's own JVM starts fast and runs slowly; this one is Cassandra's.
const JVM: &str =
    "-XX:TieredStopAtLevel=4 -XX:-UseSerialGC -XX:+UseG1GC -XX:+ParallelRefProcEnabled";

/// Cassandra's default where the oracle has another, and time-outs that a busy machine does not reach.
const CASSANDRA: [&str; 3] = [
    "commitlog_segment_size: 32MiB",
    "write_request_timeout: 30000ms",
    "read_request_timeout: 30000ms",
];

/// How to start a server.
#[derive(Clone)]
pub(crate) struct Plan<'a> {
    /// None of Halcyon.
    version: Option<Version>,
    mode: String,
    dir: PathBuf,
    /// Lines of its configuration.
    settings: Vec<String>,
    jvm: String,
    heap: &'a str,
    cage: Option<&'a Cage>,
    host: Ipv4Addr,
    /// A node whose ring it joins.
    seed: Option<SocketAddr>,
}

impl<'a> Plan<'a> {
    /// The directory may have data.
    pub(crate) fn halcyon(mode: &str, dir: PathBuf) -> Plan<'a> {
        Plan {
            version: None,
            mode: mode.to_owned(),
            dir,
            settings: Vec::new(),
            jvm: String::new(),
            heap: "",
            cage: None,
            host: Ipv4Addr::LOCALHOST,
            seed: None,
        }
    }

    /// The directory is emptied.
    pub(crate) fn cassandra(version: Version, mode: &str, dir: PathBuf) -> Plan<'a> {
        let settings = CASSANDRA.map(str::to_owned).to_vec();
        Plan { version: Some(version), settings, heap: "2g", ..Plan::halcyon(mode, dir) }
    }

    pub(crate) fn set(mut self, line: impl Into<String>) -> Plan<'a> {
        self.settings.push(line.into());
        self
    }

    pub(crate) fn set_all<S: AsRef<str>>(self, lines: &[S]) -> Plan<'a> {
        lines.iter().fold(self, |plan, line| plan.set(line.as_ref()))
    }

    /// A write is acknowledged when it is durable.
    pub(crate) fn durable(self) -> Plan<'a> {
        let plan = self.set("commitlog_sync: batch");
        match plan.version {
            // The oracle's own configuration has a period, which only the periodic mode may have.
            Some(_) => plan.set("commitlog_sync_period: 0ms"),
            None => plan,
        }
    }

    /// How Cassandra compacts in a mode (`buffered`, `direct-reads`, `direct`): its fastest, without a throttle. The oracle of behaviour
    /// does without 6.0's default, the cursor.
    pub(crate) fn compacting(self, version: Version, mode: &str) -> Plan<'a> {
        let plan = self.set_all(&["concurrent_compactors: 2", "compaction_throughput: 0MiB/s"]);
        if version != Version::V6 {
            return plan;
        }
        let mut lines = vec!["cursor_compaction_enabled: true"];
        lines.extend((mode != "buffered").then_some("compaction_read_disk_access_mode: direct"));
        lines.extend((mode == "direct").then_some("background_write_disk_access_mode: direct"));
        plan.set_all(&lines)
    }

    /// A server as its maker configures it, but for 6.0's fastest compaction. None: Halcyon.
    pub(crate) fn as_it_comes(version: Option<Version>, dir: PathBuf, heap: &'a str) -> Plan<'a> {
        let Some(version) = version else { return Plan::halcyon("as it comes", dir) };
        let mode = if version == Version::V6 { "direct" } else { "buffered" };
        let plan = Plan::cassandra(version, mode, dir).compacting(version, mode);
        plan.set("compaction_throughput: 64MiB/s").heap(heap)
    }

    /// Options of the JVM beside Cassandra's.
    pub(crate) fn jvm(self, jvm: impl Into<String>) -> Plan<'a> {
        Plan { jvm: jvm.into(), ..self }
    }

    /// A node of Cassandra that is not alone: where it listens, and whose ring it joins.
    pub(crate) fn member(self, host: Ipv4Addr, seed: Option<SocketAddr>) -> Plan<'a> {
        Plan { host, seed, ..self }
    }

    pub(crate) fn heap(self, heap: &'a str) -> Plan<'a> {
        Plan { heap, ..self }
    }

    pub(crate) fn cage(self, cage: Option<&'a Cage>) -> Plan<'a> {
        Plan { cage, ..self }
    }
}

pub(crate) struct Server {
    pub(crate) contender: Contender,
    pub(crate) pid: u32,
    pub(crate) port: u16,
    host: Ipv4Addr,
    pub(crate) dir: PathBuf,
    /// From the start of the process to the first answered query.
    pub(crate) start_seconds: f64,
    kind: Kind,
}

enum Kind {
    Halcyon(Child),
    /// None once it is stopped.
    Cassandra(Option<Node>, Version),
}

impl Server {
    pub(crate) fn start(programs: &Programs, plan: &Plan<'_>) -> Result<Server> {
        match plan.version {
            None => halcyon(programs, plan),
            Some(version) => cassandra(version, plan),
        }
    }

    pub(crate) fn freeze(&self) -> Result<()> {
        process::signal("-STOP", self.pid)
    }

    pub(crate) fn thaw(&self) -> Result<()> {
        process::signal("-CONT", self.pid)
    }

    /// Thaws it for some work, and freezes it again.
    pub(crate) fn awake<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.thaw()?;
        let done = work()?;
        self.freeze()?;
        Ok(done)
    }

    /// What became of a load, and what it cost the server.
    pub(crate) fn asked(&self, ask: impl FnOnce(u16) -> Result<Completed>) -> Result<Measurements> {
        let cpu = CpuOf::Process(self.pid);
        let before = cpu.seconds();
        let completed = ask(self.port).map_err(|e| format!("{}: {e}", self.contender.name()))?;
        Ok(completed.measurements(cpu.seconds() - before))
    }

    /// Where it answers CQL.
    pub(crate) fn address(&self) -> SocketAddr {
        (self.host, self.port).into()
    }

    /// Where a node that joins its ring finds it.
    pub(crate) fn storage(&self) -> Result<SocketAddr> {
        let Kind::Cassandra(Some(node), _) = &self.kind else {
            return Err(format!("{}: no ring", self.contender.name()).into());
        };
        Ok(node.storage_address())
    }

    pub(crate) fn is_halcyon(&self) -> bool {
        self.contender.is_halcyon()
    }

    /// Does nothing to Halcyon, which is asked over CQL.
    pub(crate) fn nodetool(&self, arguments: &[&str]) -> Result<()> {
        let Kind::Cassandra(Some(node), version) = &self.kind else { return Ok(()) };
        let words: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let output = halcyon_oracle::open(*version)?.nodetool(node.jmx_port(), &words).output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("nodetool {}: {said}", arguments.join(" ")).into())
    }

    /// Brings a keyspace's rows into SSTables.
    pub(crate) fn flush(&self, keyspace: &str) -> Result<()> {
        if !self.is_halcyon() {
            return self.nodetool(&["flush", keyspace]);
        }
        command(&mut connection::open(self.port)?, "flush", (keyspace, ""), "")
    }

    /// A connection for commands to Cassandra over JMX.
    pub(crate) fn jmx(&self) -> Result<Jmx> {
        let Kind::Cassandra(Some(node), version) = &self.kind else {
            return Err(format!("{}: no JMX", self.contender.name()).into());
        };
        Jmx::connect(&halcyon_oracle::open(*version)?, node.jmx_port())
    }

    /// Ends it in good order. Halcyon's directory stays, Cassandra's goes.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.end()
    }

    /// Ends Halcyon as SIGKILL does; its directory stays.
    pub(crate) fn kill(mut self) -> Result<()> {
        if let Kind::Halcyon(child) = &mut self.kind {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Halcyon(child) => drain(child),
            Kind::Cassandra(node, _) => {
                if let Some(node) = node.take() {
                    let _ = process::signal("-CONT", self.pid);
                    drop(node);
                    // Its files are as large as what was measured.
                    let _ = fs::remove_dir_all(&self.dir);
                }
                Ok(())
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Err(error) = self.end() else { return };
        eprintln!("bench: {error}");
        if let Kind::Halcyon(child) = &mut self.kind {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn halcyon(programs: &Programs, plan: &Plan<'_>) -> Result<Server> {
    let dir = plan.dir.as_path();
    fs::create_dir_all(dir)?;
    let port = connection::free_port()?;
    let config = dir.with_extension("yaml");
    // As its peer's: the newest format.
    let newest = ["storage_compatibility_mode: NONE".to_owned()];
    let yaml: String =
        newest.iter().chain(&plan.settings).map(|line| format!("{line}\n")).collect();
    fs::write(&config, yaml)?;
    let log = dir.with_extension("log");
    let mut command = programs.serve(plan.cage);
    command.arg("--data-dir").arg(dir).arg("--config").arg(&config);
    command.args(["--port", &port.to_string()]).stdin(Stdio::null());
    let output = File::create(&log)?;
    let child = command.stdout(output.try_clone()?).stderr(output).spawn()?;
    let mut server = Server {
        contender: Contender::new("halcyon", &plan.mode),
        pid: child.id(),
        port,
        host: plan.host,
        dir: dir.to_owned(),
        start_seconds: 0.0,
        kind: Kind::Halcyon(child),
    };
    server.start_seconds = wait_for_answer(server.address(), || match &mut server.kind {
        Kind::Halcyon(child) => check_runs(child, &log),
        Kind::Cassandra(..) => Ok(()),
    })?;
    Ok(server)
}

fn check_runs(child: &mut Child, log: &Path) -> Result<()> {
    let Some(status) = child.try_wait()? else { return Ok(()) };
    let said = fs::read_to_string(log).unwrap_or_default();
    Err(format!("halcyon serve ended ({status}):\n{said}").into())
}

/// Sends SIGTERM, upon which Halcyon drains.
fn drain(child: &mut Child) -> Result<()> {
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    process::signal("-CONT", child.id())?;
    process::signal("-TERM", child.id())?;
    let asked = Instant::now();
    while asked.elapsed() < STOP_WITHIN {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("halcyon serve did not drain: {status}").into()),
            None => sleep(Duration::from_millis(5)),
        }
    }
    Err(format!("halcyon serve did not drain in {STOP_WITHIN:?}").into())
}

fn cassandra(version: Version, plan: &Plan<'_>) -> Result<Server> {
    /// 6.0-alpha2 gives up on its own log when the machine is busy.
    const ATTEMPTS: u32 = 3;
    let contender = Contender::new(version.name(), &plan.mode);
    let mut started = start_node(version, plan);
    for _ in 1..ATTEMPTS {
        if started.is_ok() {
            break;
        }
        started = start_node(version, plan);
    }
    let (node, start_seconds) =
        started.map_err(|e| format!("{} did not start: {e}", contender.name()))?;
    Ok(Server {
        contender,
        pid: node.pid().ok_or("no process")?,
        port: node.native_port(),
        host: plan.host,
        dir: plan.dir.clone(),
        start_seconds,
        kind: Kind::Cassandra(Some(node), version),
    })
}

fn start_node(version: Version, plan: &Plan<'_>) -> Result<(Node, f64)> {
    if plan.dir.exists() {
        fs::remove_dir_all(&plan.dir)?;
    }
    let port = free_ports()?;
    let options = StartOptions {
        format: if version == Version::V5 { Format::Oa } else { Format::Pa },
        dir: Some(plan.dir.clone()),
        port: Some(port),
        address: plan.host,
        seed: plan.seed,
        heap: plan.heap.to_owned(),
        settings: plan.settings.clone(),
        jvm: format!("{JVM} {}", plan.jvm),
        launcher: plan.cage.map(Cage::launcher).unwrap_or_default(),
    };
    let oracle = halcyon_oracle::open(version)?;
    // Asked meanwhile: the oracle looks for an open port only, four times a second.
    let (node, seconds) = std::thread::scope(|scope| {
        let first_answer = scope.spawn(|| {
            wait_for_answer((plan.host, port).into(), || Ok(())).map_err(|e| e.to_string())
        });
        (Node::start(&oracle, &options), first_answer.join())
    });
    Ok((node?, seconds.map_err(|_| "the waiting thread panicked")??))
}

/// Whether the server has asked for a role, and refused this one.
fn is_unknown(error: &(dyn std::error::Error + 'static)) -> bool {
    const BAD_CREDENTIALS: i32 = 0x100;
    let error = error.downcast_ref::<halcyon_client::Error>();
    error.is_some_and(|error| matches!(error.cause, Cause::Refused { code: BAD_CREDENTIALS, .. }))
}

fn wait_for_answer(server: SocketAddr, mut still_there: impl FnMut() -> Result<()>) -> Result<f64> {
    let began = Instant::now();
    let ask = || -> Result<()> {
        match connection::to(server) {
            Ok(mut connection) => {
                connection.page("SELECT release_version FROM system.local")?;
            }
            // A new server does not know the role.
            Err(error) if is_unknown(&*error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    };
    while let Err(error) = ask() {
        still_there()?;
        if began.elapsed() > READY_WITHIN {
            return Err(format!("not ready in {READY_WITHIN:?}: {error}").into());
        }
        sleep(Duration::from_millis(1));
    }
    Ok(began.elapsed().as_secs_f64())
}
