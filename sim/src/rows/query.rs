//! SELECTs, and what the model answers to them.

use std::cmp::Reverse;

use halcyon_io::Random;

use super::generate::{A_VALUES, B_VALUES, KEYS};
use super::model::{Column, Partition, Range, Row, RowKey};
use super::table::Shape;

pub(crate) type Cells = Vec<Option<Vec<u8>>>;

/// Rows of one or all partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Select {
    /// Empty: all partitions.
    pub(crate) keys: Vec<i32>,
    restriction: Restriction,
    reversed: bool,
    limit: Option<usize>,
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
    pub(crate) const ALL: Select =
        Select { keys: Vec::new(), restriction: Restriction::None, reversed: false, limit: None };

    pub(crate) fn generate(random: &mut Random) -> Select {
        let key = |random: &mut Random| random.below(KEYS) as i32;
        let mut select = Select { keys: vec![key(random)], ..Select::ALL };
        match random.below(8) {
            0 => select.keys.clear(),
            1 => {
                select.keys = (0..1 + random.below(3)).map(|_| key(random)).collect();
                select.keys.sort_unstable();
                select.keys.dedup();
                return select;
            }
            2 => {
                let among = (0..1 + random.below(4)).map(|_| random.below(B_VALUES) as i32);
                let among = among.collect();
                select.restriction = Restriction::Rows(random.below(A_VALUES) as i32, among);
            }
            3..6 => select.restriction = Restriction::Range(range(random)),
            _ => {}
        }
        if !select.keys.is_empty() {
            select.reversed = random.chance(1, 3);
            select.limit = random.chance(1, 4).then(|| 1 + random.below(6) as usize);
        }
        select
    }

    pub(crate) fn text(&self, shape: &Shape) -> String {
        let extra = if shape.has_extra { ", x" } else { "" };
        let mut text =
            format!("SELECT pk, a, b, s, v, w, m, writetime(v){extra} FROM {}", shape.name);
        match self.keys.as_slice() {
            [] => {}
            [key] => text += &format!(" WHERE pk = {key}{}", self.restriction.text()),
            keys => text += &format!(" WHERE pk IN ({}){}", list(keys), self.restriction.text()),
        }
        if self.reversed {
            let order = |descending: bool| if descending { "ASC" } else { "DESC" };
            let [a, b] = shape.descending.map(order);
            text += &format!(" ORDER BY a {a}, b {b}");
        }
        if let Some(limit) = self.limit {
            text += &format!(" LIMIT {limit}");
        }
        text
    }

    /// The answer's rows for one partition, in order.
    pub(crate) fn rows(&self, shape: &Shape, key: i32, partition: &Partition) -> Vec<Cells> {
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
            && !static_row.cells.is_empty()
        {
            rows.push(cells(shape, key, None, static_row, &Row::default()));
        }
        rows.truncate(self.limit.unwrap_or(usize::MAX));
        rows
    }
}

fn cells(shape: &Shape, key: i32, row_key: Option<RowKey>, static_row: &Row, row: &Row) -> Cells {
    let int = |value: i32| Some(value.to_be_bytes().to_vec());
    let cell = |row: &Row, column: Column| row.cells.get(&column).map(|(_, value)| value.clone());
    let mut map = Vec::new();
    map.extend((row.map.len() as i32).to_be_bytes());
    for (key, value) in &row.map {
        for number in [4, *key, 4, *value] {
            map.extend(number.to_be_bytes());
        }
    }
    let written = row.cells.get(&Column::Value).map(|(at, _)| at.to_be_bytes().to_vec());
    let mut cells = vec![
        int(key),
        row_key.and_then(|row| int(row.0)),
        row_key.and_then(|row| int(row.1)),
        cell(static_row, Column::Static),
        cell(row, Column::Value),
        cell(row, Column::Text),
        (!row.map.is_empty()).then_some(map),
        written,
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
