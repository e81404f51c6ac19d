//! Mutations as a stream: how the rows of virtual tables are read like those of every other.

use std::convert::Infallible;

use halcyon_stream::{Fragment, FragmentStream, Mutation, PartitionStart, RowBuf, Slices};

/// Partitions in the order of their keys, rows of the slices in clustering order (or backwards). Range tombstones are
/// left out: virtual tables have none.
#[derive(Debug)]
pub(crate) struct MutationStream {
    partitions: Vec<Mutation>,
    next: usize,
    at: At,
}

#[derive(Debug, Clone, Copy)]
enum At {
    Begin,
    Start,
    Static,
    Row(usize),
    End,
}

impl MutationStream {
    pub(crate) fn new(mut partitions: Vec<Mutation>, slices: &Slices) -> MutationStream {
        partitions.sort_by(|a, b| a.layout.compare_keys(&a.key, &b.key));
        for partition in &mut partitions {
            let layout = partition.layout.clone();
            let count = layout.clusterings.len();
            let wanted = |row: &RowBuf| {
                let row = row.row().position(count);
                slices.slices.iter().any(|slice| slice.contains(row, &layout))
            };
            partition.rows.retain(wanted);
            partition.rows.sort_by(|a, b| {
                layout.clusterings.compare(a.row().position(count), b.row().position(count))
            });
            if slices.reversed {
                partition.rows.reverse();
            }
            if !slices.statics {
                partition.static_row = None;
            }
        }
        MutationStream { partitions, next: 0, at: At::Begin }
    }
}

impl FragmentStream for MutationStream {
    type Error = Infallible;

    async fn advance(&mut self) -> Result<bool, Infallible> {
        let rows = |partition: &Mutation, from: usize| {
            if from < partition.rows.len() { At::Row(from) } else { At::End }
        };
        if matches!(self.at, At::End) {
            self.next += 1;
        }
        let Some(partition) = self.partitions.get(self.next) else { return Ok(false) };
        self.at = match self.at {
            At::Begin | At::End => At::Start,
            At::Start if partition.static_row.is_some() => At::Static,
            At::Start | At::Static => rows(partition, 0),
            At::Row(index) => rows(partition, index + 1),
        };
        Ok(true)
    }

    fn fragment(&self) -> Fragment<'_> {
        let Some(partition) = self.partitions.get(self.next) else { return Fragment::End };
        match self.at {
            At::Start => Fragment::Start(PartitionStart {
                key: &partition.key,
                deletion: partition.deletion,
            }),
            At::Static => match &partition.static_row {
                Some(row) => Fragment::Static(row.row()),
                None => Fragment::End,
            },
            At::Row(index) => match partition.rows.get(index) {
                Some(row) => Fragment::Row(row.row()),
                None => Fragment::End,
            },
            At::Begin | At::End => Fragment::End,
        }
    }
}
