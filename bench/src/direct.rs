//! Requests to the device past the page cache, one after the other, each timed.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use halcyon_oracle::Result;

use crate::latency::{Latencies, nanos_since};

#[cfg(not(target_arch = "aarch64"))]
const O_DIRECT: i32 = 0o40000;
#[cfg(target_arch = "aarch64")]
const O_DIRECT: i32 = 0o200000;

/// Of a request.
pub(super) const BLOCK: usize = 4096;

/// A file that is there, past the page cache; `flags` beside `O_DIRECT`.
pub(super) fn open(path: &Path, options: &mut OpenOptions, flags: i32) -> Result<File> {
    let opened = options.custom_flags(O_DIRECT | flags).open(path);
    Ok(opened.map_err(|e| format!("{}: {e}", path.display()))?)
}

/// Memory for a request: a device takes none that begins elsewhere than a block does.
pub(super) struct Memory(Vec<u8>);

impl Memory {
    pub(super) fn new() -> Memory {
        Memory(vec![0; 2 * BLOCK])
    }

    pub(super) fn block(&mut self) -> Result<&mut [u8]> {
        let start = self.0.as_ptr().align_offset(BLOCK);
        Ok(self.0.get_mut(start..start + BLOCK).ok_or("memory cannot be aligned")?)
    }
}

/// One after the other for a while, with a pause before each, which is not timed; each gets its number.
pub(super) fn repeat(
    time: Duration,
    pause: Duration,
    mut once: impl FnMut(u32) -> std::io::Result<()>,
) -> Result<Latencies> {
    let mut nanos = Vec::new();
    let began = Instant::now();
    while began.elapsed() < time {
        sleep(pause);
        let asked = Instant::now();
        once(nanos.len() as u32)?;
        nanos.push(nanos_since(asked));
    }
    Ok(Latencies::of(nanos))
}
