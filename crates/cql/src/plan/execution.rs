//! What one execution of a plan gives its terms.

use std::cell::Cell;
use std::fmt;

use halcyon_guardrails::{Guard, Threshold};
use halcyon_model::request::Value;
use halcyon_model::uuid;
use halcyon_schema::function::{JAVA, UserFunction, WASM};
use halcyon_syntax::{Error, Result};

/// What all terms of one execution see the same way.
#[derive(Debug, Clone, Copy)]
pub struct Execution<'a> {
    /// By marker.
    pub values: &'a [Value<'a>],
    /// The request's time: `now()`, `currentTimestamp()`, default timestamps.
    pub now_micros: i64,
    /// Seconds; the client's `now_in_seconds` if it sent one.
    pub now_seconds: u32,
    pub protocol_version: u8,
    /// The source of unique values: `uuid()`, `now()`, list cells.
    pub uuids: &'a uuid::Generator,
    /// The values of the columns in the JSON of an INSERT.
    pub json: &'a [Given],
    /// `None`: no guardrail holds for the request.
    pub guard: Option<&'a Guard>,
    pub work: &'a Work<'a>,
}

impl<'a> Execution<'a> {
    /// Of terms that no request can change: they ask for no value, time or unique value.
    pub(super) fn of_constants(uuids: &'a uuid::Generator, work: &'a Work<'a>) -> Execution<'a> {
        Execution {
            values: &[],
            now_micros: 0,
            now_seconds: 0,
            protocol_version: 5,
            uuids,
            json: &[],
            guard: None,
            work,
        }
    }
}

impl Execution<'_> {
    /// Asks whether an IN has too many values together with the others of its key, which `what` names.
    pub(super) fn check_product(&self, count: usize, what: &str) -> Result<()> {
        let Some(guard) = self.guard else { return Ok(()) };
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let checked = guard.check(Threshold::InSelectCartesianProduct, count, what);
        checked.map_err(halcyon_schema::change::violated)
    }
}

/// The value that a member of the JSON gives its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// The column is not named.
    Nothing,
    Null,
    Value(Vec<u8>),
}

/// Runs the bodies of user-defined functions. It blocks.
pub trait Runner: Sync {
    fn call(&self, function: &UserFunction, arguments: &[Option<&[u8]>])
    -> Result<Option<Vec<u8>>>;

    /// Replaces a state by the function's result of it and a row's arguments, row after row. `arguments` has those of all rows. The last
    /// state, and of how many rows it is: not of all where they take long.
    fn fold(
        &self,
        function: &UserFunction,
        state: Option<&[u8]>,
        arguments: &[Option<Vec<u8>>],
        rows: usize,
    ) -> Result<(Option<Vec<u8>>, usize)>;
}

/// How much may be computed before the thread must be asked.
///
/// A unit is the cost of a byte that is copied or compared, about a nanosecond. A loop over a client's input, or a function call,
/// spends units before it does so. So a thread with other tasks computes what is small, and has [`Error::Exhausted`] for what is not, which
/// it hands to a thread that may take longer.
pub struct Work<'a> {
    left: Cell<u64>,
    exhausted: Cell<bool>,
    /// Whether it may compute as much again.
    more: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// Bytes that may be made of what is given, which a short text can name very often: products of lists, collections, rows of an answer.
    memory: u64,
    room: Cell<u64>,
    /// Only a thread for user-defined functions has one.
    runner: Option<&'a dyn Runner>,
    /// The language of the function for which there was none.
    wanted: Cell<Option<&'static str>>,
}

/// What a thread with other tasks computes at once.
const SMALL: u64 = 200_000;
/// Bytes that a thread with other tasks makes at once.
const SMALL_ROOM: u64 = 4 << 20;
/// What a thread for computations does between two looks at the clock.
const SLICE: u64 = 5_000_000;
/// What a call that is waited for counts: the clock is asked before each.
pub(super) const ASKED: u64 = SLICE;

impl<'a> Work<'a> {
    pub fn small() -> Work<'a> {
        let (left, exhausted) = (Cell::new(SMALL), Cell::new(false));
        Work {
            left,
            exhausted,
            more: None,
            memory: u64::MAX,
            room: Cell::new(SMALL_ROOM),
            runner: None,
            wanted: Cell::new(None),
        }
    }

    /// As long as `more` says so, which is asked at the beginning and about every few milliseconds.
    pub fn while_there_is_time(more: &'a (dyn Fn() -> bool + Sync)) -> Work<'a> {
        let (left, exhausted) = (Cell::new(0), Cell::new(false));
        Work {
            left,
            exhausted,
            more: Some(more),
            memory: u64::MAX,
            room: Cell::new(u64::MAX),
            runner: None,
            wanted: Cell::new(None),
        }
    }

    #[must_use]
    pub fn with_memory(self, memory: u64) -> Work<'a> {
        Work { memory, room: Cell::new(memory), ..self }
    }

    #[must_use]
    pub fn with_runner(self, runner: &'a dyn Runner) -> Work<'a> {
        Work { runner: Some(runner), ..self }
    }

    /// What runs a user-defined function; `Exhausted` where it may not be waited for.
    pub fn runner(&self, function: &UserFunction) -> Result<&'a dyn Runner> {
        self.runner.ok_or_else(|| {
            self.wanted.set(Some(if function.language == WASM { WASM } else { JAVA }));
            self.exhausted.set(true);
            Error::Exhausted
        })
    }

    /// The language of the function that is to be called elsewhere.
    pub fn wanted(&self) -> Option<&'static str> {
        self.wanted.get()
    }

    pub(super) fn memory(&self) -> u64 {
        self.memory
    }

    /// Whether most of it is spent.
    pub fn is_low(&self) -> bool {
        self.left.get() < SMALL / 2 || self.room.get() < SMALL_ROOM / 2
    }

    /// As much as in the beginning, after others had their turn.
    pub fn renew(&self) {
        self.left.set(SMALL);
        self.room.set(SMALL_ROOM);
        self.exhausted.set(false);
        self.wanted.set(None);
    }

    /// Whether anything was refused. What answers yes or no, and not with an error, has then answered no.
    pub(super) fn check(&self) -> Result<()> {
        if self.exhausted.get() { Err(Error::Exhausted) } else { Ok(()) }
    }

    pub fn spend(&self, units: u64) -> Result<()> {
        if let Some(left) = self.left.get().checked_sub(units) {
            self.left.set(left);
            return Ok(());
        }
        if self.more.is_some_and(|more| more()) {
            self.left.set(SLICE);
            return Ok(());
        }
        self.left.set(0);
        self.exhausted.set(true);
        Err(Error::Exhausted)
    }

    /// Whether `bytes` may be made.
    pub fn check_room(&self, bytes: usize) -> Result<()> {
        let room = self.room.get();
        self.make(bytes)?;
        self.room.set(room);
        Ok(())
    }

    /// Counts bytes that are about to be made, or were made of less than about as many.
    pub fn make(&self, bytes: usize) -> Result<()> {
        if let Some(room) = self.room.get().checked_sub(bytes as u64) {
            self.room.set(room);
            return Ok(());
        }
        if self.more.is_some() {
            return Err(Error::TooLarge { limit: self.memory });
        }
        self.room.set(0);
        self.exhausted.set(true);
        Err(Error::Exhausted)
    }

    /// Of items and of bytes.
    pub fn spend_on(&self, count: usize, each: u64) -> Result<()> {
        self.spend((count as u64).saturating_mul(each))
    }
}

impl fmt::Debug for Work<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("left", &self.left.get()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    /// Proves that what is small is done, that what is not is refused, and that one who has time is asked in between.
    #[test]
    fn units_are_spent() {
        let small = Work::small();
        assert_eq!(small.spend(SMALL - 1), Ok(()));
        assert_eq!(small.check(), Ok(()));
        assert_eq!(small.spend(2), Err(Error::Exhausted));
        assert_eq!(small.check(), Err(Error::Exhausted));
        let asked = AtomicU64::new(0);
        let twice = || asked.fetch_add(1, Relaxed) < 2;
        let work = Work::while_there_is_time(&twice);
        assert_eq!((work.spend(1), work.spend_on(10, SLICE / 10)), (Ok(()), Ok(())));
        assert_eq!(asked.load(Relaxed), 1);
        assert_eq!([1, SLICE].map(|units| work.spend(units)), [Ok(()), Ok(())]);
        assert_eq!((asked.load(Relaxed), work.spend(1)), (2, Err(Error::Exhausted)));
    }

    /// Proves that what would make too many bytes is handed on where there are other tasks, and refused where there are none.
    #[test]
    fn bytes_are_counted() {
        let small = Work::small();
        assert_eq!(small.make(SMALL_ROOM as usize / 2 + 1), Ok(()));
        assert!(small.is_low());
        assert_eq!(
            [small.make(SMALL_ROOM as usize), small.check()],
            [(); 2].map(|()| Err(Error::Exhausted))
        );
        small.renew();
        assert_eq!((small.make(1), small.is_low()), (Ok(()), false));
        let work = Work::while_there_is_time(&|| true).with_memory(10);
        assert_eq!([work.make(9), work.make(2)], [Ok(()), Err(Error::TooLarge { limit: 10 })]);
        assert_eq!(work.make(1), Ok(()));
    }
}
