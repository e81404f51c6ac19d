//! Indexes and a view of the table: after a start, what they answer is what a scan of all has.
//!
//! 1. Each start makes them if they are not there, so that they are built over what earlier starts have written, and a build that a crash
//!    has ended is begun again.
//! 2. An index answers as soon as it answers at all. A view may lack what a logged batch has still to write: it is asked for some time.

use std::time::Duration;

use halcyon_io::{Random, clock};

use super::model::Cells;
use super::query::{Select, show};
use super::table::{Derived, Shape};
use crate::session::{Request, Session};

/// How often something is asked that cannot be answered yet, and the time between.
const TRIES: u64 = 40;
const PAUSE: Duration = Duration::from_secs(2);
/// Of each index.
const VALUES_MAX: usize = 4;

/// Where `Select::ALL` has the columns that are indexed.
const VALUE_AT: usize = 4;
const TEXT_AT: usize = 5;
const MAP_AT: usize = 6;
const SET_AT: usize = 8;

/// Makes what is not there yet.
fn statements(derived: Derived, table: &str) -> Vec<String> {
    let mut statements = Vec::new();
    if derived.has_indexes {
        for (name, on) in
            [("v", "(v)"), ("w", "(w) USING 'sai'"), ("m", "(KEYS(m))"), ("e", "(e) USING 'sai'")]
        {
            let (_, bare) = table.split_once('.').unwrap_or_default();
            statements.push(format!("CREATE INDEX IF NOT EXISTS {bare}_{name} ON {table} {on}"));
        }
    }
    if derived.has_view {
        statements.push(format!(
            "CREATE MATERIALIZED VIEW IF NOT EXISTS {table}_by_v AS SELECT v, pk, a, b, w FROM {table} \
             WHERE v IS NOT NULL AND pk IS NOT NULL AND a IS NOT NULL AND b IS NOT NULL PRIMARY KEY (v, pk, a, b)"
        ));
    }
    statements
}

/// What came of a comparison.
enum Answer {
    Same,
    Different(String),
    /// The node could not answer.
    None,
}

/// Compares them with the table's rows.
pub(crate) async fn check(session: &mut Session, shape: &Shape, derived: Derived) {
    let world = session.world().clone();
    let mut random = world.random();
    let statements = statements(derived, &shape.name);
    let mut last = String::new();
    for _ in 0..TRIES {
        let now = world.seconds();
        let answer = attempt(session, shape, &statements, derived, &mut random).await;
        // Otherwise a row may have expired in between.
        if world.seconds() == now {
            match answer {
                Answer::Same if statements.is_empty() => return,
                Answer::Same => return world.count("indexes and views checked"),
                Answer::Different(what) => last = what,
                Answer::None => {}
            }
        }
        if world.failure().is_some() {
            return;
        }
        clock::sleep(PAUSE).await;
    }
    // A fault may have ended a build, which begins again later, or at the next start.
    if world.is_disturbed() {
        return;
    }
    world.fail(match last.is_empty() {
        true => format!("indexes or views of {} do not answer after the start", shape.name),
        false => last,
    });
}

async fn attempt(
    session: &mut Session,
    shape: &Shape,
    statements: &[String],
    derived: Derived,
    random: &mut Random,
) -> Answer {
    for text in statements {
        if !session.ask(Request::statement(text.clone())).await.is_done() {
            return Answer::None;
        }
    }
    let text = Select::ALL.text(shape);
    let Some(rows) = pages(session, &text, random).await else { return Answer::None };
    if derived.has_indexes {
        for (restriction, expected) in restrictions(&rows, random) {
            let text = format!("{text} WHERE {restriction}");
            let Some(found) = pages(session, &text, random).await else { return Answer::None };
            if found != expected {
                return Answer::Different(differing(&text, &found, &expected));
            }
        }
    }
    if derived.has_view {
        let text = format!("SELECT v, pk, a, b, w FROM {}_by_v", shape.name);
        let Some(mut found) = pages(session, &text, random).await else { return Answer::None };
        let of_row = |row: &Cells| [VALUE_AT, 0, 1, 2, TEXT_AT].map(|at| cell(row, at)).to_vec();
        let mut expected: Vec<Cells> =
            rows.iter().filter(|row| cell(row, VALUE_AT).is_some()).map(of_row).collect();
        found.sort();
        expected.sort();
        if found != expected {
            return Answer::Different(differing(&text, &found, &expected));
        }
    }
    Answer::Same
}

fn cell(row: &Cells, at: usize) -> Option<Vec<u8>> {
    row.get(at).cloned().flatten()
}

/// Restrictions that indexes answer, with the rows that have it.
fn restrictions(rows: &[Cells], random: &mut Random) -> Vec<(String, Vec<Cells>)> {
    let with = |has: &dyn Fn(&Cells) -> bool| {
        rows.iter().filter(|row| has(row)).map(|row| Select::ALL.comparable(row.clone())).collect()
    };
    let mut restrictions = Vec::new();
    let mut sample = |at: usize, absent: Option<Vec<u8>>| {
        let values: Vec<Vec<u8>> = rows.iter().filter_map(|row| cell(row, at)).collect();
        let mut chosen: Vec<Vec<u8>> = absent.into_iter().collect();
        for _ in 0..VALUES_MAX.min(values.len()) {
            chosen.extend(values.get(random.below(values.len() as u64) as usize).cloned());
        }
        chosen
    };
    for value in sample(VALUE_AT, Some(5_000_i32.to_be_bytes().to_vec())) {
        let int = i32::from_be_bytes(value.clone().try_into().unwrap_or_default());
        let has = |row: &Cells| cell(row, VALUE_AT).as_ref() == Some(&value);
        restrictions.push((format!("v = {int}"), with(&has)));
    }
    for value in sample(TEXT_AT, Some(b"none".to_vec())) {
        let has = |row: &Cells| cell(row, TEXT_AT).as_ref() == Some(&value);
        let text = String::from_utf8_lossy(&value).into_owned();
        restrictions.push((format!("w = '{text}'"), with(&has)));
    }
    for key in 0..5_i32 {
        // A map's elements have 16 bytes, a set's have 8.
        let has_key = |row: &Cells, at: usize, each: usize| {
            let elements = cell(row, at).unwrap_or_default();
            let mut elements = elements.get(4..).unwrap_or_default().chunks(each);
            elements.any(|element| element.get(4..8) == Some(&key.to_be_bytes()))
        };
        let in_map = |row: &Cells| has_key(row, MAP_AT, 16);
        restrictions.push((format!("m CONTAINS KEY {key}"), with(&in_map)));
        let in_set = |row: &Cells| has_key(row, SET_AT, 8);
        restrictions.push((format!("e CONTAINS {key}"), with(&in_set)));
    }
    restrictions
}

/// All pages; `None` where the node could not answer.
async fn pages(session: &mut Session, text: &str, random: &mut Random) -> Option<Vec<Cells>> {
    let page_size = random.chance(1, 2).then(|| 1 + random.below(20) as i32);
    let mut request = Request { page_size, ..Request::statement(text.to_owned()) };
    let mut rows = Vec::new();
    loop {
        let page = session.ask(request.clone()).await.into_page()?;
        rows.extend(page.rows.into_iter().map(|row| Select::ALL.comparable(row)));
        request.paging_state = page.paging_state;
        if request.paging_state.is_none() {
            return Some(rows);
        }
    }
}

fn differing(text: &str, found: &[Cells], expected: &[Cells]) -> String {
    let lines = |rows: &[Cells]| {
        rows.iter().map(|row| format!("    {}", show(row))).collect::<Vec<_>>().join("\n")
    };
    format!("after the start {text} is\n{}\n  and should be\n{}", lines(found), lines(expected))
}
