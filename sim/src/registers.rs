//! Conditional writes of single rows, by several clients at once, checked for linearizability.
//!
//! 1. A register keeps all histories that explain the answers so far: the value, and the operations without an answer that took effect in
//!    it, with their outcomes.
//! 2. An answer keeps the histories in which its operation has that outcome, now or after others that are under way. If none is left,
//!    no order of the operations explains the answers (Wing and Gong's search, done as the answers come).
//! 3. An operation whose answer is lost may take effect until the process ends.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use halcyon_io::{Random, clock};
use halcyon_protocol::client::Page;

use crate::session::{Reply, Request, Session};

pub(crate) const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS ks.registers (k int PRIMARY KEY, v int)";
const KEYS: u64 = 3;
/// Operations of one register without an answer with which it is still used: the histories are as many as their orders.
const UNANSWERED_MAX: usize = 4;

type Value = Option<i32>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Insert(i32),
    Replace { expected: i32, with: i32 },
    ReplaceExisting(i32),
    Delete,
    Read,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Applied,
    /// Not applied, or only read.
    Seen(Value),
}

fn execute(value: Value, operation: Operation) -> (Value, Outcome) {
    match (operation, value) {
        (Operation::Insert(new), None) => (Some(new), Outcome::Applied),
        (Operation::Replace { expected, with }, Some(value)) if value == expected => {
            (Some(with), Outcome::Applied)
        }
        (Operation::ReplaceExisting(new), Some(_)) => (Some(new), Outcome::Applied),
        (Operation::Delete, Some(_)) => (None, Outcome::Applied),
        _ => (value, Outcome::Seen(value)),
    }
}

type History = (Value, BTreeMap<u64, Outcome>);

#[derive(Debug)]
struct Register {
    histories: BTreeSet<History>,
    unanswered: BTreeMap<u64, Operation>,
    last_seen: Value,
    /// The values that it may have had before each answer, with the time of the answer.
    before: Vec<(Duration, BTreeSet<Value>)>,
}

impl Register {
    fn empty() -> Register {
        let histories = BTreeSet::from([(None, BTreeMap::new())]);
        Register { histories, unanswered: BTreeMap::new(), last_seen: None, before: Vec::new() }
    }

    /// Lets each operation that is under way take effect, in every order.
    fn extend(&mut self) {
        let mut open: Vec<History> = self.histories.iter().cloned().collect();
        while let Some((value, effects)) = open.pop() {
            for (id, operation) in
                self.unanswered.iter().filter(|(id, _)| !effects.contains_key(id))
            {
                let (next, outcome) = execute(value, *operation);
                let mut effects = effects.clone();
                effects.insert(*id, outcome);
                if self.histories.insert((next, effects.clone())) {
                    open.push((next, effects));
                }
            }
        }
    }

    fn values(&self) -> BTreeSet<Value> {
        self.histories.iter().map(|(value, _)| *value).collect()
    }

    /// `false` if no history explains it.
    fn answer(&mut self, id: u64, outcome: Outcome, now: Duration) -> bool {
        self.extend();
        self.before.push((now, self.values()));
        self.unanswered.remove(&id);
        let histories = std::mem::take(&mut self.histories).into_iter();
        self.histories = histories
            .filter_map(|(value, mut effects)| {
                (effects.remove(&id)? == outcome).then_some((value, effects))
            })
            .collect();
        if let Outcome::Seen(value) = outcome {
            self.last_seen = value;
        }
        !self.histories.is_empty()
    }

    fn take_back(&mut self, id: u64) {
        self.unanswered.remove(&id);
        self.histories.retain(|(_, effects)| !effects.contains_key(&id));
    }

    /// What is under way has taken effect, or never will.
    fn end_process(&mut self) {
        self.extend();
        self.unanswered.clear();
        let histories = std::mem::take(&mut self.histories).into_iter();
        self.histories = histories.map(|(value, _)| (value, BTreeMap::new())).collect();
    }

    /// What happened since then may be lost: the register may have any value that it had meanwhile.
    fn may_lack(&mut self, since: Duration) {
        self.extend();
        let meanwhile = self.before.iter().filter(|(at, _)| *at >= since);
        let values = meanwhile.flat_map(|(_, values)| values.iter().copied());
        self.histories.extend(values.map(|value| (value, BTreeMap::new())));
    }
}

/// All registers of a run.
pub(crate) struct Registers {
    by_key: BTreeMap<i32, Register>,
    last_number: u64,
}

impl Registers {
    pub(crate) fn empty() -> Registers {
        let by_key = (0..KEYS as i32).map(|key| (key, Register::empty())).collect();
        Registers { by_key, last_number: 0 }
    }

    pub(crate) fn end_process(&mut self) {
        self.by_key.values_mut().for_each(Register::end_process);
    }

    pub(crate) fn may_lack(&mut self, since: Duration) {
        self.by_key.values_mut().for_each(|register| register.may_lack(since));
    }
}

fn generate(random: &mut Random, register: &Register, new: i32) -> Operation {
    match random.below(8) {
        0 => Operation::Delete,
        1 => Operation::ReplaceExisting(new),
        2 | 3 => Operation::Insert(new),
        4 => Operation::Read,
        _ => Operation::Replace { expected: register.last_seen.unwrap_or(0), with: new },
    }
}

fn text(key: i32, operation: Operation) -> String {
    let place = format!("WHERE k = {key}");
    match operation {
        Operation::Insert(new) => {
            format!("INSERT INTO ks.registers (k, v) VALUES ({key}, {new}) IF NOT EXISTS")
        }
        Operation::Replace { expected, with } => {
            format!("UPDATE ks.registers SET v = {with} {place} IF v = {expected}")
        }
        Operation::ReplaceExisting(new) => {
            format!("UPDATE ks.registers SET v = {new} {place} IF EXISTS")
        }
        Operation::Delete => format!("DELETE FROM ks.registers {place} IF EXISTS"),
        Operation::Read => format!("SELECT v FROM ks.registers {place}"),
    }
}

/// What the page says: whether it was applied, else the value.
fn outcome(page: &Page) -> Outcome {
    let Some(row) = page.rows.first() else { return Outcome::Seen(None) };
    let cell = |name: &str| {
        let at = page.columns.iter().position(|column| column == name)?;
        row.get(at)?.as_deref()
    };
    if cell("[applied]") == Some(&[1]) {
        return Outcome::Applied;
    }
    let value = cell("v").and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes);
    Outcome::Seen(value)
}

pub(crate) async fn work(mut session: Session, registers: Rc<RefCell<Registers>>, rounds: u64) {
    let mut random = session.world().random();
    for _ in 0..rounds {
        let key = random.below(KEYS) as i32;
        let Some((number, operation)) = begin(&registers, key, &mut random) else {
            clock::sleep(Duration::from_millis(1)).await;
            continue;
        };
        let reply = session.ask(Request::statement(text(key, operation))).await;
        let mut registers = registers.borrow_mut();
        let Some(register) = registers.by_key.get_mut(&key) else { return };
        if matches!(reply, Reply::NotSent) {
            register.take_back(number);
        } else if let Some(page) = reply.into_page() {
            session.world().count("answers checked");
            let outcome = outcome(&page);
            let before = register.histories.clone();
            session.world().count("conditional writes checked");
            if !register.answer(number, outcome, session.world().now()) {
                let under_way = &register.unanswered;
                session.world().fail(format!(
                    "register {key}: nothing explains {outcome:?} of {operation:?}\n  possible before: {before:?}\n  under way: \
                     {under_way:?}"
                ));
            }
        }
    }
}

fn begin(
    registers: &RefCell<Registers>,
    key: i32,
    random: &mut Random,
) -> Option<(u64, Operation)> {
    let mut registers = registers.borrow_mut();
    registers.last_number += 1;
    let number = registers.last_number;
    let register = registers.by_key.get_mut(&key)?;
    if register.unanswered.len() >= UNANSWERED_MAX {
        return None;
    }
    let operation = generate(random, register, number as i32);
    register.unanswered.insert(number, operation);
    Some((number, operation))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that operations under way may take effect in any order, and that what no order explains is found.
    #[test]
    fn histories_explain_answers() {
        let mut register = Register::empty();
        register.unanswered =
            BTreeMap::from([(1, Operation::Insert(10)), (2, Operation::Insert(20))]);
        assert!(register.answer(2, Outcome::Seen(Some(10)), Duration::ZERO));
        assert!(register.answer(1, Outcome::Applied, Duration::ZERO));
        register.unanswered.insert(3, Operation::Replace { expected: 10, with: 30 });
        register.unanswered.insert(4, Operation::Read);
        register.unanswered.insert(5, Operation::Read);
        assert!(register.answer(4, Outcome::Seen(Some(30)), Duration::ZERO));
        assert!(!register.answer(5, Outcome::Seen(None), Duration::ZERO));
    }

    /// Proves that a register may go back to what it was before answers that may be lost, and no further.
    #[test]
    fn what_may_be_lost_is_possible_again() {
        let mut register = Register::empty();
        register.unanswered.insert(1, Operation::Insert(10));
        assert!(register.answer(1, Outcome::Applied, Duration::from_secs(1)));
        register.unanswered.insert(2, Operation::ReplaceExisting(20));
        assert!(register.answer(2, Outcome::Applied, Duration::from_secs(2)));
        register.may_lack(Duration::from_secs(2));
        assert_eq!(register.values(), BTreeSet::from([Some(10), Some(20)]));
        register.may_lack(Duration::from_secs(1));
        assert_eq!(register.values(), BTreeSet::from([None, Some(10), Some(20)]));
    }

    /// Proves that a lost operation may have taken effect before the process ended, and not after.
    #[test]
    fn lost_operations_end_with_the_process() {
        let mut register = Register::empty();
        register.unanswered.insert(1, Operation::Insert(10));
        register.end_process();
        register.unanswered.insert(2, Operation::Read);
        assert!(register.answer(2, Outcome::Seen(None), Duration::ZERO));
        register.unanswered.insert(3, Operation::Read);
        assert!(!register.answer(3, Outcome::Seen(Some(10)), Duration::ZERO));
    }
}
