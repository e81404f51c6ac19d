//! SELECTs, and what the model answers to them.

use std::cmp::Reverse;

use halcyon_io::Random;
use halcyon_model::token::murmur3_token;

use super::domain::{A_VALUES, B_VALUES, KEYS};
use super::model::{Cells, Collection, Column, Partition, Range, Row, RowKey};
use super::table::Shape;

/// Where `Select::text` has the list, whose order is the node's own.
const LIST_AT: usize = 9;

/// Rows of one or all partitions, or what is computed from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Select {
    pub(crate) what: What,
    /// Empty: all partitions.
    pub(crate) keys: Vec<i32>,
    /// From (exclusive) to (inclusive), of all partitions.
    tokens: Option<(i64, i64)>,
    restriction: Restriction,
    reversed: bool,
    per_partition: Option<usize>,
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Rows,
    /// `DISTINCT pk, s`
    Partitions,
    /// `GROUP BY pk, a`
    Groups,
    /// One row for all.
    Totals,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Restriction {
    None,
    Range(Range),
    /// `a = ? AND b IN (…)`
    Rows(i32, Vec<i32>),
}

impl Restriction {
    fn has(&self, row: RowKey) -> bool {
        match self {
            Restriction::None => true,
            Restriction::Range(range) => range.has(row),
            Restriction::Rows(a, among) => row.0 == *a && among.contains(&row.1),
        }
    }

    fn text(&self) -> String {
        match self {
            Restriction::None => String::new(),
            Restriction::Range(range) => format!(" AND {}", range_text(range)),
            Restriction::Rows(a, among) => format!(" AND a = {a} AND b IN ({})", list(among)),
        }
    }
}

fn list(numbers: &[i32]) -> String {
    numbers.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
}

/// The range as a restriction of clustering columns, which is the same in DELETE.
pub(crate) fn range_text(range: &Range) -> String {
    let Range { first: (a1, b1), last: (a2, b2) } = *range;
    let bounds = |column: &str, low: i32, high: i32| {
        let low = (low != i32::MIN).then(|| format!("{column} >= {low}"));
        let high = (high != i32::MAX).then(|| format!("{column} <= {high}"));
        low.into_iter().chain(high).collect::<Vec<_>>().join(" AND ")
    };
    match a1 == a2 {
        true if b1 == b2 => format!("a = {a1} AND b = {b1}"),
        true if (b1, b2) == (i32::MIN, i32::MAX) => format!("a = {a1}"),
        true => format!("a = {a1} AND {}", bounds("b", b1, b2)),
        false => bounds("a", a1, a2),
    }
}

/// A row, a slice of one `a`, or a slice over `a`.
pub(crate) fn range(random: &mut Random) -> Range {
    let a = random.below(A_VALUES) as i32;
    let b = random.below(B_VALUES) as i32;
    let end = b + random.below(B_VALUES) as i32;
    match random.below(6) {
        0 => Range { first: (a, b), last: (a, b) },
        1 => Range { first: (a, i32::MIN), last: (a, i32::MAX) },
        2 => Range { first: (a, b), last: (a, end) },
        3 => Range { first: (a, i32::MIN), last: (a, b) },
        4 => Range { first: (a, i32::MIN), last: (a + 1, i32::MAX) },
        _ => Range { first: (a, i32::MIN), last: (i32::MAX, i32::MAX) },
    }
}

impl Select {
    pub(crate) const ALL: Select = Select {
        what: What::Rows,
        keys: Vec::new(),
        tokens: None,
        restriction: Restriction::None,
        reversed: false,
        per_partition: None,
        limit: None,
    };

    pub(crate) fn generate(random: &mut Random) -> Select {
        let key = |random: &mut Random| random.below(KEYS) as i32;
        let mut select = Select { keys: vec![key(random)], ..Select::ALL };
        select.what = match random.below(12) {
            0 => What::Partitions,
            1 => What::Groups,
            2 => What::Totals,
            _ => What::Rows,
        };
        select.per_partition = (select.what == What::Rows && random.chance(1, 6))
            .then(|| 1 + random.below(4) as usize);
        match random.below(9) {
            _ if select.what == What::Totals => {
                if random.chance(1, 2) {
                    select.restriction = Restriction::Range(range(random));
                }
                return select;
            }
            0 => select.keys.clear(),
            1 => {
                select.keys.clear();
                let (one, other) = (random.next_u64() as i64, random.next_u64() as i64);
                select.tokens = Some((one.min(other), one.max(other)));
            }
            2 => {
                select.keys = (0..1 + random.below(3)).map(|_| key(random)).collect();
                select.keys.sort_unstable();
                select.keys.dedup();
                return select;
            }
            _ if select.what != What::Rows => return select,
            3 => {
                let among = (0..1 + random.below(4)).map(|_| random.below(B_VALUES) as i32);
                let among = among.collect();
                select.restriction = Restriction::Rows(random.below(A_VALUES) as i32, among);
            }
            4..7 => select.restriction = Restriction::Range(range(random)),
            _ => {}
        }
        if !select.keys.is_empty() && select.what == What::Rows {
            select.reversed = random.chance(1, 3);
            select.limit = random.chance(1, 4).then(|| 1 + random.below(6) as usize);
        }
        select
    }

    pub(crate) fn text(&self, shape: &Shape) -> String {
        let extra = if shape.has_extra { ", x" } else { "" };
        let selected = match self.what {
            What::Rows => &format!("pk, a, b, s, v, w, m, writetime(v), e, l, u, sm{extra}"),
            What::Partitions => "DISTINCT pk, s",
            What::Groups => "pk, a, count(*), count(v), max(v)",
            What::Totals => "count(*), count(v), max(v)",
        };
        let mut text = format!("SELECT {selected} FROM {}", shape.name);
        match self.keys.as_slice() {
            [] => {
                if let Some((after, last)) = self.tokens {
                    text += &format!(" WHERE token(pk) > {after} AND token(pk) <= {last}");
                }
            }
            [key] => text += &format!(" WHERE pk = {key}{}", self.restriction.text()),
            keys => text += &format!(" WHERE pk IN ({}){}", list(keys), self.restriction.text()),
        }
        if self.what == What::Groups {
            text += " GROUP BY pk, a";
        }
        if self.reversed {
            let order = |descending: bool| if descending { "ASC" } else { "DESC" };
            let [a, b] = shape.descending.map(order);
            text += &format!(" ORDER BY a {a}, b {b}");
        }
        if let Some(limit) = self.per_partition {
            text += &format!(" PER PARTITION LIMIT {limit}");
        }
        if let Some(limit) = self.limit {
            text += &format!(" LIMIT {limit}");
        }
        text
    }

    /// The answer's rows for one partition, in order.
    pub(crate) fn rows(&self, shape: &Shape, key: i32, partition: &Partition) -> Vec<Cells> {
        let token = murmur3_token(&key.to_be_bytes()).0;
        if self.tokens.is_some_and(|(after, last)| token <= after || token > last) {
            return Vec::new();
        }
        let rows = self.selected(shape, key, partition);
        match self.what {
            What::Rows => rows,
            What::Partitions => {
                let first = rows.first().map(|row| [0, 3].map(|at| row.get(at).cloned().flatten()));
                first.map(Vec::from).into_iter().collect()
            }
            What::Groups => rows
                .chunk_by(|one, other| one.get(1) == other.get(1))
                .map(|group| {
                    let key = group.first().map(|row| row.iter().take(2).cloned().collect());
                    [key.unwrap_or_default(), totals(group)].concat()
                })
                .collect(),
            What::Totals => vec![totals(&rows)],
        }
    }

    fn selected(&self, shape: &Shape, key: i32, partition: &Partition) -> Vec<Cells> {
        let mut chosen: Vec<(&RowKey, &Row)> =
            partition.rows.iter().filter(|(row, _)| self.restriction.has(**row)).collect();
        let by = |descending: bool, value: i32| {
            let value = i64::from(value);
            if descending { Reverse(value).0.wrapping_neg() } else { value }
        };
        let [a, b] = shape.descending.map(|descending| descending != self.reversed);
        chosen.sort_by_key(|(row, _)| (by(a, row.0), by(b, row.1)));
        let static_row = &partition.static_row;
        let mut rows: Vec<Cells> = chosen
            .iter()
            .map(|(key_of, row)| cells(shape, key, Some(**key_of), static_row, row))
            .collect();
        if rows.is_empty()
            && self.restriction == Restriction::None
            && partition.rows.is_empty()
            && !static_row.is_empty()
        {
            rows.push(cells(shape, key, None, static_row, &Row::default()));
        }
        rows.truncate(self.per_partition.unwrap_or(usize::MAX));
        rows.truncate(self.limit.unwrap_or(usize::MAX));
        rows
    }

    /// A row of the answer, its list sorted: the model does not know in what order its elements came.
    pub(crate) fn comparable(&self, mut row: Cells) -> Cells {
        if self.what == What::Rows
            && let Some(Some(list)) = row.get_mut(LIST_AT)
            && let Some((_, elements)) = list.split_at_mut_checked(4)
        {
            let mut sorted: Vec<[u8; 8]> = elements.as_chunks().0.to_vec();
            sorted.sort_unstable();
            elements.copy_from_slice(sorted.as_flattened());
        }
        row
    }

    /// Where a row is in the order of a scan of all.
    pub(crate) fn sort_key(shape: &Shape, row: &Cells) -> (i64, Option<(i64, i64)>) {
        let int = |at: usize| {
            let bytes = row.get(at)?.as_deref()?;
            Some(i64::from(i32::from_be_bytes(bytes.try_into().ok()?)))
        };
        let by = |descending: bool, value: i64| if descending { -value } else { value };
        let key = row.first().and_then(Option::as_deref).unwrap_or_default();
        let [a, b] = shape.descending;
        let within = int(1).zip(int(2)).map(|(one, other)| (by(a, one), by(b, other)));
        (murmur3_token(key).0, within)
    }
}

/// `count(*), count(v), max(v)`
fn totals(rows: &[Cells]) -> Cells {
    let values = || rows.iter().filter_map(|row| row.get(4)?.as_deref());
    let count = |count: usize| Some((count as i64).to_be_bytes().to_vec());
    // None is below zero, so that their bytes are in their order.
    vec![count(rows.len()), count(values().count()), values().max().map(<[u8]>::to_vec)]
}

/// A collection as it is sent.
fn elements(row: &Row, of: Collection) -> Option<Vec<u8>> {
    let elements = row.of(of);
    if elements.is_empty() {
        return None;
    }
    let mut bytes = Vec::new();
    if of == Collection::Udt {
        for field in 0..2 {
            match elements.iter().find(|(key, _)| *key == field) {
                Some((_, value)) => bytes.extend([4, *value].map(i32::to_be_bytes).as_flattened()),
                None => bytes.extend((-1i32).to_be_bytes()),
            }
        }
        return Some(bytes);
    }
    bytes.extend((elements.len() as i32).to_be_bytes());
    for (key, value) in elements {
        bytes.extend([4, key].map(i32::to_be_bytes).as_flattened());
        if matches!(of, Collection::Map | Collection::StaticMap) {
            bytes.extend([4, value].map(i32::to_be_bytes).as_flattened());
        }
    }
    Some(bytes)
}

fn cells(shape: &Shape, key: i32, row_key: Option<RowKey>, static_row: &Row, row: &Row) -> Cells {
    let int = |value: i32| Some(value.to_be_bytes().to_vec());
    let cell = |row: &Row, column: Column| row.cells.get(&column).map(|(_, value)| value.clone());
    let written = row.cells.get(&Column::Value).map(|(at, _)| at.to_be_bytes().to_vec());
    let mut cells = vec![
        int(key),
        row_key.and_then(|row| int(row.0)),
        row_key.and_then(|row| int(row.1)),
        cell(static_row, Column::Static),
        cell(row, Column::Value),
        cell(row, Column::Text),
        elements(row, Collection::Map),
        written,
        elements(row, Collection::Set),
        elements(row, Collection::List),
        elements(row, Collection::Udt),
        elements(static_row, Collection::StaticMap),
    ];
    if shape.has_extra {
        cells.push(cell(row, Column::Extra));
    }
    cells
}

/// A row for people.
pub(crate) fn show(row: &Cells) -> String {
    let shown = row.iter().map(|cell| match cell {
        None => "null".to_owned(),
        Some(bytes) => match <[u8; 4]>::try_from(bytes.as_slice()) {
            Ok(int) => i32::from_be_bytes(int).to_string(),
            Err(_) if bytes.len() <= 64 => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            Err(_) => format!("{} bytes", bytes.len()),
        },
    });
    shown.collect::<Vec<_>>().join(" | ")
}
