//! Other processes of this machine, as `/proc` shows them: who holds the lock of a directory, and who has files open.
//!
//! Not seen: processes of other machines, of containers that this one's `/proc` does not have, and, unless this process is root, the
//! open files of other users' processes. An open file is compared by device and inode: it may have another path, in another container.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// A process. Of its command line only names are kept: arguments may be secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// The program, and of one of Cassandra's the class, `java CassandraDaemon`.
    pub name: String,
    /// A program of Cassandra's: the server or a tool.
    pub is_cassandra: bool,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.name)
    }
}

/// What was found about who has files open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenElsewhere {
    /// Each with one of the files.
    pub users: Vec<(Process, PathBuf)>,
    /// Programs of Cassandra's whose open files this user cannot see.
    pub unseen: Vec<Process>,
}

impl Process {
    fn of(pid: u32) -> Process {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut arguments = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let program = arguments.next().unwrap_or_default();
        let mut program = program.rsplit('/').next().unwrap_or_default().to_owned();
        if program.is_empty() {
            // A thread of the kernel, or a process between `fork` and the end of `exec`, has a name but no command line.
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim_end().clone_into(&mut program);
        }
        let class = arguments.find_map(|a| a.strip_prefix("org.apache.cassandra.").map(last_part));
        let is_cassandra = class.is_some();
        let name = match class {
            Some(class) => format!("{program} {class}"),
            None if program.is_empty() => "unknown".to_owned(),
            None => program,
        };
        Process { pid, name, is_cassandra }
    }
}

fn last_part(class: &str) -> String {
    class.rsplit('.').next().unwrap_or_default().to_owned()
}

/// How often the list of locks is read.
const LOOKS: u32 = 8;

/// The process that holds the lock of a directory, where the kernel says it.
pub(crate) fn lock_holder(directory: &Path) -> Option<Process> {
    let metadata = fs::metadata(directory).ok()?;
    // While locks come and go the kernel's list may pass one over.
    let pid = (0..LOOKS).find_map(|_| {
        let locks = fs::read_to_string("/proc/locks").ok()?;
        locks.lines().find_map(|line| lock_of(line, metadata.dev(), metadata.ino()))
    })?;
    Some(Process::of(pid))
}

/// `1: FLOCK  ADVISORY  WRITE 5210 08:01:131090 0 EOF`; one who waits has `->` behind the number.
fn lock_of(line: &str, device: u64, inode: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    if words.next()? != "FLOCK" {
        return None;
    }
    let pid = words.nth(2)?;
    let mut file = words.next()?.split(':');
    let part = |text: Option<&str>| u32::from_str_radix(text?, 16).ok();
    let (major, minor) = (part(file.next())?, part(file.next())?);
    let matches = libc::makedev(major, minor) == device && file.next()?.parse() == Ok(inode);
    pid.parse().ok().filter(|_| matches)
}

/// Who else has one of the files open.
pub(crate) fn users_of(files: &[PathBuf]) -> io::Result<OpenElsewhere> {
    let mut wanted = BTreeMap::new();
    for path in files {
        match fs::metadata(path) {
            Ok(metadata) => drop(wanted.insert((metadata.dev(), metadata.ino()), path)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    let names: BTreeSet<_> = files.iter().filter_map(|path| path.file_name()).collect();
    let mut found = OpenElsewhere::default();
    for entry in fs::read_dir("/proc")?.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.filter(|pid| *pid != std::process::id()) else { continue };
        let Ok(open) = fs::read_dir(entry.path().join("fd")) else {
            let process = Process::of(pid);
            if process.is_cassandra {
                found.unseen.push(process);
            }
            continue;
        };
        let file = open.flatten().find_map(|descriptor| {
            let path = descriptor.path();
            // Only files that can be one of these are asked for: of a dead mount, the answer may never come.
            let link = fs::read_link(&path).ok()?;
            let metadata =
                names.contains(link.file_name()?).then(|| fs::metadata(&path).ok())??;
            wanted.get(&(metadata.dev(), metadata.ino())).copied()
        });
        found.users.extend(file.map(|file| (Process::of(pid), file.clone())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Proves that a lock is known by kind, device and inode, and that one who waits for it does not hold it.
    #[test]
    fn lines_of_locks() {
        let device = libc::makedev(8, 0x1f);
        let held = "1: FLOCK  ADVISORY  WRITE 5210 08:1f:131090 0 EOF";
        assert_eq!(lock_of(held, device, 131_090), Some(5210));
        assert_eq!(lock_of(held, device, 131_091), None);
        assert_eq!(lock_of(held, libc::makedev(8, 0x20), 131_090), None);
        let waits = "1: -> FLOCK  ADVISORY  WRITE 77 08:1f:131090 0 EOF";
        assert_eq!(lock_of(waits, device, 131_090), None);
        assert_eq!(lock_of(&held.replace("FLOCK", "POSIX"), device, 131_090), None);
    }

    /// Proves that a process is found by a file that it has open under another name, and without its arguments.
    #[test]
    fn a_user_is_found() {
        let folder = std::env::temp_dir().join(format!("halcyon-users-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, link) = (folder.join("nb-1-big-Data.db"), folder.join("other"));
        fs::write(&file, b"x").unwrap();
        fs::create_dir_all(&link).unwrap();
        fs::hard_link(&file, link.join("nb-1-big-Data.db")).unwrap();
        let input = fs::File::open(link.join("nb-1-big-Data.db")).unwrap();
        let mut child =
            std::process::Command::new("sleep").args(["600"]).stdin(input).spawn().unwrap();
        // A program that was just started has no command line for a moment.
        let begun = Instant::now();
        while Process::of(child.id()).name != "sleep" && begun.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        let absent = folder.join("nb-2-big-Data.db");
        let found = users_of(&[absent.clone(), file.clone()]).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let sleep = Process { pid: child.id(), name: "sleep".to_owned(), is_cassandra: false };
        assert_eq!(found.users, [(sleep, file.clone())]);
        assert!(users_of(&[absent, file]).unwrap().users.is_empty());
        fs::remove_dir_all(folder).unwrap();
    }
}
