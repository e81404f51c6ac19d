//! Counters that are incremented and deleted by one client: what is read is what the writes come to, whatever was flushed, compacted or
//! replayed between them.
//!
//! 1. Each client has a partition of its own, so that the order of its writes is known. Their timestamps are the client's, and may go
//!    back: those of two clients whose clocks differ do.
//! 2. A deletion of partition, range or row takes the cells that are not newer. That of a column takes what there is, and increments
//!    after it have no effect until another deletion takes the tombstone.
//! 3. A write without an answer may take effect until the process ends; the partition is not used until then. Of a batch, the first
//!    increments may have been applied.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use halcyon_io::Random;
use halcyon_model::request::BatchKind;
use halcyon_protocol::client::Page;

use crate::session::{Reply, Request, Session};

pub(crate) const CREATE: &str = "CREATE TABLE IF NOT EXISTS ks.deleted_counters (pk int, ck int, s counter static, n counter, PRIMARY KEY (pk, ck))";
const ROWS: i32 = 3;
const BATCH_MAX: u64 = 3;
const DELTA_MAX: u64 = 5;
/// Microseconds from one write to the next, and how far one may go back.
const STEP: i64 = 10;
const SKEW: u64 = 25;

/// A row, or `None` for the static row.
type Clustering = Option<i32>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operation {
    Increment(Vec<(Clustering, i64)>),
    DeletePartition,
    /// From the first row to the second.
    DeleteRange(i32, i32),
    DeleteRow(i32),
    DeleteColumn(Clustering),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    timestamp: i64,
    /// `None` is a tombstone.
    value: Option<i64>,
}

/// What a partition may hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    cells: BTreeMap<Clustering, Cell>,
    /// The newest deletion of the partition, of a range or of the row.
    deletions: BTreeMap<Clustering, i64>,
}

impl State {
    fn deletes(&self, place: Clustering, timestamp: i64) -> bool {
        self.deletions.get(&place).is_some_and(|deletion| timestamp <= *deletion)
    }

    fn write(&mut self, place: Clustering, timestamp: i64, value: impl FnOnce(i64) -> Option<i64>) {
        let there = self.cells.get(&place).copied();
        let value = value(there.and_then(|cell| cell.value).unwrap_or(0));
        let is_tombstone = there.is_some_and(|cell| cell.value.is_none());
        let timestamp = there.map_or(timestamp, |cell| cell.timestamp.max(timestamp));
        if !(self.deletes(place, timestamp) || is_tombstone && value.is_some()) {
            self.cells.insert(place, Cell { timestamp, value });
        }
    }

    fn delete(&mut self, places: impl Iterator<Item = Clustering>, timestamp: i64) {
        for place in places {
            let newest = self.deletions.entry(place).or_insert(timestamp);
            *newest = timestamp.max(*newest);
            if self.cells.get(&place).is_some_and(|cell| cell.timestamp <= timestamp) {
                self.cells.remove(&place);
            }
        }
    }

    fn apply(&mut self, operation: &Operation, timestamp: i64) {
        match operation {
            Operation::Increment(deltas) => {
                for (place, delta) in deltas {
                    self.write(*place, timestamp, |value| Some(value + delta));
                }
            }
            Operation::DeletePartition => {
                self.delete((0..ROWS).map(Some).chain([None]), timestamp);
            }
            Operation::DeleteRange(from, to) => self.delete((*from..=*to).map(Some), timestamp),
            Operation::DeleteRow(ck) => self.delete([Some(*ck)].into_iter(), timestamp),
            Operation::DeleteColumn(place) => self.write(*place, timestamp, |_| None),
        }
    }

    /// What a read of the partition shows.
    fn live(&self) -> BTreeMap<Clustering, i64> {
        self.cells.iter().filter_map(|(place, cell)| Some((*place, cell.value?))).collect()
    }
}

/// The partition of one client.
struct Partition {
    states: BTreeSet<State>,
    /// What it may have held before each answer, with the time of the answer.
    before: Vec<(Duration, BTreeSet<State>)>,
    /// What a write without an answer makes of it, part by part, and what was before.
    unanswered: Vec<BTreeSet<State>>,
    timestamp: i64,
}

impl Partition {
    /// A write is under way. Returns its timestamp.
    fn begin(&mut self, operation: &Operation, timestamp: i64) -> i64 {
        let parts = match operation {
            Operation::Increment(deltas) => {
                deltas.iter().map(|delta| Operation::Increment(vec![*delta])).collect()
            }
            _ => vec![operation.clone()],
        };
        let mut states = self.states.clone();
        self.unanswered.push(states.clone());
        for part in parts {
            let after = states.into_iter().map(|mut state| {
                state.apply(&part, timestamp);
                state
            });
            states = after.collect();
            self.unanswered.push(states.clone());
        }
        timestamp
    }
}

/// The partitions of a run.
pub(crate) struct DeletedCounters(Vec<Partition>);

impl DeletedCounters {
    pub(crate) fn new(clients: usize) -> DeletedCounters {
        let partition = || Partition {
            states: BTreeSet::from([State::default()]),
            before: Vec::new(),
            unanswered: Vec::new(),
            timestamp: 0,
        };
        DeletedCounters((0..clients).map(|_| partition()).collect())
    }

    /// What is under way has taken effect, or never will.
    pub(crate) fn end_process(&mut self) {
        for partition in &mut self.0 {
            let parts = std::mem::take(&mut partition.unanswered);
            partition.states.extend(parts.into_iter().flatten());
        }
    }

    /// What was acknowledged since then may be lost.
    pub(crate) fn may_lack(&mut self, since: Duration) {
        for partition in &mut self.0 {
            let lost = partition.before.iter().filter(|(at, _)| *at >= since);
            partition.states.extend(lost.flat_map(|(_, states)| states.iter().cloned()));
        }
    }
}

fn generate(random: &mut Random) -> Operation {
    let mut ck = || random.below(ROWS as u64) as i32;
    let (a, b) = (ck(), ck());
    let place = (!random.chance(1, 3)).then_some(a);
    match random.below(16) {
        0 | 1 => Operation::DeletePartition,
        2 | 3 => Operation::DeleteRange(a.min(b), a.max(b)),
        4 | 5 => Operation::DeleteRow(a),
        6 => Operation::DeleteColumn(place),
        _ => {
            let deltas = (0..=random.below(BATCH_MAX)).map(|_| {
                let place = (!random.chance(1, 3)).then(|| random.below(ROWS as u64) as i32);
                (place, 1 + random.below(DELTA_MAX) as i64)
            });
            Operation::Increment(deltas.collect())
        }
    }
}

fn request(pk: i32, operation: &Operation, timestamp: i64) -> Request {
    let of = |place: &Clustering| match place {
        Some(ck) => ("n", format!("pk = {pk} AND ck = {ck}")),
        None => ("s", format!("pk = {pk}")),
    };
    let delete = |what: &str, rows: String| {
        Request::statement(format!("DELETE {what} FROM ks.deleted_counters WHERE pk = {pk}{rows}"))
    };
    let request = match operation {
        Operation::Increment(deltas) => {
            let update = |(place, delta): &(Clustering, i64)| {
                let (column, key) = of(place);
                format!("UPDATE ks.deleted_counters SET {column} = {column} + {delta} WHERE {key}")
            };
            Request::batch(BatchKind::Counter, deltas.iter().map(update).collect())
        }
        Operation::DeletePartition => delete("", String::new()),
        Operation::DeleteRange(from, to) => delete("", format!(" AND ck >= {from} AND ck <= {to}")),
        Operation::DeleteRow(ck) => delete("", format!(" AND ck = {ck}")),
        Operation::DeleteColumn(Some(ck)) => delete("n", format!(" AND ck = {ck}")),
        Operation::DeleteColumn(None) => delete("s", String::new()),
    };
    Request { timestamp: Some(timestamp), ..request }
}

pub(crate) async fn work(
    mut session: Session,
    counters: Rc<RefCell<DeletedCounters>>,
    client: usize,
    rounds: u64,
) {
    let mut random = session.world().random();
    for _ in 0..rounds {
        match random.chance(2, 3) {
            true => write(&mut session, &counters, client, &mut random).await,
            false => read(&mut session, &counters, client).await,
        }
        if counters.borrow().0.get(client).is_none_or(|partition| !partition.unanswered.is_empty())
        {
            return;
        }
    }
}

async fn write(
    session: &mut Session,
    counters: &RefCell<DeletedCounters>,
    client: usize,
    random: &mut Random,
) {
    let operation = generate(random);
    let timestamp = {
        let mut counters = counters.borrow_mut();
        let Some(partition) = counters.0.get_mut(client) else { return };
        partition.timestamp += STEP;
        let back = if random.chance(1, 4) { random.below(SKEW) as i64 } else { 0 };
        partition.begin(&operation, partition.timestamp - back)
    };
    let reply = session.ask(request(client as i32, &operation, timestamp)).await;
    let mut counters = counters.borrow_mut();
    let Some(partition) = counters.0.get_mut(client) else { return };
    if matches!(reply, Reply::NotSent) {
        partition.unanswered.clear();
    } else if reply.is_done() {
        session.world().count("writes of deleted counters");
        let mut parts = std::mem::take(&mut partition.unanswered);
        partition.states = parts.pop().unwrap_or_default();
        let before = parts.into_iter().flatten().collect();
        partition.before.push((session.world().now(), before));
    }
}

fn live(page: &Page) -> BTreeMap<Clustering, i64> {
    let mut live = BTreeMap::new();
    for row in &page.rows {
        let [ck, s, n] = row.as_slice() else { continue };
        let count = |bytes: &Option<Vec<u8>>| {
            let bytes = bytes.as_deref().and_then(|bytes| bytes.try_into().ok());
            bytes.map(i64::from_be_bytes)
        };
        let ck = ck.as_deref().and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes);
        live.extend(count(s).map(|count| (None, count)));
        live.extend(ck.and_then(|ck| Some((Some(ck), count(n)?))));
    }
    live
}

async fn read(session: &mut Session, counters: &RefCell<DeletedCounters>, client: usize) {
    let text = format!("SELECT ck, s, n FROM ks.deleted_counters WHERE pk = {client}");
    let Some(page) = session.ask(Request::statement(text)).await.into_page() else { return };
    let live = live(&page);
    let mut counters = counters.borrow_mut();
    let Some(partition) = counters.0.get_mut(client) else { return };
    session.world().count("answers checked");
    let possible = partition.states.clone();
    partition.states.retain(|state| state.live() == live);
    if partition.states.is_empty() {
        session.world().fail(format!(
            "deleted counters of partition {client} are {live:?}; possible are {possible:?}"
        ));
    }
}

/// After a start.
pub(crate) async fn settle(session: &mut Session, counters: &RefCell<DeletedCounters>) {
    let clients = counters.borrow().0.len();
    for client in 0..clients {
        read(session, counters, client).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that in the model a counter restarts at zero after a deletion, ignores increments after its column is deleted, and keeps
    /// cells that are newer than a late deletion.
    #[test]
    fn deletions_take_what_is_not_newer() {
        let increment = |delta| Operation::Increment(vec![(Some(1), delta)]);
        let value = |operations: &[(Operation, i64)]| {
            let mut state = State::default();
            operations.iter().for_each(|(operation, at)| state.apply(operation, *at));
            state.live().get(&Some(1)).copied()
        };
        let column = || Operation::DeleteColumn(Some(1));
        let all = || Operation::DeletePartition;
        assert_eq!(value(&[(increment(5), 1), (all(), 2), (increment(1), 3)]), Some(1));
        assert_eq!(value(&[(increment(5), 3), (all(), 2), (increment(1), 1)]), Some(6));
        assert_eq!(value(&[(increment(5), 1), (all(), 3), (increment(1), 2)]), None);
        assert_eq!(value(&[(increment(5), 1), (column(), 2), (increment(1), 3)]), None);
        let again = [(column(), 1), (increment(1), 2), (all(), 3), (increment(4), 4)];
        assert_eq!(value(&again), Some(4));
    }
}
