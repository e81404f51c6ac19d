//! A program that runs beside this one, and with which it exchanges messages: its length and its bytes, through pipes.
//!
//! It has none of this program's environment, ends with it, and is killed when it is dropped. Calls block: they belong on threads for
//! computations.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::time::{Duration, Instant};

/// The largest answer that is taken.
const LONGEST_ANSWER: usize = 256 << 20;

#[derive(Debug)]
pub struct Child {
    process: process::Child,
}

fn command(program: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().current_dir("/");
    // SAFETY: `end_with_parent` is one system call: async-signal-safe, and touches no memory of the parent's.
    unsafe { command.pre_exec(end_with_parent) };
    command
}

/// Has this process killed when the thread that started it ends.
pub fn end_with_parent() -> io::Result<()> {
    // SAFETY: it takes two numbers.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The first program of the name: below the folder that an environment variable names, as `JAVA_HOME` does, then in PATH.
pub fn find_program(home: &str, name: &str) -> Option<PathBuf> {
    let own = std::env::var_os(home).map(|home| PathBuf::from(home).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = own.into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// A folder for files of this process, which only its user sees. Those of processes that are gone are removed.
pub fn private_folder(name: &str) -> io::Result<PathBuf> {
    let all = std::env::temp_dir();
    let begin = format!("{name}-");
    for entry in fs::read_dir(&all)?.flatten() {
        let file = entry.file_name();
        let pid = file.to_str().and_then(|file| file.strip_prefix(&begin)?.parse::<u32>().ok());
        let is_used = |pid| pid != process::id() && Path::new(&format!("/proc/{pid}")).exists();
        if pid.is_some_and(|pid| !is_used(pid)) {
            // It may be another user's.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let folder = all.join(format!("{begin}{}", process::id()));
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

/// Writes a file of [`private_folder`], and the folders that it is in.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

/// Runs a program to its end; what it said if it failed.
pub fn run(program: &Path, arguments: &[String]) -> io::Result<Result<(), String>> {
    let output = command(program, arguments).stdin(Stdio::null()).output()?;
    let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok(if output.status.success() { Ok(()) } else { Err(said()) })
}

impl Child {
    pub fn start(program: &Path, arguments: &[String]) -> io::Result<Child> {
        let mut command = command(program, arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(Child { process: command.spawn()? })
    }

    pub fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let pipe = self.process.stdin.as_mut().ok_or(ErrorKind::BrokenPipe)?;
        let length = u32::try_from(message.len()).map_err(|_| ErrorKind::InvalidInput)?;
        pipe.write_all(&length.to_be_bytes())?;
        pipe.write_all(message)?;
        pipe.flush()
    }

    /// The next message; `TimedOut` if it has not arrived in time.
    pub fn receive(&mut self, limit: Duration) -> io::Result<Vec<u8>> {
        let until = Instant::now() + limit;
        let mut length = [0; 4];
        self.fill(&mut length, until)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > LONGEST_ANSWER {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut message = vec![0; length];
        self.fill(&mut message, until)?;
        Ok(message)
    }

    fn fill(&mut self, mut rest: &mut [u8], until: Instant) -> io::Result<()> {
        let pipe = self.process.stdout.as_mut().ok_or(ErrorKind::BrokenPipe)?;
        while !rest.is_empty() {
            let left = until.saturating_duration_since(Instant::now()).as_millis();
            let mut of = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: `of` is one valid pollfd for the duration of the call.
            let ready = unsafe { libc::poll(&mut of, 1, i32::try_from(left).unwrap_or(i32::MAX)) };
            match ready {
                0 => return Err(ErrorKind::TimedOut.into()),
                1.. => {}
                _ => match io::Error::last_os_error() {
                    error if error.kind() == ErrorKind::Interrupted => continue,
                    error => return Err(error),
                },
            }
            match pipe.read(rest)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => rest = rest.get_mut(read..).unwrap_or_default(),
            }
        }
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that messages come back, that a silent program is not waited for, and that one that ends is an error.
    #[test]
    fn messages_are_exchanged() {
        let later = Duration::from_secs(60);
        let mut child = Child::start(Path::new("/bin/cat"), &[]).unwrap();
        for message in [&b"abc"[..], b"", &[7; 10_000]] {
            child.send(message).unwrap();
            assert_eq!(child.receive(later).unwrap(), message);
        }
        let silent = child.receive(Duration::from_millis(1)).unwrap_err();
        assert_eq!(silent.kind(), ErrorKind::TimedOut);
        let mut ended = Child::start(Path::new("/bin/true"), &[]).unwrap();
        assert_eq!(ended.receive(later).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        let failed =
            run(Path::new("/bin/sh"), &["-c".to_owned(), "echo no >&2; exit 1".to_owned()]);
        assert_eq!(failed.unwrap(), Err("no".to_owned()));
        assert!(find_program("NO_SUCH_HOME", "cat").is_some());
    }
}
