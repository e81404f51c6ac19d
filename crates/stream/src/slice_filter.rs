//! Restricts a stream of partitions to slices.
//!
//! ```text
//!   inner    Start  Static  r1  [open d ... r2  r3 ... close d]  r4  End
//!   slice                            ( r3 ........... r4 )
//!   output   Start           [open d at the slice's start  r3  close d]  r4  End
//! ```
//!
//! 1. A partition's start is always passed on, its static row if it is selected.
//! 2. Before a slice, the inner stream may seek (`SeekRows`). Fragments that are still before the slice are dropped; the filter
//!    remembers only the open range tombstone.
//! 3. A range tombstone that crosses the bound of a slice is opened or closed at the bound.
//! 4. After the last slice, the inner stream may skip to the end of the partition.

use std::cmp::Ordering;
use std::sync::Arc;

use halcyon_model::DeletionTime;
use halcyon_model::clustering::PositionBuf;

use crate::fragment::{Fragment, FragmentStream, Marker};
use crate::layout::Layout;
use crate::slices::Slices;

/// A stream that can seek within a partition. Both methods are optional: a stream that stays where it is remains correct.
pub trait SeekRows: FragmentStream {
    /// Moves forward to a fragment that is not after the first one past `bound`; the next `advance` returns it. The result is the
    /// range tombstone that is open there, or `None` if the stream did not move.
    async fn seek_rows(
        &mut self,
        _bound: &PositionBuf,
    ) -> Result<Option<Option<DeletionTime>>, Self::Error> {
        Ok(None)
    }

    /// Moves before the partition's end, if that is cheaper than reading the rows that remain.
    async fn skip_partition(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Between,
    Head,
    /// Before the slice with this index, or after the last slice.
    Before(usize),
    Within(usize),
}

#[derive(Debug, Clone, Copy)]
enum Shown {
    Inner,
    OpenAtStart(usize, DeletionTime),
    CloseAtEnd(usize, DeletionTime),
    End,
}

pub struct SliceFilter<S> {
    inner: S,
    layout: Arc<Layout>,
    slices: Slices,
    phase: Phase,
    shown: Shown,
    /// The current fragment of the inner stream has been read, but not processed.
    held: bool,
    open: Option<DeletionTime>,
}

impl<S: SeekRows> SliceFilter<S> {
    /// `slices` are in the order of the stream: a reversed stream needs reversed slices.
    pub fn new(inner: S, layout: Arc<Layout>, slices: Slices) -> SliceFilter<S> {
        let (phase, shown) = (Phase::Between, Shown::End);
        SliceFilter { inner, layout, slices, phase, shown, held: false, open: None }
    }

    pub fn inner(&self) -> &S {
        &self.inner
    }

    async fn hold(&mut self) -> Result<(), S::Error> {
        if !self.held {
            self.inner.advance().await?;
            self.held = true;
        }
        Ok(())
    }

    /// The order of the held fragment and a bound; `None` at the end of the partition.
    fn against(&self, bound: &PositionBuf) -> Option<Ordering> {
        let clusterings = &self.layout.clusterings;
        let position = self.inner.fragment().position(clusterings.len())?;
        Some(clusterings.compare(position, bound.position()))
    }

    /// Shows the held fragment.
    fn release(&mut self) -> bool {
        if let Fragment::Marker(marker) = self.inner.fragment() {
            self.open = marker.open;
        }
        self.held = false;
        self.shown = Shown::Inner;
        true
    }

    /// Advances to the first fragment of slice `number`; true if a range tombstone is open there.
    async fn enter(&mut self, number: usize) -> Result<bool, S::Error> {
        self.phase = Phase::Within(number);
        let Some(start) = self.slices.slices.get(number).and_then(|slice| slice.start.clone())
        else {
            return Ok(false);
        };
        if let Some(open) = self.inner.seek_rows(&start).await? {
            self.open = open;
            self.held = false;
        }
        loop {
            self.hold().await?;
            match self.against(&start) {
                Some(Ordering::Less | Ordering::Equal) => {
                    self.release();
                }
                _ => break,
            }
        }
        let Some(open) = self.open else { return Ok(false) };
        self.shown = Shown::OpenAtStart(number, open);
        Ok(true)
    }

    /// `None`: the slice has ended, and no range tombstone was open at its end.
    async fn within(&mut self, number: usize) -> Result<Option<bool>, S::Error> {
        self.hold().await?;
        let end = self.slices.slices.get(number).and_then(|slice| slice.end.as_ref());
        let beyond = match self.inner.fragment() {
            Fragment::Row(_) | Fragment::Marker(_) => end.is_some_and(|end| {
                matches!(self.against(end), Some(Ordering::Equal | Ordering::Greater))
            }),
            _ => true,
        };
        if !beyond {
            return Ok(Some(self.release()));
        }
        self.phase = Phase::Before(number + 1);
        let Some(open) = self.open.filter(|_| end.is_some()) else { return Ok(None) };
        self.shown = Shown::CloseAtEnd(number, open);
        Ok(Some(true))
    }

    async fn finish(&mut self) -> Result<bool, S::Error> {
        let at_end = |stream: &S| matches!(stream.fragment(), Fragment::End);
        if !(self.held && at_end(&self.inner)) {
            self.inner.skip_partition().await?;
            while self.inner.advance().await? && !at_end(&self.inner) {}
        }
        self.held = false;
        self.phase = Phase::Between;
        self.shown = Shown::End;
        Ok(true)
    }
}

impl<S: SeekRows> FragmentStream for SliceFilter<S> {
    type Error = S::Error;

    async fn advance(&mut self) -> Result<bool, S::Error> {
        loop {
            match self.phase {
                Phase::Between => {
                    self.open = None;
                    self.held = false;
                    self.shown = Shown::Inner;
                    let more = self.inner.advance().await?;
                    // At the end it stays here, where every further call finds the end again.
                    if more {
                        self.phase = Phase::Head;
                    }
                    return Ok(more);
                }
                Phase::Head => {
                    self.phase = Phase::Before(0);
                    // Only the start is selected: reading further could cost a device read.
                    if self.slices.slices.is_empty() && !self.slices.statics {
                        continue;
                    }
                    self.hold().await?;
                    if matches!(self.inner.fragment(), Fragment::Static(_)) {
                        self.held = false;
                        if self.slices.statics {
                            self.shown = Shown::Inner;
                            return Ok(true);
                        }
                    }
                }
                Phase::Before(number) if number >= self.slices.slices.len() => {
                    return self.finish().await;
                }
                Phase::Before(number) => {
                    if self.enter(number).await? {
                        return Ok(true);
                    }
                }
                Phase::Within(number) => {
                    if let Some(more) = self.within(number).await? {
                        return Ok(more);
                    }
                }
            }
        }
    }

    fn fragment(&self) -> Fragment<'_> {
        let slice = |number: usize| self.slices.slices.get(number);
        match self.shown {
            Shown::Inner => self.inner.fragment(),
            Shown::OpenAtStart(number, open) => {
                match slice(number).and_then(|s| s.start.as_ref()) {
                    Some(bound) => Fragment::Marker(Marker {
                        position: bound.position(),
                        close: None,
                        open: Some(open),
                    }),
                    None => Fragment::End,
                }
            }
            Shown::CloseAtEnd(number, close) => match slice(number).and_then(|s| s.end.as_ref()) {
                Some(bound) => Fragment::Marker(Marker {
                    position: bound.position(),
                    close: Some(close),
                    open: None,
                }),
                None => Fragment::End,
            },
            Shown::End => Fragment::End,
        }
    }
}
