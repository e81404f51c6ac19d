//! Keeps `system.size_estimates` and `system.table_estimates`: from them, programs that read whole tables in parts choose the parts.
//!
//! Only what has changed is written; what is of tables that are no more is deleted.

use std::collections::BTreeMap;

use halcyon_engine::{SizeEstimate, TableSizes};
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
    let sizes = coordinator.shard().engine().size_estimates(of_tokens).await?;
    let mut gone = std::mem::take(known);
    for sizes in sizes.into_iter().filter(|sizes| !halcyon_schema::is_local(&sizes.keyspace)) {
        let name = (sizes.keyspace.clone(), sizes.table.clone());
        let before = gone.remove(&name).flatten();
        if before.as_ref() != Some(&sizes.estimates) {
            write(coordinator, &ranges, &sizes).await?;
        }
        known.insert(name, Some(sizes.estimates));
    }
    for (keyspace, table) in gone.keys() {
        for delete in DELETE {
            internal::execute(coordinator, delete, &[text(keyspace), text(table)]).await?;
        }
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
    for ((_, [start, end]), estimate) in ranges.iter().zip(&sizes.estimates) {
        let figures = [estimate.partitions, estimate.mean_bytes].map(u64::to_be_bytes);
        let figures = figures.each_ref().map(|figure| Value::Bytes(figure));
        let [keyspace, table] = [&sizes.keyspace, &sizes.table].map(|name| text(name));
        let values = [&[keyspace, table, text(start), text(end)], &figures[..]].concat();
        internal::execute(coordinator, INSERT_SIZE, &values).await?;
        for of in TYPES {
            let before = [keyspace, table, text(of), text(start), text(end)];
            internal::execute(coordinator, INSERT_TABLE, &[&before, &figures[..]].concat()).await?;
        }
    }
    Ok(())
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
