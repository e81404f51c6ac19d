//! Commands of `nodetool` that are answered when they are done. `halcyon nodetool` writes them; so can any client:
//!
//! ```text
//! INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) VALUES ('flush', 'ks', 't', '')
//! ```
//! 1. An empty table name means all tables of the keyspace, an empty keyspace name all keyspaces.
//! 2. [`crate::command`] says which commands there are, and how the column `argument` carries what they need.
//!
//! Major compactions have a table of their own, because they outlast a request.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use halcyon_engine::{
    CompactionKind, CompactionTask, ImportOptions, ScrubOptions, Selection, SnapshotOptions,
};
use halcyon_io::clock::unix_micros;
use halcyon_model::uuid;
use halcyon_query::{Error, Result};
use halcyon_schema::catalog::{Catalog, Table, TableKind};
use halcyon_stream::TableId;

use super::partition_key::partition_key;
use crate::command::{
    CacheCapacity, ClearSnapshot, Command, Import, ProfileLoad, Scrub, Snapshot, Stop,
};
use crate::profiles::Job;
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

/// The node, and what a command is about.
struct Target<'a> {
    node: &'a Node,
    keyspace: &'a str,
    name: &'a str,
    tables: Vec<TableId>,
}

fn apply<'a>(node: &'a Node, write: &'a Write<'_>) -> Applied<'a> {
    Box::pin(async move {
        let key = write.key()?;
        let [verb, keyspace, table, argument] = key.as_slice() else {
            return Err(write.not_supported());
        };
        if write.deletes_partition() {
            return Err(write.not_supported());
        }
        let command = Command::decode(verb, argument).map_err(Error::Invalid)?;
        let tables = match command {
            // Also of dropped tables.
            Command::StopProfileLoad => Vec::new(),
            _ => tables(&node.engine.tables().catalog(), keyspace, table)?,
        };
        let what = format!("{verb} {keyspace} {table} {argument}");
        node.facts.log.say(format_args!("a client runs the command {}", what.trim_end()));
        execute(command, Target { node, keyspace, name: table, tables }).await
    })
}

async fn execute(command: Command, target: Target<'_>) -> Result<()> {
    let Target { node, tables, .. } = &target;
    let facts = &node.facts;
    match command {
        Command::ClearSnapshot(which) => clear_snapshot(&target, &which).await,
        Command::DisableAuditLog => facts.request_logs.disable_audit().await,
        Command::DisableAutoCompaction => set_automatic_compaction(&target, false),
        Command::DisableBinary(how) => node.servers.close_native_transport(how.force).await,
        Command::DisableFullQueryLog => facts.request_logs.disable_full().await,
        Command::Drain => drain(node).await,
        Command::EnableAuditLog(given) => facts.request_logs.enable_audit(&given).await,
        Command::EnableAutoCompaction => set_automatic_compaction(&target, true),
        Command::EnableBinary => node.servers.open_native_transport().await,
        Command::EnableFullQueryLog(given) => facts.request_logs.enable_full(&given).await,
        Command::Flush => flush(&target).await,
        Command::ForceCompact(of) => force_compact(&target, &of.keys).await,
        Command::Import(how) => import(&target, &how).await,
        Command::InvalidateAuthCaches => {
            node.servers.forget_access();
            Ok(())
        }
        Command::InvalidateKeyCache => Ok(node.engine.tables().forget_keys().await?),
        Command::InvalidateRowCache => Ok(node.engine.tables().forget_rows().await?),
        Command::LoadPartitionDenylist => node.servers.load_denylist().await,
        Command::ProfileLoad(asked) => profile_load(&target, &asked).await,
        Command::RebuildIndex(of) => {
            for table in tables {
                node.engine.indexes().rebuild(*table, &of.index).await?;
            }
            Ok(())
        }
        Command::Refresh => refresh(&target).await,
        Command::RefreshSizeEstimates => node.servers.refresh_size_estimates().await,
        Command::ReloadSsl => reload_certificates(node).await,
        Command::ResetFullQueryLog => facts.request_logs.reset_full().await,
        Command::Scrub(how) => scrub(&target, &how).await,
        Command::SetCacheCapacity(of) => set_cache_capacity(node, &of).await,
        Command::SetCompactionThreshold(of) => {
            for table in tables {
                node.engine.compactor().set_thresholds(*table, of.min, of.max)?;
            }
            Ok(())
        }
        Command::SetGuardrailsConfig(given) => {
            let words: Vec<&str> = given.words.iter().map(String::as_str).collect();
            let changed = facts.settings.change_guardrail(&node.engine, &words);
            changed.map_err(|error| Error::Invalid(error.to_string()))
        }
        Command::SetLoggingLevel(of) => {
            let changed = facts.log.set_level(of.name.as_deref(), of.level.as_deref());
            changed.map_err(Error::Invalid)
        }
        Command::SetTraceProbability(given) => set_trace_probability(node, given.probability),
        Command::Snapshot(what) => take_snapshot(&target, &what).await,
        Command::Stop(which) => {
            let stopped = node.engine.compactor().stop_tasks(|task| is_meant(&which, task));
            facts.log.say(format_args!("stop: {stopped} compactions"));
            Ok(())
        }
        Command::StopDaemon => {
            facts.is_to_stop.store(true, Relaxed);
            Ok(())
        }
        Command::StopProfileLoad => facts.profiles.stop(&Job::of(target.keyspace, target.name)),
        Command::Verify(how) => verify(&target, how.extended).await,
    }
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

async fn flush(target: &Target<'_>) -> Result<()> {
    for table in &target.tables {
        target.node.engine.flusher().flush(Some(*table)).await?;
    }
    Ok(())
}

/// A node without TLS has nothing to reload, as in Cassandra.
async fn reload_certificates(node: &Node) -> Result<()> {
    let Some(encryption) = &node.facts.encryption else { return Ok(()) };
    encryption.reload(true).await.map_err(|why| {
        let text = "Failed to reload SSL certificates. Please check the SSL certificates";
        Error::Invalid(format!("{text}: {why}"))
    })
}

async fn take_snapshot(target: &Target<'_>, what: &Snapshot) -> Result<()> {
    let options = SnapshotOptions { skip_flush: what.skip_flush, ttl_seconds: what.ttl_seconds };
    Ok(target.node.engine.snapshots().take(&target.tables, &what.name, options).await?)
}

/// Snapshots of tables that were dropped are cleared too; ephemeral ones are not an operator's to remove.
async fn clear_snapshot(target: &Target<'_>, which: &ClearSnapshot) -> Result<()> {
    let millis = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000);
    let older =
        which.older_than_seconds.map(|age| (unix_micros() / 1000).saturating_sub(millis(age)));
    let wanted = |of: &halcyon_engine::Snapshot| {
        (target.keyspace.is_empty() || of.keyspace == target.keyspace)
            && which.name.as_ref().is_none_or(|name| of.name == *name)
            && older.is_none_or(|before_ms| of.created_ms < before_ms)
            && which.created_before_ms.is_none_or(|before_ms| of.created_ms < before_ms)
            && !of.ephemeral
    };
    Ok(target.node.engine.snapshots().clear(wanted).await?)
}

async fn profile_load(target: &Target<'_>, asked: &ProfileLoad) -> Result<()> {
    let (facts, tables) = (&target.node.facts, target.node.engine.tables());
    let Some(interval_ms) = asked.interval_ms else {
        return facts.profiles.profile(tables, asked, &target.tables).await;
    };
    let job = Job::of(target.keyspace, target.name);
    let asked = (asked, interval_ms);
    facts.profiles.schedule((tables, &facts.log), job, asked, &target.tables)
}

async fn refresh(target: &Target<'_>) -> Result<()> {
    for table in &target.tables {
        let added = target.node.engine.schema().load_new_sstables(*table).await?;
        target.node.facts.log.say(format_args!("refresh: {added} new SSTables"));
    }
    Ok(())
}

async fn import(target: &Target<'_>, how: &Import) -> Result<()> {
    let [table] = target.tables.as_slice() else {
        return Err(Error::Invalid("import needs one table".to_owned()));
    };
    let options = ImportOptions {
        verifies: !how.no_verify,
        is_extended: how.extended_verify,
        keeps_level: how.keep_level,
        keeps_repaired: how.keep_repaired,
        invalidates_caches: !how.no_invalidate_caches,
        copies: how.copy_data,
        needs_indexes: how.require_index_components,
    };
    let node = target.node;
    let directories: BTreeSet<PathBuf> = how.directories.iter().map(PathBuf::from).collect();
    let directories = directories.into_iter().collect();
    let imported = node.engine.schema().import(*table, directories, options).await?;
    node.facts.log.say(format_args!("import: {} new SSTables", imported.sstables));
    let mut answer = Import::FAILED.to_owned();
    for (directory, why) in &imported.failed {
        node.facts.log.say(format_args!("import of {} failed: {why}", directory.display()));
        answer += &format!("\n{}", directory.display());
    }
    if imported.failed.is_empty() { Ok(()) } else { Err(Error::Invalid(answer)) }
}

/// Each table, one after the other. What is lost of it is in the log, and in the snapshot.
async fn scrub(target: &Target<'_>, how: &Scrub) -> Result<()> {
    let engine = &target.node.engine;
    if !how.no_snapshot {
        let name = format!("pre-scrub-{}", unix_micros() / 1000);
        let options = SnapshotOptions { skip_flush: true, ttl_seconds: None };
        engine.snapshots().take(&target.tables, &name, options).await?;
    }
    let options = ScrubOptions {
        validates: !how.no_validate,
        skips_corrupted_counters: how.skip_corrupted,
        reinserts_overflowed: how.reinsert_overflowed_ttl,
    };
    for table in &target.tables {
        engine.compactor().run_selected(*table, Selection::Scrub(options)).await?;
    }
    Ok(())
}

async fn force_compact(target: &Target<'_>, keys: &[String]) -> Result<()> {
    let [table] = target.tables.as_slice() else {
        return Err(Error::Invalid("forcecompact needs one table".to_owned()));
    };
    let catalog = target.node.engine.tables().catalog();
    let Some(described) = catalog.tables().find(|of| of.id == *table) else { return Ok(()) };
    let keys =
        keys.iter().map(|text| partition_key(described, text)).collect::<Result<Vec<_>>>()?;
    target.node.engine.compactor().run_selected(*table, Selection::Forced(keys)).await?;
    Ok(())
}

/// A row cache that is off stays off, as in Cassandra.
async fn set_cache_capacity(node: &Node, of: &CacheCapacity) -> Result<()> {
    let has_rows = node.engine.options().row_cache_size != 0;
    let (keys, rows) = (u64::from(of.keys) << 20, u64::from(of.rows) << 20);
    node.engine.tables().fit_caches(keys, if has_rows { rows } else { 0 }).await?;
    node.facts.settings.note("key_cache_size", &format!("{}MiB", of.keys));
    if !has_rows {
        return Err(Error::Invalid(
            "Setting capacity of NopCache is not permitted as this cache is disabled. Check your yaml settings if you want to enable it.".to_owned(),
        ));
    }
    node.facts.settings.note("row_cache_size", &format!("{}MiB", of.rows));
    Ok(())
}

fn is_meant(which: &Stop, task: &CompactionTask) -> bool {
    let is_scrub = task.kind == CompactionKind::Scrub;
    which.id.as_ref().is_none_or(|id| *id == uuid::text(&task.id))
        && which.kind.as_ref().is_none_or(|kind| (kind == "SCRUB") == is_scrub)
}

fn set_automatic_compaction(target: &Target<'_>, enabled: bool) -> Result<()> {
    for table in &target.tables {
        target.node.engine.compactor().set_automatic(*table, enabled)?;
    }
    Ok(())
}

fn set_trace_probability(node: &Node, probability: f64) -> Result<()> {
    if !(0.0..=1.0).contains(&probability) {
        return Err(Error::Invalid("Trace probability must be between 0 and 1".to_owned()));
    }
    node.facts.trace_probability.set(probability);
    Ok(())
}

/// Fails with what is not sound.
async fn verify(target: &Target<'_>, extended: bool) -> Result<()> {
    let mut problems = Vec::new();
    for table in &target.tables {
        for found in target.node.engine.tables().verify(*table, extended).await? {
            let path = found.path.display();
            problems.extend(found.problems.iter().map(|problem| format!("{path}: {problem}")));
        }
    }
    for problem in &problems {
        target.node.facts.log.say(format_args!("verify: {problem}"));
    }
    match problems.first() {
        None => Ok(()),
        Some(first) => Err(Error::Invalid(format!(
            "{} problems; the log has all, the first is: {first}; restore the SSTable from a snapshot or a backup",
            problems.len()
        ))),
    }
}

async fn drain(node: &Node) -> Result<()> {
    node.engine.settle().await?;
    // Behind the flush: a client that hears of it may be the tool itself, on a port of clients.
    let clients = match node.servers.drain_native_transport().await {
        true => "clients are disconnected until the next start",
        false => "reads are served, and writes refused until the next start",
    };
    node.facts.log.say(format_args!("DRAINED: all is in SSTables; {clients}"));
    Ok(())
}
