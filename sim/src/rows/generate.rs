//! Statements that change rows, by the seed, with the changes that they make in the model.

use halcyon_io::Random;

use super::domain::{A_VALUES, B_VALUES};
use super::model::{CellChange, Change, Collection, Column, Mutation, RowKey};
use super::query::{range, range_text};
use super::table::Table;

/// Of maps and sets.
const ELEMENT_KEYS: u64 = 4;
const TTL_MAX: u64 = 200;
/// How far behind the newest a timestamp may be.
const BACK_MAX: u64 = 12;
const TEXT_MAX: u64 = 300;

/// A statement and its change of one partition.
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) key: i32,
    pub(crate) mutation: Mutation,
}

/// Values of regular columns, as SET writes them and as VALUES does.
struct Written {
    sets: Vec<String>,
    columns: Vec<(&'static str, String)>,
    changes: Vec<CellChange>,
}

pub(crate) fn statement(random: &mut Random, table: &mut Table, key: i32, now: i64) -> Statement {
    let back = if random.chance(1, 4) { random.below(BACK_MAX) } else { 0 };
    let at = table.timestamp(back);
    let row = (random.below(A_VALUES) as i32, random.below(B_VALUES) as i32);
    let (text, change) = match random.below(20) {
        0..7 => insert(random, table, (key, row), at, now),
        7..13 => update(random, table, (key, row), at, now),
        13..15 => static_update(random, table, key, at, now),
        15 => delete_cells(random, table, (key, row), at),
        16 => {
            let text = format!(
                "DELETE FROM {} USING TIMESTAMP {at} WHERE pk = {key} AND a = {} AND b = {}",
                table.shape.name, row.0, row.1
            );
            (text, Change::DeleteRange(super::model::Range { first: row, last: row }))
        }
        17..19 => {
            let range = range(random);
            let text = format!(
                "DELETE FROM {} USING TIMESTAMP {at} WHERE pk = {key} AND {}",
                table.shape.name,
                range_text(&range)
            );
            (text, Change::DeleteRange(range))
        }
        _ => {
            let text =
                format!("DELETE FROM {} USING TIMESTAMP {at} WHERE pk = {key}", table.shape.name);
            (text, Change::DeletePartition)
        }
    };
    Statement { text, key, mutation: Mutation { at, change } }
}

fn int(value: i32) -> Option<Vec<u8>> {
    Some(value.to_be_bytes().to_vec())
}

/// ` AND TTL n`, and when that is over.
fn ttl(random: &mut Random, now: i64) -> (String, Option<i64>) {
    match random.chance(1, 5) {
        true => {
            let ttl = 1 + random.below(TTL_MAX) as i64;
            (format!(" AND TTL {ttl}"), Some(now + ttl))
        }
        false => (String::new(), None),
    }
}

/// A change of a collection, as SET writes it; in an INSERT it can only be replaced.
fn collection(
    random: &mut Random,
    table: &mut Table,
    of: Collection,
    for_insert: bool,
) -> (&'static str, String, CellChange) {
    let column = match of {
        Collection::Map => "m",
        Collection::Set => "e",
        Collection::List => "l",
        Collection::Udt => "u",
        Collection::StaticMap => "sm",
    };
    let key = random.below(match of {
        Collection::Udt => 2,
        _ => ELEMENT_KEYS,
    }) as i32;
    let value = random.below(100) as i32;
    let (key, value) = match of {
        Collection::Set => (key, 0),
        Collection::List => {
            let element = table.next_element();
            (element, element)
        }
        _ => (key, value),
    };
    let field = if key == 0 { "x" } else { "y" };
    if for_insert || random.chance(1, 3) {
        let elements = if random.chance(1, 5) { Vec::new() } else { vec![(key, value)] };
        let literal = match (of, elements.is_empty()) {
            (Collection::List, true) => "[]".to_owned(),
            (Collection::List, false) => format!("[{value}]"),
            // Without a field it would be an empty map.
            (Collection::Udt, true) => "null".to_owned(),
            (Collection::Udt, false) => format!("{{{field}: {value}}}"),
            (_, true) => "{}".to_owned(),
            (Collection::Set, false) => format!("{{{key}}}"),
            (_, false) => format!("{{{key}: {value}}}"),
        };
        return (column, literal, CellChange::Replace(of, elements));
    }
    let put = CellChange::Put(of, key, value);
    let remove = CellChange::Remove(of, key);
    let (set, change) = match (of, random.below(3)) {
        (Collection::List, 0) => (format!("l = [{value}] + l"), put),
        (Collection::List, _) => (format!("l = l + [{value}]"), put),
        (Collection::Udt, 0) => (format!("u.{field} = null"), remove),
        (Collection::Udt, _) => (format!("u.{field} = {value}"), put),
        (Collection::Set, 0) => (format!("e = e - {{{key}}}"), remove),
        (Collection::Set, _) => (format!("e = e + {{{key}}}"), put),
        (_, 0) => (format!("{column} = {column} - {{{key}}}"), remove),
        (_, 1) => (format!("{column} = {column} + {{{key}: {value}}}"), put),
        _ => (format!("{column}[{key}] = {value}"), put),
    };
    (column, set, change)
}

fn values(random: &mut Random, table: &mut Table, for_insert: bool) -> Written {
    let mut written = Written { sets: Vec::new(), columns: Vec::new(), changes: Vec::new() };
    let mut add = |column: &'static str, literal: String, change: CellChange| {
        written.sets.push(format!("{column} = {literal}"));
        written.columns.push((column, literal));
        written.changes.push(change);
    };
    if random.chance(2, 3) {
        let value = random.below(1000) as i32;
        match random.chance(1, 10) {
            true => add("v", "null".to_owned(), CellChange::Set(Column::Value, None)),
            false => add("v", value.to_string(), CellChange::Set(Column::Value, int(value))),
        }
    }
    if random.chance(1, 3) {
        let length = random.below(TEXT_MAX) as usize;
        let letter = char::from(b'a' + random.below(26) as u8);
        let text: String = std::iter::repeat_n(letter, length).collect();
        let change = CellChange::Set(Column::Text, Some(text.clone().into_bytes()));
        add("w", format!("'{text}'"), change);
    }
    if table.shape.has_extra && random.chance(1, 3) {
        let value = random.below(1000) as i32;
        add("x", value.to_string(), CellChange::Set(Column::Extra, int(value)));
    }
    for of in [Collection::Map, Collection::Set, Collection::List, Collection::Udt] {
        if !random.chance(1, 5) {
            continue;
        }
        let (column, text, change) = collection(random, table, of, for_insert);
        match &change {
            CellChange::Replace(..) => {
                written.sets.push(format!("{column} = {text}"));
                written.columns.push((column, text));
            }
            _ => written.sets.push(text),
        }
        written.changes.push(change);
    }
    written
}

fn insert(
    random: &mut Random,
    table: &mut Table,
    (key, row): (i32, RowKey),
    at: i64,
    now: i64,
) -> (String, Change) {
    let written = values(random, table, true);
    let (using_ttl, expires) = ttl(random, now);
    let mut columns = vec!["pk", "a", "b"];
    let mut literals = vec![key.to_string(), row.0.to_string(), row.1.to_string()];
    for (column, literal) in written.columns {
        columns.push(column);
        literals.push(literal);
    }
    let text = format!(
        "INSERT INTO {} ({}) VALUES ({}) USING TIMESTAMP {at}{using_ttl}",
        table.shape.name,
        columns.join(", "),
        literals.join(", ")
    );
    let cells = written.changes;
    (text, Change::Write { row: Some(row), inserted: true, expires, cells })
}

fn update(
    random: &mut Random,
    table: &mut Table,
    (key, row): (i32, RowKey),
    at: i64,
    now: i64,
) -> (String, Change) {
    let mut written = values(random, table, false);
    if written.sets.is_empty() {
        written.sets.push("v = 7".to_owned());
        written.changes.push(CellChange::Set(Column::Value, int(7)));
    }
    let (using_ttl, expires) = ttl(random, now);
    let text = format!(
        "UPDATE {} USING TIMESTAMP {at}{using_ttl} SET {} WHERE pk = {key} AND a = {} AND b = {}",
        table.shape.name,
        written.sets.join(", "),
        row.0,
        row.1
    );
    let cells = written.changes;
    (text, Change::Write { row: Some(row), inserted: false, expires, cells })
}

fn static_update(
    random: &mut Random,
    table: &mut Table,
    key: i32,
    at: i64,
    now: i64,
) -> (String, Change) {
    if random.chance(1, 3) {
        let (column, text, change) = collection(random, table, Collection::StaticMap, false);
        let set = match &change {
            CellChange::Replace(..) => format!("{column} = {text}"),
            _ => text,
        };
        let (using_ttl, expires) = ttl(random, now);
        let name = &table.shape.name;
        let text =
            format!("UPDATE {name} USING TIMESTAMP {at}{using_ttl} SET {set} WHERE pk = {key}");
        return (text, Change::Write { row: None, inserted: false, expires, cells: vec![change] });
    }
    let value = random.below(1000) as i32;
    let (using_ttl, expires) = ttl(random, now);
    let name = &table.shape.name;
    let (text, value) = match random.chance(1, 5) {
        true => (format!("DELETE s FROM {name} USING TIMESTAMP {at} WHERE pk = {key}"), None),
        false => {
            let set = format!("SET s = {value} WHERE pk = {key}");
            (format!("UPDATE {name} USING TIMESTAMP {at}{using_ttl} {set}"), int(value))
        }
    };
    let cells = vec![CellChange::Set(Column::Static, value)];
    (text, Change::Write { row: None, inserted: false, expires, cells })
}

fn delete_cells(
    random: &mut Random,
    table: &Table,
    (key, row): (i32, RowKey),
    at: i64,
) -> (String, Change) {
    let element = random.below(ELEMENT_KEYS) as i32;
    let (what, change) = match random.below(8) {
        0 => ("v".to_owned(), CellChange::Set(Column::Value, None)),
        1 => ("w".to_owned(), CellChange::Set(Column::Text, None)),
        2 => (format!("m[{element}]"), CellChange::Remove(Collection::Map, element)),
        3 => (format!("e[{element}]"), CellChange::Remove(Collection::Set, element)),
        4 => ("m".to_owned(), CellChange::Clear(Collection::Map)),
        5 => ("e".to_owned(), CellChange::Clear(Collection::Set)),
        6 => ("l".to_owned(), CellChange::Clear(Collection::List)),
        _ => ("u".to_owned(), CellChange::Clear(Collection::Udt)),
    };
    let text = format!(
        "DELETE {what} FROM {} USING TIMESTAMP {at} WHERE pk = {key} AND a = {} AND b = {}",
        table.shape.name, row.0, row.1
    );
    (text, Change::Write { row: Some(row), inserted: false, expires: None, cells: vec![change] })
}
