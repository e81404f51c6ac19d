//! Keeps `system.size_estimates` and `system.table_estimates`: from them, programs that read whole tables in parts choose the parts.
//!
//! Only what has changed is written, table after table with pauses; rows of dropped tables are deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::{try_join, try_join_all};
use halcyon_engine::{SizeEstimate, TableSizes};
use halcyon_io::clock;
use halcyon_model::Cursor;
use halcyon_model::request::Value;
use halcyon_query::{Coordinator, Error, Outcome, Result};

use crate::internal;

const SELECT: &str = "SELECT keyspace_name, table_name FROM system.size_estimates";
const INSERT_SIZE: &str = "INSERT INTO system.size_estimates \
    (keyspace_name, table_name, range_start, range_end, partitions_count, mean_partition_size) VALUES (?, ?, ?, ?, ?, ?)";
const INSERT_TABLE: &str = "INSERT INTO system.table_estimates \
    (keyspace_name, table_name, range_type, range_start, range_end, partitions_count, mean_partition_size) VALUES (?, ?, ?, ?, ?, ?, ?)";
const DELETE: [&str; 2] = [
    "DELETE FROM system.size_estimates WHERE keyspace_name = ? AND table_name = ?",
    "DELETE FROM system.table_estimates WHERE keyspace_name = ? AND table_name = ?",
];
/// On a ring of one node they are the same.
const TYPES: [&str; 2] = ["primary", "local_primary"];

/// After each table. Thousands of them written in a row would take a rented volume's operations from the clients' writes.
const PAUSE: Duration = Duration::from_millis(5);

/// What is written, by keyspace and table. `None`: by an earlier run of this program or by Cassandra.
pub(crate) type Known = BTreeMap<(String, String), Option<Vec<SizeEstimate>>>;

/// Records what `known` does not have.
pub(crate) async fn record(
    coordinator: &Coordinator,
    tokens: &[i64],
    known: &mut Option<Known>,
) -> Result<()> {
    let known = match known {
        Some(known) => known,
        None => known.insert(written(coordinator).await?),
    };
    let ranges = ranges(tokens);
    let of_tokens: Vec<(i64, i64)> = ranges.iter().map(|(of_tokens, _)| *of_tokens).collect();
    let sizes = coordinator.shard().tables().size_estimates(of_tokens).await?;
    let mut gone = std::mem::take(known);
    for sizes in sizes.into_iter().filter(|sizes| !halcyon_schema::is_local(&sizes.keyspace)) {
        let name = (sizes.keyspace.clone(), sizes.table.clone());
        let before = gone.remove(&name).flatten();
        if before.as_ref() != Some(&sizes.estimates) {
            write(coordinator, &ranges, &sizes).await?;
            clock::sleep(PAUSE).await;
        }
        known.insert(name, Some(sizes.estimates));
    }
    for (keyspace, table) in gone.keys() {
        let name = [text(keyspace), text(table)];
        try_join_all(DELETE.map(|delete| internal::execute(coordinator, delete, &name))).await?;
        clock::sleep(PAUSE).await;
    }
    Ok(())
}

/// The tables that have rows.
async fn written(coordinator: &Coordinator) -> Result<Known> {
    let mut known = Known::new();
    if let Outcome::Rows(rows) = internal::execute(coordinator, SELECT, &[]).await? {
        let mut cursor = Cursor::new(&rows.content);
        for _ in 0..rows.count {
            let names: [Option<&[u8]>; 2] = internal::row(&mut cursor)
                .map_err(|_| Error::Server("system.size_estimates is damaged".to_owned()))?;
            let [keyspace, table] =
                names.map(|name| String::from_utf8_lossy(name.unwrap_or_default()).into_owned());
            known.insert((keyspace, table), None);
        }
    }
    Ok(known)
}

async fn write(coordinator: &Coordinator, ranges: &[Range], sizes: &TableSizes) -> Result<()> {
    let estimates = sizes.estimates.iter();
    let figures: Vec<[[u8; 8]; 2]> =
        estimates.map(|of| [of.partitions, of.mean_bytes].map(u64::to_be_bytes)).collect();
    let [keyspace, table] = [&sizes.keyspace, &sizes.table].map(|name| text(name));
    let (mut of_sizes, mut of_tables) = (Vec::new(), Vec::new());
    for ((_, [start, end]), figures) in ranges.iter().zip(&figures) {
        let [start, end] = [start, end].map(|token| text(token));
        let [partitions, mean] = figures.each_ref().map(|figure| Value::Bytes(figure));
        of_sizes.push(vec![keyspace, table, start, end, partitions, mean]);
        let of_type = |of| vec![keyspace, table, text(of), start, end, partitions, mean];
        of_tables.extend(TYPES.map(of_type));
    }
    let of_sizes = internal::execute_all(coordinator, INSERT_SIZE, &of_sizes);
    let of_tables = internal::execute_all(coordinator, INSERT_TABLE, &of_tables);
    try_join(of_sizes, of_tables).await.map(drop)
}

/// Tokens after the first and up to the last, and both ends as Cassandra writes them.
type Range = ((i64, i64), [String; 2]);

/// The ranges of a ring's tokens; the one over the ring's end is two (`Range.unwrap`), and the ring's end is written as the least token.
fn ranges(tokens: &[i64]) -> Vec<Range> {
    let mut ends = vec![i64::MIN];
    ends.extend(tokens);
    ends.sort_unstable();
    ends.dedup();
    let next = ends.iter().skip(1).copied().chain([i64::MIN]);
    let range = |(left, right): (i64, i64)| {
        let last = if right == i64::MIN { i64::MAX } else { right };
        ((left, last), [left.to_string(), right.to_string()])
    };
    ends.iter().copied().zip(next).map(range).collect()
}

fn text(text: &str) -> Value<'_> {
    Value::Bytes(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the ranges cover the ring once.
    #[test]
    fn ranges_of_a_ring() {
        let (min, max) = (i64::MIN, i64::MAX);
        let found = ranges(&[30, -7]);
        let of_tokens: Vec<(i64, i64)> = found.iter().map(|(of_tokens, _)| *of_tokens).collect();
        assert_eq!(of_tokens, [(min, -7), (-7, 30), (30, max)]);
        let ends: Vec<&str> = found.iter().flat_map(|(_, ends)| ends).map(String::as_str).collect();
        let least = "-9223372036854775808";
        assert_eq!(ends, [least, "-7", "-7", "30", "30", least]);
        assert_eq!(ranges(&[min])[0].0, (min, max));
    }
}
