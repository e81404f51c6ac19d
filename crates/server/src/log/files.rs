//! A log in files: one that grows, and rolled ones.
//!
//! ```text
//! system.log                     grows
//! system.log.2026-11-29.0.gz     rolled: the day on which its period began, and a number
//! ```
//!
//! 1. A file is rolled when a line would exceed its size, and at the first line of a new period: it is renamed, and a new one is created.
//! 2. A thread of idle priority compresses rolled files, into a name that ends with `.tmp` until all of it is written, and deletes the
//!    oldest ones beyond the count or the total. Lines never wait for it.
//! 3. After a kill the next start compresses what is not, and deletes what ends with `.tmp`. A line is appended whole or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel, Ordering::Acquire};
use std::time::{Duration, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use halcyon_io::append::{self, AppendFile};
use halcyon_io::clock::unix_seconds;
use halcyon_io::{ThreadPriority, spawn_thread};
use halcyon_model::value::timestamp_iso_string;

/// How a log is kept in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileOptions {
    pub(crate) directory: PathBuf,
    /// Bytes of a file.
    pub(crate) size: u64,
    /// `None`: a file is rolled by size only.
    pub(crate) period: Option<Duration>,
    /// Rolled files that are kept.
    pub(crate) count: usize,
    /// Bytes of rolled files that are kept.
    pub(crate) total: u64,
    pub(crate) compresses: bool,
}

const COMPRESSED: &str = ".gz";
const PARTIAL: &str = ".tmp";

/// A log and its rolled files.
struct Folder {
    options: FileOptions,
    name: &'static str,
    /// Rolls since the thread last looked.
    due: AtomicUsize,
}

/// A rolled file, in the order in which files were rolled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rolled {
    day: String,
    number: u64,
    path: PathBuf,
    length: u64,
}

impl Rolled {
    fn is_compressed(&self) -> bool {
        self.path.to_string_lossy().ends_with(COMPRESSED)
    }
}

impl Folder {
    fn path(&self) -> PathBuf {
        self.options.directory.join(self.name)
    }

    /// The number of the period in which a time is.
    fn cycle(&self, seconds: i64) -> i64 {
        let period = self.options.period.map_or(0, |period| period.as_secs());
        i64::try_from(period).ok().filter(|period| *period > 0).map_or(0, |period| seconds / period)
    }

    /// Rolled files, the oldest first.
    fn rolled(&self) -> io::Result<Vec<Rolled>> {
        let mut rolled = Vec::new();
        for found in append::files(&self.options.directory)? {
            let name = found.path.file_name().map(|name| name.to_string_lossy().into_owned());
            let rest =
                name.as_deref().and_then(|name| name.strip_prefix(self.name)?.strip_prefix('.'));
            let Some(rest) = rest else { continue };
            let rest = rest.strip_suffix(COMPRESSED).unwrap_or(rest);
            let Some((day, number)) = rest.rsplit_once('.') else { continue };
            let is_day = day.len() == 10 && day.bytes().all(|b| b.is_ascii_digit() || b == b'-');
            if let (true, Ok(number)) = (is_day, number.parse()) {
                let (day, path, length) = (day.to_owned(), found.path, found.length);
                rolled.push(Rolled { day, number, path, length });
            }
        }
        rolled.sort();
        Ok(rolled)
    }

    /// A name for the file that has grown since `began`.
    fn next_name(&self, began: i64) -> io::Result<PathBuf> {
        let time = timestamp_iso_string(began.saturating_mul(1000));
        let day = time.get(..10).unwrap_or_default();
        let numbers = self.rolled()?.into_iter().filter(|rolled| rolled.day == day);
        let number = numbers.map(|rolled| rolled.number + 1).max().unwrap_or(0);
        Ok(self.options.directory.join(format!("{}.{day}.{number}", self.name)))
    }

    /// Has rolled files compressed and the oldest deleted, on a thread of its own.
    fn tidy_aside(self: &Arc<Folder>) {
        if self.due.fetch_add(1, AcqRel) > 0 {
            return;
        }
        let folder = self.clone();
        let body = move || loop {
            let seen = folder.due.load(Acquire);
            // A device that is full now may not be at the next roll.
            let _ = folder.tidy();
            if folder.due.fetch_sub(seen, AcqRel) == seen {
                break;
            }
        };
        drop(spawn_thread("log-files", ThreadPriority::Idle, body));
    }

    fn tidy(&self) -> io::Result<()> {
        for found in append::files(&self.options.directory)? {
            let name = found.path.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_default();
            if name.starts_with(&format!("{}.", self.name)) && name.ends_with(PARTIAL) {
                append::remove(&found.path)?;
            }
        }
        if self.options.compresses {
            for rolled in self.rolled()?.iter().filter(|rolled| !rolled.is_compressed()) {
                compress(&rolled.path)?;
            }
        }
        let (mut count, mut total) = (0, 0_u64);
        for rolled in self.rolled()?.iter().rev() {
            count += 1;
            total = total.saturating_add(rolled.length);
            if count > self.options.count || total > self.options.total {
                append::remove(&rolled.path)?;
            }
        }
        Ok(())
    }
}

struct Appended(AppendFile);

impl Write for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn compress(path: &Path) -> io::Result<()> {
    let whole = with_ending(path, COMPRESSED);
    let partial = with_ending(&whole, PARTIAL);
    let to = Appended(AppendFile::create(&partial)?);
    let mut to = GzEncoder::new(to, Compression::fast());
    let copied = io::copy(&mut append::read(path)?, &mut to).and_then(|_| to.finish());
    if let Err(error) = copied {
        // It would fill a full device.
        let _ = append::remove(&partial);
        return Err(error);
    }
    append::rename(&partial, &whole)?;
    append::remove(path)
}

/// The file that grows. What is written at once stays in one file.
pub(crate) struct RotatedFile {
    folder: Arc<Folder>,
    /// `None`: it could not be created; the next line tries again.
    file: Option<AppendFile>,
    /// When the growing file began, in seconds since 1970.
    began: i64,
}

impl RotatedFile {
    pub(crate) fn open(options: FileOptions, name: &'static str) -> io::Result<RotatedFile> {
        append::make_folder(&options.directory)?;
        let folder = Arc::new(Folder { options, name, due: 0.into() });
        let path = folder.path();
        let before = append::files(&folder.options.directory)?;
        let before = before.into_iter().find(|found| found.path == path && found.length > 0);
        let began = before.and_then(|found| {
            let since = found.changed.duration_since(UNIX_EPOCH).ok()?;
            i64::try_from(since.as_secs()).ok()
        });
        let file = Some(AppendFile::open(&path)?);
        folder.tidy_aside();
        Ok(RotatedFile { folder, file, began: began.unwrap_or_else(unix_seconds) })
    }

    fn append(&mut self, bytes: &[u8], now: i64) -> io::Result<()> {
        let length = self.file.as_ref().map_or(0, AppendFile::length);
        let is_full = length.saturating_add(bytes.len() as u64) > self.folder.options.size;
        let is_past = self.folder.cycle(self.began) != self.folder.cycle(now);
        if length > 0 && (is_full || is_past) {
            append::rename(&self.folder.path(), &self.folder.next_name(self.began)?)?;
            self.file = None;
            self.folder.tidy_aside();
        }
        if length == 0 || self.file.is_none() {
            self.began = now;
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(AppendFile::open(&self.folder.path())?),
        };
        file.append(bytes)
    }
}

impl Write for RotatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes, unix_seconds()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;

    use super::*;

    const DAY: i64 = 86_400;
    /// 2026-05-04
    const MAY: i64 = 1_777_896_000;

    fn options(name: &str) -> FileOptions {
        let directory = std::env::temp_dir().join(format!("halcyon-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        let period = Some(Duration::from_secs(DAY as u64));
        FileOptions { directory, size: 100, period, count: 9, total: 1 << 20, compresses: false }
    }

    /// The thread beside it has ended.
    fn settled(file: &RotatedFile) {
        for _ in 0..10_000 {
            if file.folder.due.load(Acquire) == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("rolled files are not tidied");
    }

    fn names(options: &FileOptions) -> Vec<String> {
        let found = fs::read_dir(&options.directory).unwrap();
        let mut names: Vec<_> =
            found.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Proves that files are rolled by size and by day, that no line is split, and that the oldest beyond the count are deleted.
    #[test]
    fn files_are_rolled_by_size_time_and_count() {
        let options = FileOptions { count: 3, ..options("log-rolled") };
        let mut file = RotatedFile::open(options.clone(), "system.log").unwrap();
        fs::write(options.directory.join("system.log.notes"), "an operator's").unwrap();
        for line in 0..10 {
            file.append(format!("{line:039}\n").as_bytes(), MAY).unwrap();
            settled(&file);
        }
        file.append(b"the next day\n", MAY + DAY).unwrap();
        settled(&file);
        let expected = [
            "system.log",
            "system.log.2026-05-04.2",
            "system.log.2026-05-04.3",
            "system.log.2026-05-04.4",
            "system.log.notes",
        ];
        assert_eq!(names(&options), expected);
        let rolled = fs::read_to_string(options.directory.join(expected[3])).unwrap();
        assert_eq!(rolled, format!("{:039}\n{:039}\n", 8, 9));
        assert_eq!(
            fs::read_to_string(options.directory.join(expected[0])).unwrap(),
            "the next day\n"
        );
        fs::remove_dir_all(&options.directory).unwrap();
    }

    /// Proves that after a kill within a compression the next start compresses the whole file, and keeps to the total.
    #[test]
    fn a_start_completes_what_a_kill_has_left() {
        let options = FileOptions { compresses: true, total: 400, ..options("log-killed") };
        fs::create_dir_all(&options.directory).unwrap();
        let path = |name: &str| options.directory.join(name);
        fs::write(path("system.log"), "still grows\n").unwrap();
        fs::write(path("system.log.2026-05-03.1"), "rolled\n").unwrap();
        fs::write(path("system.log.2026-05-03.1.gz.tmp"), "half").unwrap();
        fs::write(path("system.log.2026-05-02.0.gz"), [0; 390]).unwrap();
        fs::write(path("debug.log.2026-05-02.0"), "another log's").unwrap();
        let mut file = RotatedFile::open(options.clone(), "system.log").unwrap();
        settled(&file);
        let expected = ["debug.log.2026-05-02.0", "system.log", "system.log.2026-05-03.1.gz"];
        assert_eq!(names(&options), expected);
        let mut text = String::new();
        let packed = fs::File::open(path("system.log.2026-05-03.1.gz")).unwrap();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
        assert_eq!(text, "rolled\n");
        let now = file.began;
        file.append(b"more\n", now).unwrap();
        assert_eq!(fs::read_to_string(path("system.log")).unwrap(), "still grows\nmore\n");
        fs::remove_dir_all(&options.directory).unwrap();
    }

    /// Proves that a line that cannot be written is an error, and that the file grows again afterwards.
    #[test]
    fn a_lost_folder_is_an_error() {
        let options = options("log-lost");
        let mut file = RotatedFile::open(options.clone(), "system.log").unwrap();
        file.append(&[b'a'; 90], MAY).unwrap();
        settled(&file);
        fs::remove_dir_all(&options.directory).unwrap();
        assert!(file.append(&[b'b'; 90], MAY).is_err());
        fs::create_dir_all(&options.directory).unwrap();
        fs::write(options.directory.join("system.log"), "").unwrap();
        file.append(&[b'c'; 90], MAY).unwrap();
        assert_eq!(fs::read(options.directory.join("system.log")).unwrap(), [b'c'; 90]);
        settled(&file);
        fs::remove_dir_all(&options.directory).unwrap();
    }
}
