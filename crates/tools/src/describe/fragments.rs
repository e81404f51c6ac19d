//! The bytes of the uncompressed Data.db by fragment: partition starts, rows, markers, ends.

use halcyon_io::Disk;
use halcyon_model::DeletionTime;
use halcyon_model::bytes::Note;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::value::to_cql_literal;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_sstable::{Component, OpenOptions, SSTable, ScanOptions};
use halcyon_stream::{Column, Fragment, FragmentStream, Layout, Row};

use super::component_bytes::{ComponentBytes, MAX_SHOWN, too_large};
use super::key_text;
use crate::error::Result;

pub(super) async fn describe(disk: &Disk, listed: &ListedSSTable) -> Result<ComponentBytes> {
    let sstable = SSTable::open_listed(disk, listed, OpenOptions::default()).await?;
    if sstable.data_length() > MAX_SHOWN {
        return Err(too_large(listed, Component::Data));
    }
    let bytes = sstable.read_data(disk).await?;
    let mut notes = Vec::new();
    let error = note_fragments(disk, &sstable, bytes.len() as u64, &mut notes).await.err();
    let stored = Some(sstable.file_length());
    Ok(ComponentBytes { component: Component::Data, bytes, stored, notes, error })
}

/// A fragment ends where the next one starts.
async fn note_fragments(
    disk: &Disk,
    sstable: &SSTable,
    length: u64,
    notes: &mut Vec<Note>,
) -> Result<()> {
    let mut scanner = sstable.scan(disk, ScanOptions::default()).await?;
    let layout = sstable.layout().clone();
    let mut waiting: Option<(u64, String)> = None;
    while scanner.advance().await? {
        let end = scanner.fragment_position();
        if let Some((start, meaning)) = waiting.take() {
            notes.push(Note { start, end, meaning });
        }
        waiting = Some((end, meaning(scanner.fragment(), &layout)));
    }
    notes.extend(waiting.map(|(start, meaning)| Note { start, end: length, meaning }));
    Ok(())
}

fn meaning(fragment: Fragment<'_>, layout: &Layout) -> String {
    match fragment {
        Fragment::Start(start) => {
            let key = key_text(&layout.key_type, &start.key.bytes);
            format!("partition {key}, token {}{}", start.key.token, deletion(&start.deletion))
        }
        Fragment::Static(row) => format!("static row{}", row_meaning(row, &layout.statics)),
        Fragment::Row(row) => {
            let values = clustering(layout, row.clustering, layout.clustering_types.len());
            format!("row {values}{}", row_meaning(row, &layout.regulars))
        }
        Fragment::Marker(marker) => {
            let at = clustering(layout, marker.position.serialized, marker.position.count);
            let time = |what: &str, time: &Option<DeletionTime>| match time {
                Some(time) => format!(", {what}{}", deletion(time)),
                None => String::new(),
            };
            let (close, open) = (time("closes", &marker.close), time("opens", &marker.open));
            format!("range tombstone {:?} {at}{close}{open}", marker.position.kind)
        }
        Fragment::End => "end of the partition".to_owned(),
    }
}

fn clustering(layout: &Layout, serialized: &[u8], count: usize) -> String {
    let values = layout.clusterings.values(serialized, count).zip(&layout.clustering_types);
    let values: Vec<String> = values
        .map(|(value, cql_type)| match value {
            ClusteringValue::Null => "null".to_owned(),
            ClusteringValue::Bytes(bytes) => to_cql_literal(cql_type, bytes),
        })
        .collect();
    format!("({})", values.join(", "))
}

fn deletion(time: &DeletionTime) -> String {
    if time.is_live() {
        return String::new();
    }
    format!(", deleted at {} (made {})", time.marked_for_delete_at, time.local_deletion_time)
}

fn row_meaning(row: Row<'_>, columns: &[Column]) -> String {
    let mut out = String::new();
    if !row.liveness.is_empty() {
        out.push_str(&format!(", written at {}", row.liveness.timestamp));
        if row.liveness.is_expiring() {
            out.push_str(&format!(" TTL {}", row.liveness.ttl));
        }
    }
    out.push_str(&deletion(&row.deletion.time));
    let name = |index: u16| match columns.get(usize::from(index)) {
        Some(column) => String::from_utf8_lossy(&column.name).into_owned(),
        None => format!("column {index}"),
    };
    for complex in row.complex_deletions {
        out.push_str(&format!("; {}{}", name(complex.column), deletion(&complex.time)));
    }
    for cell in row.cells {
        let kind = match (cell.is_tombstone(), cell.is_expiring()) {
            (true, _) => " tombstone",
            (_, true) => " expiring",
            _ => "",
        };
        out.push_str(&format!("; {}{kind} at {}", name(cell.column), cell.timestamp));
        out.push_str(&format!(", {} bytes", cell.value.len));
    }
    out
}
