//! Writes of very many rows or cells, to a row of very many, or of long texts that are indexed: no step of theirs holds the shard for long.
//!
//! 1. Their log record is encoded on a thread for computations.
//! 2. A large mutation is merged there with a copy of its partition, and with it those that follow it in its batch: each change of threads
//!    takes milliseconds while the cores are busy. Meanwhile reads see the partition without it, and other writes to the partition wait.
//! 3. The copy takes the partition's place in one step.

use std::collections::BTreeSet;

use halcyon_io::{compute, drop_apart, yield_now};
use halcyon_stream::{Mutation, PartitionKey, RowBuf, TableId};

use super::lock::{PartitionLock, lock};
use super::record::encode;
use crate::Result;
use crate::memtable::Pin;
use crate::shard::Shard;

/// Rows, cells and ranges that take some 500 µs.
const LARGE: usize = 1_000;

/// Terms that an index takes in one step.
const TERMS: usize = 200;

fn parts(mutation: &Mutation) -> usize {
    let of_row = |row: &RowBuf| 1 + row.parts.cells.len();
    let rows = mutation.static_row.iter().chain(&mutation.rows);
    rows.map(of_row).sum::<usize>() + mutation.range_tombstones.len()
}

pub(super) fn is_large(mutation: &Mutation) -> bool {
    parts(mutation) > LARGE
}

/// Whether mutations of one write have very many parts together.
pub(super) fn are_large(mutations: &[Mutation]) -> bool {
    mutations.iter().map(|mutation| 1 + parts(mutation)).sum::<usize>() > LARGE
}

/// A count of parts; says when others have a turn.
#[derive(Default)]
pub(super) struct Turns(usize);

impl Turns {
    /// Yields after enough parts.
    pub(super) async fn count(&mut self, mutation: &Mutation) {
        self.0 += 1 + parts(mutation);
        if self.0 > LARGE {
            self.0 = 0;
            yield_now().await;
        }
    }
}

impl Shard {
    /// The record of mutations of tables that are logged.
    pub(super) async fn encode_apart(
        &self,
        mutations: Vec<Mutation>,
    ) -> Result<(Vec<Mutation>, Vec<u8>)> {
        let is_durable = |id: &TableId| {
            let table = self.table_by_id(*id);
            table.is_some_and(|table| table.current().definition.durable)
        };
        let of_tables = mutations.chunk_by(|a, b| a.table == b.table);
        let tables: BTreeSet<TableId> =
            of_tables.filter_map(|of_table| Some(of_table.first()?.table)).collect();
        let durable: BTreeSet<TableId> = tables.into_iter().filter(is_durable).collect();
        let encoded = compute(move || {
            let record = encode(mutations.iter().filter(|m| durable.contains(&m.table)));
            (mutations, record)
        });
        Ok(encoded.await?)
    }

    /// Applies mutations of a partition that are large, or of a wide row; returns the growth in bytes.
    pub(super) async fn apply_apart(
        &self,
        pin: &Pin,
        (table, key): (TableId, PartitionKey),
        mutations: Vec<Mutation>,
    ) -> Result<isize> {
        let _alone = lock(&self.changing, table, &key).await;
        let apart = pin.apart(key, mutations);
        let mut merged = compute(move || apart.merge()).await??;
        let mut grown = 0;
        for (index, indexed) in std::mem::take(&mut merged.indexed).into_iter().enumerate() {
            let mut indexed = indexed.into_iter().peekable();
            while indexed.peek().is_some() {
                grown += pin.add_indexed(index, &mut indexed, TERMS);
                yield_now().await;
            }
        }
        self.rows.forget(table, &merged.key);
        let (replaced, by) = pin.put(merged);
        drop_apart(replaced);
        Ok(grown + by)
    }

    /// Waits while a large mutation of the partition is under way.
    pub(super) async fn wait_for_large(&self, mutation: &Mutation) -> Option<PartitionLock> {
        if self.changing.borrow().is_empty() {
            return None;
        }
        Some(lock(&self.changing, mutation.table, &mutation.key).await)
    }
}
