//! What a statement is weighed with, against what the allocator counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use halcyon_model::access::Principal;
use halcyon_query::{Coordinator, Outcome, QueryOptions, weight};

use crate::node;

struct Counting;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's contract is ours.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's contract is ours.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What is kept of a call, and the most that it had.
fn measured<T>(call: impl FnOnce() -> T) -> (T, i64, i64) {
    let before = HELD.get();
    PEAK.set(before);
    let made = call();
    (made, HELD.get() - before, PEAK.get() - before)
}

async fn with_table() -> Coordinator {
    let coordinator = node::start().await;
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int, c int, v text, l list<int>, m map<text, text>, PRIMARY KEY (k, c))",
    ] {
        let statement =
            std::sync::Arc::new(halcyon_query::prepare(&coordinator, text, None).expect("valid"));
        let done = halcyon_query::execute(
            &coordinator,
            &statement,
            &QueryOptions::default(),
            &Principal::Anonymous,
        )
        .await;
        assert!(matches!(done, Ok(Outcome::SchemaChange { .. })), "{done:?}");
    }
    coordinator
}

fn list(of: &str, count: usize) -> String {
    vec![of; count].join(",")
}

fn statements() -> Vec<String> {
    let mut all = vec!["SELECT * FROM ks.t WHERE k = ?".to_owned()];
    for count in [10, 1000, 6000] {
        all.push(format!("SELECT v FROM ks.t WHERE k IN ({})", list("1", count)));
        all.push(format!("SELECT v FROM ks.t WHERE k IN ({})", list("?", count)));
        all.push(format!("INSERT INTO ks.t (k, c, l) VALUES (1, 2, [{}])", list("7", count)));
        all.push(format!(
            "INSERT INTO ks.t (k, c, m) VALUES (1, 2, {{{}}})",
            list("'a':'b'", count)
        ));
        all.push(format!("INSERT INTO ks.t (k, c, v) VALUES (1, 2, '{}')", "x".repeat(count)));
        all.push(format!("SELECT {} FROM ks.t WHERE k = 1", list("v", count)));
        let inserts = "INSERT INTO ks.t (k, c) VALUES (1, 2);".repeat(count / 10);
        all.push(format!("BEGIN UNLOGGED BATCH {inserts} APPLY BATCH"));
    }
    all
}

/// Proves that a prepared statement is weighed with no less than what it takes, and with no more than a few times that; and that parsing
/// never takes more than it is weighed with.
#[test]
fn statements_are_weighed_truly() {
    halcyon_io::SimRuntime::seeded(1).block_on(async {
        let coordinator = with_table().await;
        let (mut wrong, mut all) = (Vec::new(), (0, 0));
        for text in statements() {
            let (prepared, kept, peak) =
                measured(|| halcyon_query::prepare(&coordinator, &text, None));
            let Ok(prepared) = prepared else { continue };
            let specs =
                prepared.variables.specs.len() + prepared.columns.as_ref().map_or(0, |c| c.len());
            let (weight, parsing) =
                (weight::prepared(&text, specs) as i64, weight::parsing(&text) as i64);
            let shown: String = text.chars().take(60).collect();
            let line = format!(
                "{kept} kept, weight {weight}; peak {peak}, weight {parsing}: {shown} ({} bytes)",
                text.len()
            );
            println!("{line}");
            if kept > weight || text.len() > 256 && peak > parsing {
                wrong.push(line);
            }
            all = (all.0 + kept, all.1 + weight);
        }
        // A literal collection becomes one value, which weighs less than its tokens.
        assert!(all.1 <= 4 * all.0, "{all:?}");
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
}
