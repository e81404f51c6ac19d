//! Commands of `nodetool`: what a row of `halcyon_views.commands` asks of the node. `halcyon nodetool` encodes them, the virtual table
//! decodes them:
//!
//! ```text
//!  verb      'snapshot'                              the name of the variant
//!  argument  '{"name":"a/b","skip_flush":true}'      its fields as JSON; empty: each has its default
//! ```
//! The tables that a command is about are columns of their own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A command, by its verb.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    ClearSnapshot(ClearSnapshot),
    DisableAuditLog,
    DisableAutoCompaction,
    DisableBinary(DisableBinary),
    DisableFullQueryLog,
    Drain,
    EnableAuditLog(LogOptions),
    EnableAutoCompaction,
    EnableBinary,
    EnableFullQueryLog(LogOptions),
    Flush,
    ForceCompact(ForceCompact),
    Import(Import),
    /// The caches of roles, permissions and credentials.
    InvalidateAuthCaches,
    InvalidateKeyCache,
    InvalidateRowCache,
    LoadPartitionDenylist,
    ProfileLoad(ProfileLoad),
    #[serde(rename = "rebuild_index")]
    RebuildIndex(RebuildIndex),
    Refresh,
    RefreshSizeEstimates,
    ReloadSsl,
    ResetFullQueryLog,
    Scrub(Scrub),
    SetCacheCapacity(CacheCapacity),
    SetCompactionThreshold(CompactionThreshold),
    SetGuardrailsConfig(SetGuardrail),
    SetLoggingLevel(LoggingLevel),
    SetTraceProbability(TraceProbability),
    Snapshot(Snapshot),
    Stop(Stop),
    /// The node drains and ends, as at SIGTERM. The answer comes first.
    StopDaemon,
    /// The job of these tables, if it was scheduled for them.
    StopProfileLoad,
    Verify(Verify),
}

/// Which snapshots are removed. Ephemeral ones never are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClearSnapshot {
    /// `None`: all names.
    pub name: Option<String>,
    pub older_than_seconds: Option<u64>,
    /// Milliseconds since 1970.
    pub created_before_ms: Option<i64>,
}

/// The ports of clients close; that of `nodetool` stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DisableBinary {
    /// Requests that run are not waited for.
    pub force: bool,
}

/// Options of the audit log or the full query log that replace those of the file, by their names there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogOptions {
    pub options: BTreeMap<String, String>,
}

/// Tombstones of these partitions of one table go before gc_grace_seconds have passed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForceCompact {
    /// As Cassandra's tools spell them.
    pub keys: Vec<String>,
}

/// SSTables of these directories become part of the table. The answer to a failure names the directories that were left as they are, each
/// in a line behind [`Import::FAILED`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Import {
    pub directories: Vec<String>,
    pub keep_level: bool,
    pub keep_repaired: bool,
    pub no_verify: bool,
    pub extended_verify: bool,
    pub no_invalidate_caches: bool,
    pub copy_data: bool,
    pub require_index_components: bool,
}

impl Import {
    pub const FAILED: &'static str =
        "Some directories failed to import, check server logs for details:";
}

/// Samples reads and writes of tables. The answer comes with the end of the sampling; `halcyon_views.load_profiles` has what it found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileLoad {
    /// Any text that no other sampling has.
    pub id: String,
    /// By Cassandra's names.
    pub samplers: Vec<String>,
    /// Keys that each sampler keeps.
    pub capacity: u32,
    /// Samples of the answer.
    pub most: u32,
    pub duration_ms: u32,
    /// Begins a job that samples at each interval; the log has what it finds.
    #[serde(default)]
    pub interval_ms: Option<u32>,
}

impl ProfileLoad {
    /// How an answer begins that refuses a job, or to stop one.
    pub const SCHEDULED: &'static str = "a running or scheduled sampling excludes ";
    pub const NOT_SCHEDULED: &'static str = "no sampling is scheduled of ";
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebuildIndex {
    pub index: String,
}

/// In MiB. Counters have no cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheCapacity {
    pub keys: u32,
    pub rows: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactionThreshold {
    pub min: usize,
    pub max: usize,
}

/// Which compactions are stopped; their inputs stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// `SCRUB`: only scrubs. `None`: all kinds.
    pub kind: Option<String>,
    /// `None`: all.
    pub id: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Verify {
    /// Each row is decoded, and index and filter are compared with it.
    pub extended: bool,
}

/// SSTables are written again without what is corrupt. A snapshot comes first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scrub {
    pub no_snapshot: bool,
    /// Values are not compared with their types.
    pub no_validate: bool,
    /// Corrupt partitions of counter tables are skipped too.
    pub skip_corrupted: bool,
    /// Rows whose expiration overflowed get the latest one.
    pub reinsert_overflowed_ttl: bool,
}

/// The setter and its values, as `nodetool setguardrailsconfig` takes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetGuardrail {
    pub words: Vec<String>,
}

/// Without a name, all levels are those of the start again; without a level, that of a logger is its parent's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoggingLevel {
    /// Of a class or component.
    pub name: Option<String>,
    pub level: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceProbability {
    pub probability: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    pub name: String,
    #[serde(default)]
    pub skip_flush: bool,
    /// `None`: it does not expire.
    #[serde(default)]
    pub ttl_seconds: Option<u64>,
}

impl Command {
    /// The answer to `enablebinary` of a drained node.
    pub const DRAINED: &'static str =
        "Unable to start native transport because the node was drained.";

    /// The columns `verb` and `argument`.
    pub fn encode(&self) -> (String, String) {
        match serde_json::to_value(self) {
            Ok(Value::String(verb)) => (verb, String::new()),
            Ok(Value::Object(of_verb)) => of_verb
                .into_iter()
                .next()
                .map_or_else(Default::default, |(verb, fields)| (verb, fields.to_string())),
            // An enum is one of both.
            _ => Default::default(),
        }
    }

    /// Decodes both columns. An error names the unknown verb, or the field that does not fit it.
    pub fn decode(verb: &str, argument: &str) -> Result<Command, String> {
        let of_verb = |fields: Value| {
            let fields = Map::from_iter([(verb.to_owned(), fields)]);
            serde_json::from_value::<Command>(Value::Object(fields))
        };
        let decoded = match argument {
            "" => serde_json::from_value(Value::String(verb.to_owned()))
                .or_else(|_| of_verb(Value::Object(Map::new()))),
            argument => serde_json::from_str(argument).and_then(of_verb),
        };
        decoded.map_err(|why| match argument {
            "" => why.to_string(),
            argument => format!("{verb}: {argument} is not its argument: {why}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that commands survive their encoding, names with any character too.
    #[test]
    fn encoding_round_trips() {
        let snapshot = |name: &str| {
            let (skip_flush, ttl_seconds) = (true, Some(86_400));
            Command::Snapshot(Snapshot { name: name.to_owned(), skip_flush, ttl_seconds })
        };
        let options = BTreeMap::from([("block".to_owned(), "a=b\nc".to_owned())]);
        for command in [
            Command::Flush,
            Command::RebuildIndex(RebuildIndex { index: "i'\"".to_owned() }),
            Command::EnableAuditLog(LogOptions { options }),
            Command::ClearSnapshot(ClearSnapshot::default()),
            Command::SetCompactionThreshold(CompactionThreshold { min: 2, max: 9 }),
            Command::Scrub(Scrub { no_snapshot: true, ..Scrub::default() }),
            Command::ForceCompact(ForceCompact { keys: vec!["a:b".to_owned()] }),
            Command::Stop(Stop { kind: None, id: Some("an id".to_owned()) }),
            Command::Verify(Verify { extended: true }),
            snapshot("a/skip-flush/ttl=1d"),
            snapshot("\u{0}é\n{\"}'"),
            snapshot(""),
        ] {
            let (verb, argument) = command.encode();
            assert_eq!(Command::decode(&verb, &argument), Ok(command), "{verb} {argument}");
        }
        assert_eq!(Command::Flush.encode(), ("flush".to_owned(), String::new()));
    }

    /// Proves that an empty argument stands for defaults, and that errors about wrong rows name the mistake.
    #[test]
    fn wrong_rows_are_refused() {
        let cleared = Command::ClearSnapshot(ClearSnapshot::default());
        assert_eq!(Command::decode("clearsnapshot", ""), Ok(cleared));
        let refused = |verb, argument| Command::decode(verb, argument).expect_err(verb);
        assert!(refused("nosuch", "").starts_with("unknown variant `nosuch`, expected one of"));
        assert!(refused("snapshot", "").contains("missing field `name`"));
        assert!(refused("snapshot", "one").contains("is not its argument"));
        assert!(refused("snapshot", r#"{"name":"a","nmae":1}"#).contains("unknown field `nmae`"));
        assert!(refused("flush", "{}").contains("flush: {} is not its argument"));
    }
}
