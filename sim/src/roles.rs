//! A role whose permissions, roles and login are granted and revoked while it logs in and sends requests.
//!
//! ```text
//!   one operator:  GRANT … ack        REVOKE … ack        (a permission, a role, LOGIN, all of it by DROP ROLE)
//!   states:     off │ unknown │   on     │ unknown │   off
//!   a request:          └────────────────┘ may be answered and may be refused
//!                                                    └──┘ must be refused
//! ```
//! 1. A request notes how many states there are as it begins and as it ends; its answer must be possible in one of those in between. So no
//!    request that is sent after a revocation was acknowledged is answered, and none that is sent after a grant is refused.
//! 2. A change whose answer is lost leaves its switch unknown, and the operator rests until the next start sets it.
//! 3. What is acknowledged holds after a kill or a power cut, as rows do.
//! 4. While disks fail, a request may also be refused: a role that cannot be read is not answered.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use halcyon_io::{Random, clock};
use halcyon_model::request::BatchKind;
use halcyon_protocol::client::Answer;

use crate::session::{Reply, Request, Session};

/// ERROR's codes.
const UNAUTHORIZED: i32 = 0x2100;
const INVALID: i32 = 0x2200;

/// Clients that log in as the role.
pub(crate) const CLIENTS: usize = 2;
const ROLE: &str = "r";
const PASSWORD: &str = "word";
const CREATE: [&str; 4] = [
    "CREATE ROLE IF NOT EXISTS parent",
    "CREATE ROLE IF NOT EXISTS grand",
    "GRANT SELECT ON KEYSPACE ks TO grand",
    "GRANT MODIFY ON KEYSPACE ks TO grand",
];
pub(crate) const CREATE_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS ks.guarded (pk int PRIMARY KEY, v int)";
const CREATE_ROLE: &str = "CREATE ROLE IF NOT EXISTS r WITH PASSWORD = 'word' AND LOGIN = true";
/// After it, lookups of roles and permissions read the disk, which leaves time for a change meanwhile.
const FLUSH: &str = "INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) \
                     VALUES ('flush', 'system_auth', '', '')";
const DROP_ROLE: &str = "DROP ROLE IF EXISTS r";

/// What turns each switch on, and off.
const SWITCHES: [[&str; 2]; 5] = [
    ["GRANT SELECT ON ks.guarded TO r", "REVOKE SELECT ON ks.guarded FROM r"],
    ["GRANT MODIFY ON ks.guarded TO r", "REVOKE MODIFY ON ks.guarded FROM r"],
    ["GRANT parent TO r", "REVOKE parent FROM r"],
    ["GRANT grand TO parent", "REVOKE grand FROM parent"],
    ["ALTER ROLE r WITH LOGIN = true", "ALTER ROLE r WITH LOGIN = false"],
];
/// The switch that outlives the role.
const OF_PARENT: usize = 3;
const LOGIN: usize = 4;

/// `None`: either.
type Switches = [Option<bool>; SWITCHES.len()];

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Select,
    Modify,
    /// A conditional write.
    Both,
}

impl Needs {
    fn are_met(self, [select, modify, parent, grand, login]: [bool; SWITCHES.len()]) -> bool {
        let inherits = parent && grand;
        login
            && match self {
                Needs::Select => select || inherits,
                Needs::Modify => modify || inherits,
                Needs::Both => select && modify || inherits,
            }
    }

    /// Whether the switches may stand so that these needs are met, or are not.
    fn may_be(self, met: bool, known: &Switches) -> bool {
        (0..1_usize << SWITCHES.len()).any(|bits| {
            let state = std::array::from_fn(|at| bits >> at & 1 == 1);
            let agrees = state.iter().zip(known).all(|(on, known)| known.is_none_or(|k| k == *on));
            agrees && self.are_met(state) == met
        })
    }
}

/// What the operator knows, over all starts.
pub(crate) struct Roles {
    /// Since this start; the last one is that of now.
    states: Vec<Switches>,
    /// When each switch was last turned.
    turned: [Duration; SWITCHES.len()],
}

impl Roles {
    pub(crate) fn unknown() -> Roles {
        Roles { states: vec![Switches::default()], turned: Default::default() }
    }

    /// What was acknowledged since then may be lost.
    pub(crate) fn may_lack(&mut self, since: Duration) {
        let mut now = self.now();
        for (known, turned) in now.iter_mut().zip(self.turned) {
            *known = known.filter(|_| turned < since);
        }
        self.states.push(now);
    }

    fn now(&self) -> Switches {
        self.states.last().copied().unwrap_or_default()
    }

    fn set(&mut self, switches: &[usize], value: Option<bool>, at: Duration) {
        let mut now = self.now();
        for switch in switches {
            if let Some(known) = now.get_mut(*switch) {
                *known = value;
            }
            if let Some(turned) = self.turned.get_mut(*switch) {
                *turned = at;
            }
        }
        self.states.push(now);
    }
}

/// A session of the role: it may be refused, and whether it should have been is checked here.
pub(crate) fn log_in(session: Session) -> Session {
    session.of(ROLE, PASSWORD).expecting(&[UNAUTHORIZED])
}

/// After a start: turns each switch that is unknown, so that it is known.
pub(crate) async fn settle(session: Session, roles: &RefCell<Roles>) {
    // A switch that was on or off already is refused, too.
    let mut session = session.expecting(&[INVALID]);
    let now = roles.borrow().now();
    roles.borrow_mut().states = vec![now];
    for text in CREATE.into_iter().chain([CREATE_ROLE]) {
        if !session.ask(Request::statement(text.to_owned())).await.is_done() {
            return;
        }
    }
    let mut random = session.world().random();
    for (switch, texts) in SWITCHES.iter().enumerate() {
        if now.get(switch).copied().flatten().is_some() {
            continue;
        }
        let on = random.chance(1, 2);
        let reply = session.ask(Request::statement(turn(texts, on))).await;
        if reply.is_done() || matches!(reply, Reply::Answer(Answer::Error { code: INVALID, .. })) {
            roles.borrow_mut().set(&[switch], Some(on), session.world().now());
        }
    }
}

fn turn([on, off]: &[&str; 2], is_on: bool) -> String {
    (if is_on { *on } else { *off }).to_owned()
}

/// Pauses one time in four, so that most requests overlap a change.
async fn pause(random: &mut Random) {
    if random.chance(1, 4) {
        clock::sleep(Duration::from_micros(100 + random.below(2_000))).await;
    }
}

/// Turns one switch after the other, until an answer is lost.
pub(crate) async fn operate(mut session: Session, roles: Rc<RefCell<Roles>>, rounds: u64) {
    let mut random = session.world().random();
    for _ in 0..rounds {
        if random.chance(1, 4) && session.ask(Request::statement(FLUSH.to_owned())).await.is_done()
        {
            session.world().count("flushes of roles and permissions");
        }
        let now = roles.borrow().now();
        let chosen = random.below(SWITCHES.len() as u64 + 1) as usize;
        let turned = match (SWITCHES.get(chosen), now.get(chosen)) {
            _ if now.iter().any(Option::is_none) => return,
            (Some(texts), Some(Some(on))) => {
                change(&mut session, &roles, turn(texts, !on), &[(chosen, !on)]).await
            }
            _ => create_again(&mut session, &roles).await,
        };
        if turned {
            session.world().count("permissions and roles granted or revoked");
        }
        pause(&mut random).await;
    }
}

/// Drops the role with all that was granted to it, and creates it without.
async fn create_again(session: &mut Session, roles: &RefCell<Roles>) -> bool {
    let of_role = (0..SWITCHES.len()).filter(|switch| *switch != OF_PARENT);
    let off: Vec<(usize, bool)> = of_role.map(|switch| (switch, false)).collect();
    change(session, roles, DROP_ROLE.to_owned(), &off).await
        && change(session, roles, CREATE_ROLE.to_owned(), &[(LOGIN, true)]).await
}

/// One statement that turns these switches. While it is under way they are unknown.
async fn change(
    session: &mut Session,
    roles: &RefCell<Roles>,
    text: String,
    turned: &[(usize, bool)],
) -> bool {
    let before = roles.borrow().now();
    let switches: Vec<usize> = turned.iter().map(|(switch, _)| *switch).collect();
    roles.borrow_mut().set(&switches, None, session.world().now());
    let reply = session.ask(Request::statement(text)).await;
    let (done, now) = (reply.is_done(), session.world().now());
    let mut roles = roles.borrow_mut();
    for (switch, on) in turned {
        let known = match &reply {
            Reply::NotSent => before.get(*switch).copied().flatten(),
            _ => done.then_some(*on),
        };
        roles.set(&[*switch], known, now);
    }
    done
}

/// Sends requests as the role, and checks whether they were answered.
pub(crate) async fn work(mut session: Session, roles: Rc<RefCell<Roles>>, rounds: u64) {
    let mut random = session.world().random();
    for round in 0..rounds {
        let (needs, request) = generate(&mut random, round);
        let began = roles.borrow().states.len() - 1;
        let reply = session.ask(request).await;
        let is_answered = match &reply {
            Reply::Refused | Reply::Answer(Answer::Error { code: UNAUTHORIZED, .. }) => false,
            reply if reply.is_done() => true,
            _ => continue,
        };
        let world = session.world();
        world.count(if is_answered {
            "requests of a role answered"
        } else {
            "requests of a role refused"
        });
        let between = roles.borrow().states.get(began..).unwrap_or_default().to_vec();
        let is_possible = between.iter().any(|known| needs.may_be(is_answered, known));
        if !is_possible && (is_answered || !world.is_disturbed()) {
            let how = if is_answered { "answered" } else { "refused" };
            return world.fail(format!(
                "a request that needs {needs:?} was {how}: {reply:?}\n  switches: {between:?}"
            ));
        }
        pause(&mut random).await;
    }
}

fn generate(random: &mut Random, round: u64) -> (Needs, Request) {
    let pk = random.below(3) as i32;
    let keyed = |text: String, wished| Request::statement(text).prepared(vec![Some(pk)], wished);
    let read = format!("SELECT v FROM ks.guarded WHERE pk = {pk}");
    let write = format!("INSERT INTO ks.guarded (pk, v) VALUES ({pk}, {round})");
    let wished = random.chance(1, 2);
    match random.below(6) {
        0..3 => (Needs::Select, keyed(read, wished)),
        3 => (Needs::Modify, keyed(write, wished)),
        4 => {
            let delete = format!("DELETE FROM ks.guarded WHERE pk = {pk}");
            (Needs::Modify, Request::batch(BatchKind::Logged, vec![write, delete]))
        }
        _ => (Needs::Both, keyed(format!("{write} IF NOT EXISTS"), false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a request is judged by what is known, and that either is possible while a switch that matters is not.
    #[test]
    fn a_request_is_judged_by_the_switches() {
        let state: Switches = [Some(true), Some(false), Some(false), None, Some(true)];
        assert!(Needs::Select.may_be(true, &state) && !Needs::Select.may_be(false, &state));
        assert!(!Needs::Modify.may_be(true, &state) && !Needs::Both.may_be(true, &state));
        let state: Switches = [Some(true), Some(false), Some(true), None, Some(true)];
        assert!(Needs::Both.may_be(true, &state) && Needs::Both.may_be(false, &state));
        let state: Switches = [Some(true), Some(true), Some(true), Some(true), Some(false)];
        assert!(!Needs::Select.may_be(true, &state));
    }

    /// Proves that a switch which a power cut may have taken back is unknown, and an older one is not.
    #[test]
    fn what_may_be_lost_is_unknown() {
        let mut roles = Roles::unknown();
        roles.set(&[0], Some(true), Duration::from_secs(1));
        roles.set(&[1], Some(true), Duration::from_secs(2));
        roles.may_lack(Duration::from_secs(2));
        assert_eq!(roles.now(), [Some(true), None, None, None, None]);
    }
}
