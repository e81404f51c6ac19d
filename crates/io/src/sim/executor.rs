//! A runtime on one thread that a seed drives: which task runs next, what time it is, which numbers are random.
//!
//! 1. What is a thread in production is a task here (`Runtime::spawn_thread`), and runs among the tasks of all other "threads".
//! 2. Of the tasks that are ready, the seed picks the next one to poll. The same seed and program give the same order.
//! 3. Time stands still while a task is ready. When all wait, it jumps to the first timer. [`SimClock::advance`] may move it too. With
//!    [`SimRuntime::set_stalls`] some tasks that are ready wait for a time first, as those of a thread that has no core.
//! 4. When the outermost future of [`SimRuntime::block_on`] is done, all other tasks are dropped, as when a process ends.
//! 5. [`SimRuntime::run_until_halt`] also ends when the machine halts: at a step that was set in advance, or when a disk crashes. Whatever
//!    was to run next does not run, as when a process is killed.
//! 6. If all tasks wait and no timer is set, the program is deadlocked: `block_on` panics with that text. It also panics if the outermost
//!    future has not been polled for [`STEPS_MAX`] steps of the others.
//!
//! It runs nothing that waits for the kernel: use it with a simulated disk.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::runtime::clock::{Instant, SimClock, nanos};
use crate::runtime::entered::{self, EnteredRuntime, Job};
use crate::runtime::panics::caught;
use crate::runtime::random::Random;
use crate::sim::network::Network;
use crate::sync::mutex::Mutex;

/// The outermost future's number.
const OUTERMOST: u64 = 0;
const STEPS_MAX: u64 = 50_000_000;

/// Clones are the same runtime.
#[derive(Clone)]
pub struct SimRuntime(Arc<Shared>);

struct Shared {
    clock: SimClock,
    schedule: Mutex<Schedule>,
    network: Mutex<Network>,
}

struct Schedule {
    random: Random,
    ready: Vec<u64>,
    /// By time, then in the order in which they were set.
    timers: BTreeMap<(Instant, u64), Waker>,
    last_number: u64,
    /// Polls so far, of all runs.
    steps: u64,
    /// Which task was polled when, in one number.
    trace: u64,
    /// The chance of a stall, in millionths, and how long one is at most.
    stalls: (u64, Duration),
    halt_at: Option<u64>,
    /// The run is to halt before the next step.
    halting: bool,
    halted: bool,
}

/// What a turn of the executor does.
enum Next {
    Poll(u64),
    Halt,
    /// All tasks wait, and no timer is set.
    Nothing,
}

/// Puts its task among those that are ready.
struct TaskWaker {
    runtime: SimRuntime,
    task: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<TaskWaker>) {
        self.runtime.schedule().make_ready(self.task);
    }
}

impl Schedule {
    fn make_ready(&mut self, task: u64) {
        if !self.ready.contains(&task) {
            self.ready.push(task);
        }
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn pick(&mut self, now: Instant) -> Option<u64> {
        let at = self.random.below(self.ready.len() as u64) as usize;
        let picked = (at < self.ready.len()).then(|| self.ready.swap_remove(at))?;
        self.steps += 1;
        let seen = now.as_nanos() ^ picked.rotate_left(32);
        self.trace = (self.trace ^ seen).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        Some(picked)
    }

    /// How long the task that was picked waits for a core.
    fn stall(&mut self) -> Option<Duration> {
        let (per_million, most) = self.stalls;
        let stalls = per_million > 0 && self.random.chance(per_million, 1_000_000);
        stalls.then(|| Duration::from_nanos(self.random.below(nanos(most))))
    }

    fn must_halt(&self) -> bool {
        self.halting || self.halt_at.is_some_and(|at| self.steps >= at)
    }
}

/// What of a runtime belongs to the thread that runs it: tasks are not `Send`.
struct Entered {
    runtime: SimRuntime,
    tasks: RefCell<BTreeMap<u64, Job>>,
    /// Of the task that is being polled: it is not in `tasks` meanwhile.
    polled: Cell<u64>,
    polled_is_stopped: Cell<bool>,
}

/// The simulated runtime that runs on this thread, if one does.
pub(crate) fn entered() -> Option<SimRuntime> {
    let entered: Rc<dyn Any> = entered::entered()?;
    entered.downcast::<Entered>().ok().map(|entered| entered.runtime.clone())
}

impl EnteredRuntime for Entered {
    fn clock(&self) -> &SimClock {
        self.runtime.clock()
    }

    fn sleep_until(&self, due: Instant) -> Job {
        Box::pin(Sleep::until(self.runtime.clone(), due))
    }

    fn random(&self) -> Random {
        self.runtime.random()
    }

    fn spawn(&self, job: Job) -> u64 {
        let number = {
            let mut schedule = self.runtime.schedule();
            let number = schedule.number();
            schedule.make_ready(number);
            number
        };
        self.tasks.borrow_mut().insert(number, job);
        number
    }

    fn stop(&self, task: u64) {
        if self.polled.get() == task {
            self.polled_is_stopped.set(true);
        }
        let stopped = self.tasks.borrow_mut().remove(&task);
        drop(stopped);
    }
}

impl SimRuntime {
    pub fn seeded(seed: u64) -> SimRuntime {
        let schedule = Mutex::new(Schedule {
            random: Random::seeded(seed),
            ready: Vec::new(),
            timers: BTreeMap::new(),
            last_number: OUTERMOST,
            steps: 0,
            trace: 0,
            stalls: (0, Duration::ZERO),
            halt_at: None,
            halting: false,
            halted: false,
        });
        let network = Mutex::new(Network::seeded(seed));
        SimRuntime(Arc::new(Shared { clock: SimClock::started(), schedule, network }))
    }

    /// Tasks polled so far: two runs of one seed have the same number after the same events.
    pub fn steps(&self) -> u64 {
        self.schedule().steps
    }

    /// A hash of which task was polled at what time: two runs are the same if it is.
    pub fn trace(&self) -> u64 {
        self.schedule().trace
    }

    /// Ends [`SimRuntime::run_until_halt`] before the step with this number; see [`SimRuntime::steps`].
    pub fn halt_at(&self, step: u64) {
        self.schedule().halt_at = Some(step);
    }

    /// Ends [`SimRuntime::run_until_halt`] before the next step.
    pub fn halt(&self) {
        self.schedule().halting = true;
    }

    /// The chance, in millionths, that a write to a simulated socket resets its connection.
    pub fn set_resets(&self, per_million: u64) {
        self.network().set_resets(per_million);
    }

    /// The chance, in millionths, that a ready task waits for up to `most` before it is polled. It may wait again, so the chance must be
    /// less than one.
    pub fn set_stalls(&self, per_million: u64, most: Duration) {
        self.schedule().stalls = (per_million, most);
    }

    pub(super) fn network(&self) -> MutexGuard<'_, Network> {
        self.0.network.lock()
    }

    pub fn clock(&self) -> &SimClock {
        &self.0.clock
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.0.schedule.lock()
    }

    pub(crate) fn random(&self) -> Random {
        Random::seeded(self.schedule().random.next_u64())
    }

    /// Runs a future, and all tasks that start meanwhile, until it is done.
    ///
    /// # Panics
    /// If a runtime runs on this thread already, if nothing can ever run again, and with the future's own panic.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self.enter(future, false) {
            Some(output) => output,
            None => unreachable!("only run_until_halt halts"),
        }
    }

    /// As [`SimRuntime::block_on`], until the future is done or the machine halts; `None` if it has halted.
    ///
    /// # Panics
    /// As `block_on`.
    pub fn run_until_halt<F: Future>(&self, future: F) -> Option<F::Output> {
        self.schedule().halting = false;
        let output = self.enter(future, true);
        self.schedule().halt_at = None;
        output
    }

    /// Whether the last run ended by a halt: what its tasks do while they are dropped has no effect on a disk.
    pub(super) fn has_halted(&self) -> bool {
        self.schedule().halted
    }

    fn enter<F: Future>(&self, future: F, may_halt: bool) -> Option<F::Output> {
        let entered = Rc::new(Entered {
            runtime: self.clone(),
            tasks: RefCell::default(),
            polled: Cell::new(OUTERMOST),
            polled_is_stopped: Cell::new(false),
        });
        self.schedule().halted = false;
        entered::enter(entered.clone());
        let _clock = self.0.clock.clock().enter();
        let _left = Left(&entered);
        self.schedule().make_ready(OUTERMOST);
        self.turn(&entered, future, may_halt)
    }

    fn turn<F: Future>(&self, entered: &Entered, future: F, may_halt: bool) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut steps = 0;
        loop {
            let task = match self.next(may_halt) {
                Next::Poll(task) => task,
                Next::Halt => return None,
                Next::Nothing => {
                    let waiting = entered.tasks.borrow().len() + 1;
                    panic!("{waiting} tasks wait, and nothing can wake one")
                }
            };
            let waker = self.waker(task);
            let mut context = Context::from_waker(&waker);
            if task == OUTERMOST {
                steps = 0;
                if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                    return Some(output);
                }
            } else {
                entered.poll(task, &mut context);
            }
            steps += 1;
            assert!(steps < STEPS_MAX, "the outermost future waits for what does not come");
        }
    }

    fn waker(&self, task: u64) -> Waker {
        Waker::from(Arc::new(TaskWaker { runtime: self.clone(), task }))
    }

    /// The next task to be polled; if none is ready, after the next timer.
    fn next(&self, may_halt: bool) -> Next {
        loop {
            let due = {
                let mut schedule = self.schedule();
                if may_halt && schedule.must_halt() {
                    schedule.halted = true;
                    return Next::Halt;
                }
                let now = self.0.clock.clock().now();
                match schedule.timers.first_key_value().map(|((at, _), _)| *at) {
                    Some(at) if at <= now => schedule.timers.pop_first(),
                    at => {
                        if let Some(task) = schedule.pick(now) {
                            let Some(stall) = schedule.stall() else { return Next::Poll(task) };
                            let timer = (now + stall, schedule.number());
                            schedule.timers.insert(timer, self.waker(task));
                            continue;
                        }
                        let Some(at) = at else { return Next::Nothing };
                        self.0.clock.advance(at - now);
                        None
                    }
                }
            };
            // Waking takes the lock.
            if let Some((_, waker)) = due {
                waker.wake();
            }
        }
    }
}

impl Entered {
    fn poll(&self, task: u64, context: &mut Context<'_>) {
        // JobLost: it was woken once more than needed.
        let Some(mut job) = self.tasks.borrow_mut().remove(&task) else { return };
        self.polled.set(task);
        self.polled_is_stopped.set(false);
        // A panic ends a task and nothing else, as in production; who awaits the task hears of it.
        let polled = caught(|| job.as_mut().poll(context));
        self.polled.set(OUTERMOST);
        if matches!(polled, Ok(Poll::Pending)) && !self.polled_is_stopped.get() {
            self.tasks.borrow_mut().insert(task, job);
        }
    }
}

/// Drops all tasks when `block_on` ends, by return or by panic.
struct Left<'a>(&'a Rc<Entered>);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        // What is dropped may start more; what that starts is not waited for.
        for _ in 0..16 {
            let tasks = self.0.tasks.take();
            if tasks.is_empty() {
                break;
            }
            drop(tasks);
        }
        let mut schedule = self.0.runtime.schedule();
        schedule.ready.clear();
        let timers = std::mem::take(&mut schedule.timers);
        drop(schedule);
        drop(timers);
        let ports = self.0.runtime.network().close_all();
        drop(ports);
        entered::leave();
    }
}

/// Waits until the clock shows a time.
pub(crate) struct Sleep {
    runtime: SimRuntime,
    due: Instant,
    number: Option<u64>,
}

impl Sleep {
    pub(crate) fn until(runtime: SimRuntime, due: Instant) -> Sleep {
        Sleep { runtime, due, number: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.runtime.0.clock.clock().now() >= self.due {
            return Poll::Ready(());
        }
        let runtime = self.runtime.clone();
        let mut schedule = runtime.schedule();
        let number = *self.number.get_or_insert_with(|| schedule.number());
        schedule.timers.insert((self.due, number), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let timer = self.runtime.schedule().timers.remove(&(self.due, number));
            drop(timer);
        }
    }
}

impl fmt::Debug for SimRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schedule = self.schedule();
        write!(f, "SimRuntime({} ready, {} timers)", schedule.ready.len(), schedule.timers.len())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;
    use crate::runtime::clock;
    use crate::{Runtime, ThreadPriority, spawn, yield_now};

    /// Three "threads" that sleep, yield and send to one another; what arrives, in order, and when.
    fn history(seed: u64) -> Vec<(u64, u64, i64)> {
        let simulation = SimRuntime::seeded(seed);
        let runtime = Runtime::simulated(&simulation);
        simulation.block_on(async {
            let (sender, mut receiver) = futures_channel::mpsc::unbounded();
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let (sender, runtime_there) = (sender.clone(), runtime.clone());
                    runtime.spawn_thread("writer", ThreadPriority::Normal, move || async move {
                        let mut random = runtime_there.random();
                        for number in 0..20 {
                            match random.below(3) {
                                0 => yield_now().await,
                                _ => clock::sleep(Duration::from_millis(random.below(50))).await,
                            }
                            let _ = sender.unbounded_send((thread, number, clock::unix_micros()));
                        }
                        thread
                    })
                })
                .collect();
            drop(sender);
            for (index, thread) in threads.into_iter().enumerate() {
                assert_eq!(thread.join().await, Some(index as u64));
            }
            let mut seen = Vec::new();
            while let Some(one) = receiver.next().await {
                seen.push(one);
            }
            seen
        })
    }

    /// Proves that a seed gives one history of tasks, times and random numbers, and that seeds differ.
    #[test]
    fn a_seed_gives_one_history() {
        let first = history(1);
        assert_eq!(first.len(), 60);
        assert!(first.windows(2).all(|pair| pair[0].2 <= pair[1].2), "time runs forwards");
        assert_eq!(history(1), first);
        assert!((2..6).any(|seed| history(seed) != first));
    }

    /// Proves that tasks that are ready wait at times if they may stall, and never otherwise.
    #[test]
    fn a_ready_task_stalls() {
        for (per_million, waits) in [(0, false), (500_000, true)] {
            let simulation = SimRuntime::seeded(5);
            let most = Duration::from_millis(3);
            let began = simulation.clock().clock().now();
            simulation.block_on(async {
                simulation.set_stalls(per_million, most);
                for _ in 0..10 {
                    yield_now().await;
                }
                simulation.set_stalls(0, most);
            });
            let took = simulation.clock().clock().now() - began;
            assert_eq!(took > Duration::ZERO, waits);
        }
    }

    /// Proves that time jumps: a year passes at once, and shorter sleeps end in their order within it.
    #[test]
    fn time_jumps() {
        let simulation = SimRuntime::seeded(3);
        let began = simulation.clock().clock().now();
        let order = Rc::new(RefCell::new(Vec::new()));
        simulation.block_on(async {
            for days in [5, 1, 3] {
                let order = order.clone();
                spawn(async move {
                    clock::sleep(Duration::from_secs(days * 86_400)).await;
                    order.borrow_mut().push(days);
                })
                .detach();
            }
            clock::sleep(Duration::from_secs(365 * 86_400)).await;
        });
        assert_eq!(*order.borrow(), [1, 3, 5]);
        assert_eq!((simulation.clock().clock().now() - began).as_secs(), 365 * 86_400);
    }

    /// Proves that a deadlocked program is detected.
    #[test]
    #[should_panic(expected = "nothing can wake one")]
    fn a_deadlock_is_told() {
        SimRuntime::seeded(4).block_on(std::future::pending::<()>());
    }

    /// Proves that a task's panic ends only the task, and that what still runs at the end is dropped.
    #[test]
    fn tasks_end() {
        let held = Rc::new(());
        SimRuntime::seeded(5).block_on(async {
            assert_eq!(spawn(async { panic!("only this task") }).await, None::<()>);
            let there = held.clone();
            spawn(async move {
                std::future::pending::<()>().await;
                drop(there);
            })
            .detach();
            yield_now().await;
        });
        assert_eq!(Rc::strong_count(&held), 1);
    }

    /// Proves that a sleep that is dropped early leaves no timer behind, and that a clock moved by hand wakes sleepers.
    #[test]
    fn timers_are_taken_back() {
        let simulation = SimRuntime::seeded(6);
        simulation.block_on(async {
            {
                let mut dropped = pin!(clock::sleep(Duration::from_secs(10)));
                assert!(
                    dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
                );
            }
            assert!(simulation.schedule().timers.is_empty());
            let sleeper = spawn(clock::sleep(Duration::from_secs(100)));
            // The seed decides when it is first polled.
            for _ in 0..100 {
                yield_now().await;
            }
            assert_eq!(simulation.schedule().timers.len(), 1);
            simulation.clock().advance(Duration::from_secs(100));
            let before = clock::now();
            sleeper.await;
            assert_eq!(clock::now(), before);
        });
    }
}
