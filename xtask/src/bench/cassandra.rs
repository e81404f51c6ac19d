//! Apache Cassandra as a peer: one node for each release and mode, started once and warmed up; frozen (SIGSTOP) while
//! another peer runs.
//!
//! For each run:
//! 1. The table is truncated, the set's files are hard-linked into its folder, and `nodetool refresh` opens them.
//! 2. The page cache is dropped. A JMX client that is already connected calls the major compaction and hears when it is done:
//!    what is timed is that call, no tool and no start.
//! 3. Once the old files are gone, the output is looked at.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::cql::Connection;
use super::dataset::DataSet;
use super::machine::{cached_bytes, drop_page_cache, files_below};
use super::process::Watch;
use super::programs::Programs;
use super::record::{Contender, Run};
use crate::e2e::own_program;
use crate::oracle::{Oracle, Version};
use crate::{Result, call};

const KEYSPACE: &str = "bench";
const FIRST_PORT: u16 = 27042;
/// SSTables of the compaction that warms the JVM up: its compiler has seen all by the second GiB or so.
const WARM_UP: u32 = 12;
const OLD_FILES_GONE_WITHIN: Duration = Duration::from_secs(60);
/// The oracle's own JVM starts fast and runs slowly; this one is Cassandra's. Read by the JVM after its command line.
const JVM: &str =
    "-XX:TieredStopAtLevel=4 -XX:-UseSerialGC -XX:+UseG1GC -XX:+ParallelRefProcEnabled";
const HEAP: &str = "2g";

pub(super) struct Cassandra {
    pub(super) contender: Contender,
    version: Version,
    dir: PathBuf,
    pid: u32,
    native_port: u16,
    jmx_port: u16,
    /// Something has been compacted: the compiler has seen what is hot.
    is_warm: bool,
}

fn version_of(contender: &Contender) -> Result<Version> {
    let known = Version::ALL.into_iter().find(|version| version.name() == contender.peer);
    known.ok_or_else(|| format!("{} is no peer: halcyon, 5.0.9, 6.0-alpha2", contender.peer).into())
}

/// What the mode means in cassandra.yaml.
fn settings(contender: &Contender) -> Vec<&'static str> {
    let mut lines = vec![
        "concurrent_compactors: 2",
        "compaction_throughput: 0MiB/s",
        "write_request_timeout: 30000ms",
        "read_request_timeout: 30000ms",
    ];
    if contender.peer != Version::V6.name() {
        return lines;
    }
    // Its default, and its fastest; the oracle of behaviour goes without.
    lines.push("cursor_compaction_enabled: true");
    if contender.mode != "buffered" {
        lines.push("compaction_read_disk_access_mode: direct");
    }
    if contender.mode == "direct" {
        lines.push("background_write_disk_access_mode: direct");
    }
    lines
}

/// Starts the node of a contender, and freezes it. One at a time: 6.0 gives up on its own log when the machine is busy.
pub(super) fn start(contender: &Contender, home: &Path, number: u16) -> Result<Cassandra> {
    const ATTEMPTS: u32 = 3;
    let version = version_of(contender)?;
    let dir = home.join("nodes").join(format!("{}-{}", contender.peer, contender.mode));
    let port = FIRST_PORT + 3 * number;
    let mut about = Err("not tried".into());
    for _ in 0..ATTEMPTS {
        about = start_once(contender, version, &dir, port);
        if about.is_ok() {
            break;
        }
    }
    let about = about.map_err(|e| format!("{} did not start: {e}", contender.name()))?;
    let number = |name: &str| about[name].as_u64().ok_or_else(|| format!("no {name}"));
    let cassandra = Cassandra {
        pid: u32::try_from(number("pid")?)?,
        native_port: u16::try_from(number("native_port")?)?,
        jmx_port: u16::try_from(number("jmx_port")?)?,
        contender: contender.clone(),
        version,
        dir,
        is_warm: false,
    };
    let mut cql = Connection::open(cassandra.native_port)?;
    cql.execute(&format!(
        "CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = \
         {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ))?;
    cassandra.signal("-STOP")?;
    Ok(cassandra)
}

/// Answers with what `cargo x oracle start` says: it is run as a program of its own so that its JVM, and no other,
/// has other options than those of the oracle.
fn start_once(contender: &Contender, version: Version, dir: &Path, port: u16) -> Result<Value> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    let format = if version == Version::V5 { "oa" } else { "pa" };
    let mut command = Command::new(own_program()?);
    command.args(["oracle", "start", version.name(), "--format", format]);
    command.args(["--port", &port.to_string(), "--heap", HEAP, "--dir"]).arg(dir);
    for line in settings(contender) {
        command.args(["--set", line]);
    }
    let output = command.env("_JAVA_OPTIONS", JVM).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

impl Cassandra {
    fn signal(&self, name: &str) -> Result<()> {
        call(Command::new("kill").args([name, &self.pid.to_string()]))
    }

    /// Compacts a set once; the node runs only meanwhile.
    pub(super) fn run(&mut self, programs: &Programs, set: &DataSet) -> Result<Run> {
        self.signal("-CONT")?;
        Connection::open(self.native_port)?.execute(&set.codec.schema(KEYSPACE))?;
        if !self.is_warm {
            self.compact(programs, set, Some(WARM_UP))?;
            self.is_warm = true;
        }
        let run = self.compact(programs, set, None);
        self.signal("-STOP")?;
        run
    }

    fn compact(&self, programs: &Programs, set: &DataSet, sstables: Option<u32>) -> Result<Run> {
        let table = set.codec.table();
        let truncate = format!("TRUNCATE {KEYSPACE}.{table}");
        Connection::open(self.native_port)?.execute(&truncate)?;
        let folder = self.table_folder(&table)?;
        wait_until("truncated files are gone", || sstables_in(&folder).is_empty())?;
        set.link_into(&folder, sstables)?;
        let oracle = Oracle::open(self.version)?;
        let refresh = ["refresh", KEYSPACE, &table].map(str::to_owned);
        let refreshed = oracle.nodetool(self.jmx_port, &refresh).output()?;
        if !refreshed.status.success() {
            let said = String::from_utf8_lossy(&refreshed.stderr).into_owned();
            return Err(format!("nodetool refresh: {said}").into());
        }
        let mut jmx = Jmx::connect(&oracle, self.jmx_port)?;
        jmx.ask(&["no-autocompaction", KEYSPACE, &table])?;
        let was_cold = drop_page_cache();
        let watch = Watch::process(self.pid, &folder)?;
        let compacted = jmx.ask(&["compact", KEYSPACE, &table]);
        let cost = watch.stop()?;
        compacted?;
        wait_until("compacted files are gone", || sstables_in(&folder).len() == 1)?;
        let outputs: Vec<PathBuf> =
            files_below(&folder).into_iter().filter(|path| sstable_of(path).is_some()).collect();
        let run = Run {
            codec: set.codec.0.clone(),
            contender: self.contender.clone(),
            buffers: None,
            cost,
            was_cold,
            cached_inputs: cached_bytes(&set.files()),
            cached_outputs: cached_bytes(&outputs),
            content: programs.measure(&["inspect".as_ref(), folder.as_os_str()])?,
            summary: None,
            data_bytes: set.data_bytes(),
            file_bytes: set.file_bytes(),
        };
        Connection::open(self.native_port)?.execute(&truncate)?;
        run.checked()
    }

    fn table_folder(&self, table: &str) -> Result<PathBuf> {
        let keyspace = self.dir.join("data/data").join(KEYSPACE);
        let prefix = format!("{table}-");
        let mut entries = fs::read_dir(&keyspace)?.flatten();
        let found = entries.find(|e| e.file_name().to_string_lossy().starts_with(&prefix));
        Ok(found.ok_or_else(|| format!("{}: no folder of {table}", keyspace.display()))?.path())
    }
}

impl Drop for Cassandra {
    fn drop(&mut self) {
        let _ = self.signal("-CONT");
        if let Err(error) = crate::oracle::stop_recorded(Some(&self.dir)) {
            eprintln!("bench: {} (pid {}) does not stop: {error}", self.contender.name(), self.pid);
        }
        // Its files are hard links of the sets, and outputs as large.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// `oa-1-big`, of a file that belongs to an SSTable.
fn sstable_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let format = ["-big-", "-bti-"].into_iter().find_map(|format| name.find(format))?;
    name.get(..format + 4).map(str::to_owned)
}

/// SSTables of which any file is left: Cassandra deletes in the background, Data.db first.
fn sstables_in(folder: &Path) -> BTreeSet<String> {
    files_below(folder).iter().filter_map(|path| sstable_of(path)).collect()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) -> Result<()> {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > OLD_FILES_GONE_WITHIN {
            return Err(format!("waited in vain until {what}").into());
        }
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// `e2e/oracle/Jmx.java`: a line out, a line back.
struct Jmx {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Jmx {
    fn connect(oracle: &Oracle, port: u16) -> Result<Jmx> {
        let mut command = oracle.java(&["-Xmx64m".to_owned()], "Jmx");
        command.arg(port.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let commands = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or("no answers")?);
        Ok(Jmx { child, commands, answers })
    }

    fn ask(&mut self, fields: &[&str]) -> Result<()> {
        let commands = self.commands.as_mut().ok_or("closed")?;
        writeln!(commands, "{}", fields.join("\t"))?;
        commands.flush()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        match answer.trim_end() {
            "ok" => Ok(()),
            "" => Err(format!("the JMX client died on {fields:?}").into()),
            other => Err(format!("{fields:?}: {other}").into()),
        }
    }
}

impl Drop for Jmx {
    fn drop(&mut self) {
        // At the end of its input it ends itself.
        self.commands = None;
        let _ = self.child.wait();
    }
}
