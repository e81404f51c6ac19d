//! Every byte of an SSTable: offset, bytes in hexadecimal, meaning.
//!
//! ```text
//! Digest.crc32  10 bytes
//!         0  33 32 33 37 35 35 30 31 35 30                     CRC32 3237550150
//! ```
//! The meanings are notes of the decoders themselves, so they cannot differ from the format that is read. Data.db is
//! printed uncompressed, by fragment. Whole components are held in memory: for small SSTables.

use std::io::{self, Write};

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
use halcyon_sstable::{Component, Error, OpenOptions, SSTable};

use super::data_bytes;
use crate::failure::{Failure, Result};

/// Larger components are not printed byte by byte.
const MAX_SHOWN: u64 = 256 << 20;
/// Bytes on one line.
const PER_LINE: usize = 16;

pub(super) async fn print(
    out: &mut impl Write,
    disk: &Disk,
    listed: &ListedSSTable,
    wanted: &[Component],
) -> Result<()> {
    writeln!(out, "{}", listed.descriptor)?;
    let mut first_failure = None;
    for component in wanted {
        // Continue after a damaged component.
        if let Err(failure) = print_component(out, disk, listed, *component).await {
            if matches!(failure, Failure::OutputClosed) {
                return Err(failure);
            }
            eprintln!("halcyon: {failure}");
            first_failure.get_or_insert(failure);
        }
    }
    first_failure.map_or(Ok(()), Err)
}

async fn print_component(
    out: &mut impl Write,
    disk: &Disk,
    listed: &ListedSSTable,
    component: Component,
) -> Result<()> {
    if component == Component::Data {
        let sstable = SSTable::open_listed(disk, listed, OpenOptions::default()).await?;
        if sstable.data_length() > MAX_SHOWN {
            return Err(too_large(listed, component));
        }
        return data_bytes::print(out, disk, &sstable).await;
    }
    let path = listed.descriptor.component_path(component);
    let bytes = disk.read(&path, MAX_SHOWN).await?;
    writeln!(out, "\n{component}  {} bytes", bytes.len())?;
    let (notes, error) = notes(disk, listed, component, &bytes).await?;
    print_notes(out, &bytes, &notes)?;
    match error {
        None => Ok(()),
        Some(error) => Err(Error::corrupt(path, component, error).into()),
    }
}

fn too_large(listed: &ListedSSTable, component: Component) -> Failure {
    let path = listed.descriptor.component_path(component);
    Failure::unreadable(&path, "too large to be shown byte by byte; name a smaller component")
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
        .map_err(|e| Error::corrupt(path, Component::Statistics, e))?;
    Ok(statistics.header.clusterings())
}

fn print_notes(out: &mut impl Write, bytes: &[u8], notes: &[Note]) -> io::Result<()> {
    let mut shown_to = 0;
    for note in notes {
        print_run(out, bytes, note.start, note.end, &note.meaning)?;
        shown_to = shown_to.max(note.end);
    }
    if shown_to < bytes.len() as u64 {
        print_run(out, bytes, shown_to, bytes.len() as u64, "not understood")?;
    }
    Ok(())
}

/// Prints a run of bytes with its meaning on the first line. Long runs of one byte are summarized.
pub(super) fn print_run(
    out: &mut impl Write,
    bytes: &[u8],
    start: u64,
    end: u64,
    meaning: &str,
) -> io::Result<()> {
    let from = usize::try_from(start).unwrap_or(usize::MAX);
    let to = usize::try_from(end).unwrap_or(usize::MAX);
    let run = bytes.get(from..to.min(bytes.len())).unwrap_or_default();
    const WIDTH: usize = PER_LINE * 3;
    if run.is_empty() {
        writeln!(out, "{start:>10}  {:<WIDTH$}  {meaning}", "")?;
        return Ok(());
    }
    let is_uniform = run.len() > 4 * PER_LINE && run.iter().all(|b| Some(b) == run.first());
    if is_uniform {
        let first = run.first().copied().unwrap_or(0);
        writeln!(
            out,
            "{start:>10}  {:<WIDTH$}  {meaning}",
            format!("{} × {first:02x}", run.len())
        )?;
        return Ok(());
    }
    let mut at = start;
    let mut meaning = meaning;
    for line in run.chunks(PER_LINE) {
        let hex: String = line.iter().map(|byte| format!("{byte:02x} ")).collect();
        writeln!(out, "{}", format!("{at:>10}  {hex:<WIDTH$}  {meaning}").trim_end())?;
        at += line.len() as u64;
        meaning = "";
    }
    Ok(())
}
