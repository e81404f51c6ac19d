//! The page that a scan fills: rows encoded for the wire, sorted if the statement says so, and the row after which the next page continues.

use std::cmp::Ordering;
use std::sync::Arc;

use halcyon_cql::plan::functions::has_large_number;
use halcyon_cql::plan::select::{BoundSelect, NO_LIMIT, SelectPlan};
use halcyon_cql::plan::selection::{Evaluation, RowValues};
use halcyon_io::clock::Instant;
use halcyon_model::bytes::Put;
use halcyon_model::value::{quote_json, to_json_string};
use halcyon_syntax::Error as CqlError;

use crate::memory::COPIES;
use crate::top::Top;
use crate::{Held, Result, SMALL, pace};

/// The first allocation: most answers fit.
const INITIAL_BYTES: usize = 512;

/// Rows, and their bytes, that are sorted where they were read.
const SORTED_AT_ONCE: usize = 500;
const COPIED_AT_ONCE: u64 = 256 << 10;

/// What a selector and a byte of a value in JSON cost, in units of work.
const SELECTOR: u64 = 20;
const JSON_BYTE: u64 = 40;

/// The row after which the next page continues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Last {
    pub key: Vec<u8>,
    /// `None`: after the whole partition.
    pub clustering: Option<Vec<u8>>,
}

impl Last {
    /// Replaces the row and keeps the allocations.
    pub(crate) fn set(&mut self, key: &[u8], clustering: Option<&[u8]>) {
        self.key.clear();
        self.key.extend_from_slice(key);
        match clustering {
            None => self.clustering = None,
            Some(bytes) => {
                let buffer = self.clustering.get_or_insert_default();
                buffer.clear();
                buffer.extend_from_slice(bytes);
            }
        }
    }
}

/// An encoded row and the values that it is sorted by.
type Sortable = (Vec<Option<Vec<u8>>>, Vec<u8>);

#[derive(Debug)]
pub struct Page {
    pub content: Vec<u8>,
    pub count: u32,
    /// How many rows the limits still allow, of the statement and of this partition.
    pub remaining: u32,
    pub remaining_in_partition: u32,
    pub last: Option<Last>,
    /// No further row fits.
    pub full: bool,
    /// The page size; `u32::MAX` if the result is not paged.
    rows: u32,
    sorted: Vec<Sortable>,
    sorted_bytes: u64,
    /// Instead, where the nearest rows are wanted.
    pub(crate) top: Option<Top>,
    /// What the answer is counted with, once it is not small.
    pub held: Held,
}

impl Page {
    pub(crate) fn new(select: &BoundSelect, rows: u32, held: Held) -> Page {
        // A sorted result is cut to its limit after it is sorted.
        let sorts = !select.plan.sort.is_empty() || select.nearest.is_some();
        let top = select.nearest.as_ref().map(|_| Top::new(select.limits.rows as usize));
        Page {
            content: Vec::with_capacity(INITIAL_BYTES),
            count: 0,
            remaining: if sorts { NO_LIMIT } else { select.limits.rows },
            remaining_in_partition: select.limits.per_partition,
            last: None,
            full: false,
            rows,
            sorted: Vec::new(),
            sorted_bytes: 0,
            top,
            held,
        }
    }

    /// Evaluates the selectors on a row or on a group's results, and appends the row; false if that is more work than it may do.
    pub(crate) fn put(&mut self, plan: &SelectPlan, on: &Evaluation<'_>) -> Result<bool> {
        let start = self.content.len();
        match encode(plan, on, &mut self.content) {
            Ok(()) => self.appended(plan, on.row, start).map(|()| true),
            Err(CqlError::Exhausted) => {
                self.content.truncate(start);
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Appends a row that was encoded elsewhere.
    pub(crate) fn take(
        &mut self,
        plan: &SelectPlan,
        row: &RowValues,
        encoded: &[u8],
    ) -> Result<()> {
        let start = self.content.len();
        self.content.extend_from_slice(encoded);
        self.appended(plan, row, start)
    }

    /// The row from `start` on was appended.
    fn appended(&mut self, plan: &SelectPlan, row: &RowValues, start: usize) -> Result<()> {
        if let Some(top) = &mut self.top {
            let grown = top.take(self.content.split_off(start));
            self.sorted_bytes = self.sorted_bytes.saturating_add_signed(grown);
            return self.count_bytes(false);
        }
        if plan.sort.is_empty() {
            self.count += 1;
        } else {
            let bytes = self.content.split_off(start);
            let value = |(fetch, _, _): &(usize, _, _)| row.value(*fetch).map(<[u8]>::to_vec);
            let by: Vec<_> = plan.sort.iter().map(value).collect();
            let keys: usize = by.iter().flatten().map(|key| size_of::<Vec<u8>>() + key.len()).sum();
            self.sorted_bytes += (size_of::<Sortable>() + keys + bytes.capacity()) as u64;
            self.sorted.push((by, bytes));
        }
        for remaining in [&mut self.remaining, &mut self.remaining_in_partition] {
            *remaining = remaining.saturating_sub(1);
        }
        let is_paged = self.rows != u32::MAX;
        self.full = self.remaining == 0
            || self.count >= self.rows
            || is_paged && self.content.len() as u64 >= self.held.memory().page_bytes();
        self.count_bytes(is_paged)
    }

    fn bytes(&self) -> u64 {
        self.content.capacity() as u64 + self.sorted_bytes
    }

    /// Counts what a group keeps beside the rows.
    pub(crate) fn count_group(&mut self, bytes: u64) -> Result<()> {
        if bytes <= SMALL {
            return Ok(());
        }
        self.held.grow_or_refuse(self.bytes() * COPIES + bytes)
    }

    /// Counts what the answer has become. Where there is no room, a page that is not large ends with this row; other answers are given up.
    fn count_bytes(&mut self, is_paged: bool) -> Result<()> {
        let bytes = self.bytes();
        if bytes <= SMALL || self.held.bytes() >= bytes * COPIES {
            return Ok(());
        }
        let counted = self.held.grow_or_refuse(bytes * COPIES);
        if counted.is_err() && is_paged && bytes <= 4 * SMALL {
            self.full = true;
            return Ok(());
        }
        counted
    }

    /// Of the nearest rows: how many there are, and the score that others must reach, if there are enough.
    pub fn nearest(&self) -> (usize, Option<f32>) {
        self.top.as_ref().map_or((0, None), |top| (top.len(), top.floor()))
    }

    /// Orders all rows of a sorted result, of which at most `limit` stay; `None` if the deadline came first.
    pub(crate) async fn sort(
        &mut self,
        plan: Arc<SelectPlan>,
        limit: u32,
        deadline: Instant,
    ) -> Result<Option<()>> {
        let rows = std::mem::take(&mut self.sorted);
        let ordered = if rows.len() <= SORTED_AT_ONCE && self.sorted_bytes <= COPIED_AT_ONCE {
            in_order(&plan, rows, limit)
        } else {
            let ordered = pace::until(deadline, move |_| Ok(in_order(&plan, rows, limit))).await?;
            let Some(ordered) = ordered else { return Ok(None) };
            ordered
        };
        (self.count, self.content) = ordered;
        Ok(Some(()))
    }
}

/// The number of rows, and all of them as they are sent.
fn in_order(plan: &SelectPlan, mut rows: Vec<Sortable>, limit: u32) -> (u32, Vec<u8>) {
    rows.sort_by(|(a, _), (b, _)| {
        let pairs = plan.sort.iter().zip(a.iter().zip(b));
        pairs.fold(Ordering::Equal, |order, ((_, cql_type, reversed), (a, b))| {
            order.then_with(|| {
                let order = match (a, b) {
                    (Some(a), Some(b)) => cql_type.compare(a, b),
                    (a, b) => a.is_some().cmp(&b.is_some()),
                };
                if *reversed { order.reverse() } else { order }
            })
        })
    });
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    (count, rows.into_iter().flat_map(|(_, bytes)| bytes).collect())
}

/// A row as it is sent.
pub(crate) fn encoded(plan: &SelectPlan, on: &Evaluation<'_>) -> Result<Vec<u8>, CqlError> {
    // What is refused is refused before anything is made of it.
    let stored = plan.selection.selectors.iter().filter_map(|selector| selector.stored(on));
    let bytes = stored.map(<[u8]>::len).fold(0, usize::saturating_add);
    on.execution.work.check_room(bytes)?;
    let mut out = Vec::with_capacity(bytes);
    encode(plan, on, &mut out)?;
    Ok(out)
}

fn encode(plan: &SelectPlan, on: &Evaluation<'_>, out: &mut Vec<u8>) -> Result<(), CqlError> {
    let work = on.execution.work;
    work.spend_on(plan.selection.selectors.len(), SELECTOR)?;
    let Some(names) = &plan.json else {
        for selector in &plan.selection.selectors {
            match selector.evaluate(on)? {
                None => out.put_i32(-1),
                Some(value) => {
                    work.make(value.len())?;
                    out.put_ibytes(&value);
                }
            }
        }
        return Ok(());
    };
    let mut text = String::from("{");
    let selectors = plan.selection.selectors.iter().enumerate();
    for ((index, selector), (name, cql_type)) in selectors.zip(names) {
        let name =
            if name.chars().any(char::is_uppercase) { format!("\"{name}\"") } else { name.clone() };
        text.push_str(if index == 0 { "" } else { ", " });
        text.push_str(&format!("\"{}\": ", quote_json(&name)));
        match selector.evaluate(on)? {
            None => text.push_str("null"),
            Some(value) if has_large_number(cql_type, &value) => {
                return Err(CqlError::InvalidRequest(format!(
                    "The number in {name} is too large to be shown as JSON"
                )));
            }
            Some(value) => {
                work.spend_on(value.len(), JSON_BYTE)?;
                let value = to_json_string(cql_type, &value);
                work.make(value.len())?;
                text.push_str(&value);
            }
        }
    }
    text.push('}');
    out.put_ibytes(text.as_bytes());
    Ok(())
}
