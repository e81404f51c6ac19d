//! The chores, and the tables that they are about.

use halcyon_oracle::Result;

use super::operator::Operator;
use crate::load::KEYSPACE;

/// The table that is read, and that no chore touches.
pub(super) const HOT: &str = "hot";
/// Large, in several SSTables: of one a snapshot is taken before.
pub(super) const TRUNCATED: &str = "truncated";
pub(super) const DROPPED: &str = "dropped";
/// Has its rows in a memtable, then in an SSTable; then columns are added.
pub(super) const FLUSHED: &str = "flushed";
/// Empty.
pub(super) const INDEXED: &str = "indexed";
/// The keyspace of the tables that are created.
pub(super) const SCRATCH: &str = "scratch";
/// The snapshot that is taken, and cleared.
const SNAPSHOT: &str = "kept";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Chore {
    Snapshot,
    ClearSnapshot,
    Flush,
    Truncate,
    DropTable,
    /// Of what the last two left: only now are their bytes free.
    ClearAll,
    CreateTables,
    AlterTable,
    CreateType,
    CreateIndex,
    DropKeyspace,
}

impl Chore {
    /// In the order in which they are done.
    pub(super) const ALL: [Chore; 11] = [
        Chore::Snapshot,
        Chore::ClearSnapshot,
        Chore::Flush,
        Chore::Truncate,
        Chore::DropTable,
        Chore::ClearAll,
        Chore::CreateTables,
        Chore::AlterTable,
        Chore::CreateType,
        Chore::CreateIndex,
        Chore::DropKeyspace,
    ];

    pub(super) fn heading(self) -> &'static str {
        match self {
            Chore::Snapshot => "snapshot",
            Chore::ClearSnapshot => "clearsnapshot",
            Chore::Flush => "flush",
            Chore::Truncate => "TRUNCATE",
            Chore::DropTable => "DROP TABLE",
            Chore::ClearAll => "clearsnapshot, all",
            Chore::CreateTables => "CREATE TABLE",
            Chore::AlterTable => "ALTER TABLE",
            Chore::CreateType => "CREATE TYPE",
            Chore::CreateIndex => "CREATE INDEX",
            Chore::DropKeyspace => "DROP KEYSPACE",
        }
    }

    /// From its command to the last answer.
    pub(super) fn run(self, operator: &mut Operator, tables: u32, columns: u32) -> Result<()> {
        match self {
            Chore::Snapshot => operator.snapshot(TRUNCATED, SNAPSHOT),
            Chore::ClearSnapshot => operator.clear_snapshots(SNAPSHOT),
            Chore::Flush => operator.flush(FLUSHED),
            Chore::Truncate => operator.says(&format!("TRUNCATE {KEYSPACE}.{TRUNCATED}")),
            Chore::DropTable => operator.says(&format!("DROP TABLE {KEYSPACE}.{DROPPED}")),
            Chore::ClearAll => operator.clear_snapshots(""),
            Chore::CreateTables => (0..tables).try_for_each(|number| {
                operator.says(&format!(
                    "CREATE TABLE {SCRATCH}.t{number} (pk bigint PRIMARY KEY, number int, word text, data blob)"
                ))
            }),
            Chore::AlterTable => (0..columns).try_for_each(|number| {
                operator.says(&format!("ALTER TABLE {KEYSPACE}.{FLUSHED} ADD added{number} int"))
            }),
            Chore::CreateType => {
                operator.says(&format!("CREATE TYPE {KEYSPACE}.pair (first int, second text)"))
            }
            Chore::CreateIndex => {
                operator.says(&format!("CREATE INDEX by_number ON {KEYSPACE}.{INDEXED} (number)"))
            }
            Chore::DropKeyspace => operator.says(&format!("DROP KEYSPACE {SCRATCH}")),
        }
    }
}
