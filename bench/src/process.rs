//! What a piece of work cost: a process is watched while it lasts, and the machine's counters before, while and after.
//!
//! 1. `Watch::start` resets the process's high-water mark of memory and notes the counters.
//! 2. A thread looks ten times a second at the mark and at the page cache.
//! 3. `Watch::stop` takes the differences.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use halcyon_oracle::{Result, call};
use serde::Serialize;

use super::machine::{Counters, Device, meminfo};

/// Looking takes a tenth of a millisecond, for which a request may wait.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A JVM has a hundred threads: they are looked at less often.
const LOOKS_PER_LOOK_AT_THREADS: u32 = 10;

/// What was measured, in seconds and bytes, as records call it.
#[derive(Serialize)]
pub(super) struct Cost {
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
    pub(super) peak_memory_bytes: u64,
    /// Growth of the machine's page cache at its highest, and at the end.
    page_cache_growth_peak_bytes: i64,
    page_cache_growth_bytes: i64,
    active_file_growth_bytes: i64,
    dirty_peak_bytes: i64,
    /// What passed the device.
    #[serde(flatten)]
    device: Counters,
    /// CPU seconds of the threads that had most: what the work waits for is a thread as busy as the clock.
    #[serde(skip)]
    pub(super) threads: Vec<(String, f64)>,
}

/// User and system time.
#[derive(Clone, Copy)]
pub(super) enum CpuOf {
    /// Of a process that lives on.
    Process(u32),
    /// The same, and of all its descendants, ended ones too.
    Family(u32),
    /// Of all children of a process that have ended.
    EndedChildrenOf(u32),
}

impl CpuOf {
    pub(super) fn seconds(self) -> f64 {
        let (path, first) = match self {
            CpuOf::Family(pid) => {
                let own = CpuOf::Process(pid).seconds() + CpuOf::EndedChildrenOf(pid).seconds();
                let living = children(pid).into_iter();
                return own + living.map(|child| CpuOf::Family(child).seconds()).sum::<f64>();
            }
            CpuOf::Process(pid) => (format!("/proc/{pid}/stat"), 11),
            CpuOf::EndedChildrenOf(pid) => (format!("/proc/{pid}/stat"), 13),
        };
        cpu_of_stat(Path::new(&path), first).unwrap_or(0.0)
    }
}

/// Processes that this one has started, by any of its threads, and that live.
fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    }
    found
}

/// CPU seconds of the calling thread.
pub(super) fn own_thread_cpu() -> f64 {
    cpu_of_stat(Path::new("/proc/thread-self/stat"), 11).unwrap_or(0.0)
}

/// Two neighbouring fields of a `stat` file, counted from behind the name, which, in parentheses, may contain anything.
fn cpu_of_stat(path: &Path, first: usize) -> Option<f64> {
    /// `USER_HZ`, the unit of /proc on every Linux.
    const TICKS: f64 = 100.0;
    let text = fs::read_to_string(path).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(first).take(2);
    Some(ticks.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS)
}

/// CPU seconds by thread id, with the thread's name.
type Threads = BTreeMap<u32, (String, f64)>;

fn look_at_threads(pid: u32, threads: &mut Threads) {
    for entry in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let id = entry.file_name().to_string_lossy().parse::<u32>();
        let (Ok(id), Some(cpu)) = (id, cpu_of_stat(&entry.path().join("stat"), 11)) else {
            continue;
        };
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        threads.insert(id, (name.trim_end().to_owned(), cpu));
    }
}

/// The busiest threads, by what they used since `before`.
fn busiest(before: &Threads, after: Threads) -> Vec<(String, f64)> {
    const SHOWN: usize = 6;
    let used = after
        .into_iter()
        .map(|(id, (name, cpu))| (name, cpu - before.get(&id).map_or(0.0, |(_, before)| *before)));
    let mut used: Vec<(String, f64)> = used.filter(|(_, cpu)| *cpu > 0.0).collect();
    used.sort_by(|a, b| b.1.total_cmp(&a.1));
    used.truncate(SHOWN);
    used
}

#[derive(Default)]
struct Peaks {
    memory: u64,
    cache: u64,
    dirty: u64,
    threads: Vec<(String, f64)>,
}

pub(super) struct Watch {
    cpu_of: CpuOf,
    device: Device,
    began: Instant,
    cpu_before: f64,
    device_before: Counters,
    cache_before: [u64; 3],
    done: Arc<AtomicBool>,
    looking: JoinHandle<Peaks>,
}

/// Bytes that are cached, of these in active lists, and not yet written.
fn page_cache() -> [u64; 3] {
    let lines = meminfo();
    let bytes = |name: &str| lines.get(name).copied().unwrap_or(0) * 1024;
    [bytes("Cached"), bytes("Active(file)"), bytes("Dirty") + bytes("Writeback")]
}

impl Watch {
    /// Watches a process that was there before and stays; CPU time is that of its descendants too.
    pub(super) fn process(pid: u32, folder: &Path) -> Result<Watch> {
        // Resets VmHWM to what it is now.
        let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
        let cpu_of = CpuOf::Family(pid);
        let device = Device::of(folder)?;
        let done = Arc::new(AtomicBool::new(false));
        let looking = {
            let done = done.clone();
            std::thread::spawn(move || look(pid, &done))
        };
        Ok(Watch {
            cpu_of,
            device_before: device.counters(),
            device,
            cache_before: page_cache(),
            done,
            looking,
            cpu_before: cpu_of.seconds(),
            began: Instant::now(),
        })
    }

    pub(super) fn stop(self) -> Result<Cost> {
        let seconds = self.began.elapsed().as_secs_f64();
        let cpu_seconds = self.cpu_of.seconds() - self.cpu_before;
        let [cached, active, _] = page_cache();
        let device = self.device.counters().since(&self.device_before);
        self.done.store(true, Ordering::Relaxed);
        let peaks = self.looking.join().map_err(|_| "the watching thread panicked")?;
        let [cached_before, active_before, dirty_before] = self.cache_before;
        let growth = |after: u64, before: u64| after as i64 - before as i64;
        Ok(Cost {
            seconds,
            cpu_seconds,
            peak_memory_bytes: peaks.memory,
            device,
            page_cache_growth_peak_bytes: growth(peaks.cache.max(cached), cached_before),
            page_cache_growth_bytes: growth(cached, cached_before),
            active_file_growth_bytes: growth(active, active_before),
            dirty_peak_bytes: growth(peaks.dirty, dirty_before),
            threads: peaks.threads,
        })
    }
}

fn look(pid: u32, done: &AtomicBool) -> Peaks {
    let mut peaks = Peaks::default();
    let (mut before, mut threads) = (Threads::new(), Threads::new());
    look_at_threads(pid, &mut before);
    let mut looks = 0u32;
    while !done.load(Ordering::Relaxed) {
        peaks.memory = peaks.memory.max(high_water_mark(pid));
        let [cached, _, dirty] = page_cache();
        peaks.cache = peaks.cache.max(cached);
        peaks.dirty = peaks.dirty.max(dirty);
        if looks.is_multiple_of(LOOKS_PER_LOOK_AT_THREADS) {
            look_at_threads(pid, &mut threads);
        }
        looks += 1;
        sleep(LOOK_EVERY);
    }
    peaks.threads = busiest(&before, threads);
    peaks
}

/// Bytes of a process that are in memory now.
pub(super) fn resident(pid: u32) -> u64 {
    memory(pid, "VmRSS:")
}

fn high_water_mark(pid: u32) -> u64 {
    memory(pid, "VmHWM:")
}

/// Zero once the process has ended.
fn memory(pid: u32, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

pub(super) fn signal(name: &str, pid: u32) -> Result<()> {
    call(Command::new("kill").args([name, &pid.to_string()]))
}

/// As the system numbers this thread.
pub(super) fn own_thread_id() -> Option<OsString> {
    fs::read_link("/proc/thread-self").ok()?.file_name().map(OsString::from)
}

/// Puts this thread before all others. `false` where that is not allowed.
pub(super) fn run_first() -> bool {
    own_thread_id().is_some_and(|id| put_first(&id))
}

/// The same of any thread. The number of a process is that of its first one; threads that this one starts later go before others too.
pub(super) fn put_first(thread: &OsStr) -> bool {
    let mut chrt = Command::new("chrt");
    chrt.args(["--fifo", "--pid", "10"]).arg(thread);
    chrt.output().is_ok_and(|output| output.status.success())
}
