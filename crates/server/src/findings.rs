//! The doctor's findings about this node, for `halcyon_views.findings`.
//!
//! 1. The first read examines the node, later ones get the same findings for a while: an examination opens every SSTable.
//! 2. It runs on an idle thread of its own, and asks virtual tables through a shard. Reads meanwhile wait for it, but not for long.

use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use halcyon_client::Rows;
use halcyon_io::clock::{self, Instant, now};
use halcyon_io::{Disk, Mutex, ThreadPriority};
use halcyon_tools::Notices;
use halcyon_tools::doctor::{Finding, Source, examine_node};

use crate::log::Log;
use crate::virtual_tables::servers::Servers;

/// Chosen: files change by the hour, and an examination of thousands of SSTables takes seconds.
const FRESH: Duration = Duration::from_secs(600);

/// Chosen: a page waits for all its tables, and a client for less than its timeout.
const PATIENCE: Duration = Duration::from_secs(2);

type Found = Result<Arc<Vec<Finding>>, String>;

#[derive(Default)]
pub(crate) struct Findings(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    last: Option<(Instant, Found)>,
    /// Those that wait for the examination that runs; `None`: none does.
    waiting: Option<Vec<oneshot::Sender<Found>>>,
}

impl Findings {
    /// Those of the last minutes, or of an examination.
    pub(crate) async fn of(
        &self,
        disk: &Disk,
        directories: Vec<PathBuf>,
        (servers, log): (Arc<dyn Servers>, &Log),
    ) -> Found {
        let (told, answer) = oneshot::channel();
        {
            let mut state = self.0.lock();
            if let Some((at, found)) = &state.last
                && now() - *at < FRESH
            {
                return found.clone();
            }
            let runs = state.waiting.is_some();
            state.waiting.get_or_insert_default().push(told);
            if !runs {
                let (state, owned, said) = (self.0.clone(), disk.clone(), Said(log.clone()));
                let body = move || examine(state, owned, directories, servers, said);
                let runtime = disk.runtime();
                drop(runtime.spawn_thread("doctor", ThreadPriority::Idle, body));
            }
        }
        match select(answer, pin!(clock::sleep(PATIENCE))).await {
            Either::Left((Ok(found), _)) => found,
            Either::Left((Err(_), _)) => Err("the examination has failed; see the log".to_owned()),
            Either::Right(_) => {
                Err("the doctor examines the node; read the table again in a minute".to_owned())
            }
        }
    }
}

async fn examine(
    state: Arc<Mutex<State>>,
    disk: Disk,
    directories: Vec<PathBuf>,
    servers: Arc<dyn Servers>,
    said: Said,
) {
    let ending = Ending(state);
    let mut source = Own(servers);
    let found = examine_node(&disk, &directories, &mut source, &said).await;
    let found = found.map(Arc::new).map_err(|error| error.to_string());
    let mut state = ending.0.lock();
    state.last = Some((now(), found.clone()));
    for told in state.waiting.take().into_iter().flatten() {
        // A client may have left.
        let _ = told.send(found.clone());
    }
    drop(state);
}

/// A panic ends the waiting too.
struct Ending(Arc<Mutex<State>>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.lock().waiting = None;
    }
}

/// The node's own virtual tables.
struct Own(Arc<dyn Servers>);

impl Source for Own {
    fn rows<'a>(
        &'a mut self,
        statement: &'a str,
    ) -> Pin<Box<dyn Future<Output = halcyon_tools::Result<Option<Rows>>> + 'a>> {
        Box::pin(async move { Ok(self.0.select(statement.to_owned()).await.ok()) })
    }
}

struct Said(Log);

impl Notices for Said {
    fn warn(&self, text: std::fmt::Arguments<'_>) {
        self.0.warning(format_args!("doctor: {text}"));
    }

    fn detail(&self, text: std::fmt::Arguments<'_>) {
        self.0.debug(format_args!("doctor: {text}"));
    }
}
