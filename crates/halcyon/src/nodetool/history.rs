//! `compactionhistory`.

use halcyon_client::Row;
use halcyon_model::value::timestamp_iso_string;

use super::arguments::Call;
use super::failure::Result;
use super::format::{Datum, Format, as_map};
use super::node::{Node, uuid_of};
use super::text::{row, table};

const COLUMNS: [&str; 8] = [
    "id",
    "keyspace_name",
    "columnfamily_name",
    "compacted_at",
    "bytes_in",
    "bytes_out",
    "rows_merged",
    "compaction_properties",
];

/// The newest first.
pub(super) async fn print(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let format = Format::of(call, "json,yaml")?;
    let rows = node.rows("SELECT * FROM system.compaction_history").await?;
    let mut found: Vec<(u64, Vec<String>)> =
        rows.iter().map(|row| (row.count("compacted_at"), cells(&row))).collect();
    found.sort_by(|a, b| b.cmp(a));
    if format != Format::Text {
        let fields = |(_, cells): (u64, Vec<String>)| {
            let datum = |(name, cell): (&&str, String)| match cell.parse() {
                Ok(count) if name.starts_with("bytes") => ((*name).to_owned(), Datum::Count(count)),
                _ => ((*name).to_owned(), Datum::Text(cell)),
            };
            COLUMNS.iter().zip(cells).map(datum).collect()
        };
        let all = Datum::Maps(found.into_iter().map(fields).collect());
        as_map(&vec![("CompactionHistory".to_owned(), all)], format, out);
        return Ok(());
    }
    let mut lines = vec![row(COLUMNS)];
    lines.extend(found.into_iter().map(|(_, cells)| cells));
    out.push_str(&format!("Compaction History: \n{}", table(&lines, " ")));
    Ok(())
}

/// In the order of [`COLUMNS`].
fn cells(row: &Row<'_>) -> Vec<String> {
    let at = i64::try_from(row.count("compacted_at")).unwrap_or(i64::MAX);
    // Java's LocalDateTime: without a zone.
    let at = timestamp_iso_string(at).trim_end_matches('Z').to_owned();
    let number = |bytes: &[u8]| match *bytes {
        [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
        ref other => other.first_chunk::<8>().map_or(0, |bytes| i64::from_be_bytes(*bytes)),
    };
    let merged = row.elements("rows_merged").into_iter().map(|of| number(of).to_string());
    vec![
        uuid_of(row, "id"),
        row.text("keyspace_name"),
        row.text("columnfamily_name"),
        at,
        row.count("bytes_in").to_string(),
        row.count("bytes_out").to_string(),
        map_text(&merged.collect::<Vec<_>>()),
        map_text(&row.texts("compaction_properties")),
    ]
}

/// `{key:value, key:value}`, of keys and values one after the other.
fn map_text(elements: &[String]) -> String {
    let pairs: Vec<String> = elements.chunks(2).map(|pair| pair.join(":")).collect();
    format!("{{{}}}", pairs.join(", "))
}
