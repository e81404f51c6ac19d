//! Removes files so that the device notices little of it: the name at once, the space in steps.
//!
//! ```text
//!   unlink ── sole opener? ── cut off a step, sync, rest ── cut off a step, sync, rest ── … ── close
//! ```
//!
//! 1. A file system that is mounted with `discard` tells the device of what a commit of its journal freed, extent by extent. The device
//!    completes nothing else meanwhile: for 6 ms after 24 MiB, for 34 ms after 120 MiB, measured on a virtio disk. Four inputs of a
//!    compaction, freed as wholes, hold up all reads and writes for 140 ms.
//! 2. So a thread cuts large files off from behind, and makes each step durable, so that it is a commit of its own. The steps grow with
//!    what is left to free: all of it is free after some 30 s.
//! 3. A file is cut off only without a name and without another opener: a snapshot's hard link keeps its bytes, and so does a process
//!    that copies it. The kernel decides: it grants a write lease only to the sole opener. Other files are freed as a whole.
//! 4. When space is short, or when the waiting files hold too many descriptors, they are freed as wholes too.
//!
//! RocksDB deletes its files in such steps (`bytes_max_delete_chunk` of its `DeleteScheduler`).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures_util::StreamExt;

use crate::real;
use crate::runtime::backend::block_on;
use crate::runtime::clock::{now, sleep};
use crate::runtime::panics::{contained, panic_point};
use crate::runtime::thread::{ThreadPriority, spawn_thread};

/// 1 MiB keeps the device for 0.3 ms, 8 MiB for 2 ms.
const STEP_MIN: u64 = 1 << 20;
const STEP_MAX: u64 = 8 << 20;
/// At most a hundred commits a second, and three quarters of the time for others.
const REST_MIN: Duration = Duration::from_millis(10);
const REST_PER_STEP: u32 = 3;
/// In how many steps all that waits is to be free.
const STEPS: u64 = 3000;

/// Files that have lost their names and still wait for their turn.
const WAITING_MAX: usize = 512;

/// Who had the file open closes it soon: a reader of a replaced SSTable, on another thread.
const LEASE_ATTEMPTS: usize = 50;
const LEASE_PAUSE: Duration = Duration::from_millis(20);

/// Removes a file or an empty directory.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let large = open_if_large(path);
    match fs::remove_file(path) {
        Err(e) if e.raw_os_error() == Some(libc::EISDIR) => return fs::remove_dir(path),
        other => other?,
    }
    if let Some((file, len)) = large {
        Remover::of_this_process().take(file, len);
    }
    Ok(())
}

/// What cannot be opened for writing can be removed all the same.
fn open_if_large(path: &Path) -> Option<(File, u64)> {
    fs::symlink_metadata(path).ok().filter(|m| m.is_file() && m.len() > STEP_MIN)?;
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    metadata.is_file().then_some((file, metadata.len()))
}

struct Remover {
    files: UnboundedSender<(File, u64)>,
    waiting: Arc<Waiting>,
}

#[derive(Default)]
struct Waiting {
    files: AtomicUsize,
    bytes: AtomicU64,
}

impl Remover {
    fn of_this_process() -> &'static Remover {
        static REMOVER: OnceLock<Remover> = OnceLock::new();
        REMOVER.get_or_init(|| {
            let (files, taken) = unbounded();
            let waiting = Arc::new(Waiting::default());
            let seen = waiting.clone();
            // A process that ends does not wait for it: the kernel frees what is left.
            spawn_thread("file-removal", ThreadPriority::Batch, move || {
                block_on(give_back(taken, &seen));
            });
            Remover { files, waiting }
        })
    }

    fn take(&self, file: File, len: u64) {
        if self.waiting.files.fetch_add(1, Relaxed) >= WAITING_MAX {
            self.waiting.files.fetch_sub(1, Relaxed);
            return;
        }
        self.waiting.bytes.fetch_add(len, Relaxed);
        // The thread takes files as long as the process runs.
        let _ = self.files.unbounded_send((file, len));
    }
}

async fn give_back(mut files: UnboundedReceiver<(File, u64)>, waiting: &Waiting) {
    while let Some((file, len)) = files.next().await {
        contained(async {
            panic_point("a removal");
            cut_off(&file, len, waiting).await;
        })
        .await;
        drop(file);
        waiting.files.fetch_sub(1, Relaxed);
    }
}

async fn is_ours_alone(file: &File) -> bool {
    for _ in 0..LEASE_ATTEMPTS {
        // A snapshot has it.
        if file.metadata().map_or(true, |metadata| metadata.nlink() > 0) {
            return false;
        }
        match real::lease(file) {
            Ok(()) => return true,
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => sleep(LEASE_PAUSE).await,
            // A file system without leases.
            Err(_) => return false,
        }
    }
    false
}

/// What is left after it, closing the file frees.
async fn cut_off(file: &File, len: u64, waiting: &Waiting) {
    let mut left = len;
    let is_ours = is_ours_alone(file).await;
    while is_ours && left > 0 && !is_short_of_space(file, waiting.bytes.load(Relaxed)) {
        let step = waiting.bytes.load(Relaxed) / STEPS / STEP_MIN * STEP_MIN;
        let step = step.clamp(STEP_MIN, STEP_MAX);
        let rest = (left - 1) / step * step;
        let began = now();
        if file.set_len(rest).and_then(|()| file.sync_data()).is_err() {
            break;
        }
        waiting.bytes.fetch_sub(left - rest, Relaxed);
        left = rest;
        sleep(REST_MIN.max((now() - began) * REST_PER_STEP)).await;
    }
    waiting.bytes.fetch_sub(left, Relaxed);
}

/// Whether less is free than a twentieth of the file system, or than what waits.
fn is_short_of_space(file: &File, waiting: u64) -> bool {
    real::space_around(file)
        .map_or(true, |space| space.free < space.total / 20 || space.free < waiting)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    const LEN: u64 = 5 * STEP_MIN + 1;

    fn large(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("halcyon-{name}-{}", std::process::id()));
        fs::write(&path, vec![7; LEN as usize]).expect("writable");
        path
    }

    fn bytes_of(mut file: File) -> u64 {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("readable");
        assert!(bytes.iter().all(|byte| *byte == 7));
        bytes.len() as u64
    }

    /// The file, without its name, and what waits with it.
    fn unlinked(path: &Path) -> (File, Waiting) {
        let (file, len) = open_if_large(path).expect("large");
        assert_eq!(len, LEN);
        fs::remove_file(path).expect("there");
        (file, Waiting { files: 1.into(), bytes: LEN.into() })
    }

    #[test]
    fn what_is_large_is_cut_off_to_nothing() {
        let (file, waiting) = unlinked(&large("alone"));
        block_on(async {
            assert!(is_ours_alone(&file).await);
            cut_off(&file, LEN, &waiting).await;
        });
        assert_eq!(waiting.bytes.load(Relaxed), 0);
        if !is_short_of_space(&file, 0) {
            assert_eq!(file.metadata().expect("open").len(), 0);
        }
    }

    #[test]
    fn what_others_have_keeps_its_bytes() {
        let path = large("others");
        let reader = File::open(&path).expect("there");
        let (file, _) = unlinked(&path);
        assert!(!block_on(is_ours_alone(&file)));
        drop(file);
        assert_eq!(bytes_of(reader), LEN);

        let path = large("snapshot");
        let link = path.with_extension("link");
        fs::hard_link(&path, &link).expect("the same directory");
        remove(&path).expect("there");
        let (file, _) = open_if_large(&link).expect("large");
        assert!(!block_on(is_ours_alone(&file)));
        assert_eq!(bytes_of(File::open(&link).expect("there")), LEN);
        remove(&link).expect("there");
        assert!(!link.exists());
    }

    #[test]
    fn what_is_small_or_no_file_is_removed_at_once() {
        let path = large("small");
        fs::write(&path, [7]).expect("writable");
        assert!(open_if_large(&path).is_none());
        remove(&path).expect("there");
        fs::create_dir(&path).expect("free again");
        assert!(open_if_large(&path).is_none());
        remove(&path).expect("empty");
        assert_eq!(remove(&path).expect_err("gone").kind(), io::ErrorKind::NotFound);
    }
}
