//! The records of several full query logs, merged by the time at which their requests began.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};

use halcyon_binlog::reader::{Error, Reader};
use halcyon_binlog::record::{ENDING, Record};
use halcyon_io::append;

use crate::console::Console;
use crate::failure::{Failure, Result};

/// A file, or the files of a folder in the order of their names.
struct Log {
    files: VecDeque<PathBuf>,
    open: Option<(PathBuf, Reader<Box<dyn Read>>)>,
    next: Option<Record>,
}

pub(super) struct Logs {
    logs: Vec<Log>,
    console: Console,
}

fn failed(path: &Path, error: Error) -> Failure {
    match error {
        Error::Damaged { .. } | Error::NotALog => {
            Failure::problem(format!("{}: {error}", path.display()))
        }
        error => Failure::of_file(path, error),
    }
}

fn files(path: &Path) -> Result<VecDeque<PathBuf>> {
    if append::is_file(path) {
        return Ok([path.to_owned()].into());
    }
    let found = append::files(path).map_err(|e| Failure::of_file(path, e))?;
    let mut files: Vec<PathBuf> = found
        .into_iter()
        .map(|found| found.path)
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .collect();
    if files.is_empty() {
        return Err(Failure::of_file(path, format!("there is no file *.{ENDING} in it")));
    }
    files.sort();
    Ok(files.into())
}

impl Log {
    fn advance(&mut self, console: Console) -> Result<()> {
        self.next = None;
        loop {
            if self.open.is_none() {
                let Some(path) = self.files.pop_front() else { return Ok(()) };
                let from = append::read(&path).map_err(|e| Failure::of_file(&path, e))?;
                let from: Box<dyn Read> = Box::new(from);
                let reader = Reader::new(from).map_err(|error| failed(&path, error))?;
                self.open = Some((path, reader));
            }
            let Some((path, reader)) = &mut self.open else { return Ok(()) };
            self.next = reader.next_record().map_err(|error| failed(path, error))?;
            if self.next.is_some() {
                return Ok(());
            }
            if reader.left() > 0 {
                let (path, left) = (path.display(), reader.left());
                console.warn(format_args!(
                    "{path}: the last {left} bytes are an incomplete record: its node did not end, or still writes"
                ));
            }
            self.open = None;
        }
    }
}

impl Logs {
    pub(super) fn open(paths: &[PathBuf], console: Console) -> Result<Logs> {
        let mut logs = Vec::with_capacity(paths.len());
        for path in paths {
            let mut log = Log { files: files(path)?, open: None, next: None };
            log.advance(console)?;
            logs.push(log);
        }
        Ok(Logs { logs, console })
    }

    /// The next record of all; of those that began at the same time, that of the path that was given first.
    pub(super) fn next(&mut self) -> Result<Option<Record>> {
        let began = |log: &Log| log.next.as_ref().map(|record| record.query_start_time);
        let logs = self.logs.iter_mut().filter(|log| log.next.is_some());
        let Some(first) = logs.min_by_key(|log| began(log)) else { return Ok(None) };
        let record = first.next.take();
        first.advance(self.console)?;
        Ok(record)
    }
}
