//! What the block device saw: each request from its issue to its completion, as `biolatency` shows it, by the kernel's own tracer.
//!
//! 1. A tracing instance of our own (`/sys/kernel/tracing/instances/…`) records `block_rq_issue` and `block_rq_complete` of one device.
//! 2. [`BlockTrace::now`] reads them, pairs them by sector, and counts latencies in powers of two: a snapshot; differences of two are what
//!    happened between them. Nothing is read in between: that would take a core from those who are measured, half a millisecond at a time.
//!
//! It sees the requests of all processes. Without root, or a tracer, it is not available.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use halcyon_oracle::Result;
use nix::time::{ClockId, clock_gettime};

use super::histogram::ByKind;
use super::machine::Device;
use super::standstill::Gap;

const TRACING: &str = "/sys/kernel/tracing";
const O_NONBLOCK: i32 = 0o4000;
/// Of a request that kept a foreground operation waiting.
const SLOW_MICROS: u64 = 4000;
/// Of a discard: a device that completes nothing else meanwhile adds up several.
const DISCARD_MICROS: u64 = 1000;
/// For each core: half a million requests.
const BUFFER_KIB: &str = "65536";

pub(super) struct BlockTrace {
    instance: PathBuf,
    reading: Mutex<Reading>,
}

/// In the order of their ends.
#[derive(Default)]
pub(super) struct Slow {
    /// Reads, writes, flushes.
    pub(super) requests: Vec<Gap>,
    /// What a file system freed, where it is mounted with `discard`.
    pub(super) discards: Vec<Gap>,
}

#[derive(Default)]
struct Reading {
    /// By first sector: when, in µs.
    issued: BTreeMap<u64, u64>,
    /// `read`, `write`, `flush`.
    seen: ByKind,
    /// From when to when, in µs, of those that took [`SLOW_MICROS`] or longer.
    slow: Vec<(u64, u64)>,
    /// The same of discards that the device worked on for [`DISCARD_MICROS`] or longer.
    discards: Vec<(u64, u64)>,
}

impl BlockTrace {
    /// Of the device under a folder.
    pub(super) fn under(folder: &Path) -> Result<BlockTrace> {
        let device = Device::of(folder)?;
        let instance = Path::new(TRACING)
            .join("instances")
            .join(format!("halcyon-bench-{}", std::process::id()));
        fs::create_dir(&instance).map_err(|e| {
            format!(
                "{}: {e}: be root, with `mount -t tracefs tracefs {TRACING}`",
                instance.display()
            )
        })?;
        let trace = BlockTrace { instance, reading: Mutex::default() };
        trace.enable(&device)?;
        Ok(trace)
    }

    fn enable(&self, device: &Device) -> Result<()> {
        let write = |file: &str, text: &str| {
            let path = self.instance.join(file);
            fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
        };
        write("buffer_size_kb", BUFFER_KIB)?;
        // That of `Instant`.
        write("trace_clock", "mono")?;
        // As the kernel packs a device number inside.
        let number = device.major << 20 | device.minor;
        for event in ["block_rq_issue", "block_rq_complete"] {
            write(&format!("events/block/{event}/filter"), &format!("dev == {number}"))?;
            write(&format!("events/block/{event}/enable"), "1")?;
        }
        Ok(())
    }

    /// Everything since the start.
    pub(super) fn now(&self) -> ByKind {
        self.read().seen.clone()
    }

    /// What took some milliseconds since the start.
    pub(super) fn slow(&self) -> Result<Slow> {
        let (now, clock) = (Instant::now(), clock_gettime(ClockId::CLOCK_MONOTONIC)?);
        let micros = u64::try_from(Duration::from(clock).as_micros())?;
        let at = |then: u64| now - Duration::from_micros(micros.saturating_sub(then));
        let gaps = |times: &[(u64, u64)]| {
            times.iter().map(|(from, until)| (at(*from), at(*until))).collect()
        };
        let reading = self.read();
        Ok(Slow { requests: gaps(&reading.slow), discards: gaps(&reading.discards) })
    }

    fn read(&self) -> MutexGuard<'_, Reading> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        // Not kept open: the instance could not be removed.
        let pipe = self.instance.join("trace_pipe");
        if let Ok(pipe) = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(pipe) {
            reading.read(pipe);
        }
        reading
    }
}

impl Drop for BlockTrace {
    fn drop(&mut self) {
        let _ = fs::write(self.instance.join("events/enable"), "0");
        let _ = fs::remove_dir(&self.instance);
    }
}

impl Reading {
    /// All that there is at the moment.
    fn read(&mut self, mut pipe: File) {
        let mut buffer = vec![0; 256 << 10];
        let mut text = Vec::new();
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            text.extend_from_slice(&buffer[..length]);
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            for event in String::from_utf8_lossy(&text[..whole]).lines().filter_map(Event::parse) {
                self.count(&event);
            }
            text.drain(..whole);
        }
    }

    fn count(&mut self, event: &Event<'_>) {
        if event.is_issue {
            self.issued.insert(event.sector, event.micros);
            return;
        }
        let Some(from) = self.issued.remove(&event.sector) else { return };
        let micros = event.micros.saturating_sub(from);
        let kind = match event.operation.as_bytes() {
            // A flush has no data and no sector worth the name.
            [b'F', b'F', ..] | [b'F'] => "flush",
            [b'R', ..] => "read",
            [b'W' | b'F', ..] => "write",
            [b'D', ..] if micros >= DISCARD_MICROS => {
                return self.discards.push((from, event.micros));
            }
            _ => return,
        };
        if micros >= SLOW_MICROS {
            self.slow.push((from, event.micros));
        }
        self.seen.entry(kind.to_owned()).or_default().add(1000 * micros, 1);
    }
}

#[derive(Debug, PartialEq)]
struct Event<'a> {
    micros: u64,
    is_issue: bool,
    /// `R`, `RA`, `WS`, `FF` …
    operation: &'a str,
    sector: u64,
}

impl Event<'_> {
    /// ```text
    /// java-7 [001] d..2. 5413.120745: block_rq_issue: 254,0 R 4096 () 90216 + 8 none,0,0 [java]
    /// java-7 [001] d.h3. 5413.120911: block_rq_complete: 254,0 R () 90216 + 8 none,0,0 [0]
    /// ```
    fn parse(line: &str) -> Option<Event<'_>> {
        let (head, rest) = line.split_once(": block_rq_")?;
        let (seconds, fraction) = head.rsplit_once(' ')?.1.split_once('.')?;
        let micros = seconds.parse::<u64>().ok()? * 1_000_000 + fraction.parse::<u64>().ok()?;
        let (name, rest) = rest.split_once(": ")?;
        let operation = rest.split(' ').nth(1)?;
        let (_, place) = rest.split_once(") ")?;
        let sector = place.split(' ').next()?.parse().ok()?;
        Some(Event { micros, is_issue: name == "issue", operation, sector })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;

    #[test]
    fn events_pair_by_sector() {
        let lines = [
            "   java-7 [001] d..2. 5413.120745: block_rq_issue: 254,0 RA 4096 () 90216 + 8 none,0,0 [java]",
            " <idle>-0 [000] d.h3. 5413.120911: block_rq_complete: 254,0 RA () 90216 + 8 none,0,0 [0]",
            " <idle>-0 [000] d.h3. 5413.120912: block_rq_complete: 254,0 WS () 4711 + 8 none,0,0 [0]",
            "CPU:0 [LOST 7 EVENTS]",
        ];
        let mut reading = Reading::default();
        let events: Vec<Event<'_>> = lines.into_iter().filter_map(Event::parse).collect();
        assert_eq!(events.len(), 3);
        events.iter().for_each(|event| reading.count(event));
        let mut expected = Histogram::default();
        expected.add(166_000, 1);
        assert_eq!(reading.seen, ByKind::from([("read".to_owned(), expected)]));
        assert!(reading.slow.is_empty() && reading.discards.is_empty());
    }

    #[test]
    fn a_discard_is_none_of_the_requests() {
        let lines = [
            "jbd2/vda-8-54 [000] ..... 9.000000: block_rq_issue: 254,0 DS 1048576 () 4096 + 2048 none,0,0 [jbd2/vda-8]",
            "<idle>-0 [000] d.h3. 9.002000: block_rq_complete: 254,0 DS () 4096 + 2048 none,0,0 [0]",
        ];
        let mut reading = Reading::default();
        lines.into_iter().filter_map(Event::parse).for_each(|event| reading.count(&event));
        assert_eq!(reading.discards, [(9_000_000, 9_002_000)]);
        assert!(reading.slow.is_empty() && reading.seen.is_empty());
    }
}
