//! How long a request holds its shard, and where it computes what would hold it longer. The one home of both.
//!
//! 1. A loop over rows, keys or statements has a [`Pace`]: it yields its thread every `SLICE`, so that the shard serves other requests
//!    meanwhile, and learns the time, to compare it with its deadline.
//! 2. A computation between two yields has an allowance ([`Work::small`], some 200 µs). Most need little of it.
//! 3. What needs more has no place to yield: parsing, binding, an expression of one row, a sort. It restarts on a thread for computing
//!    ([`until`]) with its own copy of the inputs, and ends at the deadline of its request. A job that calls user-defined functions runs
//!    on the threads for functions instead ([`within`]), since a call may take its whole limit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use halcyon_cql::plan::{Execution, Work};
use halcyon_functions::{self as functions, Calls, SlowCalls};
use halcyon_io::clock::{Instant, now};
use halcyon_io::{compute, yield_now};
use halcyon_model::request::Value;
use halcyon_model::uuid;
use halcyon_syntax::Error as CqlError;

use crate::{Error, RequestMemory, Result};

/// The longest time between two yields.
const SLICE: Duration = Duration::from_micros(300);

/// Steps between two readings of the clock.
const STEPS_PER_READING: u32 = 32;

/// How long a loop has held its thread.
#[derive(Debug, Default)]
pub struct Pace {
    steps: u32,
    /// The start of the slice; `None` until the clock is read first, which a short loop never does.
    since: Option<Instant>,
}

impl Pace {
    /// Counts a row, a key, a statement. Whether `pause` is due.
    pub fn step(&mut self) -> bool {
        self.steps = self.steps.wrapping_add(1);
        self.steps.is_multiple_of(STEPS_PER_READING)
    }

    /// Yields if the slice is used up, and returns the time.
    pub async fn pause(&mut self) -> Instant {
        let time = now();
        if time - *self.since.get_or_insert(time) <= SLICE {
            return time;
        }
        yield_now().await;
        let time = now();
        self.since = Some(time);
        time
    }
}

/// Does a job on a thread for computations; `None` if the deadline came first. It is given up there as soon as it notices.
pub async fn until<T: Send + 'static>(
    deadline: Instant,
    job: impl FnOnce(&Work<'_>) -> Result<T, CqlError> + Send + 'static,
) -> Result<Option<T>> {
    let done = compute(move || worked(deadline, u64::MAX, None, job).0);
    match done.await.map_err(Error::JobLost)? {
        Ok(done) => Ok(Some(done)),
        Err(CqlError::Exhausted) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A job, and the language of the function that it calls and that is not called there.
fn worked<T>(
    deadline: Instant,
    memory: u64,
    calls: Option<&Calls>,
    job: impl FnOnce(&Work<'_>) -> Result<T, CqlError>,
) -> (Result<T, CqlError>, Option<&'static str>) {
    let in_time = || now() < deadline;
    let mut work = Work::while_there_is_time(&in_time).with_memory(memory);
    if let Some(calls) = calls {
        work = work.with_runner(calls);
    }
    // It may have waited for others.
    let done =
        if in_time() { work.spend(0).and_then(|()| job(&work)) } else { Err(CqlError::Exhausted) };
    (done, work.wanted())
}

/// As [`until`], for a result of up to `memory` bytes, which may call user-defined functions: the job then restarts on the threads of
/// their language. `wanted`: the language, if it is known before.
pub async fn within<T: Send + 'static>(
    (deadline, memory, slow): (Instant, u64, &SlowCalls),
    mut wanted: Option<&'static str>,
    mut job: impl FnMut(&Work<'_>) -> Result<T, CqlError> + Send + 'static,
) -> Result<Option<T>> {
    if wanted.is_none() {
        let tried = compute(move || {
            let tried = worked(deadline, memory, None, &mut job);
            (tried, job)
        });
        match tried.await.map_err(Error::JobLost)? {
            ((Err(CqlError::Exhausted), language), again) => (wanted, job) = (language, again),
            ((done, _), _) => return Ok(Some(done?)),
        }
    }
    let Some(language) = wanted else { return Ok(None) };
    let called = functions::apart(language, deadline, move || {
        let calls = Calls::default();
        let (done, _) = worked(deadline, memory, Some(&calls), job);
        (done, calls.slow)
    });
    match called.await.map_err(Error::JobLost)? {
        Some((Ok(done), calls)) => {
            calls.take().into_iter().for_each(|warning| slow.note(warning));
            Ok(Some(done))
        }
        None | Some((Err(CqlError::Exhausted), _)) => Ok(None),
        Some((Err(error), _)) => Err(error.into()),
    }
}

/// A request's inputs as its own.
struct Owned {
    values: Vec<Option<Option<Arc<[u8]>>>>,
    /// Of the values, each counted once.
    bytes: u64,
    now_micros: i64,
    now_seconds: u32,
    protocol_version: u8,
    uuids: uuid::Generator,
}

impl Owned {
    fn of(execution: &Execution<'_>) -> Owned {
        // One that has a name stands for each marker of that name.
        let mut known: HashMap<(usize, usize), Arc<[u8]>> = HashMap::new();
        let mut own = |value: &Value<'_>| match value {
            Value::Unset => None,
            Value::Null => Some(None),
            Value::Bytes(bytes) => {
                let place = (bytes.as_ptr().addr(), bytes.len());
                Some(Some(known.entry(place).or_insert_with(|| Arc::from(*bytes)).clone()))
            }
        };
        let values = execution.values.iter().map(&mut own).collect();
        Owned {
            values,
            bytes: known.values().map(|value| value.len() as u64).sum(),
            now_micros: execution.now_micros,
            now_seconds: execution.now_seconds,
            protocol_version: execution.protocol_version,
            uuids: execution.uuids.fork(),
        }
    }

    fn with<T>(&self, work: &Work<'_>, bind: impl FnOnce(&Execution<'_>) -> T) -> T {
        let values: Vec<Value<'_>> = self.values.iter().map(borrowed).collect();
        bind(&Execution {
            values: &values,
            now_micros: self.now_micros,
            now_seconds: self.now_seconds,
            protocol_version: self.protocol_version,
            uuids: &self.uuids,
            json: &[],
            guard: None,
            work,
        })
    }
}

fn borrowed(value: &Option<Option<Arc<[u8]>>>) -> Value<'_> {
    match value {
        None => Value::Unset,
        Some(None) => Value::Null,
        Some(Some(bytes)) => Value::Bytes(bytes),
    }
}

/// Binds a plan to a request's values, here if that is little work; `None` if it was not done by the deadline.
pub async fn bind<P: Clone + Send + 'static, T: Send + 'static>(
    plan: &P,
    execution: &Execution<'_>,
    (deadline, memory, slow): (Instant, &RequestMemory, &SlowCalls),
    bind: impl Fn(&P, &Execution<'_>) -> Result<T, CqlError> + Send + 'static,
) -> Result<Option<T>> {
    match bind(plan, execution) {
        Ok(bound) => Ok(Some(bound)),
        Err(CqlError::Exhausted) => {
            let (plan, owned) = (plan.clone(), Owned::of(execution));
            let most = memory.for_one() + owned.bytes;
            let job = move |work: &Work<'_>| owned.with(work, |execution| bind(&plan, execution));
            Box::pin(within((deadline, most, slow), execution.work.wanted(), job)).await
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use halcyon_io::block_on;

    use super::*;

    /// Proves that what is small is done on the thread that asks, what is not on another one, with equal inputs, and a deadline ends it.
    #[test]
    fn large_work_is_done_apart() {
        let uuids = uuid::Generator::seeded(1);
        let values = [Value::Unset, Value::Null, Value::Bytes(b"abc")];
        let work = Work::small();
        let execution = Execution {
            values: &values,
            now_micros: 0,
            now_seconds: 0,
            protocol_version: 5,
            uuids: &uuids,
            json: &[],
            guard: None,
            work: &work,
        };
        let here = std::thread::current().id();
        let spending = |units: u64| {
            move |_: &(), execution: &Execution<'_>| {
                execution.work.spend(units)?;
                assert_eq!(execution.values, [Value::Unset, Value::Null, Value::Bytes(b"abc")]);
                Ok(std::thread::current().id() == here)
            }
        };
        block_on(async {
            let later = now() + Duration::from_secs(60);
            let (memory, slow) = (RequestMemory::bounded(1 << 20), SlowCalls::default());
            let bind =
                |until, units| bind(&(), &execution, (until, &memory, &slow), spending(units));
            assert!(matches!(bind(later, 1).await, Ok(Some(true))));
            assert!(matches!(bind(later, 1 << 40).await, Ok(Some(false))));
            assert!(matches!(bind(now(), 1 << 40).await, Ok(None)));
        });
    }
}
