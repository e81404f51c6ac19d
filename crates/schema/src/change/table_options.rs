//! `WITH` options of CREATE and ALTER TABLE, read in Cassandra's order.

use halcyon_model::options::{Compaction, MapOption, NAMES, OptionError, TableOptions, hash_order};
use halcyon_syntax::ast::TableOption;

use crate::options::{given, uuid};
use crate::{Error, Result};

/// An option that Cassandra knows and does not take by default.
const AUTO_REPAIR: &str = "auto_repair";

/// The names are not checked: Cassandra reads the values to ask its guardrails, before it looks for keyspace and table.
pub(super) fn for_new_table(
    stated: &[TableOption],
    default_compaction: Option<&MapOption<Compaction>>,
) -> Result<TableOptions> {
    let mut options = TableOptions::default();
    read_values(&mut options, stated)?;
    options.compaction = options.compaction.or_else(|| default_compaction.cloned());
    options.complete();
    Ok(options)
}

/// Refuses values that no table can have. Cassandra parses them for its guardrails before it looks up the table.
pub(super) fn check_values(stated: &[TableOption]) -> Result<()> {
    read_values(&mut TableOptions::default(), stated)
}

/// Cassandra validates what ALTER states over the defaults, not over what the table has (`TableAttributes.validate`): a
/// `min_index_interval` above the table's own `max_index_interval` is accepted.
fn validate_alone(stated: &[TableOption]) -> Result<()> {
    let mut alone = TableOptions::default();
    read(&mut alone, stated)?;
    alone.complete();
    check(&alone)
}

pub(super) fn alter(options: &mut TableOptions, stated: &[TableOption]) -> Result<()> {
    validate_alone(stated)?;
    read(options, stated)?;
    if table_id(stated)?.is_some() {
        return Err(Error::Configuration("Cannot alter table id.".to_owned()));
    }
    options.complete();
    Ok(())
}

pub(super) fn boolean(option: &TableOption) -> Result<bool> {
    let value = given(&option.value);
    halcyon_model::options::boolean(&option.name.text, value).map_err(|e| refused(option, e))
}

pub(super) fn check(options: &TableOptions) -> Result<()> {
    options.validate().map_err(|error| Error::Configuration(error.to_string()))
}

fn find<'a>(stated: &'a [TableOption], name: &str) -> Option<&'a TableOption> {
    stated.iter().find(|option| option.name.text == name)
}

fn refused(option: &TableOption, error: OptionError) -> Error {
    match error {
        OptionError::Syntax(message) => Error::Syntax { location: option.name.location, message },
        OptionError::Configuration(message) => Error::Configuration(message),
    }
}

/// Unknown names are refused after invalid values, as in Cassandra.
fn read(options: &mut TableOptions, stated: &[TableOption]) -> Result<()> {
    read_values(options, stated)?;
    check_names(stated)
}

fn read_values(options: &mut TableOptions, stated: &[TableOption]) -> Result<()> {
    for name in NAMES {
        let Some(option) = find(stated, name) else { continue };
        options.set(name, given(&option.value)).map_err(|error| refused(option, error))?;
    }
    Ok(())
}

pub(super) fn check_names(stated: &[TableOption]) -> Result<()> {
    let known = |name: &str| name == "id" || name == AUTO_REPAIR || NAMES.contains(&name);
    let mut names: Vec<&str> = stated.iter().map(|option| option.name.text.as_str()).collect();
    // Cassandra's message names the first of a HashMap that has grown with the options.
    let entries = names.len();
    hash_order(&mut names, entries.max(11));
    match names.into_iter().find(|name| !known(name)).and_then(|name| find(stated, name)) {
        None if find(stated, AUTO_REPAIR).is_some() => Err(Error::Configuration(format!(
            "{AUTO_REPAIR} option is not supported unless auto-repair is enabled with -Dcassandra.autorepair.enable=true"
        ))),
        None => Ok(()),
        Some(option) => Err(Error::Syntax {
            location: option.name.location,
            message: format!("Unknown property '{}'", option.name.text),
        }),
    }
}

/// The id that is stated.
pub(super) fn table_id(stated: &[TableOption]) -> Result<Option<[u8; 16]>> {
    let Some(option) = find(stated, "id") else { return Ok(None) };
    let invalid = || Error::Configuration("Invalid table id".to_owned());
    match given(&option.value) {
        halcyon_model::options::Given::Text(text) => uuid(text).map(Some).ok_or_else(invalid),
        halcyon_model::options::Given::Map(_) => Err(Error::Syntax {
            location: option.name.location,
            message: "Invalid value for property 'id'. It should be a string".to_owned(),
        }),
    }
}
