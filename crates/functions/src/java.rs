//! User-defined functions in Java, in a JVM of its own beside this process (`plugin/functions/`).
//!
//! 1. The first function that is made or called finds a JDK, compiles the host's sources with it and starts the host. Its classes are in a
//!    folder of the node's own, which each process makes empty.
//! 2. The host compiles a body when it sees it first, in memory, and refuses what Cassandra's sandbox refuses (`Rules.java`). That runs
//!    nothing of the body. Then it makes an instance, which runs the body's initialisers: the first call.
//! 3. Calls come one after the other, from a thread that does nothing else. One that exceeds `user_defined_functions_fail_timeout` or
//!    the host's memory ends the host, not the node; the next call starts another. That the host does not take a call counts too.
//! 4. The kernel confines the host (`io/src/confine.rs`), and ends it first where memory is short.
//!
//! Why another process: a body can use any amount of time and memory, and no JVM can stop a thread.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use halcyon_io::Mutex;
use halcyon_io::child::{self, Child, Program};
use halcyon_io::clock::now;
use halcyon_model::Cursor;
use halcyon_model::bytes::Put;
use halcyon_schema::function::UserFunction;
use halcyon_syntax::{Error, Result};

use super::definition::{definition, put_value};
use super::limits::{Allowed, FOLD_SLICE, Folded, SlowCalls, failure};

macro_rules! sources {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../../../plugin/functions/", $path)))),*]
    };
}

const SOURCES: [(&str, &str); 14] = sources![
    "halcyon/functions/Compiler.java",
    "halcyon/functions/Function.java",
    "halcyon/functions/Host.java",
    "halcyon/functions/Refused.java",
    "halcyon/functions/Rules.java",
    "halcyon/functions/Verifier.java",
    "org/apache/cassandra/cql3/functions/JavaUDF.java",
    "org/apache/cassandra/cql3/functions/UDFContext.java",
    "org/apache/cassandra/cql3/functions/types/AbstractData.java",
    "org/apache/cassandra/cql3/functions/types/DataType.java",
    "org/apache/cassandra/cql3/functions/types/Duration.java",
    "org/apache/cassandra/cql3/functions/types/LocalDate.java",
    "org/apache/cassandra/cql3/functions/types/TupleValue.java",
    "org/apache/cassandra/cql3/functions/types/UDTValue.java",
];

/// How long the host may take to start, and to compile a body.
const START: Duration = Duration::from_secs(60);
/// What a JVM takes: its heap, what it knows of classes and has compiled, buffers, the stacks of its threads.
const MEMORY: [&str; 8] = [
    "-Xmx128m",
    "-XX:MaxMetaspaceSize=96m",
    "-XX:CompressedClassSpaceSize=24m",
    "-XX:ReservedCodeCacheSize=32m",
    "-XX:MaxDirectMemorySize=8m",
    "-XX:ThreadStackSize=1024",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
];
/// The kernel's bound: with what the JVM and its C library need beside these.
const DATA_MAX: u64 = 512 << 20;
/// It writes nothing: no counters for other tools, no reports, no socket for them.
const QUIET: [&str; 3] =
    ["-XX:-UsePerfData", "-XX:+DisableAttachMechanism", "-XX:ErrorFile=/dev/null"];
/// Functions that one host knows: beyond it, another one begins with none.
const KNOWN_MAX: usize = 1_000;

const DEFINE: u8 = 1;
const CALL: u8 = 2;
const FOLD: u8 = 3;
const BEGIN: u8 = 4;

#[derive(Default)]
pub(super) struct Host {
    running: Mutex<Option<Running>>,
    /// For the classes.
    folder: Mutex<PathBuf>,
}

struct Running {
    child: Child,
    /// By definition.
    known: HashMap<Vec<u8>, u32>,
}

/// What a host says, or why it says nothing.
enum Answer {
    Value(Option<Vec<u8>>),
    Failed(String),
    Refused(String),
    /// The body has ended the host.
    JobLost(String),
    /// The host has ended without a word.
    Lost(String),
    Late,
}

fn answer(message: &[u8]) -> Answer {
    let Some((status, rest)) = message.split_first() else {
        return Answer::Lost("no answer".to_owned());
    };
    let value =
        rest.split_first_chunk::<4>().filter(|(length, _)| i32::from_be_bytes(**length) >= 0);
    let value = value.map(|(_, value)| value.to_vec());
    let text = || String::from_utf8_lossy(value.as_deref().unwrap_or_default()).into_owned();
    match status {
        0 => Answer::Value(value),
        1 => Answer::Failed(text()),
        2 => Answer::Refused(text()),
        _ => Answer::JobLost(text()),
    }
}

impl Running {
    fn exchange(&mut self, request: &[u8], limit: Duration) -> Answer {
        let until = child::deadline(limit);
        let sent = self.child.send(request, until);
        let received = sent.and_then(|()| self.child.receive(until));
        match received {
            Ok(message) => answer(&message),
            Err(error) if error.kind() == ErrorKind::TimedOut => Answer::Late,
            Err(error) => {
                Answer::Lost(format!("the JVM of user-defined functions has ended: {error}"))
            }
        }
    }

    fn start(folder: &Path) -> Result<Running> {
        let java =
            child::find_program("JAVA_HOME", "java").ok_or_else(|| needs_java("there is none"))?;
        let needed = child::java_files(&java);
        let classes = compiled(&java, &needed, folder)?;
        let path = classes.display().to_string();
        let host = ["-cp", &path, "halcyon.functions.Host", &path];
        let arguments = MEMORY.iter().chain(&QUIET).chain(&host);
        let arguments: Vec<String> = arguments.map(|word| (*word).to_owned()).collect();
        let reads = [needed, vec![classes]].concat();
        let confined = Some(child::Allowed { reads: &reads, writes: None, memory: DATA_MAX });
        let program = Program { path: &java, arguments: &arguments, confined };
        let mut child = program.start().map_err(needs_java)?;
        child.receive(child::deadline(START)).map_err(needs_java)?;
        Ok(Running { child, known: HashMap::new() })
    }
}

/// The folder of the host's classes, which are compiled once for a process.
fn compiled(java: &Path, needed: &[PathBuf], folder: &Path) -> Result<PathBuf> {
    static CLASSES: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut classes = CLASSES.lock();
    let made = folder.join("classes");
    if classes.as_ref().is_some_and(|known| *known == made && child::is_folder(&made)) {
        return Ok(made);
    }
    child::private_folder(folder).map_err(needs_java)?;
    let options =
        ["-m", "jdk.compiler/com.sun.tools.javac.Main", "--release", "11", "-proc:none", "-nowarn"];
    let options = MEMORY.iter().chain(&QUIET).chain(&options);
    let mut arguments: Vec<String> = options.map(|word| (*word).to_owned()).collect();
    arguments.extend(["-Xlint:-options".to_owned(), "-d".to_owned(), made.display().to_string()]);
    for (name, text) in SOURCES {
        let path = folder.join("sources").join(name);
        child::write_private(&path, text).map_err(needs_java)?;
        arguments.push(path.display().to_string());
    }
    let confined = Some(child::Allowed { reads: needed, writes: Some(folder), memory: DATA_MAX });
    let compiler = Program { path: java, arguments: &arguments, confined };
    compiler.run().map_err(needs_java)?.map_err(needs_java)?;
    *classes = Some(made.clone());
    Ok(made)
}

fn needs_java(why: impl ToString) -> Error {
    Error::InvalidRequest(format!(
        "User-defined functions need a JDK of version 11 or later in JAVA_HOME or PATH ({}): install one, such as openjdk-17-jdk-headless",
        why.to_string()
    ))
}

impl Host {
    pub(super) fn keep_in(&self, folder: PathBuf) {
        *self.folder.lock() = folder;
    }

    fn folder(&self) -> PathBuf {
        self.folder.lock().clone()
    }

    /// Compiles a function that is about to be made.
    pub(super) fn check(&self, function: &UserFunction, limit: Duration) -> Result<()> {
        let definition = definition(function);
        let define = |running: &mut Running| running.define(&definition, limit);
        let allowed = Allowed { fail: limit, warn: Duration::ZERO, slow: &SlowCalls::default() };
        self.on(function, &allowed, |running| define(running).map(|_| Answer::Value(None)))?;
        Ok(())
    }

    fn on(
        &self,
        function: &UserFunction,
        allowed: &Allowed<'_>,
        job: impl Fn(&mut Running) -> Result<Answer, Answer>,
    ) -> Result<Option<Vec<u8>>> {
        let mut place = self.running.lock();
        let folder = self.folder();
        let mut answer = Self::once(&mut place, &folder, &job)?;
        if let Answer::Lost(_) = answer {
            // Another process has killed it. Bodies change nothing, so they may run again.
            answer = Self::once(&mut place, &folder, &job)?;
        }
        match answer {
            Answer::Value(value) => Ok(value),
            Answer::Failed(what) => Err(failure(function, &what)),
            Answer::Refused(what) => Err(Error::InvalidRequest(what)),
            Answer::JobLost(what) | Answer::Lost(what) => Err(failure(function, &what)),
            Answer::Late => Err(allowed.late(function)),
        }
    }

    /// One attempt; a host that must not be used again is dropped.
    fn once(
        place: &mut Option<Running>,
        folder: &Path,
        job: &impl Fn(&mut Running) -> Result<Answer, Answer>,
    ) -> Result<Answer> {
        if place.as_ref().is_some_and(|running| running.known.len() >= KNOWN_MAX) {
            *place = None;
        }
        let running = match place {
            Some(running) => running,
            None => place.insert(Running::start(folder)?),
        };
        let answer = job(running).unwrap_or_else(|answer| answer);
        if matches!(answer, Answer::JobLost(_) | Answer::Lost(_) | Answer::Late) {
            *place = None;
        }
        Ok(answer)
    }

    /// An answer, and how long the host took for it: not the wait for others, nor for its start.
    fn ask(
        &self,
        function: &UserFunction,
        operation: u8,
        values: &[u8],
        allowed: &Allowed<'_>,
    ) -> Result<(Option<Vec<u8>>, Duration)> {
        let definition = definition(function);
        let took = Cell::new(Duration::ZERO);
        let more = if operation == FOLD { FOLD_SLICE } else { Duration::ZERO };
        let value = self.on(function, allowed, |running| {
            let id = running.define(&definition, allowed.fail)?;
            let mut request = vec![operation];
            request.put_i32(i32::try_from(id).unwrap_or(i32::MAX));
            request.extend_from_slice(values);
            let began = now();
            let answer = running.exchange(&request, allowed.fail + more);
            took.set(now() - began);
            Ok(answer)
        })?;
        Ok((value, took.get()))
    }
}

impl Running {
    fn define(&mut self, definition: &[u8], limit: Duration) -> Result<u32, Answer> {
        if let Some(id) = self.known.get(definition) {
            return Ok(*id);
        }
        let id = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        let request = |operation| {
            let mut request = vec![operation];
            request.put_i32(i32::try_from(id).unwrap_or(i32::MAX));
            request
        };
        let mut define = request(DEFINE);
        define.extend_from_slice(definition);
        for (request, limit) in [(define, START), (request(BEGIN), limit)] {
            match self.exchange(&request, limit) {
                Answer::Value(_) => {}
                other => return Err(other),
            }
        }
        self.known.insert(definition.to_vec(), id);
        Ok(id)
    }
}

impl Host {
    pub(super) fn call(
        &self,
        function: &UserFunction,
        arguments: &[Option<&[u8]>],
        allowed: &Allowed<'_>,
    ) -> Result<Option<Vec<u8>>> {
        let mut values = Vec::new();
        arguments.iter().for_each(|value| put_value(&mut values, *value));
        let (value, took) = self.ask(function, CALL, &values, allowed)?;
        allowed.took(function, took);
        Ok(value)
    }

    pub(super) fn fold(
        &self,
        function: &UserFunction,
        state: Option<&[u8]>,
        (arguments, rows): (&[Option<Vec<u8>>], usize),
        allowed: &Allowed<'_>,
    ) -> Result<Folded> {
        let mut values = Vec::new();
        values.put_i32(i32::try_from(rows).unwrap_or(i32::MAX));
        put_value(&mut values, state);
        arguments.iter().for_each(|value| put_value(&mut values, value.as_deref()));
        let (answer, took) = self.ask(function, FOLD, &values, allowed)?;
        let answer = answer.unwrap_or_default();
        let mut cursor = Cursor::new(&answer);
        let read = |cursor: &mut Cursor<'_>| -> Option<_> {
            let rows = usize::try_from(cursor.i32().ok()?).ok()?;
            let state = usize::try_from(cursor.i32().ok()?).ok();
            Some((state.map(|len| cursor.take(len).map(<[u8]>::to_vec)).transpose().ok()?, rows))
        };
        let unreadable = || failure(function, "the JVM's answer cannot be read");
        let (state, rows) = read(&mut cursor).ok_or_else(unreadable)?;
        // The last row may have been slow, behind a slice of others.
        let others = if rows > 1 { FOLD_SLICE } else { Duration::ZERO };
        allowed.took(function, took.saturating_sub(others));
        Ok((state, rows))
    }
}
