//! Prints every byte of an SSTable: offset, bytes in hexadecimal, meaning.
//!
//! ```text
//! Digest.crc32  10 bytes
//!         0  33 32 33 37 35 35 30 31 35 30                     CRC32 3237550150
//! ```

use std::io::{self, Write};

use halcyon_io::Disk;
use halcyon_sstable::Component;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_tools::describe::{ComponentBytes, describe_bytes};

use crate::failure::{Failure, Result};

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
    let described = describe_bytes(disk, listed, component).await?;
    let length = described.bytes.len();
    match described.stored {
        Some(stored) => {
            writeln!(out, "\n{component}  {length} bytes uncompressed, {stored} as stored")?;
        }
        None => writeln!(out, "\n{component}  {length} bytes")?,
    }
    print_notes(out, &described)?;
    described.error.map_or(Ok(()), |error| Err(error.into()))
}

fn print_notes(out: &mut impl Write, described: &ComponentBytes) -> io::Result<()> {
    let bytes = &described.bytes;
    let mut shown_to = 0;
    for note in &described.notes {
        print_run(out, bytes, note.start, note.end, &note.meaning)?;
        shown_to = shown_to.max(note.end);
    }
    // Bytes of Data.db without a note are behind damage.
    if shown_to < bytes.len() as u64 && described.component != Component::Data {
        print_run(out, bytes, shown_to, bytes.len() as u64, "not understood")?;
    }
    Ok(())
}

/// Prints a run of bytes with its meaning on the first line. Long runs of one byte are summarized.
fn print_run(
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
