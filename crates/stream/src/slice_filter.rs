//! Cuts the wanted slices out of a stream of partitions.
//!
//! ```text
//!   inner    Start  Static  r1  [open d ... r2  r3 ... close d]  r4  End
//!   slice                            ( r3 ........... r4 )
//!   comes out Start        [open d at the slice's start  r3  close d]  r4  End
//! ```
//!
//! 1. A partition's start always comes out; its static row if it is wanted.
//! 2. Before a slice, the inner stream may jump (`SeekRows`); what lies before the slice is stepped over, and only the
//!    range tombstone that is open there is remembered.
//! 3. A tombstone that is open at the edge of a slice is opened or closed at the edge.
//! 4. Behind the last slice the inner stream may skip to the end of the partition.

use std::cmp::Ordering;
use std::sync::Arc;

use halcyon_model::DeletionTime;

use crate::fragment::{Fragment, FragmentStream, Marker};
use crate::layout::Layout;
use crate::mutation::BoundBuf;
use crate::slices::Slices;

/// A stream that may know short cuts within a partition. Both are only hints: not to move is always right.
pub trait SeekRows: FragmentStream {
    /// Moves ahead, never back, so that the next `advance` gives something at or before the first fragment behind `bound`.
    /// Returns the range tombstone that is open there; `None` if it did not move.
    async fn seek_rows(
        &mut self,
        _bound: &BoundBuf,
    ) -> Result<Option<Option<DeletionTime>>, Self::Error> {
        Ok(None)
    }

    /// Nothing more of the partition is wanted: moves so that the next `advance` gives its end, if that is cheap.
    async fn skip_partition(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Between,
    Head,
    /// Before the slice of this number, or behind the last.
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
    /// The inner stream stands at a fragment that has not been dealt with.
    held: bool,
    open: Option<DeletionTime>,
}

impl<S: SeekRows> SliceFilter<S> {
    /// `slices` are in the order of the stream: a reversed stream takes them as its layout orders them.
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

    /// Where the held fragment lies against a bound; `None` at the end of the partition.
    fn against(&self, bound: &BoundBuf) -> Option<Ordering> {
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

    /// Goes to the first fragment of slice `number`; true if a tombstone is open there.
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

    /// `None`: the slice is over, and nothing was open at its end.
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
                    self.phase = Phase::Head;
                    self.shown = Shown::Inner;
                    return self.inner.advance().await;
                }
                Phase::Head => {
                    self.phase = Phase::Before(0);
                    // Nothing but the start is wanted: do not even read on.
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
