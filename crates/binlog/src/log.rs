//! One log: its queue, its thread, and what it has counted.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use halcyon_io::clock::{self, Instant, now};
use halcyon_io::{ThreadPriority, spawn_thread};

use crate::archive::Archive;
use crate::folder::{Folder, Naming, rolled_files};
use crate::options::Options;
use crate::queue::Queue;
use crate::tell::{Severity, Tell};

/// How long a request waits for room in the queue where `block` is set. Cassandra's waits without end. Chosen: below the time-outs of
/// all drivers, which would send the request again.
pub const BLOCKED_MAX: Duration = Duration::from_secs(1);
/// How often a request that waits looks for room.
const LOOK: Duration = Duration::from_millis(5);
/// Bytes that are written at once.
const AT_ONCE: u64 = 1 << 20;
/// How often losses and errors are reported (`NoSpamLogger`).
const REPORT_PERIOD: Duration = Duration::from_secs(60);
/// How often the writer wakes without records, to tell losses.
const IDLE: Duration = Duration::from_secs(1);
/// How long the end of a log waits for its writer. Chosen: a device that is stuck must not keep a node from its restart.
const PATIENCE: Duration = Duration::from_secs(5);

/// What has become of the records of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub written: u64,
    /// The queue was full.
    pub dropped: u64,
    /// The file could not be written.
    pub failed: u64,
    /// Bytes that wait for the writer.
    pub queued: u64,
}

#[derive(Debug)]
struct Shared {
    queue: Queue,
    written: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

/// A log that takes records. Dropped, it ends after what waits is written.
#[derive(Debug)]
pub struct BinLog {
    name: &'static str,
    options: Options,
    shared: Arc<Shared>,
}

impl BinLog {
    /// Opens the file and starts the thread. `name`: as messages have it. Blocks for the files' sake.
    pub fn start(
        name: &'static str,
        options: &Options,
        naming: Naming,
        tell: Tell,
    ) -> io::Result<BinLog> {
        let existing = match options.archive_command.is_empty() {
            true => Vec::new(),
            // Before the log opens a file of its own.
            false => rolled_files(&options.directory, naming).unwrap_or_default(),
        };
        let folder = Folder::open(options, naming)?;
        let existing = existing.into_iter().map(|found| found.path).collect();
        let archive = (!options.archive_command.is_empty())
            .then(|| Archive::start(options, existing, tell.clone()));
        let shared = Arc::new(Shared {
            queue: Queue::new(options.max_queue_weight),
            written: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        });
        let writer = Writer {
            name,
            shared: shared.clone(),
            folder,
            archive,
            tell,
            told_lost: (None, 0),
            told_error: None,
        };
        drop(spawn_thread(name, ThreadPriority::Normal, move || writer.run()));
        Ok(BinLog { name, options: options.clone(), shared })
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Hands a record to the writer. May wait for room, but not longer than [`BLOCKED_MAX`]; the record is lost then, and counted.
    pub async fn put(&self, mut record: Vec<u8>) {
        let queue = &self.shared.queue;
        if !queue.fits(&record) {
            self.shared.dropped.fetch_add(1, Relaxed);
            return;
        }
        let mut until: Option<Instant> = None;
        loop {
            let Err(back) = queue.push(record) else { return };
            record = back;
            let until = *until.get_or_insert_with(|| now() + BLOCKED_MAX);
            if !self.options.block || now() >= until {
                self.shared.dropped.fetch_add(1, Relaxed);
                return;
            }
            clock::sleep(LOOK).await;
        }
    }

    pub fn counts(&self) -> Counts {
        Counts {
            written: self.shared.written.load(Relaxed),
            dropped: self.shared.dropped.load(Relaxed),
            failed: self.shared.failed.load(Relaxed),
            queued: self.shared.queue.weight(),
        }
    }

    /// Ends the log after what waits is written, or when that takes too long.
    pub async fn stop(&self) {
        self.shared.queue.end();
        let until = now() + PATIENCE;
        while !self.shared.queue.has_ended() && now() < until {
            clock::sleep(LOOK).await;
        }
    }
}

impl Drop for BinLog {
    fn drop(&mut self) {
        self.shared.queue.end();
    }
}

/// The thread.
struct Writer {
    name: &'static str,
    shared: Arc<Shared>,
    folder: Folder,
    archive: Option<Archive>,
    tell: Tell,
    /// When losses were told last, and how many there were.
    told_lost: (Option<Instant>, u64),
    told_error: Option<Instant>,
}

impl Writer {
    fn run(mut self) {
        while let Some(records) = self.shared.queue.take(AT_ONCE, IDLE) {
            if !records.is_empty() {
                self.write(&records);
            }
            self.tell_lost(false);
        }
        self.tell_lost(true);
        self.shared.queue.ended();
    }

    fn write(&mut self, records: &[Vec<u8>]) {
        let count = records.len() as u64;
        match self.folder.append(&records.concat()) {
            Ok(rolled) => {
                self.shared.written.fetch_add(count, Relaxed);
                if let Some(path) = rolled.file {
                    self.rolled(path);
                }
            }
            Err(error) => {
                self.folder.give_up();
                let failed = self.shared.failed.fetch_add(count, Relaxed) + count;
                self.error(&format!(
                    "cannot write: {error}; {failed} records are lost so far. Make room on the device, or choose another directory"
                ));
            }
        }
    }

    fn rolled(&mut self, path: std::path::PathBuf) {
        if let Some(archive) = &self.archive {
            return archive.add(path);
        }
        match self.folder.delete_oldest() {
            Ok(deleted) => {
                for path in deleted {
                    let text = format!("{}: deleted {}: max_log_size", self.name, path.display());
                    (self.tell)(Severity::Info, text);
                }
            }
            Err(error) => {
                self.error(&format!("cannot delete its oldest file: {error}; delete it by hand"));
            }
        }
    }

    fn error(&mut self, what: &str) {
        if is_due(&mut self.told_error) {
            (self.tell)(Severity::Error, format!("{}: {what}", self.name));
        }
    }

    /// Tells how many records were dropped since it was told last.
    fn tell_lost(&mut self, is_last: bool) {
        let dropped = self.shared.dropped.load(Relaxed);
        let (at, told) = &mut self.told_lost;
        if dropped > *told && (is_last || is_due(at)) {
            let newly = dropped - *told;
            *told = dropped;
            let text = format!(
                "{}: dropped {newly} records: its queue was full; see max_queue_weight and block",
                self.name
            );
            (self.tell)(Severity::Warning, text);
        }
    }
}

/// Whether something may be told again.
fn is_due(told: &mut Option<Instant>) -> bool {
    let at = now();
    let due = told.is_none_or(|told| at - told >= REPORT_PERIOD);
    if due {
        *told = Some(at);
    }
    due
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use halcyon_io::block_on;

    use super::*;

    fn options(name: &str) -> Options {
        let directory = std::env::temp_dir().join(format!("halcyon-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        Options { directory, ..Options::default() }
    }

    fn told() -> (Arc<Mutex<Vec<String>>>, Tell) {
        let told = Arc::<Mutex<Vec<String>>>::default();
        let to = told.clone();
        (told, Arc::new(move |_, text| to.lock().unwrap().push(text)))
    }

    /// Proves that records are written in order, and all of them before the end.
    #[test]
    fn records_are_written_in_order() {
        let options = options("binlog-order");
        let (_, tell) = told();
        let log = BinLog::start("test-log", &options, Naming::Fixed("t.log"), tell).unwrap();
        block_on(async {
            for number in 0..1000 {
                log.put(format!("{number}\n").into_bytes()).await;
            }
            log.stop().await;
        });
        let text = std::fs::read_to_string(options.directory.join("t.log")).unwrap();
        let expected: String = (0..1000).map(|number| format!("{number}\n")).collect();
        assert_eq!((text, log.counts().written), (expected, 1000));
        std::fs::remove_dir_all(&options.directory).unwrap();
    }

    /// Proves that a file that cannot be written loses records and says so, holds no caller up, and is written again once it can be.
    #[test]
    fn a_full_device_loses_records_and_no_more() {
        let options = options("binlog-full");
        std::fs::create_dir_all(&options.directory).unwrap();
        let path = options.directory.join("t.log");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let (told, tell) = told();
        let log = BinLog::start("test-log", &options, Naming::Fixed("t.log"), tell).unwrap();
        let failed = || log.counts().failed == 1;
        block_on(async {
            log.put(b"lost\n".to_vec()).await;
            wait(failed).await;
            std::fs::remove_file(&path).unwrap();
            log.put(b"kept\n".to_vec()).await;
            log.stop().await;
        });
        assert_eq!(std::fs::read(&path).unwrap(), b"kept\n");
        let told = told.lock().unwrap().join("\n");
        assert!(told.contains("test-log: cannot write") && told.contains("1 records"), "{told}");
        std::fs::remove_dir_all(&options.directory).unwrap();
    }

    async fn wait(until: impl Fn() -> bool) {
        for _ in 0..20_000 {
            if until() {
                return;
            }
            clock::sleep(LOOK).await;
        }
        panic!("it does not come");
    }

    /// Proves that without `block` a full queue drops records and counts them, that with it a caller waits at most for its bound, and
    /// that the losses are reported.
    #[test]
    fn a_full_queue_drops_and_counts() {
        for block in [false, true] {
            let options = Options { max_queue_weight: 200, block, ..options("binlog-drop") };
            let (told, tell) = told();
            let log = BinLog::start("test-log", &options, Naming::Fixed("t.log"), tell).unwrap();
            // The writer of this queue is not running: its thread has its own.
            let stuck = BinLog {
                name: "stuck",
                options: options.clone(),
                shared: Arc::new(Shared {
                    queue: Queue::new(200),
                    written: AtomicU64::new(0),
                    dropped: AtomicU64::new(0),
                    failed: AtomicU64::new(0),
                }),
            };
            block_on(async {
                stuck.put(vec![0; 100]).await;
                stuck.put(vec![0; 100]).await;
                stuck.put(vec![0; 1000]).await;
                log.put(vec![0; 1000]).await;
                log.stop().await;
            });
            assert_eq!((stuck.counts().dropped, stuck.counts().queued), (2, 164));
            assert!(told.lock().unwrap().iter().any(|text| text.contains("dropped 1 records")));
            std::fs::remove_dir_all(&options.directory).unwrap();
        }
    }

    /// Proves that each rolled file is given to the command, also those that an earlier run left.
    #[test]
    fn rolled_files_are_archived() {
        let mut options = options("binlog-archive");
        let archived = options.directory.join("archived");
        std::fs::create_dir_all(&archived).unwrap();
        std::fs::write(options.directory.join("t.log.20200101-00.0"), "old").unwrap();
        options.archive_command = format!("mv %path {}", archived.display());
        options.max_log_size = 160;
        let (_, tell) = told();
        let log = BinLog::start("test-log", &options, Naming::Fixed("t.log"), tell).unwrap();
        let count = |folder: &Path| std::fs::read_dir(folder).unwrap().count();
        block_on(async {
            for number in 1..4 {
                log.put(vec![b'x'; 100]).await;
                wait(|| log.counts().written == number).await;
            }
            wait(|| count(&archived) >= 2).await;
            log.stop().await;
        });
        std::fs::remove_dir_all(&options.directory).unwrap();
    }
}
