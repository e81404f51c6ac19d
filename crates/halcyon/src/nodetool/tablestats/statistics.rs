//! The statistics of a table, as Cassandra names and spells them.

use super::super::format::{Datum, number};
use super::super::status::percent;
use super::super::text::{file_size, memory};
use halcyon_client::{Row, Rows};

/// A statistic.
pub(super) struct Field {
    /// In text; empty where it is shown in JSON and YAML only.
    pub(super) title: &'static str,
    pub(super) text: String,
    /// In JSON and YAML.
    pub(super) datum: Datum,
}

pub(super) struct Statistics<'a> {
    pub(super) row: Row<'a>,
    pub(super) snapshot_bytes: u64,
    /// Of a table that is compacted by time windows.
    pub(super) window: Option<Window>,
    pub(super) human: bool,
    pub(super) with_location: bool,
}

/// The window of TimeWindowCompactionStrategy, as the table's options spell it.
pub(super) struct Window {
    size: String,
    unit: String,
}

impl Window {
    pub(super) fn of(schema: &Rows, table: &Row<'_>) -> Option<Window> {
        let name = |row: &Row<'_>| (row.text("keyspace_name"), row.text("table_name"));
        let options = schema.iter().find(|row| name(row) == name(table))?.texts("compaction");
        let option = |wanted: &str| {
            let found = options.chunks(2).find(|pair| pair.first().is_some_and(|k| k == wanted));
            found.and_then(|pair| pair.get(1)).cloned()
        };
        let of_windows = option("class")?.ends_with("TimeWindowCompactionStrategy");
        // An option that is not stated is Java's null.
        let stated = |name: &str| option(name).unwrap_or_else(|| "null".to_owned());
        of_windows.then(|| Window {
            size: stated("compaction_window_size"),
            unit: stated("compaction_window_unit"),
        })
    }
}

/// As `DurationFormatUtils.formatDurationWords`: neither the first nor the last part is zero; nothing for less than a second.
fn duration_words(millis: u64) -> String {
    let seconds = millis / 1000;
    let parts = [
        (seconds / 86_400, "day"),
        (seconds / 3600 % 24, "hour"),
        (seconds / 60 % 60, "minute"),
        (seconds % 60, "second"),
    ];
    let some = |part: &(u64, &str)| part.0 > 0;
    let first = parts.iter().position(some).unwrap_or(parts.len());
    let last = parts.iter().rposition(some).map_or(first, |at| at + 1);
    let words = |(count, unit): &(u64, &str)| {
        if *count == 1 { format!("1 {unit}") } else { format!("{count} {unit}s") }
    };
    let known = parts.get(first..last).unwrap_or_default();
    known.iter().map(words).collect::<Vec<_>>().join(" ")
}

fn fixed(value: f64, decimals: usize) -> String {
    if value.is_nan() { "NaN".to_owned() } else { format!("{value:.decimals$}") }
}

fn count(title: &'static str, count: u64) -> Field {
    Field { title, text: count.to_string(), datum: Datum::Count(count) }
}

fn amount(title: &'static str, bytes: u64) -> Field {
    Field { title, text: memory(bytes), datum: Datum::Count(bytes) }
}

fn double(title: &'static str, value: f64) -> Field {
    Field { title, text: number(value), datum: Datum::Number(value) }
}

/// A number that is text in JSON, too.
fn rounded(title: &'static str, value: f64, decimals: usize) -> Field {
    let text = fixed(value, decimals);
    let unit = if is_latency(title) { " ms" } else { "" };
    Field { title, text: format!("{text}{unit}"), datum: Datum::Text(text) }
}

fn is_latency(title: &str) -> bool {
    title.ends_with("latency")
}

impl Field {
    /// In JSON and YAML.
    pub(super) fn key(&self) -> String {
        match self.title {
            "SSTables Time Window" => return "twcs".to_owned(),
            "SSTables in correct location" => return "sstables_in_correct_location".to_owned(),
            _ => {}
        }
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        let words: String = self.title.replace(['(', ')'], "").chars().map(letter).collect();
        if is_latency(self.title) { words + "_ms" } else { words }
    }

    /// Whether it has a line in text.
    pub(super) fn is_shown(&self) -> bool {
        !matches!(&self.datum, Datum::Null | Datum::EmptyMap)
            && !matches!(&self.datum, Datum::List(items) if items.is_empty())
    }
}

impl Statistics<'_> {
    pub(super) fn name(&self) -> String {
        self.row.text("table_name")
    }

    pub(super) fn full_name(&self) -> String {
        format!("{}.{}", self.row.text("keyspace_name"), self.name())
    }

    pub(super) fn count(&self, column: &str) -> u64 {
        self.row.count(column)
    }

    fn double(&self, column: &str) -> f64 {
        self.row.bytes(column).map_or(f64::NAN, |_| self.row.double(column))
    }

    pub(super) fn milliseconds(&self, column: &str) -> f64 {
        self.double(column) / 1e6
    }

    fn size(&self, title: &'static str, bytes: u64) -> Field {
        let text = if self.human { file_size(bytes) } else { bytes.to_string() };
        Field { title, datum: Datum::Text(text.clone()), text }
    }

    pub(super) fn memory_beside(&self) -> u64 {
        let parts = ["filter_memory", "summary_memory", "compression_memory"];
        parts.iter().map(|of| self.count(of)).sum()
    }

    /// Without a compressed SSTable it is Cassandra's -1.
    pub(super) fn compression_ratio(&self) -> f64 {
        self.row.bytes("compression_ratio").map_or(-1.0, |_| self.row.double("compression_ratio"))
    }

    pub(super) fn read_write_ratio(&self) -> f64 {
        let (reads, writes) = (self.count("read_count"), self.count("write_count"));
        if writes > 0 { reads as f64 / writes as f64 } else { 0.0 }
    }

    pub(super) fn percent_repaired(&self) -> f64 {
        percent(self.count("bytes_repaired"), self.count("data_bytes"))
    }

    pub(super) fn mean(&self, column: &str) -> f64 {
        self.double(column)
    }

    fn unrepaired(&self) -> u64 {
        let (repaired, pending) =
            (self.count("bytes_repaired"), self.count("bytes_pending_repair"));
        self.count("data_bytes").saturating_sub(repaired).saturating_sub(pending)
    }

    /// In Cassandra's order.
    pub(super) fn fields(&self) -> Vec<Field> {
        let mut all = self.of_files();
        all.extend(self.of_requests());
        all.extend(self.of_partitions());
        all
    }

    fn of_files(&self) -> Vec<Field> {
        let ratio = self.compression_ratio();
        let mut fields = vec![
            count("SSTable count", self.count("sstables")),
            count("Old SSTable count", self.count("old_sstables")),
            amount("Max SSTable size", self.count("max_sstable_size")),
            self.of_window(),
        ];
        fields.extend(self.of_levels());
        fields.extend([
            self.size("Space used (live)", self.count("disk_space")),
            self.size("Space used (total)", self.count("disk_space")),
            self.size("Space used by snapshots (total)", self.snapshot_bytes),
            self.size("Off heap memory used (total)", self.memory_beside()),
            Field {
                title: "SSTable Compression Ratio",
                text: fixed(ratio, 5),
                datum: Datum::Number(ratio),
            },
            count("Number of partitions (estimate)", self.count("partitions")),
            self.size("Memtable data size", self.count("memtable_bytes")),
            // There is one kind of memory.
            self.size("Memtable off heap memory used", 0),
            count("Memtable switch count", self.count("flushes")),
            // A node that asks no other has none to ask too early.
            count("Speculative retries", 0),
        ]);
        fields
    }

    fn of_window(&self) -> Field {
        let title = "SSTables Time Window";
        let Some(Window { size, unit }) = &self.window else {
            return Field { title, text: String::new(), datum: Datum::Null };
        };
        let most = duration_words(self.count("max_sstable_duration"));
        let text = format!("{size} {unit}, max duration: {most}");
        Field { title, datum: Datum::Text(text.clone()), text }
    }

    /// Numbers of SSTables, with the largest good number where there are more, and their bytes.
    fn of_levels(&self) -> [Field; 2] {
        let fanout = self.count("level_fanout");
        let most = |level: usize| match level {
            0 => 4,
            level => fanout.saturating_pow(u32::try_from(level).unwrap_or(u32::MAX)),
        };
        let number = |(level, count): (usize, u64)| match most(level) {
            most if count > most => format!("{count}/{most}"),
            _ => count.to_string(),
        };
        let list = |title, items: Vec<String>| Field {
            title,
            text: format!("[{}]", items.join(", ")),
            datum: Datum::List(items),
        };
        let counts = self.row.counts("level_sstables").into_iter().enumerate().map(number);
        let bytes = self.row.counts("level_bytes").into_iter();
        let bytes =
            bytes.map(|bytes| if self.human { file_size(bytes) } else { bytes.to_string() });
        [
            list("SSTables in each level", counts.collect()),
            list("SSTable bytes in each level", bytes.collect()),
        ]
    }

    fn of_requests(&self) -> Vec<Field> {
        vec![
            count("Local read count", self.count("read_count")),
            rounded("Local read latency", self.milliseconds("read_mean_ns"), 3),
            count("Local write count", self.count("write_count")),
            rounded("Local write latency", self.milliseconds("write_mean_ns"), 3),
            rounded("Local read/write ratio", self.read_write_ratio(), 5),
            count("Pending flushes", self.count("pending_flushes")),
            double("Percent repaired", self.percent_repaired()),
            amount("Bytes repaired", self.count("bytes_repaired")),
            amount("Bytes unrepaired", self.unrepaired()),
            amount("Bytes pending repair", self.count("bytes_pending_repair")),
        ]
    }

    fn of_partitions(&self) -> Vec<Field> {
        let size = |title, column: &str| self.size(title, self.count(column));
        let plain = |title, column: &str| count(title, self.count(column));
        let mean = |title, column: &str| double(title, self.double(column));
        let mut fields = vec![
            plain("Bloom filter false positives", "filter_false_positives"),
            rounded("Bloom filter false ratio", self.row.double("filter_false_ratio"), 5),
            size("Bloom filter space used", "filter_bytes"),
            size("Bloom filter off heap memory used", "filter_memory"),
            size("Index summary off heap memory used", "summary_memory"),
            size("Compression metadata off heap memory used", "compression_memory"),
            plain("Compacted partition minimum bytes", "partition_min"),
            plain("Compacted partition maximum bytes", "partition_max"),
            plain("Compacted partition mean bytes", "partition_mean"),
            mean("Average live cells per slice (last five minutes)", "rows_per_read_mean"),
            plain("Maximum live cells per slice (last five minutes)", "rows_per_read_max"),
            mean("Average tombstones per slice (last five minutes)", "tombstones_per_read_mean"),
            plain("Maximum tombstones per slice (last five minutes)", "tombstones_per_read_max"),
            rounded("Droppable tombstone ratio", self.row.double("droppable_tombstone_ratio"), 5),
        ];
        if self.with_location {
            // Every data directory takes SSTables of all tokens.
            let title = "SSTables in correct location";
            fields.push(Field { title, text: "true".to_owned(), datum: Datum::True });
        }
        // Repairs find them.
        for title in ["Top size partitions", "Top tombstone partitions"] {
            fields.push(Field { title, text: String::new(), datum: Datum::EmptyMap });
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the words of durations, with what Cassandra's library makes of them.
    #[test]
    fn durations() {
        let cases = [
            (0, ""),
            (999, ""),
            (1000, "1 second"),
            (61_000, "1 minute 1 second"),
            (7_200_000, "2 hours"),
            (86_460_000, "1 day 0 hours 1 minute"),
            (90_061_000, "1 day 1 hour 1 minute 1 second"),
        ];
        for (millis, words) in cases {
            assert_eq!(duration_words(millis), words);
        }
    }

    /// Proves that keys are those of Cassandra's JSON.
    #[test]
    fn keys() {
        let key = |title| count(title, 0).key();
        assert_eq!(key("Local read latency"), "local_read_latency_ms");
        assert_eq!(key("Local read/write ratio"), "local_read_write_ratio");
        assert_eq!(key("Space used (live)"), "space_used_live");
        assert_eq!(key("SSTables Time Window"), "twcs");
    }
}
