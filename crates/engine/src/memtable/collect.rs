//! Gathers a stream's fragments of one partition as a mutation.

use std::sync::Arc;

use halcyon_model::DeletionTime;
use halcyon_model::clustering::PositionBuf;
use halcyon_stream::{
    Fragment, FragmentStream, Layout, Marker, Mutation, PartitionKey, RangeTombstone, Row, RowBuf,
    TableId,
};

pub(crate) struct Collector {
    mutation: Mutation,
    /// The range tombstone that is open.
    open: Option<(PositionBuf, DeletionTime)>,
    bytes: usize,
}

impl Collector {
    pub(crate) fn new(table: TableId, layout: Arc<Layout>, key: PartitionKey) -> Collector {
        Collector { mutation: Mutation::new(table, layout, key), open: None, bytes: 0 }
    }

    /// Of what has been gathered.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn last_row(&self) -> Option<&RowBuf> {
        self.mutation.rows.last()
    }

    pub(crate) fn take(&mut self, fragment: Fragment<'_>) {
        match fragment {
            Fragment::Start(start) => self.mutation.deletion = start.deletion,
            Fragment::Static(row) => self.mutation.static_row = Some(self.copy(row)),
            Fragment::Row(row) => {
                let row = self.copy(row);
                self.mutation.rows.push(row);
            }
            Fragment::Marker(marker) => self.marker(marker),
            Fragment::End => {}
        }
    }

    fn copy(&mut self, row: Row<'_>) -> RowBuf {
        let mut copy = RowBuf::new();
        copy.copy_from(row);
        self.bytes += copy.bytes.len() + size_of::<RowBuf>();
        copy
    }

    fn marker(&mut self, marker: Marker<'_>) {
        let bound = |kind| PositionBuf {
            kind,
            count: marker.position.count,
            serialized: marker.position.serialized.to_vec(),
        };
        self.close(bound(marker.position.kind.as_close()));
        self.open = marker.open.map(|time| (bound(marker.position.kind.as_open()), time));
    }

    /// Ends the open range tombstone, if there is one.
    pub(crate) fn close(&mut self, end: PositionBuf) {
        if let Some((start, time)) = self.open.take() {
            self.bytes += start.serialized.len() + end.serialized.len();
            self.mutation.range_tombstones.push(RangeTombstone { start, end, time });
        }
    }

    pub(crate) fn finish(self) -> Mutation {
        self.mutation
    }

    /// Everything that a stream of one partition has; `None` if it has no partition.
    pub(crate) async fn collect<S: FragmentStream>(
        mut self,
        stream: &mut S,
    ) -> Result<Option<Mutation>, S::Error> {
        let mut any = false;
        while stream.advance().await? {
            any = true;
            self.take(stream.fragment());
        }
        Ok(any.then(|| self.finish()))
    }
}
