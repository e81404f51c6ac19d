//! Logins and password changes, offered at a fixed rate whatever becomes of them.
//!
//! 1. A login is a connection of its own, from STARTUP to the answer to the password. Many threads share the rate; one that still waits
//!    when its next login is due is late, and what it skips is not offered: the figures say how many were.
//! 2. Changes are statements of one superuser, each for the next role, sent without waiting for answers.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use halcyon_client::blocking::Connection;
use halcyon_oracle::Result;
use halcyon_protocol::client::{Answer, Client};
use halcyon_protocol::{Compression, Consistency, QueryParameters, Version};

use super::secured::Secured;
use crate::connection::{self, local};
use crate::record::Measurements;

pub(super) const HEADING: &str = "what became of the logins and changes";
/// Logins that can be under way.
const THREADS: u32 = 256;
/// Changes that can be under way.
const STREAMS: i16 = i16::MAX;
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Counts {
    offered: AtomicU64,
    done: AtomicU64,
    refused: AtomicU64,
}

impl Counts {
    fn count(&self, is_done: bool) {
        let outcome = if is_done { &self.done } else { &self.refused };
        outcome.fetch_add(1, Relaxed);
    }

    fn measured(&self, to: Measurements, what: &str, seconds: f64) -> Measurements {
        let by_second = |count: &AtomicU64| count.load(Relaxed) as f64 / seconds;
        to.with(&format!("{what}_offered"), by_second(&self.offered))
            .with(&format!("{what}_done"), by_second(&self.done))
            .with(&format!("{what}_refused"), by_second(&self.refused))
    }
}

pub(super) struct Storm {
    began: Instant,
    stop: Arc<AtomicBool>,
    logins: Arc<Counts>,
    changes: Arc<Counts>,
    threads: Vec<JoinHandle<()>>,
}

impl Storm {
    /// `rates`: of logins and of changes, a second.
    pub(super) fn begin(port: u16, rates: (f64, f64), roles: u32) -> Result<Storm> {
        let (stop, began) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let (logins, changes) = (Arc::<Counts>::default(), Arc::<Counts>::default());
        let mut threads = Vec::new();
        let every = Duration::from_secs_f64(f64::from(THREADS) / rates.0);
        for number in 0..THREADS {
            let (stop, counts) = (stop.clone(), logins.clone());
            let first = began + every * number / THREADS;
            let address = local(port);
            threads.push(std::thread::spawn(move || {
                log_in(address, &stop, &counts, (first, every));
            }));
        }
        let mut superuser = Secured::superuser(port)?;
        // Halcyon bounds what is under way on a connection by the sizes of its answers, which it does not know yet.
        for _ in 0..300 {
            superuser.query("SELECT key FROM system.local")?;
        }
        superuser.stream.set_read_timeout(Some(LOOK_EVERY))?;
        let sending = superuser.stream.try_clone()?;
        let (stopped, counts) = (stop.clone(), changes.clone());
        threads
            .push(std::thread::spawn(move || change(sending, &stopped, &counts, rates.1, roles)));
        let (stopped, counts) = (stop.clone(), changes.clone());
        threads.push(std::thread::spawn(move || hear(superuser, &stopped, &counts)));
        Ok(Storm { began, stop, logins, changes, threads })
    }

    /// What was offered, done and refused in a second.
    pub(super) fn end(self) -> Result<Measurements> {
        let seconds = self.began.elapsed().as_secs_f64();
        let figures = self.logins.measured(Measurements::default(), "logins", seconds);
        let figures = self.changes.measured(figures, "changes", seconds);
        self.stop.store(true, Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| "a thread of the storm panicked")?;
        }
        Ok(figures)
    }
}

fn log_in(
    address: SocketAddr,
    stop: &AtomicBool,
    counts: &Counts,
    (mut due, every): (Instant, Duration),
) {
    while !stop.load(Relaxed) {
        sleep(due.saturating_duration_since(Instant::now()));
        counts.offered.fetch_add(1, Relaxed);
        counts.count(connection::to(address).is_ok());
        due += every;
        while due + every < Instant::now() {
            due += every;
        }
    }
}

fn change(mut stream: TcpStream, stop: &AtomicBool, counts: &Counts, rate: f64, roles: u32) {
    let began = Instant::now();
    let mut client = Client::new(Version::V4, Compression::None);
    for number in 0u32.. {
        if stop.load(Relaxed) {
            return;
        }
        let due = Duration::from_secs_f64(f64::from(number) / rate);
        if due > began.elapsed() {
            if stream.write_all(&client.take()).is_err() {
                return;
            }
            sleep(due.saturating_sub(began.elapsed()));
        }
        let answered = counts.done.load(Relaxed) + counts.refused.load(Relaxed);
        if u64::from(number).saturating_sub(answered) >= STREAMS as u64 {
            continue;
        }
        counts.offered.fetch_add(1, Relaxed);
        let text =
            format!("ALTER ROLE r{} WITH PASSWORD = 'changed{number}'", number % roles.max(1));
        let stream_id = (number % STREAMS as u32) as i16;
        client.query(stream_id, &text, &QueryParameters::new(Consistency::One));
    }
}

fn hear(mut superuser: Connection, stop: &AtomicBool, counts: &Counts) {
    while !stop.load(Relaxed) {
        match superuser.receive() {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
        while let Ok(Some((_, answer))) = superuser.client.next_answer() {
            counts.count(!matches!(answer, Answer::Error { .. }));
        }
    }
}
