//! A running Cassandra node.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::config::{self, NodeAddress, Ports};
use crate::installed::Oracle;
use crate::release::{Format, home};
use crate::{Result, call};

const READY_WITHIN: Duration = Duration::from_secs(180);
const STOP_WITHIN: Duration = Duration::from_secs(60);
const FIRST_PORT: u16 = 19042;
/// Three ports each, all of them below those that the system gives to clients.
const PLACES: u16 = 1000;
/// Milliseconds (`cassandra.ring_delay_ms`) that a node waits for others to hear of it: there may be none.
const ALONE: &str = "500";
/// A node that has not heard of its seed by then does not start, and the code of a young JVM runs slowly where cores are busy.
const IN_A_RING: &str = "10000";

pub struct StartOptions {
    pub format: Format,
    /// Configuration, data and log go here; `.oracle/nodes/<format>` when none is named.
    pub dir: Option<PathBuf>,
    /// The native port; storage and JMX take the two after it.
    pub port: Option<u16>,
    /// Where it listens. JMX is at 127.0.0.1 always, so the nodes of a ring have three ports each.
    pub address: Ipv4Addr,
    /// A node of the ring that it joins, as `ADDRESS:STORAGE_PORT`; without one it is a ring of its own.
    pub seed: Option<SocketAddr>,
    pub heap: String,
    /// Further lines of cassandra.yaml.
    pub settings: Vec<String>,
    /// Options of the JVM that win over the oracle's own, which make it start fast and run slowly.
    pub jvm: String,
    /// A program, with its arguments, that becomes the JVM; empty for none.
    pub launcher: Vec<OsString>,
}

impl StartOptions {
    pub fn for_format(format: Format) -> StartOptions {
        StartOptions {
            format,
            dir: None,
            port: None,
            address: Ipv4Addr::LOCALHOST,
            seed: None,
            heap: "768m".to_owned(),
            settings: Vec::new(),
            jvm: String::new(),
            launcher: Vec::new(),
        }
    }
}

pub struct Node {
    child: Option<Child>,
    address: Ipv4Addr,
    ports: Ports,
    dir: PathBuf,
}

impl Node {
    /// Starts a node with an empty data directory (unless `dir` already has one) and waits for it.
    pub fn start(oracle: &Oracle, options: &StartOptions) -> Result<Node> {
        let format = options.format;
        if format.release() != oracle.version().line() {
            let wanted = format.release().name();
            return Err(format!("{} is written by Cassandra {wanted}", format.name()).into());
        }
        let dir = match &options.dir {
            Some(dir) => std::path::absolute(dir)?,
            None => fresh(&home().join("nodes").join(format.name()))?,
        };
        let data = dir.join("data");
        fs::create_dir_all(&data)?;
        let ports = choose_ports(options.port)?;
        let place = NodeAddress { address: options.address, seed: options.seed, ports: &ports };
        let written = (oracle.version(), format);
        let yaml =
            config::write_for_node(&dir.join("conf"), &data, written, &place, &options.settings)?;
        let log = File::create(dir.join("node.log"))?;
        let properties =
            [data_properties(&yaml, &data), server_properties(options, &ports)].concat();
        let java = oracle.java(&properties, "org.apache.cassandra.service.CassandraDaemon");
        let mut java = launched(&options.launcher, java);
        if !options.jvm.is_empty() {
            // The JVM reads this variable after its command line.
            java.env("_JAVA_OPTIONS", &options.jvm);
        }
        java.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).current_dir(&dir);
        let child = java.spawn().map_err(|error| format!("cannot start java: {error}"))?;
        let mut node = Node { child: Some(child), address: options.address, ports, dir };
        node.wait_until_ready()?;
        fs::write(node.dir.join("node.json"), node.describe().to_string())?;
        Ok(node)
    }

    pub fn native_port(&self) -> u16 {
        self.ports.native
    }

    /// None once it is detached.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    pub fn jmx_port(&self) -> u16 {
        self.ports.jmx
    }

    /// Where other nodes find it.
    pub fn storage_address(&self) -> SocketAddr {
        (self.address, self.ports.storage).into()
    }

    /// `-Dcassandra.storagedir` of this node; tables lie in its `data/`.
    pub fn storage_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    pub fn describe(&self) -> Value {
        json!({
            "pid": self.pid(),
            "address": self.address,
            "native_port": self.ports.native,
            "storage_port": self.ports.storage,
            "jmx_port": self.ports.jmx,
            "storage_dir": self.storage_dir(),
            "config": self.dir.join("conf/cassandra.yaml"),
            "log": self.dir.join("node.log"),
        })
    }

    /// Lets the process outlive this one; `stop_recorded` ends it.
    pub fn detach(mut self) {
        self.child = None;
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let started = Instant::now();
        let address = SocketAddr::from((self.address, self.ports.native));
        let log = self.dir.join("node.log");
        while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
            if let Some(status) = self.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
                return Err(format!("Cassandra died at start ({status}):\n{}", tail(&log)).into());
            }
            if started.elapsed() > READY_WITHIN {
                return Err(
                    format!("Cassandra not ready in {READY_WITHIN:?}:\n{}", tail(&log)).into()
                );
            }
            sleep(Duration::from_millis(250));
        }
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return;
            }
            let _ = signal("-TERM", child.id());
            let asked = Instant::now();
            while asked.elapsed() < STOP_WITHIN {
                if !matches!(child.try_wait(), Ok(None)) {
                    return;
                }
                sleep(Duration::from_millis(100));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn launched(launcher: &[OsString], command: Command) -> Command {
    let Some((program, arguments)) = launcher.split_first() else { return command };
    let mut outer = Command::new(program);
    outer.args(arguments).arg(command.get_program()).args(command.get_args());
    outer
}

/// Stops the nodes that `start` left running, by the pids that they recorded.
pub fn stop_recorded(dir: Option<&Path>) -> Result<usize> {
    let dirs = match dir {
        Some(dir) => vec![dir.to_owned()],
        None => Format::ALL.map(|format| home().join("nodes").join(format.name())).to_vec(),
    };
    let mut stopped = 0;
    for record in dirs.iter().map(|dir| dir.join("node.json")).filter(|path| path.exists()) {
        let node: Value = serde_json::from_str(&fs::read_to_string(&record)?)?;
        let pid = node["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        if let Some(pid) = pid.filter(|pid| is_cassandra(*pid)) {
            signal("-TERM", pid)?;
            wait_for_end(pid);
            stopped += 1;
        }
        fs::remove_file(record)?;
    }
    Ok(stopped)
}

fn wait_for_end(pid: u32) {
    let asked = Instant::now();
    while is_cassandra(pid) && asked.elapsed() < STOP_WITHIN {
        sleep(Duration::from_millis(100));
    }
    if is_cassandra(pid) {
        let _ = signal("-KILL", pid);
    }
}

/// A pid may have been taken over by another program since it was recorded.
fn is_cassandra(pid: u32) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&command).contains("CassandraDaemon")
}

fn signal(name: &str, pid: u32) -> Result<()> {
    call(Command::new("kill").args([name, &pid.to_string()]))
}

fn fresh(dir: &Path) -> Result<PathBuf> {
    if dir.exists() {
        stop_recorded(Some(dir))?;
        fs::remove_dir_all(dir)?;
    }
    fs::create_dir_all(dir)?;
    Ok(std::path::absolute(dir)?)
}

/// The first of three free ports in a row.
///
/// Each process looks elsewhere first: two that look at once, before either has a server, would find the same.
pub fn free_ports() -> Result<u16> {
    let free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let first = (std::process::id() % u32::from(PLACES)) as u16;
    let mut candidates = (0..PLACES).map(|n| FIRST_PORT + 3 * ((first + n) % PLACES));
    let found = candidates.find(|port| (*port..port + 3).all(free));
    Ok(found.ok_or("no three free ports in a row above 19042: end other nodes")?)
}

fn choose_ports(wanted: Option<u16>) -> Result<Ports> {
    let native = wanted.map_or_else(free_ports, Ok)?;
    Ok(Ports { native, storage: native + 1, jmx: native + 2 })
}

/// What points a tool at the data of a stopped node.
pub fn offline_properties(dir: &Path) -> Result<Vec<String>> {
    let dir = std::path::absolute(dir)?;
    Ok(data_properties(&dir.join("conf/cassandra.yaml"), &dir.join("data")))
}

fn data_properties(yaml: &Path, data: &Path) -> Vec<String> {
    vec![
        format!("-Dcassandra.config=file://{}", yaml.display()),
        format!("-Dcassandra.storagedir={}", data.display()),
    ]
}

fn server_properties(options: &StartOptions, ports: &Ports) -> Vec<String> {
    let heap = &options.heap;
    let delay = if options.seed.is_some() { IN_A_RING } else { ALONE };
    vec![
        format!("-Xms{heap}"),
        format!("-Xmx{heap}"),
        format!("-Dcassandra.jmx.local.port={}", ports.jmx),
        "-Dcassandra-foreground=yes".to_owned(),
        format!("-Dcassandra.ring_delay_ms={delay}"),
        "-Dcassandra.skip_wait_for_gossip_to_settle=0".to_owned(),
    ]
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}
