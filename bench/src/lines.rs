//! The cache lines that two shards share: `cargo x bench lines`.
//!
//! On many cores a line that every request of every shard writes is what bounds them all, and no clock of a machine with two cores shows
//! it. So it is counted. The thread of a shard is executed instruction by instruction (`ptrace`) while a client has it execute one
//! prepared statement [`REQUESTS`] times, with keys of its own; the memory operands of each instruction, by its registers, give the
//! lines that it reads and writes. The same on the other shard. A line is shared if one shard wrote it, and the other used it, in every
//! request. What a shard without requests does by the clock is traced first, and a line that only its instructions write does not count:
//! a request takes so long here that it falls into each. What the kernel does (sockets, the ring) is not seen.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use halcyon_oracle::{Result, repository};
use halcyon_protocol::{Compression, Consistency, QueryParameters, Value, Values, Version};
use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess, Register,
    UsedMemory,
};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::connection::{Connection, bigint, local};
use crate::programs::Programs;
use crate::server::{Plan, Server};

const LINE: u64 = 64;
const SHARDS: usize = 2;
const REQUESTS: u32 = 12;
const WARM_UP: u32 = 200;
/// Everything that a shard does by the clock is done in it.
const IDLE: Duration = Duration::from_secs(4);
const KEYS: i32 = 64;
const CONNECTIONS: usize = 64;
const LONGEST_CODE: usize = 15;
const PATIENCE: Duration = Duration::from_secs(120);

/// Name and statement.
const CASES: [(&str, &str); 3] = [
    ("read of a row in a memtable", "SELECT v FROM lines.memory WHERE k = ?"),
    ("read of a row in an SSTable, cached", "SELECT v FROM lines.disk WHERE k = ?"),
    ("write of a row", "INSERT INTO lines.memory (k, v) VALUES (?, 0x01)"),
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// With the dev build: more instructions, the same lines. A request may then take a second, in which tasks that run by the clock share
    /// some too
    #[arg(long)]
    tiny: bool,
}

/// How often a line was used, and by which instructions it was written.
#[derive(Default)]
struct Uses {
    reads: u32,
    writes: u32,
    writers: HashMap<u64, u32>,
}

#[derive(Default)]
struct Trace {
    lines: HashMap<u64, Uses>,
    instructions: u64,
    /// With a LOCK prefix, or an exchange with memory.
    locked: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let programs = Programs::build(arguments.tiny, &[])?;
    let folder = repository().join("target/bench-lines");
    let _ = fs::remove_dir_all(&folder);
    let plan = Plan::halcyon("lines", folder.clone()).set("write_request_timeout: 600000ms");
    let server = Server::start(&programs, &plan)?;
    fill(&server)?;
    server.stop()?;
    let server = Server::start(&programs, &plan)?;
    let measured = measure(&server);
    server.stop()?;
    let _ = fs::remove_dir_all(&folder);
    measured
}

/// Rows that are in SSTables when the server has been stopped.
fn fill(server: &Server) -> Result<()> {
    let mut connection = Connection::open(server.port)?;
    connection.create_keyspace("lines")?;
    for table in ["memory", "disk"] {
        connection.execute(&format!("CREATE TABLE lines.{table} (k int PRIMARY KEY, v blob)"))?;
    }
    for key in 0..KEYS {
        connection.execute(&insert("disk", key))?;
    }
    Ok(())
}

fn insert(table: &str, key: i32) -> String {
    format!("INSERT INTO lines.{table} (k, v) VALUES ({key}, 0x{})", "07".repeat(100))
}

fn measure(server: &Server) -> Result<()> {
    let mut connections = by_shard(server.port)?;
    for key in 0..KEYS {
        connections[0].execute(&insert("memory", key))?;
    }
    let keys = keys_by_shard(&mut connections[0])?;
    let mut by_clock = HashSet::new();
    for (shard, connection) in connections.iter_mut().enumerate() {
        let idle = traced(thread_of(server.pid, shard)?, || {
            thread::sleep(IDLE);
            // The end of the trace is seen when the thread does something.
            connection.option("SCYLLA_SHARD").map(drop)
        })?;
        by_clock.extend(idle.lines.values().flat_map(|uses| uses.writers.keys().copied()));
    }
    for (name, statement) in CASES {
        let mut traces = Vec::new();
        for (shard, connection) in connections.iter_mut().enumerate() {
            let id = connection.prepare_v5(statement)?;
            execute(connection, &id, &keys[shard], WARM_UP)?;
            let thread = thread_of(server.pid, shard)?;
            traces.push(traced(thread, || execute(connection, &id, &keys[shard], REQUESTS))?);
        }
        report(server.pid, name, &traces, &by_clock)?;
    }
    Ok(())
}

type Prepared = (Vec<u8>, Vec<u8>);

fn execute(
    connection: &mut Connection,
    (id, metadata): &Prepared,
    keys: &[i32],
    requests: u32,
) -> Result<()> {
    for key in keys.iter().cycle().take(requests as usize) {
        let bytes = key.to_be_bytes();
        let values = Values::Positional(vec![Value::Bytes(&bytes)]);
        let parameters = QueryParameters { values, ..QueryParameters::new(Consistency::One) };
        connection.client.execute(0, id, metadata, &parameters);
        connection.answer()?;
    }
    Ok(())
}

/// A connection to each shard. Version 5: requests of older ones take from the limits that all connections share.
fn by_shard(port: u16) -> Result<Vec<Connection>> {
    let mut found: Vec<Option<Connection>> = (0..SHARDS).map(|_| None).collect();
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::with(local(port), Version::V5, Compression::None)?;
        let mut number = |name: &str| -> Result<usize> {
            let text = connection.option(name)?.and_then(|text| text.parse().ok());
            Ok(text.ok_or("the server does not tell its shards")?)
        };
        let (shard, shards) = (number("SCYLLA_SHARD")?, number("SCYLLA_NR_SHARDS")?);
        if shards != SHARDS {
            return Err(format!("two shards are compared, and the server has {shards}").into());
        }
        if let Some(place) = found.get_mut(shard) {
            *place = Some(connection);
        }
        if found.iter().all(Option::is_some) {
            return Ok(found.into_iter().flatten().collect());
        }
    }
    Err("no connection came to some shard".into())
}

fn keys_by_shard(connection: &mut Connection) -> Result<Vec<Vec<i32>>> {
    let mut keys = vec![Vec::new(); SHARDS];
    for key in 0..KEYS {
        let page = connection.rows(&format!("SELECT token(k) FROM lines.disk WHERE k = {key}"))?;
        let token = page.rows.first().and_then(|row| bigint(row.first()?.as_ref()));
        let from_zero = token.ok_or("no token")? ^ (1 << 63);
        let owner = (u128::from(from_zero) * SHARDS as u128) >> 64;
        keys[owner as usize].push(key);
    }
    Ok(keys)
}

fn thread_of(pid: u32, shard: usize) -> Result<Pid> {
    for entry in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if name.trim() == format!("shard-{shard}") {
            return Ok(Pid::from_raw(entry.file_name().to_string_lossy().parse()?));
        }
    }
    Err(format!("no thread shard-{shard}").into())
}

/// Executes a thread step by step while `work` is done, which is what it is asked.
fn traced(thread: Pid, work: impl FnOnce() -> Result<()> + Send) -> Result<Trace> {
    let done = AtomicBool::new(false);
    let mut trace = Trace::default();
    ptrace::seize(thread, Options::empty())?;
    ptrace::interrupt(thread)?;
    waitpid(thread, Some(WaitPidFlag::__WALL))?;
    let (worked, stepped) = thread::scope(|scope| {
        let working = scope.spawn(|| {
            let worked = work().map_err(|e| e.to_string());
            done.store(true, Relaxed);
            worked
        });
        let stepped = follow(thread, &done, &mut trace);
        let detached = ptrace::detach(thread, None);
        (working.join(), stepped.and(detached.map_err(Into::into)))
    });
    stepped?;
    worked.map_err(|_| "the client has failed")??;
    Ok(trace)
}

/// Until the work is done and the thread waits in the kernel.
fn follow(thread: Pid, done: &AtomicBool, trace: &mut Trace) -> Result<()> {
    let mut decoded: HashMap<u64, (Instruction, Vec<UsedMemory>)> = HashMap::new();
    let end = Instant::now() + PATIENCE;
    let mut signal = None;
    loop {
        let registers = ptrace::getregs(thread)?;
        let at = registers.rip;
        if let Entry::Vacant(place) = decoded.entry(at) {
            place.insert(decode(thread, at)?);
        }
        let Some((instruction, operands)) = decoded.get(&at) else { continue };
        if done.load(Relaxed) && instruction.code() == Code::Syscall {
            return Ok(());
        }
        trace.instructions += 1;
        trace.note(instruction, operands, &registers);
        ptrace::step(thread, signal.take())?;
        signal = stopped(thread, end)?;
    }
}

/// Waits for the end of a step; a signal that came is given on.
fn stopped(thread: Pid, end: Instant) -> Result<Option<Signal>> {
    loop {
        match waitpid(thread, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Stopped(_, Signal::SIGTRAP) | WaitStatus::PtraceEvent(..)) => {
                return Ok(None);
            }
            Ok(WaitStatus::Stopped(_, signal)) => return Ok(Some(signal)),
            Ok(WaitStatus::StillAlive) if Instant::now() > end => {
                ptrace::interrupt(thread)?;
                waitpid(thread, Some(WaitPidFlag::__WALL))?;
                return Err("the thread waits for ever".into());
            }
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => {}
            other => return Err(format!("the thread has ended: {other:?}").into()),
        }
    }
}

fn decode(thread: Pid, at: u64) -> Result<(Instruction, Vec<UsedMemory>)> {
    let mut code = Vec::new();
    while code.len() < LONGEST_CODE {
        match ptrace::read(thread, (at as usize + code.len()) as ptrace::AddressType) {
            Ok(word) => code.extend_from_slice(&word.to_ne_bytes()),
            Err(_) if !code.is_empty() => break,
            Err(e) => return Err(e.into()),
        }
    }
    let instruction = Decoder::with_ip(64, &code, at, DecoderOptions::NONE).decode();
    let operands = InstructionInfoFactory::new().info(&instruction).used_memory().to_vec();
    Ok((instruction, operands))
}

impl Trace {
    fn note(
        &mut self,
        instruction: &Instruction,
        operands: &[UsedMemory],
        registers: &nix::libc::user_regs_struct,
    ) {
        let exchange = matches!(
            instruction.code(),
            Code::Xchg_rm8_r8 | Code::Xchg_rm16_r16 | Code::Xchg_rm32_r32 | Code::Xchg_rm64_r64
        ) && !operands.is_empty();
        self.locked += u64::from(instruction.has_lock_prefix() || exchange);
        for operand in operands {
            let address = operand.virtual_address(0, |register, _, _| value(register, registers));
            let Some(address) = address else { continue };
            let size = operand.memory_size().size().max(1) as u64;
            let (reads, writes) = match operand.access() {
                OpAccess::Read | OpAccess::CondRead => (1, 0),
                OpAccess::Write | OpAccess::CondWrite => (0, 1),
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => (1, 1),
                _ => continue,
            };
            for line in address / LINE..=(address + size - 1) / LINE {
                let uses = self.lines.entry(line).or_default();
                uses.reads += reads;
                uses.writes += writes;
                if writes > 0 {
                    *uses.writers.entry(registers.rip).or_default() += 1;
                }
            }
        }
    }
}

fn value(register: Register, of: &nix::libc::user_regs_struct) -> Option<u64> {
    let full = match register {
        Register::FS => return Some(of.fs_base),
        Register::GS => return Some(of.gs_base),
        Register::CS | Register::DS | Register::ES | Register::SS => return Some(0),
        register => register.full_register(),
    };
    Some(match full {
        Register::RAX => of.rax,
        Register::RBX => of.rbx,
        Register::RCX => of.rcx,
        Register::RDX => of.rdx,
        Register::RSI => of.rsi,
        Register::RDI => of.rdi,
        Register::RBP => of.rbp,
        Register::RSP => of.rsp,
        Register::R8 => of.r8,
        Register::R9 => of.r9,
        Register::R10 => of.r10,
        Register::R11 => of.r11,
        Register::R12 => of.r12,
        Register::R13 => of.r13,
        Register::R14 => of.r14,
        Register::R15 => of.r15,
        Register::RIP => of.rip,
        _ => return None,
    })
}

fn report(pid: u32, name: &str, traces: &[Trace], by_clock: &HashSet<u64>) -> Result<()> {
    let [one, other] = traces else { return Err("two shards are compared".into()) };
    let each = |count: u64| count as f64 / f64::from(REQUESTS);
    let mut shared: Vec<(u64, &Uses)> = Vec::new();
    for (a, b) in [(one, other), (other, one)] {
        let is_shared = |(line, uses): &(&u64, &Uses)| {
            let there = b.lines.get(line).map_or(0, |uses| uses.reads + uses.writes);
            let by_requests = uses.writers.keys().any(|writer| !by_clock.contains(writer));
            uses.writes >= REQUESTS && there >= REQUESTS && by_requests
        };
        for (line, uses) in a.lines.iter().filter(is_shared) {
            if shared.iter().all(|(known, _)| known != line) {
                shared.push((*line, uses));
            }
        }
    }
    let written = one.lines.values().filter(|uses| uses.writes >= REQUESTS).count();
    println!(
        "{name}: {} shared lines of {written} that it writes; {:.0} instructions, {:.0} locked",
        shared.len(),
        each(one.instructions),
        each(one.locked)
    );
    shared.sort_by_key(|(_, uses)| std::cmp::Reverse(uses.writes));
    for (line, uses) in shared {
        println!("  {:#x}: {:.1} writes a request", line * LINE, each(u64::from(uses.writes)));
        for place in places(pid, &uses.writers)? {
            println!("      {place}");
        }
    }
    Ok(())
}

/// The functions, with those that they were inlined into, of the most frequent writers.
fn places(pid: u32, writers: &HashMap<u64, u32>) -> Result<Vec<String>> {
    let binary = fs::read_link(format!("/proc/{pid}/exe"))?;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let base = maps.lines().find(|line| line.ends_with(&*binary.to_string_lossy()));
    let base = base.and_then(|line| u64::from_str_radix(line.split('-').next()?, 16).ok());
    let base = base.unwrap_or(0);
    let mut by_count: Vec<_> = writers.iter().collect();
    by_count.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let mut found = Vec::new();
    for (address, _) in by_count.iter().take(4) {
        let mut addr2line = Command::new("addr2line");
        addr2line.args(["-Cfi", "-e"]).arg(&binary).arg(format!("{:#x}", **address - base));
        let output = addr2line.output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let named = |pair: &[&str]| {
            let file = pair.get(1).copied().unwrap_or_default();
            let file = file.rsplit_once("/crates/").map_or(file, |(_, file)| file);
            format!("{} ({file})", pair[0])
        };
        found.push(lines.chunks(2).take(6).map(named).collect::<Vec<_>>().join(" < "));
    }
    Ok(found)
}
