//! Every byte of a component, with its meaning.
//!
//! The meanings are notes of the decoders themselves, so they cannot differ from the format that is read. Data.db is uncompressed, and
//! its runs are fragments. A whole component is held in memory: for small SSTables.

use halcyon_io::Disk;
use halcyon_model::bytes::Note;
use halcyon_model::{Clusterings, Cursor, DecodeResult};
use halcyon_sstable::big::describe_entry;
use halcyon_sstable::bti::{describe_partitions, describe_rows};
use halcyon_sstable::format::compression_info::CompressionInfo;
use halcyon_sstable::format::crc::ChunkCrcs;
use halcyon_sstable::format::digest::Digest;
use halcyon_sstable::format::filter::Filter;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_sstable::format::statistics::Statistics;
use halcyon_sstable::format::summary::Summary;
use halcyon_sstable::format::toc::Toc;
use halcyon_sstable::{Component, Error as OfFile};

use super::component_bytes::{ComponentBytes, MAX_SHOWN};
use super::fragments;
use crate::error::Result;

/// Describes one component.
pub async fn describe(
    disk: &Disk,
    listed: &ListedSSTable,
    component: Component,
) -> Result<ComponentBytes> {
    if component == Component::Data {
        return fragments::describe(disk, listed).await;
    }
    let path = listed.descriptor.component_path(component);
    let bytes = disk.read(&path, MAX_SHOWN).await?;
    let (notes, error) = notes(disk, listed, component, &bytes).await?;
    let error = error.map(|error| OfFile::corrupt(path, component, error).into());
    Ok(ComponentBytes { component, bytes, stored: None, notes, error })
}

type Noted = (Vec<Note>, Option<halcyon_model::DecodeError>);

/// The notes of a decoder, up to an error.
fn noted<T>(bytes: &[u8], decode: impl FnOnce(&mut Cursor<'_>) -> DecodeResult<T>) -> Noted {
    let mut cursor = Cursor::describing(bytes, 0);
    let error = decode(&mut cursor).err();
    (cursor.into_notes(), error)
}

async fn notes(
    disk: &Disk,
    listed: &ListedSSTable,
    component: Component,
    bytes: &[u8],
) -> Result<Noted> {
    let version = listed.descriptor.version;
    Ok(match component {
        Component::Data => (Vec::new(), None),
        Component::Toc => noted(bytes, Toc::decode),
        Component::Digest => noted(bytes, Digest::decode),
        Component::Crc => noted(bytes, ChunkCrcs::decode),
        Component::Filter => noted(bytes, |cursor| Filter::decode(cursor, version)),
        Component::Summary => noted(bytes, Summary::decode),
        Component::Statistics => noted(bytes, |cursor| Statistics::decode(cursor, version)),
        Component::CompressionInfo => {
            let data = listed.descriptor.component_path(Component::Data);
            let stored = disk.stat(&data).await.map_or(u64::MAX, |stat| stat.len);
            noted(bytes, |cursor| CompressionInfo::decode(cursor, version, stored))
        }
        Component::Index => {
            let clusterings = clusterings(disk, listed).await?;
            let is_oa = version.has_uint_deletion_time();
            noted(bytes, |cursor| {
                while cursor.remaining() > 0 {
                    describe_entry(is_oa, &clusterings, cursor)?;
                }
                Ok(())
            })
        }
        Component::Partitions => split(describe_partitions(bytes).map(|(notes, _)| notes)),
        Component::Rows => {
            let partitions = listed.descriptor.component_path(Component::Partitions);
            let partitions = disk.read(&partitions, MAX_SHOWN).await?;
            split(
                describe_partitions(&partitions).and_then(|(_, rows)| describe_rows(bytes, &rows)),
            )
        }
    })
}

fn split(described: DecodeResult<Vec<Note>>) -> Noted {
    match described {
        Ok(notes) => (notes, None),
        Err(error) => (Vec::new(), Some(error)),
    }
}

async fn clusterings(disk: &Disk, listed: &ListedSSTable) -> Result<Clusterings> {
    let path = listed.descriptor.component_path(Component::Statistics);
    let bytes = disk.read(&path, MAX_SHOWN).await?;
    let statistics = Statistics::decode(&mut Cursor::new(&bytes), listed.descriptor.version)
        .map_err(|e| OfFile::corrupt(path, Component::Statistics, e))?;
    Ok(statistics.header.clusterings())
}
