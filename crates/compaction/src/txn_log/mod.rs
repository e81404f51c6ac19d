//! Cassandra's transaction logs (`LogFile`, `LogRecord`). They make the replacement of SSTables atomic. The format is Cassandra's, so
//! that each program can recover a directory after a crash of the other.
//!
//! `<version>_txn_<operation>_<timeuuid>.log`, in each directory that has files of the transaction, all replicas equal:
//! ```text
//! ADD:[<path prefix ending in ->,0,<files>][<crc32>]                  before the first file of a new SSTable
//! REMOVE:[<path prefix>,<last modified, ms>,<files>][<crc32>]         when all new SSTables are durable
//! COMMIT:[,0,0][2613697770]   or   ABORT:[,0,0][737437348]
//! ```
//! Each line is appended and synced. Recovery deletes the files of REMOVE records after a final COMMIT, otherwise those of ADD records,
//! then the log. If the files of a REMOVE record have changed (a restored backup), recovery stops and deletes nothing. A torn last line
//! means that its step was not taken. A COMMIT in one replica is enough.
//!
//! A program that starts in the directory finishes what it takes for interrupted. So a transaction whose log has been removed or changed by
//! others touches nothing more.

mod log;
mod recovery;
mod replicas;
#[cfg(test)]
mod tests;
mod transaction;

pub use log::{BadLine, Log, is_log_name};
pub use recovery::{dead_in_directory, named_in_directory, recover};
pub(crate) use replicas::absolute;
pub use transaction::{ReplacedFiles, Transaction};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordType {
    Add,
    Remove,
    Commit,
    Abort,
}

impl RecordType {
    fn name(self) -> &'static str {
        match self {
            RecordType::Add => "ADD",
            RecordType::Remove => "REMOVE",
            RecordType::Commit => "COMMIT",
            RecordType::Abort => "ABORT",
        }
    }

    fn parse(name: &str) -> Option<RecordType> {
        let all = [RecordType::Add, RecordType::Remove, RecordType::Commit, RecordType::Abort];
        all.into_iter().find(|t| t.name().eq_ignore_ascii_case(name))
    }

    fn is_final(self) -> bool {
        matches!(self, RecordType::Commit | RecordType::Abort)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub record_type: RecordType,
    /// The absolute path of the SSTable's files up to the component name; empty for COMMIT and ABORT.
    pub prefix: String,
    /// The newest modification time of the SSTable's files except Statistics.db, in ms; 0 for ADD.
    pub update_time_ms: i64,
    pub files: i32,
}

impl Record {
    fn last(record_type: RecordType) -> Record {
        Record { record_type, prefix: String::new(), update_time_ms: 0, files: 0 }
    }

    /// The CRC32 of prefix, type name, update time (as two ints, low word first) and file count.
    fn checksum(&self) -> u32 {
        let mut hasher = halcyon_codec::Crc32::new();
        hasher.update(self.prefix.as_bytes());
        hasher.update(self.record_type.name().as_bytes());
        hasher.update(&(self.update_time_ms as i32).to_be_bytes());
        hasher.update(&((self.update_time_ms >> 32) as i32).to_be_bytes());
        hasher.update(&self.files.to_be_bytes());
        hasher.finalize()
    }

    pub fn to_line(&self) -> String {
        format!(
            "{}:[{},{},{}][{}]\n",
            self.record_type.name(),
            self.prefix,
            self.update_time_ms,
            self.files,
            self.checksum()
        )
    }

    pub fn parse(line: &str) -> Result<Record, String> {
        let bad = || format!("not a record: {line:?}");
        let (name, rest) = line.split_once(":[").ok_or_else(bad)?;
        let record_type = RecordType::parse(name).ok_or_else(bad)?;
        let (fields, crc) = rest.rsplit_once("][").ok_or_else(bad)?;
        let crc = crc.strip_suffix(']').and_then(|c| c.parse::<u32>().ok()).ok_or_else(bad)?;
        let mut fields = fields.rsplitn(3, ',');
        let files = fields.next().and_then(|f| f.parse().ok()).ok_or_else(bad)?;
        let update_time_ms = fields.next().and_then(|f| f.parse().ok()).ok_or_else(bad)?;
        let prefix = fields.next().ok_or_else(bad)?.to_string();
        let record = Record { record_type, prefix, update_time_ms, files };
        if record.checksum() != crc {
            return Err(format!("checksum is {}, stored is {crc}", record.checksum()));
        }
        Ok(record)
    }
}
