//! The records of a transaction log, read from all of its replicas (`LogReplicaSet.readRecords`).
//!
//! A record is appended to one replica after the other, so after a crash some replicas lack a record or end in a torn line. For each
//! line, the longest text counts. The other texts must be a prefix of it; a shorter one must be the last line of its replica. A last
//! line that is not a valid record in any replica is ignored: its step was not taken.

use super::{Record, RecordType};

/// The records of a log, in order; `torn` if an invalid last line was ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    pub records: Vec<Record>,
    pub torn: bool,
}

/// An invalid line that is not the last of its replica, or one that contradicts another replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    pub replica: usize,
    /// Counted from 1.
    pub line: usize,
    pub what: String,
}

impl Log {
    pub fn parse(text: &str) -> Result<Log, BadLine> {
        Log::merge(&[text])
    }

    /// Reads the replicas of one log together.
    pub fn merge(replicas: &[&str]) -> Result<Log, BadLine> {
        let replicas: Vec<Vec<&str>> = replicas.iter().map(|text| lines(text)).collect();
        let length = replicas.iter().map(Vec::len).max().unwrap_or(0);
        let mut records: Vec<Record> = Vec::with_capacity(length);
        for i in 0..length {
            let (replica, line) = longest(&replicas, i)?;
            let bad = |what: String| BadLine { replica, line: i + 1, what };
            if records.last().is_some_and(|r| r.record_type.is_final()) {
                return Err(bad("a record after the last one".into()));
            }
            match Record::parse(line) {
                Ok(record) if records.contains(&record) => {
                    return Err(bad(format!("the same record twice: {line:?}")));
                }
                Ok(record) => records.push(record),
                Err(_) if i + 1 == length => return Ok(Log { records, torn: true }),
                Err(what) => return Err(bad(what)),
            }
        }
        Ok(Log { records, torn: false })
    }

    pub fn is_committed(&self) -> bool {
        !self.torn && self.records.last().is_some_and(|r| r.record_type == RecordType::Commit)
    }

    /// The records of SSTables that are not live: outputs of an unfinished transaction, inputs of a committed one.
    pub fn dead(&self) -> impl Iterator<Item = &Record> {
        let dead = if self.is_committed() { RecordType::Remove } else { RecordType::Add };
        self.records.iter().filter(move |r| r.record_type == dead)
    }
}

/// A sector that did not reach the disk reads as zeros: the line is torn at the first one.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.split('\0').next().unwrap_or_default()).collect()
}

/// Line `i` of the replica that has its longest text.
fn longest<'a>(replicas: &[Vec<&'a str>], i: usize) -> Result<(usize, &'a str), BadLine> {
    let having = || {
        let line = |(r, lines): (usize, &Vec<&'a str>)| lines.get(i).map(|line| (r, *line));
        replicas.iter().enumerate().filter_map(line)
    };
    let (replica, longest) = having().max_by_key(|(_, line)| line.len()).unwrap_or((0, ""));
    for (other, line) in having() {
        let is_last = replicas.get(other).is_some_and(|lines| i + 1 == lines.len());
        if line == longest || (is_last && longest.starts_with(line)) {
            continue;
        }
        let what = format!("{line:?}, but another replica of the log says {longest:?}");
        return Err(BadLine { replica: other, line: i + 1, what });
    }
    Ok((replica, longest))
}

/// Whether it is the name of a transaction log.
pub fn is_log_name(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".log") else { return false };
    let Some((version, rest)) = stem.split_once("_txn_") else { return false };
    let letters = version.rsplit('-').next().unwrap_or_default();
    letters.len() == 2 && rest.contains('_')
}
