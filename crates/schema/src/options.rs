//! `WITH` options of a script's table: what some Cassandra wrote, read leniently.

use halcyon_model::options::{Caching, Compaction, Compressed, Given, MapOption, TableOptions};
use halcyon_syntax::ast::{OptionValue, TableOption};

use crate::{Error, Result};

pub(crate) fn given(value: &OptionValue) -> Given<'_> {
    match value {
        OptionValue::Simple(text) => Given::Text(text),
        OptionValue::Map(entries) => Given::Map(entries.iter().cloned().collect()),
    }
}

/// Applies the options of a statement, and returns the table's id if one of them is `ID`. Options of other releases are skipped.
pub(super) fn apply(
    options: &mut TableOptions,
    stated: &[TableOption],
) -> Result<Option<[u8; 16]>> {
    let mut id = None;
    for option in stated {
        id = apply_one(options, option)?.or(id);
    }
    match (options.validate_numbers(), stated.last()) {
        (Err(error), Some(last)) => {
            Err(Error::Invalid { location: last.name.location, what: error.to_string() })
        }
        _ => Ok(id),
    }
}

fn apply_one(options: &mut TableOptions, option: &TableOption) -> Result<Option<[u8; 16]>> {
    let name = option.name.text.as_str();
    let refused = |what: String| Error::Invalid { location: option.name.location, what };
    match (name, given(&option.value)) {
        ("id", Given::Text(text)) => {
            return uuid(text).map(Some).ok_or_else(|| refused("Invalid table id".to_owned()));
        }
        ("compaction", Given::Map(entries)) => {
            options.compaction = Some(MapOption::<Compaction>::lenient(entries));
        }
        ("compression", Given::Map(entries)) => {
            options.compression = Some(MapOption::<Compressed>::lenient(entries));
        }
        ("caching", Given::Map(entries)) => {
            options.caching = Some(MapOption::<Caching>::lenient(entries));
        }
        // Another node may have a configuration for it.
        ("memtable", Given::Text(text)) => options.memtable = Some(text.to_owned()),
        (name, value) => options.set(name, value).map_err(|error| refused(error.to_string()))?,
    }
    Ok(None)
}

pub(crate) fn uuid(text: &str) -> Option<[u8; 16]> {
    halcyon_model::uuid::parse_digits(&text.replace('-', ""))
}
