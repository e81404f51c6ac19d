//! Commands of `nodetool` that are answered when they are done. `halcyon nodetool` writes them; so can any client:
//!
//! ```text
//! INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) VALUES ('flush', 'ks', 't', '')
//! ```
//! 1. An empty table name means all tables of the keyspace, an empty keyspace name all keyspaces.
//! 2. [`VERBS`] lists what there is; a new one is a line there and a function.
//!
//! Major compactions have a table of their own, because they outlast a request.

use halcyon_engine::SnapshotOptions;
use halcyon_io::clock::unix_micros;
use halcyon_model::units::settings::{DurationBound, bounded_duration};
use halcyon_model::value::parse_instant;
use halcyon_query::{Error, Result};
use halcyon_schema::catalog::{Catalog, Table, TableKind};
use halcyon_stream::TableId;

use crate::virtual_tables::table::{Applied, Node, VirtualTable};
use crate::virtual_tables::write::Write;

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::commands(CQL, apply);

const CQL: &str = "CREATE TABLE halcyon_views.commands (
    verb text,
    keyspace_name text,
    table_name text,
    argument text,
    PRIMARY KEY ((verb, keyspace_name, table_name, argument))
) WITH ID = 61bc34cf-8a8f-39df-80a6-20161c7b9be0
    AND comment = 'INSERT a command of nodetool; it is answered when it is done. Empty names: all';";

/// A command, and the tables that it is about.
struct Command<'a> {
    node: &'a Node,
    keyspace: &'a str,
    tables: Vec<TableId>,
    argument: &'a str,
}

type Run = for<'a> fn(Command<'a>) -> Applied<'a>;

const VERBS: [(&str, Run); 19] = [
    ("clearsnapshot", |command| Box::pin(clear_snapshot(command))),
    ("disableauditlog", |command| Box::pin(disable_audit_log(command))),
    ("disableautocompaction", |command| Box::pin(set_automatic_compaction(command, false))),
    ("disablefullquerylog", |command| Box::pin(disable_full_query_log(command))),
    ("drain", |command| Box::pin(drain(command))),
    ("enableauditlog", |command| Box::pin(enable_audit_log(command))),
    ("enableautocompaction", |command| Box::pin(set_automatic_compaction(command, true))),
    ("enablefullquerylog", |command| Box::pin(enable_full_query_log(command))),
    ("flush", |command| Box::pin(flush(command))),
    ("loadpartitiondenylist", |command| Box::pin(load_partition_denylist(command))),
    ("rebuild_index", |command| Box::pin(rebuild_index(command))),
    ("refresh", |command| Box::pin(refresh(command))),
    ("refreshsizeestimates", |command| Box::pin(refresh_size_estimates(command))),
    ("reloadssl", |command| Box::pin(reload_certificates(command))),
    ("resetfullquerylog", |command| Box::pin(reset_full_query_log(command))),
    ("setguardrailsconfig", |command| Box::pin(set_guardrail(command))),
    ("setlogginglevel", |command| Box::pin(set_logging_level(command))),
    ("settraceprobability", |command| Box::pin(set_trace_probability(command))),
    ("snapshot", |command| Box::pin(snapshot(command))),
];

fn apply<'a>(node: &'a Node, write: &'a Write<'_>) -> Applied<'a> {
    Box::pin(async move {
        let key = write.key()?;
        let [verb, keyspace, table, argument] = key.as_slice() else {
            return Err(write.not_supported());
        };
        if write.deletes_partition() {
            return Err(write.not_supported());
        }
        let Some((_, run)) = VERBS.iter().find(|(name, _)| name == verb) else {
            let known: Vec<&str> = VERBS.iter().map(|(name, _)| *name).collect();
            let known = known.join(", ");
            return Err(Error::Invalid(format!("there is no command {verb}; there are: {known}")));
        };
        let tables = tables(&node.engine.tables().catalog(), keyspace, table)?;
        let what = format!("{verb} {keyspace} {table} {argument}");
        node.facts.log.say(format_args!("a client commands: {}", what.trim_end()));
        run(Command { node, keyspace, tables, argument }).await
    })
}

/// The tables that have storage, of one keyspace or of all.
fn tables(catalog: &Catalog, keyspace: &str, name: &str) -> Result<Vec<TableId>> {
    let has_storage = |table: &Table| table.kind != TableKind::Virtual;
    match (keyspace, name) {
        ("", _) => Ok(catalog.tables().filter(|table| has_storage(table)).map(|t| t.id).collect()),
        (keyspace, "") => match catalog.keyspace(keyspace) {
            Some(found) => {
                Ok(found.tables.values().filter(|t| has_storage(t)).map(|t| t.id).collect())
            }
            None => Err(Error::Invalid(format!("Keyspace {keyspace} does not exist"))),
        },
        (keyspace, name) => {
            match catalog.table(keyspace, name).filter(|table| has_storage(table)) {
                Some(table) => Ok(vec![table.id]),
                None => {
                    Err(Error::Invalid(format!("Unknown keyspace/cf pair ({keyspace}.{name})")))
                }
            }
        }
    }
}

async fn flush(command: Command<'_>) -> Result<()> {
    for table in command.tables {
        command.node.engine.flusher().flush(Some(table)).await?;
    }
    Ok(())
}

/// The argument is the index.
async fn rebuild_index(command: Command<'_>) -> Result<()> {
    for table in command.tables {
        command.node.engine.indexes().rebuild(table, command.argument).await?;
    }
    Ok(())
}

/// A node without TLS has nothing to reload, as in Cassandra.
async fn reload_certificates(command: Command<'_>) -> Result<()> {
    let Some(encryption) = &command.node.facts.encryption else { return Ok(()) };
    encryption.reload(true).await.map_err(|why| {
        let text = "Failed to reload SSL certificates. Please check the SSL certificates";
        Error::Invalid(format!("{text}: {why}"))
    })
}

/// The argument is the name, and options behind it: `NAME/skip-flush/ttl=1d`. A name has no slash.
async fn snapshot(command: Command<'_>) -> Result<()> {
    let (name, words) = named(command.argument);
    let mut options = SnapshotOptions::default();
    for word in words {
        match word.split_once('=') {
            None if word == "skip-flush" => options.skip_flush = true,
            Some(("ttl", ttl)) => {
                let ttl =
                    bounded_duration(ttl, DurationBound::IntSeconds).map_err(Error::Invalid)?;
                options.ttl_seconds = Some(ttl.as_seconds());
            }
            // A slash that begins no option is part of the name, which the engine refuses.
            _ => return Err(Error::Invalid("Snapshot name cannot contain /".to_owned())),
        }
    }
    Ok(command.node.engine.snapshots().take(&command.tables, name, options).await?)
}

fn named(argument: &str) -> (&str, impl Iterator<Item = &str>) {
    let mut words = argument.split('/');
    (words.next().unwrap_or_default(), words)
}

/// The argument is the name, an empty one means all, and an option behind it: `/older-than=1d`, `/older-than-timestamp=INSTANT`.
/// Snapshots of tables that were dropped are cleared too; ephemeral ones are not an operator's to remove.
async fn clear_snapshot(command: Command<'_>) -> Result<()> {
    let Command { node, keyspace, argument, .. } = command;
    let (name, mut words) = named(argument);
    let before_ms = match (words.next(), words.next()) {
        (None, _) => None,
        (Some(option), None) => Some(created_before(option)?),
        _ => return Err(Error::Invalid(format!("{argument} has more than one option"))),
    };
    let wanted = |of: &halcyon_engine::Snapshot| {
        (keyspace.is_empty() || of.keyspace == keyspace)
            && (name.is_empty() || of.name == name)
            && before_ms.is_none_or(|before_ms| of.created_ms < before_ms)
            && !of.ephemeral
    };
    Ok(node.engine.snapshots().clear(wanted).await?)
}

/// Milliseconds since 1970.
fn created_before(option: &str) -> Result<i64> {
    match option.split_once('=') {
        Some(("older-than", age)) => {
            let age = bounded_duration(age, DurationBound::LongSeconds).map_err(Error::Invalid)?;
            let millis = i64::try_from(age.as_seconds()).unwrap_or(i64::MAX).saturating_mul(1000);
            Ok((unix_micros() / 1000).saturating_sub(millis))
        }
        Some(("older-than-timestamp", instant)) => parse_instant(instant).ok_or_else(|| {
            Error::Invalid(
                "Parameter older_than_timestamp has to be a valid instant in ISO format."
                    .to_owned(),
            )
        }),
        _ => Err(Error::Invalid(format!("unknown option '{option}' of clearsnapshot"))),
    }
}

async fn refresh(command: Command<'_>) -> Result<()> {
    for table in command.tables {
        let added = command.node.engine.schema().load_new_sstables(table).await?;
        command.node.facts.log.say(format_args!("refresh: {added} new SSTables"));
    }
    Ok(())
}

async fn load_partition_denylist(command: Command<'_>) -> Result<()> {
    command.node.servers.load_denylist().await
}

async fn refresh_size_estimates(command: Command<'_>) -> Result<()> {
    command.node.servers.refresh_size_estimates().await
}

async fn set_automatic_compaction(command: Command<'_>, enabled: bool) -> Result<()> {
    for table in command.tables {
        command.node.engine.compactor().set_automatic(table, enabled)?;
    }
    Ok(())
}

async fn set_trace_probability(command: Command<'_>) -> Result<()> {
    match command.argument.parse::<f64>() {
        Ok(probability) if (0.0..=1.0).contains(&probability) => {
            command.node.facts.trace_probability.set(probability);
            Ok(())
        }
        _ => Err(Error::Invalid("Trace probability must be between 0 and 1".to_owned())),
    }
}

/// The argument is a class or component and a level, with a space between.
async fn set_logging_level(command: Command<'_>) -> Result<()> {
    command.node.facts.log.set_level(command.argument).map_err(Error::Invalid)
}

/// The argument has a line for each option: `name=value`.
async fn enable_audit_log(command: Command<'_>) -> Result<()> {
    command.node.facts.request_logs.enable_audit(command.argument).await
}

async fn disable_audit_log(command: Command<'_>) -> Result<()> {
    command.node.facts.request_logs.disable_audit().await
}

/// The argument has a line for each option: `name=value`.
async fn enable_full_query_log(command: Command<'_>) -> Result<()> {
    command.node.facts.request_logs.enable_full(command.argument).await
}

async fn disable_full_query_log(command: Command<'_>) -> Result<()> {
    command.node.facts.request_logs.disable_full().await
}

async fn reset_full_query_log(command: Command<'_>) -> Result<()> {
    command.node.facts.request_logs.reset_full().await
}

/// The argument is the words of nodetool, with a space between each.
async fn set_guardrail(command: Command<'_>) -> Result<()> {
    let words: Vec<&str> = command.argument.split(' ').collect();
    let settings = &command.node.facts.settings;
    let changed = settings.change_guardrail(&command.node.engine, &words);
    changed.map_err(|error| Error::Invalid(error.to_string()))
}

async fn drain(command: Command<'_>) -> Result<()> {
    command.node.engine.settle().await?;
    command.node.facts.log.say(format_args!(
        "DRAINED: all is in SSTables; reads are served, and writes refused until the next start"
    ));
    Ok(())
}
