//! Roles that are granted and revoked while their requests run, on a simulated node of two shards.
//!
//! ```text
//!   one operator:  GRANT … ack        REVOKE … ack        (a permission, a role, LOGIN)
//!   history:    no │ either │   yes      │ either │   no
//!   a request:          └────────────────┘ may be answered and may be refused
//!                                                    └──┘ must be refused
//! ```
//! Each request notes how long the history is as it begins and as it ends. Its answer must be possible at some moment in between: no
//! request that begins after the acknowledgement of a revocation is answered, on either shard.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use halcyon_access::{Access, Login, Settings};
use halcyon_io::{SimRuntime, clock, random};
use halcyon_model::access::Principal;
use halcyon_query::{Coordinator, Error, QueryOptions, default_superuser};

use crate::node;
use crate::roles::ADDRESS;

const SEEDS: u64 = 40;
const READERS: usize = 3;
const CHANGES: usize = 24;

const MADE: [&str; 6] = [
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE ks.t (k int PRIMARY KEY, v int)",
    "CREATE ROLE r WITH PASSWORD = 'word' AND LOGIN = true",
    "CREATE ROLE parent",
    "CREATE ROLE grand",
    "GRANT SELECT ON KEYSPACE ks TO grand",
];
/// What gives `r` the permission, or takes it, by itself.
const SWITCHES: [[&str; 2]; 4] = [
    ["GRANT SELECT ON ks.t TO r", "REVOKE SELECT ON ks.t FROM r"],
    ["GRANT parent TO r", "REVOKE parent FROM r"],
    ["GRANT grand TO parent", "REVOKE grand FROM parent"],
    ["ALTER ROLE r WITH LOGIN = true", "ALTER ROLE r WITH LOGIN = false"],
];

/// Which of the switches are on.
type State = [bool; 4];

fn is_allowed([direct, parent, grand, login]: State) -> bool {
    login && (direct || parent && grand)
}

/// Whether the answer of a request may be yes, and no, at each moment.
type History = RefCell<Vec<(bool, bool)>>;

async fn run(node: &Coordinator, role: &str, text: &str) -> Result<(), Error> {
    let statement = Arc::new(halcyon_query::prepare(node, text, None)?);
    let options = QueryOptions { protocol_version: 4, ..QueryOptions::default() };
    let principal = Principal::Role { name: role.to_owned(), address: ADDRESS };
    halcyon_query::execute(node, &statement, &options, &principal).await.map(drop)
}

async fn pause() {
    // Simulated statements take no time, and each shard gives each of its own another microsecond: those of two shards come in order if
    // there is room for both.
    clock::sleep(Duration::from_micros(100 + random().below(400))).await;
}

async fn operate(node: &Coordinator, history: &History) {
    let mut state: State = [false, false, false, true];
    for _ in 0..CHANGES {
        let chosen = random().below(4) as usize;
        let mut next = state;
        next[chosen] = !next[chosen];
        let (before, after) = (is_allowed(state), is_allowed(next));
        history.borrow_mut().push((before || after, !before || !after));
        run(node, "cassandra", SWITCHES[chosen][usize::from(!next[chosen])]).await.expect("done");
        history.borrow_mut().push((after, !after));
        state = next;
        pause().await;
    }
}

/// Answers how many requests were answered, and how many refused.
async fn read(node: &Coordinator, history: &History, seed: u64) -> (usize, usize) {
    let statement = halcyon_query::prepare(node, "SELECT v FROM ks.t WHERE k = 1", None);
    let statement = Arc::new(statement.expect("good"));
    let options = QueryOptions { protocol_version: 4, ..QueryOptions::default() };
    let principal = Principal::Role { name: "r".to_owned(), address: ADDRESS };
    let mut counts = (0, 0);
    while history.borrow().len() < 2 * CHANGES + 1 {
        let began = history.borrow().len() - 1;
        let answer = halcyon_query::execute(node, &statement, &options, &principal).await;
        let between = history.borrow()[began..].to_vec();
        let is_possible = match &answer {
            Ok(_) => between.iter().any(|(yes, _)| *yes),
            Err(Error::Unauthorized(_)) => between.iter().any(|(_, no)| *no),
            Err(other) => panic!("seed {seed}: {other}"),
        };
        assert!(is_possible, "seed {seed}: {answer:?} after {began} of {CHANGES} changes");
        *(if answer.is_ok() { &mut counts.0 } else { &mut counts.1 }) += 1;
        pause().await;
    }
    counts
}

/// Proves that a permission holds from the moment that its grant is acknowledged until its revocation is, and not a request longer.
#[test]
fn no_request_outlives_a_revocation() {
    let (mut answered, mut refused) = (0, 0);
    for seed in 0..SEEDS {
        let counts = SimRuntime::seeded(seed).block_on(async {
            let settings = Settings {
                login: Login::Password,
                authorizes: true,
                hash_rounds: 4,
                ..Settings::default()
            };
            let access = Arc::new(Access::new(settings));
            let [first, second] = node::start_pair(&access).await;
            default_superuser(&first).await.expect("a superuser");
            for text in MADE {
                run(&first, "cassandra", text).await.expect(text);
            }
            pause().await;
            let history = RefCell::new(vec![(false, true)]);
            let readers = (0..2 * READERS).map(|at| {
                let node = if at % 2 == 0 { &first } else { &second };
                read(node, &history, seed)
            });
            let operator = if seed % 2 == 0 { &first } else { &second };
            let ((), counts) = futures_util::join!(operate(operator, &history), join_all(readers));
            counts
        });
        answered += counts.iter().map(|(yes, _)| yes).sum::<usize>();
        refused += counts.iter().map(|(_, no)| no).sum::<usize>();
    }
    assert!(answered > 1000 && refused > 1000, "{answered} answered, {refused} refused");
}
