//! What `halcyon_views.compaction_pace` says, a few times a second.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use halcyon_client::blocking::Connection;
use halcyon_oracle::Result;
use serde::{Deserialize, Serialize};

use crate::connection::{self, bigint};

const EVERY: Duration = Duration::from_millis(250);

/// One look.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Look {
    /// Since the first.
    pub(super) seconds: f64,
    /// That compaction may take; in MiB a second.
    pub(super) rate: f64,
    /// That reads may take, in µs: 0 without a target.
    pub(super) target: f64,
    /// That they took in the last tenth of a second, as the server counts.
    pub(super) p99: f64,
    pub(super) waiting: f64,
    pub(super) urgent: f64,
}

pub(super) struct Pace {
    stop: Sender<()>,
    looking: JoinHandle<std::result::Result<Vec<Look>, String>>,
}

impl Pace {
    pub(super) fn watch(port: u16) -> Result<Pace> {
        let (stop, stopped) = channel::<()>();
        let mut connection = connection::open(port)?;
        let looking = std::thread::spawn(move || {
            let (began, mut looks) = (Instant::now(), Vec::new());
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                looks.push(look(&mut connection, began).map_err(|e| e.to_string())?);
            }
            Ok(looks)
        });
        Ok(Pace { stop, looking })
    }

    pub(super) fn stop(self) -> Result<Vec<Look>> {
        drop(self.stop);
        Ok(self.looking.join().map_err(|_| "the thread that looks panicked")??)
    }
}

fn look(connection: &mut Connection, began: Instant) -> Result<Look> {
    let page = connection.page("SELECT name, value FROM halcyon_views.compaction_pace")?;
    let seconds = (began.elapsed().as_secs_f64() * 100.0).round() / 100.0;
    let mut look = Look { seconds, ..Look::default() };
    for row in &page.rows {
        let [Some(name), value] = row.as_slice() else { continue };
        let value = bigint(value.as_ref()).unwrap_or(0) as f64;
        match name.as_slice() {
            b"bytes_per_second" => look.rate = (value / 1_048_576.0).round(),
            b"compaction_latency_target_us" => look.target = value,
            b"read_p99_us" => look.p99 = value,
            b"waiting" => look.waiting = value,
            b"urgent" => look.urgent = value,
            _ => {}
        }
    }
    Ok(look)
}
