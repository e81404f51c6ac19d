//! Gives rolled files to the operator's command (`ExternalArchiver`), on a thread of its own: a command that hangs holds nothing else up.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use halcyon_io::append;
use halcyon_io::clock::{Instant, now};
use halcyon_io::{Condvar, Mutex, ThreadPriority, spawn_thread};

use crate::options::Options;
use crate::tell::{Severity, Tell};

/// Cassandra's pause before a failed file is tried again.
const RETRY: Duration = Duration::from_secs(5 * 60);
/// How often the thread looks whether one is due.
const PAUSE: Duration = Duration::from_secs(1);

struct Due {
    path: PathBuf,
    at: Instant,
    retries: u32,
}

#[derive(Default)]
struct Files {
    due: VecDeque<Due>,
    is_ending: bool,
}

/// The way to the thread.
pub(crate) struct Archive(Arc<Shared>);

struct Shared {
    files: Mutex<Files>,
    changed: Condvar,
}

impl Archive {
    /// `existing`: files of earlier runs, which were not archived.
    pub(crate) fn start(options: &Options, existing: Vec<PathBuf>, tell: Tell) -> Archive {
        let shared = Arc::new(Shared { files: Mutex::default(), changed: Condvar::new() });
        let archive = Archive(shared.clone());
        existing.into_iter().for_each(|path| archive.add(path));
        let options = options.clone();
        // The thread ends with the log; a command under way ends by itself.
        let body = move || shared.serve(&options, &tell);
        drop(spawn_thread("log-archive", ThreadPriority::Normal, body));
        archive
    }

    pub(crate) fn add(&self, path: PathBuf) {
        self.0.files.lock().due.push_back(Due { path, at: now(), retries: 0 });
        self.0.changed.notify_all();
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.0.files.lock().is_ending = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn next(&self) -> Option<Due> {
        let mut files = self.files.lock();
        loop {
            let at = now();
            if let Some(place) = files.due.iter().position(|due| due.at <= at) {
                return files.due.remove(place);
            }
            if files.is_ending {
                return None;
            }
            files = self.changed.wait_timeout(files, PAUSE).0;
        }
    }

    fn serve(&self, options: &Options, tell: &Tell) {
        while let Some(due) = self.next() {
            let Err(why) = archive(&options.archive_command, &due.path) else { continue };
            let Due { path, retries, .. } = due;
            let shown = path.display();
            if retries < options.max_archive_retries {
                let minutes = RETRY.as_secs() / 60;
                tell(
                    Severity::Error,
                    format!("Got error archiving {shown}, retrying in {minutes} minutes: {why}"),
                );
                let due = Due { path, at: now() + RETRY, retries: retries + 1 };
                self.files.lock().due.push_back(due);
            } else {
                tell(
                    Severity::Error,
                    format!("Max retries {retries} reached for {shown}, leaving on disk: {why}"),
                );
            }
        }
    }
}

fn archive(command: &str, path: &Path) -> Result<(), String> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    append::run(&words(command, &path.to_string_lossy())).map_err(|e| e.to_string()).flatten()
}

/// The words of a command. Cassandra puts the path in first and cuts at blanks then: here a path with blanks stays one word.
fn words(command: &str, path: &str) -> Vec<String> {
    command.split_whitespace().map(|word| word.replace("%path", path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a path stays one word, whatever is in it, and stands wherever `%path` does.
    #[test]
    fn a_path_is_one_word() {
        let expected = ["/bin/x", "-f", "a=/a b;$(c)", "/a b;$(c)"].map(str::to_owned);
        assert_eq!(words("/bin/x  -f a=%path %path", "/a b;$(c)"), expected);
    }
}
