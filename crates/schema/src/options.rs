//! `WITH` options of a table, read into the model's `TableOptions`.

use std::collections::BTreeMap;
use std::str::FromStr;

use halcyon_model::schema::TableOptions;

use halcyon_syntax::ast::{OptionValue, TableOption};
use halcyon_syntax::{Error, Result};

/// Applies one option. Gives the table's id if the option is `ID`.
pub(super) fn apply(options: &mut TableOptions, option: &TableOption) -> Result<Option<[u8; 16]>> {
    match option.name.text.as_str() {
        "id" => return Ok(Some(uuid(option)?)),
        "comment" => options.comment = text(option)?.to_owned(),
        "gc_grace_seconds" => options.gc_grace_seconds = Some(number(option)?),
        "default_time_to_live" => options.default_time_to_live = number(option)?,
        "bloom_filter_fp_chance" => options.bloom_filter_fp_chance = Some(fraction(option)?),
        "crc_check_chance" => options.crc_check_chance = Some(fraction(option)?),
        "min_index_interval" => options.min_index_interval = Some(number(option)?),
        "max_index_interval" => options.max_index_interval = Some(number(option)?),
        "compression" => options.compression = Some(map(option)?),
        "compaction" => options.compaction = Some(map(option)?),
        "caching" => options.caching = Some(map(option)?),
        other => {
            options.other.insert(other.to_owned(), spell(&option.value));
        }
    }
    Ok(None)
}

/// Sets what was left out to Cassandra's defaults, so that every option says what is in force.
pub(crate) fn complete(options: &mut TableOptions) {
    let entries = |all: &[(&str, &str)]| {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    options.gc_grace_seconds.get_or_insert(864_000);
    options.bloom_filter_fp_chance.get_or_insert(0.01);
    options.crc_check_chance.get_or_insert(1.0);
    options.min_index_interval.get_or_insert(128);
    options.max_index_interval.get_or_insert(2048);
    options.compression.get_or_insert_with(|| {
        entries(&[
            ("chunk_length_in_kb", "16"),
            ("class", "org.apache.cassandra.io.compress.LZ4Compressor"),
        ])
    });
    options.compaction.get_or_insert_with(|| {
        entries(&[
            ("class", "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy"),
            ("max_threshold", "32"),
            ("min_threshold", "4"),
        ])
    });
    options
        .caching
        .get_or_insert_with(|| entries(&[("keys", "ALL"), ("rows_per_partition", "NONE")]));
    const OTHER: [(&str, &str); 9] = [
        ("additional_write_policy", "99p"),
        ("allow_auto_snapshot", "true"),
        ("cdc", "false"),
        ("extensions", "{}"),
        ("incremental_backups", "true"),
        ("memtable", "default"),
        ("memtable_flush_period_in_ms", "0"),
        ("read_repair", "BLOCKING"),
        ("speculative_retry", "99p"),
    ];
    for (name, value) in OTHER {
        options.other.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
}

fn invalid(option: &TableOption, what: impl std::fmt::Display) -> Error {
    Error::Invalid {
        place: option.name.place,
        what: format!("option {}: {what}, found {}", option.name.text, spell(&option.value)),
    }
}

fn text(option: &TableOption) -> Result<&str> {
    match &option.value {
        OptionValue::Simple(text) => Ok(text),
        OptionValue::Map(_) => Err(invalid(option, "a single value expected")),
    }
}

fn number<T: FromStr>(option: &TableOption) -> Result<T> {
    text(option)?.parse().map_err(|_| invalid(option, "a whole number from 0 expected"))
}

fn fraction(option: &TableOption) -> Result<f64> {
    match text(option)?.parse() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err(invalid(option, "a number from 0.0 to 1.0 expected")),
    }
}

fn map(option: &TableOption) -> Result<BTreeMap<String, String>> {
    match &option.value {
        OptionValue::Map(entries) => Ok(entries.iter().cloned().collect()),
        OptionValue::Simple(_) => Err(invalid(option, "a map { 'key': value, … } expected")),
    }
}

fn uuid(option: &TableOption) -> Result<[u8; 16]> {
    let parsed = halcyon_model::uuid::parse_digits(&text(option)?.replace('-', ""));
    parsed.ok_or_else(|| invalid(option, "a uuid expected"))
}

/// The value as CQL, for options that are only kept.
fn spell(value: &OptionValue) -> String {
    match value {
        OptionValue::Simple(text) => text.clone(),
        OptionValue::Map(entries) => {
            let quote = |text: &str| format!("'{}'", text.replace('\'', "''"));
            let pairs: Vec<String> =
                entries.iter().map(|(k, v)| format!("{}: {}", quote(k), quote(v))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}
