//! Names every byte of Partitions.db and Rows.db, for `describe --bytes`.
//!
//! Nodes are found by walking from the roots, each once, and named in file order.  The bytes between them are page
//! padding (zeros) or, said plainly, unknown.

use std::collections::BTreeMap;

use halcyon_model::bytes::Note;
use halcyon_model::{Cursor, DecodeResult};

use super::node::{Node, PAGE, page_start};
use super::partition_index::{read_footer, read_keys};
use super::payload::{PartitionPayload, PartitionPosition, Payload, RowPayload};
use super::row_index_entry::RowIndexEntry;

/// Names by the offset where they start.
type Notes = BTreeMap<u64, Note>;

/// The bytes of a whole Partitions.db, and the entries in Rows.db that it points at.
pub fn describe_partitions(file: &[u8]) -> DecodeResult<(Vec<Note>, Vec<u64>)> {
    let footer_position = (file.len() as u64).saturating_sub(24);
    let mut notes = Notes::new();
    let mut footer = Cursor::describing(tail(file, footer_position), footer_position);
    let (keys_position, _, root) = read_footer(&mut footer, footer_position)?;
    let mut keys = Cursor::describing(tail(file, keys_position), keys_position);
    read_keys(&mut keys)?;
    for note in keys.into_notes().into_iter().chain(footer.into_notes()) {
        notes.insert(note.start, note);
    }
    let mut entries = Vec::new();
    describe_trie(file, root, &mut notes, |payload: PartitionPayload| {
        if let PartitionPosition::Rows(position) = payload.position {
            entries.push(position);
        }
    })?;
    entries.sort_unstable();
    Ok((with_gaps(file, notes), entries))
}

/// The bytes of a whole Rows.db, given the positions of its entries.
pub fn describe_rows(file: &[u8], entries: &[u64]) -> DecodeResult<Vec<Note>> {
    let mut notes = Notes::new();
    for &position in entries {
        let mut cursor = Cursor::describing(tail(file, position), position);
        let entry = RowIndexEntry::decode(&mut cursor)?;
        for note in cursor.into_notes() {
            notes.insert(note.start, note);
        }
        describe_trie(file, entry.root, &mut notes, |_: RowPayload| ())?;
    }
    Ok(with_gaps(file, notes))
}

fn tail(file: &[u8], from: u64) -> &[u8] {
    usize::try_from(from).ok().and_then(|from| file.get(from..)).unwrap_or_default()
}

fn describe_trie<P: Payload>(
    file: &[u8],
    root: u64,
    notes: &mut Notes,
    mut found: impl FnMut(P),
) -> DecodeResult<()> {
    let mut waiting = vec![root];
    while let Some(position) = waiting.pop() {
        let node = Node::read(tail(file, page_start(position)), position)?;
        let mut children = Vec::new();
        let mut after = None;
        while let Some((transition, child)) = node.first_child(after)? {
            after = Some(transition);
            children.push(format!("{transition:02x} → {child}"));
            if !notes.contains_key(&child) {
                waiting.push(child);
            }
        }
        let end = position + node.size() as u64;
        let meaning = format!("node {:?} {}", node.kind(), children.join(", "));
        if notes.insert(position, Note { start: position, end, meaning }).is_some() {
            continue;
        }
        if node.payload_bits() != 0 {
            let payload = node.payload();
            let mut cursor = Cursor::describing(payload.rest(), end);
            found(P::read(node.payload_bits(), &mut cursor)?);
            for note in cursor.into_notes() {
                notes.insert(note.start, note);
            }
        }
    }
    Ok(())
}

/// Names the bytes between named ranges; overlapping names stay as they are.
fn with_gaps(file: &[u8], notes: Notes) -> Vec<Note> {
    let mut all = Vec::new();
    let mut at = 0;
    let end = Note { start: file.len() as u64, end: file.len() as u64, meaning: String::new() };
    for note in notes.into_values().chain([end]) {
        if note.start > at {
            let gap = tail(file, at);
            let gap = gap.get(..(note.start - at) as usize).unwrap_or(gap);
            let padding = gap.iter().all(|byte| *byte == 0)
                && gap.len() < PAGE
                && note.start.is_multiple_of(PAGE as u64);
            let meaning = if padding { "page padding" } else { "unknown" };
            all.push(Note { start: at, end: note.start, meaning: meaning.into() });
        }
        at = at.max(note.end);
        if note.end > note.start {
            all.push(note);
        }
    }
    all
}
