//! The files of a log: names, rolling, and which are kept.
//!
//! ```text
//!  audit.log                     the file that grows; rolled: audit.log.20261129-11.0, …
//!  20261129-11.0.fql             grows under its own name; the next one in that hour: 20261129-11.1.fql
//! ```

use std::io;
use std::path::{Path, PathBuf};

use halcyon_io::append::{self, AppendFile};
use halcyon_io::clock::unix_seconds;
use halcyon_model::value::timestamp_json_string;

use crate::options::{Options, RollCycle};

/// How files of a log are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// The growing file has this name, and rolled ones a suffix.
    Fixed(&'static str),
    /// Every file has the time of its cycle, and this ending; `header` are its first bytes.
    Dated { ending: &'static str, header: &'static [u8] },
}

impl Naming {
    /// Whether a file is of this log, and no longer grows once the log has opened its own.
    fn is_rolled(self, name: &str) -> bool {
        match self {
            Naming::Fixed(fixed) => {
                name.strip_prefix(fixed).is_some_and(|rest| rest.starts_with('.'))
            }
            Naming::Dated { ending, .. } => {
                name.strip_suffix(ending).is_some_and(|rest| rest.ends_with('.'))
            }
        }
    }
}

/// The growing file.
struct Growing {
    file: AppendFile,
    /// The number of its cycle since 1970.
    cycle: i64,
}

pub(crate) struct Folder {
    options: Options,
    naming: Naming,
    growing: Option<Growing>,
}

/// What an append has done beside it.
#[derive(Debug, Default)]
pub(crate) struct Rolled {
    /// The file that grows no longer.
    pub(crate) file: Option<PathBuf>,
}

fn is_of(path: &Path, naming: Naming) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| naming.is_rolled(name))
}

/// The files of a log that no longer grow, the oldest first.
pub(crate) fn rolled_files(folder: &Path, naming: Naming) -> io::Result<Vec<append::Found>> {
    let files = append::files(folder)?;
    Ok(files.into_iter().filter(|found| is_of(&found.path, naming)).collect())
}

/// `20261129-1105`: as much of the time as a cycle has.
fn stamp(cycle: RollCycle, number: i64) -> String {
    let millis = number.saturating_mul(cycle.seconds()).saturating_mul(1_000);
    let text = timestamp_json_string(millis);
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let (day, time) = digits.split_at_checked(8).unwrap_or((&digits, ""));
    let time = match cycle {
        RollCycle::Daily => "",
        RollCycle::Hourly => time.get(..2).unwrap_or_default(),
        RollCycle::Minutely => time.get(..4).unwrap_or_default(),
    };
    if time.is_empty() { day.to_owned() } else { format!("{day}-{time}") }
}

impl Folder {
    /// Makes the folder, and the file, so that what cannot be written is known at once.
    pub(crate) fn open(options: &Options, naming: Naming) -> io::Result<Folder> {
        append::make_folder(&options.directory)?;
        let mut folder = Folder { options: options.clone(), naming, growing: None };
        folder.growing = Some(folder.next(folder.now())?);
        Ok(folder)
    }

    fn now(&self) -> i64 {
        unix_seconds().div_euclid(self.options.roll_cycle.seconds())
    }

    fn next(&self, cycle: i64) -> io::Result<Growing> {
        let file = match self.naming {
            Naming::Fixed(name) => AppendFile::open(&self.options.directory.join(name))?,
            Naming::Dated { ending, header } => {
                let stamp = stamp(self.options.roll_cycle, cycle);
                let path = free_name(&self.options.directory, |number| {
                    format!("{stamp}.{number}.{ending}")
                });
                let mut file = AppendFile::create(&path)?;
                if let Err(error) = file.append(header) {
                    // Each attempt on a full device would leave an empty one.
                    let _ = append::remove(&path);
                    return Err(error);
                }
                file
            }
        };
        Ok(Growing { file, cycle })
    }

    /// Appends whole records, to a new file if the old one is due.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<Rolled> {
        let cycle = self.now();
        let mut rolled = Rolled::default();
        if let Some(growing) = &self.growing {
            let length = growing.file.length();
            let is_full = length > self.least() && length >= self.options.file_max();
            if growing.cycle != cycle || is_full {
                rolled.file = self.roll()?;
            }
        }
        if self.growing.is_none() {
            self.growing = Some(self.next(cycle)?);
        }
        if let Some(growing) = &mut self.growing {
            growing.file.append(bytes)?;
        }
        Ok(rolled)
    }

    /// The length of a file without records.
    fn least(&self) -> u64 {
        match self.naming {
            Naming::Fixed(_) => 0,
            Naming::Dated { header, .. } => header.len() as u64,
        }
    }

    /// Gives the growing file its last name; `None`: it has no records yet, and stays.
    fn roll(&mut self) -> io::Result<Option<PathBuf>> {
        let least = self.least();
        let cycle = self.now();
        let Some(growing) = &mut self.growing else { return Ok(None) };
        if growing.file.length() <= least {
            growing.cycle = cycle;
            return Ok(None);
        }
        let path = growing.file.path().to_owned();
        let path = match self.naming {
            Naming::Dated { .. } => path,
            Naming::Fixed(name) => {
                let stamp = stamp(self.options.roll_cycle, growing.cycle);
                let to =
                    free_name(&self.options.directory, |number| format!("{name}.{stamp}.{number}"));
                append::rename(&path, &to)?;
                to
            }
        };
        self.growing = None;
        Ok(Some(path))
    }

    /// The next append opens a file: this one could not be written.
    pub(crate) fn give_up(&mut self) {
        self.growing = None;
    }

    /// Deletes the oldest rolled files, until those that stay have at most `max_log_size` bytes.
    pub(crate) fn delete_oldest(&self) -> io::Result<Vec<PathBuf>> {
        let growing = self.growing.as_ref().map(|growing| growing.file.path());
        let mut files = rolled_files(&self.options.directory, self.naming)?;
        files.retain(|found| Some(found.path.as_path()) != growing);
        let mut bytes: u64 = files.iter().map(|found| found.length).sum();
        let mut deleted = Vec::new();
        for found in files {
            if bytes <= self.options.max_log_size {
                break;
            }
            append::remove(&found.path)?;
            bytes -= found.length;
            deleted.push(found.path);
        }
        Ok(deleted)
    }
}

/// The first of the numbered names that is free.
fn free_name(folder: &Path, name: impl Fn(u32) -> String) -> PathBuf {
    let mut number = 0;
    loop {
        let path = folder.join(name(number));
        if number == u32::MAX || !append::is_taken(&path) {
            return path;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: Naming = Naming::Fixed("audit.log");
    const DATED: Naming = Naming::Dated { ending: "fql", header: b"head" };

    fn options(name: &str, max_log_size: u64) -> Options {
        let directory = std::env::temp_dir().join(format!("halcyon-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        Options { directory, max_log_size, ..Options::default() }
    }

    /// Proves that files are rolled by size, that the oldest are deleted, and that a restart begins a new dated file.
    #[test]
    fn files_are_rolled_and_deleted() {
        for (name, naming) in [("folder-fixed", FIXED), ("folder-dated", DATED)] {
            let options = options(name, 1600);
            let mut folder = Folder::open(&options, naming).unwrap();
            let mut rolled = 0;
            for _ in 0..60 {
                if folder.append(&[b'x'; 100]).unwrap().file.is_some() {
                    rolled += 1;
                    folder.delete_oldest().unwrap();
                }
            }
            assert_eq!(rolled, 59);
            let kept = rolled_files(&options.directory, naming).unwrap();
            let bytes: u64 = kept.iter().map(|found| found.length).sum();
            assert!((1200..=1800).contains(&bytes), "{bytes}");
            let before = append::files(&options.directory).unwrap().len();
            drop(folder);
            let _again = Folder::open(&options, naming).unwrap();
            let after = append::files(&options.directory).unwrap().len();
            assert_eq!(after - before, usize::from(naming == DATED));
            std::fs::remove_dir_all(&options.directory).unwrap();
        }
    }

    /// Proves the names of cycles, and that files of others are not taken for rolled ones.
    #[test]
    fn names_have_the_time_of_their_cycle() {
        let hour = 1_777_896_000 / 3_600;
        assert_eq!(stamp(RollCycle::Hourly, hour), "20260504-12");
        assert_eq!(stamp(RollCycle::Minutely, hour * 60 + 7), "20260504-1207");
        assert_eq!(stamp(RollCycle::Daily, hour / 24), "20260504");
        assert!(FIXED.is_rolled("audit.log.20260504-12.0") && !FIXED.is_rolled("audit.log"));
        assert!(DATED.is_rolled("20260504-12.0.fql") && !DATED.is_rolled("x.txt"));
    }
}
