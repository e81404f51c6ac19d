//! The row index of a wide partition, whichever format it is in: where reading begins for a clustering.

use std::sync::Arc;

use halcyon_model::DeletionTime;
use halcyon_model::byte_comparable::encode_position;
use halcyon_model::clustering::Position;

use super::caches::ReadCaches;
use super::entry::RowIndexRef;
use super::reader::SSTableReader;
use crate::Result;
use crate::bti::RowPayload;

/// Where a block of rows begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowBlock {
    /// Relative to the partition's start.
    pub(super) offset: u64,
    pub(super) open_at_start: Option<DeletionTime>,
    id: BlockId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BlockId {
    Number(usize),
    Separator(Vec<u8>),
}

/// An entry of the trie.
enum Target<'a> {
    Floor(&'a [u8]),
    Last,
    Before(&'a [u8]),
}

pub(super) struct RowBlocks {
    reader: Arc<SSTableReader>,
    caches: ReadCaches,
    index: RowIndexRef,
}

impl RowBlocks {
    pub(super) fn new(reader: Arc<SSTableReader>, caches: ReadCaches, index: RowIndexRef) -> Self {
        RowBlocks { reader, caches, index }
    }

    /// The block that contains a position; `None` if there is no row index.
    pub(super) async fn containing(&self, position: Position<'_>) -> Result<Option<RowBlock>> {
        match &self.index {
            RowIndexRef::None => Ok(None),
            RowIndexRef::Big(_) => self.big(|_| None, Some(position)).await,
            RowIndexRef::Bti(_) => {
                let mut separator = Vec::new();
                encode_position(
                    &self.reader.sstable().layout().clusterings,
                    position,
                    &mut separator,
                );
                self.bti(Target::Floor(&separator)).await
            }
        }
    }

    pub(super) async fn last(&self) -> Result<Option<RowBlock>> {
        match &self.index {
            RowIndexRef::None => Ok(None),
            RowIndexRef::Big(_) => self.big(|blocks| blocks.checked_sub(1), None).await,
            RowIndexRef::Bti(_) => self.bti(Target::Last).await,
        }
    }

    /// The block before; `None` before the first.
    pub(super) async fn before(&self, block: &RowBlock) -> Result<Option<RowBlock>> {
        match &block.id {
            BlockId::Number(0) => Ok(None),
            BlockId::Number(number) => {
                let before = number - 1;
                self.big(|_| Some(before), None).await
            }
            BlockId::Separator(separator) => self.bti(Target::Before(separator)).await,
        }
    }

    /// A block of the promoted index: the one that contains `position`, or the one with the number that `number` returns for their count.
    async fn big(
        &self,
        number: impl FnOnce(usize) -> Option<usize>,
        position: Option<Position<'_>>,
    ) -> Result<Option<RowBlock>> {
        let RowIndexRef::Big(promoted) = &self.index else { return Ok(None) };
        let index = self.reader.row_index(&self.caches);
        let promoted = self.reader.promoted(&index, promoted).await?;
        let number = match position {
            Some(position) => Some(promoted.find(position).await?.min(promoted.len() - 1)),
            None => number(promoted.len()),
        };
        let Some(number) = number else { return Ok(None) };
        let offset = promoted.block(number, |info| info.offset).await?;
        let open_at_start = promoted.open_at_start(number).await?;
        Ok(Some(RowBlock { offset, open_at_start, id: BlockId::Number(number) }))
    }

    async fn bti(&self, target: Target<'_>) -> Result<Option<RowBlock>> {
        let RowIndexRef::Bti(entry) = &self.index else { return Ok(None) };
        let index = self.reader.row_index(&self.caches);
        let mut cursor = entry.cursor(&index);
        let payload: Option<RowPayload> = match target {
            Target::Floor(separator) => match cursor.seek_floor(separator).await? {
                Some(payload) => Some(payload),
                None => cursor.first().await?,
            },
            Target::Last => cursor.last().await?,
            Target::Before(separator) => match cursor.seek_floor(separator).await? {
                Some(_) => cursor.previous().await?,
                None => None,
            },
        };
        let Some(RowPayload { offset, open }) = payload else { return Ok(None) };
        let mut separator = Vec::new();
        cursor.key(&mut separator);
        let id = BlockId::Separator(separator);
        Ok(Some(RowBlock { offset, open_at_start: open, id }))
    }
}
