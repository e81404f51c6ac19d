//! The questions of one task, and their answers.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use halcyon_compaction::{Error, Progress, PurgeBound, Result};
use halcyon_io::{CpuAccount, Mutex, clock};
use halcyon_stream::PartitionKey;

use crate::ahead::Ahead;
use crate::messages::{Bounds, Reply, Tick};

/// Ticks that may be unanswered: the other side sets the pace, but a wake-up late does not hold up the stream.
const UNANSWERED: u32 = 4;
/// The other side hears of each running task at least this often: it kills a process that seems to have forgotten one.
pub(crate) const QUIET: Duration = Duration::from_secs(10);

/// Where replies go; whole frames, from all threads.
pub(crate) struct Replies(Mutex<Box<dyn Write + Send>>);

impl Replies {
    pub(crate) fn new(to: impl Write + Send + 'static) -> Replies {
        Replies(Mutex::new(Box::new(to)))
    }

    /// Fails if the other side has disconnected, which also ends this process.
    pub(crate) fn send(&self, task: u64, reply: &Reply) -> std::io::Result<()> {
        let bytes = reply.frame(task).encode()?;
        let mut to = self.0.lock();
        to.write_all(&bytes)?;
        to.flush()
    }
}

/// What a task receives while it runs.
pub(crate) enum Answer {
    Bounds(Bounds),
    Granted(String),
    GoOn(i64),
    Stop,
}

/// Of a task that runs, for the thread that reads requests.
#[derive(Clone)]
pub(crate) struct Ear {
    progress: Progress,
    answers: Sender<Answer>,
}

impl Ear {
    pub(crate) fn tell(&self, answer: Answer) {
        if matches!(answer, Answer::Stop) {
            self.progress.cancel();
        }
        // An error means that the task has ended.
        let _ = self.answers.send(answer);
    }
}

pub(crate) struct Exchange {
    task: u64,
    replies: Arc<Replies>,
    pub(crate) progress: Progress,
    /// Of all threads of the task.
    pub(crate) cpu: CpuAccount,
    /// Bytes of memory that the task was admitted with; 0 while it waits for them.
    memory: AtomicU64,
    /// When something was said last, on the clock of the thread.
    said: AtomicU64,
    /// A task on one thread asks one question at a time; the lock is for the type's sake.
    state: Mutex<Hearing>,
}

struct Hearing {
    answers: Receiver<Answer>,
    unanswered: u32,
    /// As the last answer to a tick says.
    floor: i64,
    ahead: Ahead,
}

impl Exchange {
    pub(crate) fn new(task: u64, replies: Arc<Replies>) -> (Arc<Exchange>, Ear) {
        let (sender, answers) = channel();
        let progress = Progress::default();
        let ear = Ear { progress: progress.clone(), answers: sender };
        let state = Mutex::new(Hearing {
            answers,
            unanswered: 0,
            floor: i64::MIN,
            ahead: Ahead::default(),
        });
        let said = AtomicU64::new(clock::now().as_nanos());
        let (cpu, memory) = (CpuAccount::default(), AtomicU64::new(0));
        (Arc::new(Exchange { task, replies, progress, cpu, memory, said, state }), ear)
    }

    pub(crate) fn admitted(&self, memory: u64) {
        self.memory.store(memory, Ordering::Relaxed);
    }

    fn send(&self, reply: &Reply) -> Result<()> {
        self.said.store(clock::now().as_nanos(), Ordering::Relaxed);
        self.replies.send(self.task, reply).map_err(|_| Error::Cancelled)
    }

    pub(crate) fn ask_output(&self, first: i64) -> Result<String> {
        let mut hearing = self.state.lock();
        self.send(&Reply::AskOutput(first))?;
        match hearing.next()? {
            Answer::Granted(path) => Ok(path),
            _ => Err(unasked()),
        }
    }

    fn bound(&self, key: &PartitionKey) -> Result<i64> {
        let mut hearing = self.state.lock();
        if let Some(bound) = hearing.ahead.take(key) {
            return Ok(bound);
        }
        let ahead = hearing.ahead.wanted();
        self.send(&Reply::AskBound { key: key.bytes.clone(), ahead })?;
        match hearing.next()? {
            Answer::Bounds(Bounds { bound, ahead }) => {
                hearing.ahead.put(&ahead);
                Ok(bound)
            }
            _ => Err(unasked()),
        }
    }

    /// How far the task is; `stored`: bytes of inputs that were read since the last tick.
    pub(crate) fn tick(&self, stored: u64) -> Result<()> {
        let now = self.progress.snapshot();
        let mut hearing = self.state.lock();
        self.send(&Reply::Tick(Tick {
            stored,
            read: now.data_read,
            total: now.data_total,
            written: now.data_written,
            partitions: now.partitions,
            cpu: u64::try_from(self.cpu.spent().as_micros()).unwrap_or(u64::MAX),
            memory: self.memory.load(Ordering::Relaxed),
        }))?;
        hearing.unanswered += 1;
        while hearing.unanswered > UNANSWERED {
            let answer = hearing.receive()?;
            hearing.go_on(&answer)?;
        }
        while let Ok(answer) = hearing.answers.try_recv() {
            if matches!(answer, Answer::Stop) {
                return Err(Error::Cancelled);
            }
            hearing.go_on(&answer)?;
        }
        Ok(())
    }

    /// A tick before the first: its answer has a floor.
    pub(crate) fn first_tick(&self) -> Result<()> {
        self.tick(0)?;
        let mut hearing = self.state.lock();
        while hearing.unanswered > 0 {
            let answer = hearing.receive()?;
            hearing.go_on(&answer)?;
        }
        Ok(())
    }

    /// Whether nothing was said for a while.
    pub(crate) fn is_quiet(&self) -> bool {
        let said = Duration::from_nanos(self.said.load(Ordering::Relaxed));
        Duration::from_nanos(clock::now().as_nanos()).saturating_sub(said) >= QUIET
    }

    /// The task is alive, in steps that may be many and have no ticks of their own.
    pub(crate) fn goes_on(&self) -> Result<()> {
        if self.is_quiet() { self.tick(0) } else { Ok(()) }
    }

    fn floor(&self) -> i64 {
        self.state.lock().floor
    }
}

fn unasked() -> Error {
    Error::Invalid("the node sent an answer of an unexpected kind".to_owned())
}

impl Hearing {
    fn receive(&self) -> Result<Answer> {
        match self.answers.recv() {
            Ok(Answer::Stop) | Err(_) => Err(Error::Cancelled),
            Ok(answer) => Ok(answer),
        }
    }

    fn go_on(&mut self, answer: &Answer) -> Result<()> {
        match answer {
            Answer::GoOn(floor) if self.unanswered > 0 => {
                self.unanswered -= 1;
                self.floor = *floor;
                Ok(())
            }
            _ => Err(unasked()),
        }
    }

    /// The next answer that is not to a tick.
    fn next(&mut self) -> Result<Answer> {
        loop {
            match self.receive()? {
                answer @ Answer::GoOn(_) => self.go_on(&answer)?,
                answer => return Ok(answer),
            }
        }
    }
}

/// Asks Cassandra's own controller, which knows the memtables and the SSTables outside of the compaction.
pub(crate) struct AskedBound(pub(crate) Arc<Exchange>);

impl PurgeBound for AskedBound {
    fn min_timestamp(&self, key: &PartitionKey) -> i64 {
        self.0.bound(key).unwrap_or_else(|_| {
            // Nothing is purged, and the task fails at its next step.
            self.0.progress.cancel();
            i64::MIN
        })
    }

    fn floor(&self) -> i64 {
        self.0.floor()
    }
}
