//! The row index of a wide partition, whichever format it is in: where reading begins for a clustering.

use std::sync::Arc;

use halcyon_model::DeletionTime;
use halcyon_model::byte_comparable::encode_position;
use halcyon_model::clustering::Position;

use super::caches::ReadCaches;
use super::table::{LiveSSTable, RowIndexPlace};
use crate::Result;
use crate::big::PromotedIndex;
use crate::bti::RowPayload;
use crate::components::version::Version;

/// Where a block of rows begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowBlock {
    /// Relative to the partition's start.
    pub(super) offset: u64,
    pub(super) open_at_start: Option<DeletionTime>,
    place: BlockPlace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BlockPlace {
    Number(usize),
    Separator(Vec<u8>),
}

/// Which entry of the trie is wanted.
enum Wanted<'a> {
    Floor(&'a [u8]),
    Last,
    Before(&'a [u8]),
}

pub(super) struct RowBlocks {
    live: Arc<LiveSSTable>,
    caches: ReadCaches,
    place: RowIndexPlace,
}

impl RowBlocks {
    pub(super) fn new(live: Arc<LiveSSTable>, caches: ReadCaches, place: RowIndexPlace) -> Self {
        RowBlocks { live, caches, place }
    }

    fn version(&self) -> Version {
        self.live.sstable().descriptor().version
    }

    /// The block in which a position lies; `None` if there is no row index.
    pub(super) async fn containing(&self, position: Position<'_>) -> Result<Option<RowBlock>> {
        match &self.place {
            RowIndexPlace::None => Ok(None),
            RowIndexPlace::Big(_) => self.big(|_| None, Some(position)).await,
            RowIndexPlace::Bti(_) => {
                let mut separator = Vec::new();
                encode_position(
                    &self.live.sstable().layout().clusterings,
                    position,
                    &mut separator,
                );
                self.bti(Wanted::Floor(&separator)).await
            }
        }
    }

    pub(super) async fn last(&self) -> Result<Option<RowBlock>> {
        match &self.place {
            RowIndexPlace::None => Ok(None),
            RowIndexPlace::Big(_) => self.big(|blocks| blocks.checked_sub(1), None).await,
            RowIndexPlace::Bti(_) => self.bti(Wanted::Last).await,
        }
    }

    /// The block before; `None` before the first.
    pub(super) async fn before(&self, block: &RowBlock) -> Result<Option<RowBlock>> {
        match &block.place {
            BlockPlace::Number(0) => Ok(None),
            BlockPlace::Number(number) => {
                let before = number - 1;
                self.big(|_| Some(before), None).await
            }
            BlockPlace::Separator(separator) => self.bti(Wanted::Before(separator)).await,
        }
    }

    /// A block of the promoted index: that which holds `position`, or the one that `number` picks of how many there are.
    async fn big(
        &self,
        number: impl FnOnce(usize) -> Option<usize>,
        position: Option<Position<'_>>,
    ) -> Result<Option<RowBlock>> {
        let RowIndexPlace::Big(promoted) = &self.place else { return Ok(None) };
        let index = self.live.row_index(&self.caches);
        let clusterings = &self.live.sstable().layout().clusterings;
        let oa = self.version().has_uint_deletion_time();
        let promoted = PromotedIndex::open(oa, clusterings, &index, promoted).await?;
        let number = match position {
            Some(position) => Some(promoted.find(position).await?.min(promoted.len() - 1)),
            None => number(promoted.len()),
        };
        let Some(number) = number else { return Ok(None) };
        let offset = promoted.block(number, |info| info.offset).await?;
        let open_at_start = promoted.open_at_start(number).await?;
        Ok(Some(RowBlock { offset, open_at_start, place: BlockPlace::Number(number) }))
    }

    async fn bti(&self, wanted: Wanted<'_>) -> Result<Option<RowBlock>> {
        let RowIndexPlace::Bti(entry) = &self.place else { return Ok(None) };
        let index = self.live.row_index(&self.caches);
        let mut cursor = entry.cursor(&index);
        let payload: Option<RowPayload> = match wanted {
            Wanted::Floor(separator) => match cursor.seek_floor(separator).await? {
                Some(payload) => Some(payload),
                None => cursor.first().await?,
            },
            Wanted::Last => cursor.last().await?,
            Wanted::Before(separator) => match cursor.seek_floor(separator).await? {
                Some(_) => cursor.previous().await?,
                None => None,
            },
        };
        let Some(RowPayload { offset, open }) = payload else { return Ok(None) };
        let mut separator = Vec::new();
        cursor.key(&mut separator);
        let place = BlockPlace::Separator(separator);
        Ok(Some(RowBlock { offset, open_at_start: open, place }))
    }
}
