//! A panic ends what has panicked, and nothing else.
//!
//! 1. Threads, tasks and jobs run the work of others within [`contained`] or [`caught`]. A panic drops the work while its thread unwinds;
//!    a dropped sender tells the waiter.
//! 2. The runtime ends the process if an unwinding thread wakes a task of another thread. So tasks are polled with our own wakers, which
//!    postpone a wake-up until the thread has unwound.
//! 3. A task that its thread needs all the time is restarted (`kept`).
//! 4. State that may be half-changed is not used any more; its owner sees to that.
//! 5. Tests let each kind of thread and task panic, by a [`panic_point`]; what is here is tested with tasks (`task.rs`).

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::panicking;

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

thread_local! {
    static PUT_OFF: RefCell<Vec<Waker>> = const { RefCell::new(Vec::new()) };
}

/// Does a job; the error is its panic.
pub fn caught<T>(job: impl FnOnce() -> T) -> Result<T, Payload> {
    let outcome = catch_unwind(AssertUnwindSafe(job));
    // Inside of a destructor the thread may unwind still.
    if outcome.is_err() && !panicking() {
        PUT_OFF.take().into_iter().for_each(Waker::wake);
    }
    outcome
}

/// Wakes, but not while the thread unwinds.
struct Later(Waker);

impl Wake for Later {
    fn wake(self: Arc<Later>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Later>) {
        if !panicking() {
            return self.0.wake_by_ref();
        }
        // A thread that has destroyed its locals wakes no task any more.
        let _ = PUT_OFF.try_with(|put_off| put_off.borrow_mut().push(self.0.clone()));
    }
}

/// A future whose panic is its end; see [`contained`].
struct Contained<F> {
    future: F,
    /// What it was polled with last, and what that became.
    wakers: Option<(Waker, Waker)>,
}

/// The future's output; `None` if it panicked.
pub fn contained<F: Future>(future: F) -> impl Future<Output = Option<F::Output>> {
    Contained { future, wakers: None }
}

impl<F: Future> Future for Contained<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<F::Output>> {
        // SAFETY: the future is pinned with the structure, and nothing moves it out of that; the wakers are not pinned.
        let (mut future, wakers) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.future), &mut this.wakers)
        };
        if wakers.as_ref().is_none_or(|(known, _)| !known.will_wake(context.waker())) {
            *wakers = None;
        }
        let (_, later) = wakers.get_or_insert_with(|| {
            let waker = context.waker().clone();
            (waker.clone(), Waker::from(Arc::new(Later(waker))))
        });
        match caught(|| future.as_mut().poll(&mut Context::from_waker(later))) {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        }
    }
}

/// Has panics told: the place and the words, on the thread that panics.
pub fn tell_panics(tell: impl Fn(&str) + Send + Sync + 'static) {
    std::panic::set_hook(Box::new(move |info| tell(&words(info))));
}

fn words(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map_or("a place unknown".to_owned(), ToString::to_string);
    let why = info.payload_as_str().unwrap_or("no words");
    let backtrace = std::backtrace::Backtrace::capture();
    let backtrace = match backtrace.status() {
        std::backtrace::BacktraceStatus::Captured => format!("\n{backtrace}"),
        _ => String::new(),
    };
    format!("panicked at {place}: {why}{backtrace}")
}

/// A place at which a test can have what runs there panic. Nothing in a release build.
#[inline(always)]
#[track_caller]
pub fn panic_point(name: &'static str) {
    #[cfg(debug_assertions)]
    armed::pass(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

#[cfg(debug_assertions)]
pub use armed::panic_at;

#[cfg(debug_assertions)]
mod armed {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use crate::sync::mutex::Mutex;

    static ANY: AtomicBool = AtomicBool::new(false);
    static ARMED: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

    /// Lets the next thread that passes the place panic, anywhere in this process. Of debug builds only.
    pub fn panic_at(name: &'static str) {
        ARMED.lock().push(name);
        ANY.store(true, Relaxed);
    }

    #[track_caller]
    pub(super) fn pass(name: &'static str) {
        if !ANY.load(Relaxed) {
            return;
        }
        let mut armed = ARMED.lock();
        let Some(at) = armed.iter().position(|known| *known == name) else { return };
        armed.swap_remove(at);
        ANY.store(!armed.is_empty(), Relaxed);
        drop(armed);
        panic!("the test has {name} panic");
    }
}
