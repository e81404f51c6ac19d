//! A source of which rows may follow each other that are versions of one row, as SSTables have them that Cassandra wrote while it had
//! CASSANDRA-12144 and its like. Cassandra's compactions write them through. Here they become one row.
//!
//! It takes a copy of each row and the row behind it, so it only stands where it is needed: where a writer has refused
//! [`GrammarError::DuplicateRow`](crate::GrammarError::DuplicateRow). Otherwise it passes on what the source shows.

use std::sync::Arc;

use halcyon_model::DeletionTime;

use crate::fragment::{Fragment, FragmentStream, RowBuf};
use crate::layout::{Layout, Statics};
use crate::merge_row::{MergeError, RowMerger};

pub struct Distinct<S> {
    stream: S,
    layout: Arc<Layout>,
    merging: Option<Merging>,
}

struct Merging {
    merger: RowMerger,
    /// The row that is shown, if it is one.
    held: Option<RowBuf>,
    spare: RowBuf,
    /// The stream stands at what comes next.
    is_ahead: bool,
    duplicates: u64,
}

impl<S: FragmentStream> Distinct<S>
where
    S::Error: From<MergeError>,
{
    /// `stream` numbers its columns as `layout` does.
    pub fn new(layout: Arc<Layout>, stream: S, merges: bool) -> Distinct<S> {
        let merging = merges.then(|| Merging {
            merger: RowMerger::new(layout.clone()),
            held: None,
            spare: RowBuf::new(),
            is_ahead: false,
            duplicates: 0,
        });
        Distinct { stream, layout, merging }
    }

    pub fn inner(&self) -> &S {
        &self.stream
    }

    /// Rows that were merged into the one before them.
    pub fn duplicates(&self) -> u64 {
        self.merging.as_ref().map_or(0, |merging| merging.duplicates)
    }
}

impl Merging {
    async fn advance<S: FragmentStream>(
        &mut self,
        stream: &mut S,
        layout: &Layout,
    ) -> Result<bool, S::Error>
    where
        S::Error: From<MergeError>,
    {
        let freed = self.held.take();
        if !std::mem::take(&mut self.is_ahead) && !stream.advance().await? {
            return Ok(false);
        }
        let Fragment::Row(row) = stream.fragment() else { return Ok(true) };
        let mut held = freed.unwrap_or_default();
        held.copy_from(row);
        loop {
            // A row is never the last of a stream.
            self.is_ahead = stream.advance().await?;
            let Fragment::Row(next) = stream.fragment() else { break };
            let width = layout.clusterings.len();
            let order =
                layout.clusterings.compare(held.row().position(width), next.position(width));
            if order.is_ne() {
                break;
            }
            let versions = [held.row(), next].into_iter();
            self.merger.merge(Statics::Regular, versions, DeletionTime::LIVE, &mut self.spare)?;
            std::mem::swap(&mut held, &mut self.spare);
            self.duplicates += 1;
        }
        self.held = Some(held);
        Ok(true)
    }
}

impl<S: FragmentStream> FragmentStream for Distinct<S>
where
    S::Error: From<MergeError>,
{
    type Error = S::Error;

    #[inline]
    async fn advance(&mut self) -> Result<bool, S::Error> {
        match &mut self.merging {
            None => self.stream.advance().await,
            Some(merging) => merging.advance(&mut self.stream, &self.layout).await,
        }
    }

    #[inline]
    fn fragment(&self) -> Fragment<'_> {
        match self.merging.as_ref().and_then(|merging| merging.held.as_ref()) {
            None => self.stream.fragment(),
            Some(held) => Fragment::Row(held.row()),
        }
    }
}
