//! Counters that several clients increment at once: a value is at least what was acknowledged, and at most what was sent.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use halcyon_io::Random;
use halcyon_model::request::BatchKind;

use crate::session::{Reply, Request, Session};

pub(crate) const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS ks.counters (pk int, ck int, n counter, PRIMARY KEY (pk, ck))";
const PARTITIONS: u64 = 3;
const ROWS: u64 = 3;
const BATCH_MAX: u64 = 3;
const DELTA_MAX: u64 = 5;

type Key = (i32, i32);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Bounds {
    acknowledged: i64,
    sent: i64,
}

/// All counters of a run.
#[derive(Default)]
pub(crate) struct Counters {
    bounds: BTreeMap<Key, Bounds>,
    /// The increments that were acknowledged, and when.
    acknowledged: Vec<(Duration, Key, i64)>,
}

impl Counters {
    /// What was acknowledged since then may be lost.
    pub(crate) fn may_lack(&mut self, since: Duration) {
        for (_, key, delta) in self.acknowledged.iter().filter(|(at, ..)| *at >= since) {
            self.bounds.entry(*key).or_default().acknowledged -= delta;
        }
    }
}

pub(crate) async fn work(mut session: Session, counters: Rc<RefCell<Counters>>, rounds: u64) {
    let mut random = session.world().random();
    for _ in 0..rounds {
        match random.chance(2, 3) {
            true => increment(&mut session, &counters, &mut random).await,
            false => read(&mut session, &counters, random.below(PARTITIONS) as i32, false).await,
        }
    }
}

/// One increment, or a batch of several.
async fn increment(session: &mut Session, counters: &RefCell<Counters>, random: &mut Random) {
    let mut deltas = Vec::new();
    for _ in 0..=random.below(BATCH_MAX) {
        let key = (random.below(PARTITIONS) as i32, random.below(ROWS) as i32);
        deltas.push((key, 1 + random.below(DELTA_MAX) as i64));
    }
    let texts: Vec<String> = deltas
        .iter()
        .map(|((pk, ck), delta)| {
            format!("UPDATE ks.counters SET n = n + {delta} WHERE pk = {pk} AND ck = {ck}")
        })
        .collect();
    for (key, delta) in &deltas {
        counters.borrow_mut().bounds.entry(*key).or_default().sent += delta;
    }
    let reply = session.ask(Request::batch(BatchKind::Counter, texts)).await;
    for (key, delta) in &deltas {
        let counters = &mut *counters.borrow_mut();
        let bounds = counters.bounds.entry(*key).or_default();
        match &reply {
            Reply::NotSent => bounds.sent -= delta,
            reply if reply.is_done() => {
                bounds.acknowledged += delta;
                counters.acknowledged.push((session.world().now(), *key, *delta));
                session.world().count("increments");
            }
            _ => {}
        }
    }
}

/// Reads a partition. At a start, when nothing is under way, what is read is what is known from then on.
async fn read(session: &mut Session, counters: &RefCell<Counters>, pk: i32, at_start: bool) {
    let before = counters.borrow().bounds.clone();
    let text = format!("SELECT ck, n FROM ks.counters WHERE pk = {pk}");
    let Some(page) = session.ask(Request::statement(text)).await.into_page() else { return };
    let mut seen = BTreeMap::new();
    for row in &page.rows {
        if let [Some(ck), Some(n)] = row.as_slice()
            && let (Ok(ck), Ok(n)) = (ck.as_slice().try_into(), n.as_slice().try_into())
        {
            seen.insert(i32::from_be_bytes(ck), i64::from_be_bytes(n));
        }
    }
    session.world().count("answers checked");
    for ck in 0..ROWS as i32 {
        let mut counters = counters.borrow_mut();
        let after = counters.bounds.entry((pk, ck)).or_default();
        let least = before.get(&(pk, ck)).copied().unwrap_or_default().acknowledged;
        let value = seen.get(&ck).copied().unwrap_or(0);
        if value < least || value > after.sent {
            let most = after.sent;
            return session.world().fail(format!(
                "counter ({pk}, {ck}) is {value}; {least} are acknowledged and {most} were sent"
            ));
        }
        if at_start {
            *after = Bounds { acknowledged: value, sent: value };
        }
    }
}

/// After a start.
pub(crate) async fn settle(session: &mut Session, counters: &RefCell<Counters>) {
    for pk in 0..PARTITIONS as i32 {
        read(session, counters, pk, true).await;
    }
}
