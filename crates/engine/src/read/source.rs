//! The sources of a read, and their merge.

use std::sync::Arc;

use halcyon_stream::{Fragment, FragmentStream, Layout, Merge, Primed, RowBuf, Statics};

use super::sstable::SSTableStream;
use crate::columns::ColumnMap;
use crate::memtable::MemtableStream;
use crate::{Error, Result};

pub(super) enum Source {
    Memtable(Box<MemtableStream>),
    /// From before the last change of the table's columns.
    Mapped(Box<Mapped>),
    SSTable(Box<Primed<SSTableStream>>),
}

/// A memtable's stream in another layout.
pub(super) struct Mapped {
    stream: MemtableStream,
    map: ColumnMap,
    scratch: RowBuf,
}

impl Mapped {
    pub(super) fn new(stream: MemtableStream, map: ColumnMap) -> Mapped {
        Mapped { stream, map, scratch: RowBuf::new() }
    }

    async fn advance(&mut self) -> Result<bool> {
        while self.stream.advance().await? {
            let kept = match self.stream.fragment() {
                Fragment::Static(row) => self.map.copy(Statics::Static, row, &mut self.scratch),
                Fragment::Row(row) => self.map.copy(Statics::Regular, row, &mut self.scratch),
                _ => true,
            };
            if kept {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn fragment(&self) -> Fragment<'_> {
        match self.stream.fragment() {
            Fragment::Static(_) => Fragment::Static(self.scratch.row()),
            Fragment::Row(_) => Fragment::Row(self.scratch.row()),
            other => other,
        }
    }
}

impl FragmentStream for Source {
    type Error = Error;

    async fn advance(&mut self) -> Result<bool> {
        match self {
            Source::Memtable(stream) => Ok(stream.advance().await?),
            Source::Mapped(stream) => stream.advance().await,
            Source::SSTable(stream) => stream.advance().await,
        }
    }

    fn fragment(&self) -> Fragment<'_> {
        match self {
            Source::Memtable(stream) => stream.fragment(),
            Source::Mapped(stream) => stream.fragment(),
            Source::SSTable(stream) => stream.fragment(),
        }
    }
}

/// The sources of one partition or range, merged.
pub(super) enum Sources {
    Nothing,
    One(Source),
    Merged(Box<Merge<Source>>),
}

impl Sources {
    pub(super) fn of(layout: &Arc<Layout>, mut sources: Vec<Source>) -> Sources {
        match sources.len() {
            0 => Sources::Nothing,
            1 => sources.pop().map_or(Sources::Nothing, Sources::One),
            _ => Sources::Merged(Box::new(Merge::new(layout.clone(), sources))),
        }
    }
}

impl FragmentStream for Sources {
    type Error = Error;

    async fn advance(&mut self) -> Result<bool> {
        match self {
            Sources::Nothing => Ok(false),
            Sources::One(source) => source.advance().await,
            Sources::Merged(merge) => merge.advance().await,
        }
    }

    fn fragment(&self) -> Fragment<'_> {
        match self {
            Sources::Nothing => Fragment::End,
            Sources::One(source) => source.fragment(),
            Sources::Merged(merge) => merge.fragment(),
        }
    }
}
