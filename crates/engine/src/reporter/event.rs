//! What the engine reports, and its words: a variant says what has happened, to which table, how long it took and why.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use halcyon_guardrails::Said;
use halcyon_model::uuid;
use halcyon_sstable::verify::Damage;

/// How bad an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    Warning,
    Error,
}

/// An event for the operator's log. Tables are named `keyspace.table`; `why` is the text of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Compacted(Box<Compacted>),
    CompactionFailed(Box<CompactionFailed>),
    Scrubbed {
        sstable: String,
        /// That its successors have.
        partitions: u64,
        damage: Box<Damage>,
    },
    /// Reads may meet `excess` SSTables too many, fewer than `calm` end it.
    CompactionBehind {
        excess: usize,
        calm: usize,
    },
    CompactionCaughtUp,
    DuplicateRowsMerged {
        table: String,
        rows: u64,
    },
    WritesSlowed {
        table: String,
        excess: usize,
    },
    WritesNotSlowed {
        table: String,
    },
    FlushFailed {
        table: String,
        why: String,
        kind: &'static str,
    },
    IndexNotBuilt {
        table: String,
        why: String,
    },
    IndexDamaged {
        why: String,
    },
    ViewNotBuilt {
        why: String,
    },
    SnapshotExpired {
        snapshot: PathBuf,
    },
    SnapshotRemains {
        snapshot: PathBuf,
        why: String,
    },
    SnapshotsNotExpired {
        why: String,
    },
    Guardrail(Said),
    ProcessorsWithheld {
        percent: u32,
        window: Duration,
    },
    /// A failed read or write that `disk_failure_policy` or `commit_failure_policy` tolerates.
    Failed {
        kind: &'static str,
        why: String,
    },
}

/// A successful compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    /// A timeuuid.
    pub id: [u8; 16],
    pub table: String,
    pub inputs: usize,
    pub outputs: Vec<String>,
    pub level: i32,
    /// Bytes, as stored.
    pub read: u64,
    /// Bytes, as stored.
    pub written: u64,
    pub took: Duration,
    pub partitions_written: u64,
    /// A number of inputs, and how many partitions this many inputs had.
    pub merged: Vec<(usize, u64)>,
}

/// A compaction that failed, and what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionFailed {
    pub table: String,
    pub inputs: Vec<String>,
    /// It failed after its COMMIT was written, perhaps.
    pub is_in_doubt: bool,
    pub why: String,
    pub cure: &'static str,
    /// `None`: its corrupt input is left out until the next start.
    pub retried_after: Option<Duration>,
}

impl Event {
    pub fn severity(&self) -> Severity {
        match self {
            Event::Compacted(_)
            | Event::CompactionBehind { .. }
            | Event::CompactionCaughtUp
            | Event::WritesNotSlowed { .. }
            | Event::SnapshotExpired { .. } => Severity::Info,
            Event::Scrubbed { damage, .. } if damage.is_none() => Severity::Info,
            Event::Guardrail(Said { is_failure: true, .. }) => Severity::Error,
            _ => Severity::Warning,
        }
    }

    /// The part of the engine that reports it, as a logger is named.
    pub fn logger(&self) -> &'static str {
        match self {
            Event::Compacted(_)
            | Event::CompactionFailed(_)
            | Event::Scrubbed { .. }
            | Event::CompactionBehind { .. }
            | Event::CompactionCaughtUp
            | Event::DuplicateRowsMerged { .. }
            | Event::WritesSlowed { .. }
            | Event::WritesNotSlowed { .. } => "engine.compact",
            Event::FlushFailed { .. } => "engine.flush",
            Event::IndexNotBuilt { .. } | Event::IndexDamaged { .. } => "engine.index",
            Event::ViewNotBuilt { .. } => "engine.views",
            Event::SnapshotExpired { .. }
            | Event::SnapshotRemains { .. }
            | Event::SnapshotsNotExpired { .. } => "engine.snapshots",
            Event::Guardrail(_) => "engine.guardrails",
            Event::ProcessorsWithheld { .. } => "engine.processors",
            Event::Failed { kind: COMMIT_LOG | COMMIT_LOG_SPACE, .. } => "engine.commitlog",
            Event::Failed { .. } => "engine.disk",
        }
    }

    /// Events of one kind repeat themselves while a cause lasts, and are reported once in a while.
    pub(super) fn kind(&self) -> Option<&'static str> {
        match self {
            Event::Failed { kind, .. } | Event::FlushFailed { kind, .. } => Some(kind),
            Event::IndexNotBuilt { .. } => Some("index build"),
            Event::IndexDamaged { .. } => Some("damaged index"),
            Event::ViewNotBuilt { .. } => Some("view build"),
            Event::ProcessorsWithheld { .. } => Some("processors"),
            _ => None,
        }
    }
}

pub(super) const COMMIT_LOG: &str = "log";
pub(super) const COMMIT_LOG_SPACE: &str = "space";

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Compacted(compacted) => compacted.fmt(f),
            Event::CompactionFailed(failed) => failed.fmt(f),
            Event::Scrubbed { sstable, partitions, damage } => {
                write!(f, "scrub of {sstable}: {partitions} partitions")?;
                write_damage(damage, f)
            }
            Event::CompactionBehind { excess, calm } => write!(
                f,
                "compaction is behind: reads may meet {excess} SSTables too many; it goes at full speed and priority until that is \
                 less than {calm}, whatever compaction_latency_target says"
            ),
            Event::CompactionCaughtUp => {
                f.write_str("compaction has caught up: it is idle work again")
            }
            Event::DuplicateRowsMerged { table, rows } => {
                write!(f, "{table}: {rows} rows that an SSTable had twice were merged")
            }
            Event::WritesSlowed { table, excess } => write!(
                f,
                "writes to {table} are slowed, for reads of it may meet {excess} SSTables too many; raise concurrent_compactors or \
                 compaction_throughput, or write less"
            ),
            Event::WritesNotSlowed { table } => {
                write!(f, "writes to {table} are no longer slowed")
            }
            Event::FlushFailed { table, why, .. } => {
                write!(f, "a flush of {table} failed ({why}); it is tried again")
            }
            Event::IndexNotBuilt { table, why } => {
                write!(f, "an index of {table} could not be built: {why}")
            }
            Event::IndexDamaged { why } => {
                write!(f, "an index is built again, because its file is damaged: {why}")
            }
            Event::ViewNotBuilt { why } => write!(
                f,
                "a materialized view could not be built, sleeping 5 minutes before restarting: {why}"
            ),
            Event::SnapshotExpired { snapshot } => {
                write!(f, "the snapshot {} has expired and is removed", snapshot.display())
            }
            Event::SnapshotRemains { snapshot, why } => {
                write!(f, "the snapshot {} has expired, but remains: {why}", snapshot.display())
            }
            Event::SnapshotsNotExpired { why } => {
                write!(f, "expired snapshots are not removed: {why}")
            }
            Event::Guardrail(said) => f.write_str(&said.text),
            Event::ProcessorsWithheld { percent, window } => write!(
                f,
                "{percent} % of the processors' time was withheld from this node in the last {} seconds, and requests waited meanwhile: by the host of \
                 the virtual machine, whose quota may count its disk I/O too, or by a CPU limit of the control group \
                 (Kubernetes: resources.limits.cpu). Raise that, or give the node less to do; halcyon_views.node has the sum",
                window.as_secs(),
            ),
            Event::Failed { why, .. } => f.write_str(why),
        }
    }
}

fn write_damage(damage: &Damage, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let counts = [
        (damage.partitions, "partitions are lost, in part or as a whole"),
        (damage.rows, "rows with wrong values are lost"),
        (damage.disordered, "partitions out of order are in an SSTable of their own"),
        (damage.reinserted, "rows whose expiration had overflowed were written again"),
    ];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        write!(f, "; {count} {what}")?;
    }
    if damage.partitions + damage.rows > 0 {
        f.write_str(
            "; a snapshot from before the scrub has what is lost, unless it was made with -ns",
        )?;
    }
    damage.problems.iter().try_for_each(|problem| write!(f, "; {problem}"))
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.3}MiB", bytes as f64 / f64::from(1 << 20))
}

/// In the words of Cassandra's `CompactionTask`.
impl fmt::Display for Compacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX);
        let (from, to) = (self.read, self.written);
        let rate = |bytes: u64| mebibytes(bytes.saturating_mul(1000) / millis.max(1));
        let total: u64 = self.merged.iter().map(|(inputs, count)| *inputs as u64 * count).sum();
        write!(
            f,
            "Compacted ({}) {}: {} sstables to [",
            uuid::text(&self.id),
            self.table,
            self.inputs
        )?;
        self.outputs.iter().try_for_each(|output| write!(f, "{output}-,"))?;
        write!(
            f,
            "] to level={}.  {} to {} (~{}% of original) in {millis}ms.  \
             Read Throughput = {}/s, Write Throughput = {}/s.  {total} total partitions merged to {}.  \
             Partition merge counts were {{",
            self.level,
            mebibytes(from),
            mebibytes(to),
            (to.saturating_mul(100)).checked_div(from).unwrap_or(0),
            rate(from),
            rate(to),
            self.partitions_written,
        )?;
        self.merged.iter().try_for_each(|(inputs, count)| write!(f, "{inputs}:{count}, "))?;
        f.write_str("}")
    }
}

impl fmt::Display for CompactionFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs_now = match self.is_in_doubt {
            true => "stay, and the next start decides whether its outputs replace them",
            false => "stay",
        };
        write!(
            f,
            "compaction of {} failed, its {} inputs [{}] {inputs_now}: {}; {}",
            self.table,
            self.inputs.len(),
            self.inputs.join(", "),
            self.why,
            self.cure
        )?;
        match self.retried_after {
            None => f.write_str("; it is left out of compactions until then"),
            Some(pause) => write!(f, "; tried again in {} s", pause.as_secs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the words of a compaction, which are Cassandra's.
    #[test]
    fn a_compaction_has_cassandras_words() {
        let compacted = Compacted {
            id: [0; 16],
            table: "ks.t".to_owned(),
            inputs: 2,
            outputs: vec!["/data/nb-3-big".to_owned()],
            level: 0,
            read: 4 << 20,
            written: 1 << 20,
            took: Duration::from_millis(500),
            partitions_written: 3,
            merged: vec![(1, 2), (2, 1)],
        };
        let event = Event::Compacted(Box::new(compacted));
        assert_eq!(
            event.to_string(),
            "Compacted (00000000-0000-0000-0000-000000000000) ks.t: 2 sstables to [/data/nb-3-big-,] to level=0.  4.000MiB to 1.000MiB \
             (~25% of original) in 500ms.  Read Throughput = 8.000MiB/s, Write Throughput = 2.000MiB/s.  4 total partitions merged to 3.  \
             Partition merge counts were {1:2, 2:1, }"
        );
        assert_eq!((event.severity(), event.logger()), (Severity::Info, "engine.compact"));
    }
}
