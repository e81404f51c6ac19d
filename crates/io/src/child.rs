//! A program that runs beside this one, and with which it exchanges messages: its length and its bytes, through pipes.
//!
//! It has none of this program's environment, may do little if its code is others' (`confine.rs`), and is killed when it is dropped.
//! Calls block until their deadline at most: they belong on threads that may wait.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::time::{Duration, Instant};

use crate::confine::Confinement;
pub use crate::confine::{Allowed, end_with_parent, lacking};

/// The largest answer that is taken.
const LONGEST_ANSWER: usize = 256 << 20;

#[derive(Debug)]
pub struct Child {
    process: process::Child,
}

/// A program, and what it needs.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    pub path: &'a Path,
    pub arguments: &'a [String],
    /// `None` for code of ours: it may do what this process may.
    pub confined: Option<Allowed<'a>>,
}

impl Program<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new(self.path);
        command.args(self.arguments).env_clear().current_dir("/");
        // What glibc reserves for each thread counts as data.
        command.env("MALLOC_ARENA_MAX", "1");
        let mut confinement = self.confined.as_ref().map(Confinement::of);
        let enter = move || confinement.as_mut().map_or_else(end_with_parent, Confinement::enter);
        // SAFETY: it makes system calls only, and touches no memory but its own.
        unsafe { command.pre_exec(enter) };
        command
    }

    /// Runs it to its end; what it said if it failed.
    pub fn run(&self) -> io::Result<Result<(), String>> {
        let output = self.command().stdin(Stdio::null()).output()?;
        let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Ok(if output.status.success() { Ok(()) } else { Err(said()) })
    }

    /// Starts it, to exchange messages with it.
    pub fn start(&self) -> io::Result<Child> {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = Child { process: command.spawn()? };
        if let Some(pipe) = &child.process.stdin {
            // SAFETY: the descriptor is open; only this process has this end of the pipe.
            let outcome = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
            if outcome != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(child)
    }
}

/// The first program of the name: below the folder that an environment variable names, as `JAVA_HOME` does, then in PATH.
pub fn find_program(home: &str, name: &str) -> Option<PathBuf> {
    let own = std::env::var_os(home).map(|home| PathBuf::from(home).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = own.into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// When a call of [`Child`] that may take so long must be done: real time, also where the runtime is simulated.
pub fn deadline(limit: Duration) -> Instant {
    Instant::now() + limit
}

/// What a JVM reads: where it is installed, and its settings, which packages put below /etc.
pub fn java_files(java: &Path) -> Vec<PathBuf> {
    let real = java.canonicalize().unwrap_or_else(|_| java.to_owned());
    let home = real.parent().and_then(Path::parent).map(Path::to_owned);
    let Some(home) = home else { return Vec::new() };
    let settings = ["conf", "conf/security", "lib/security", "lib/security/cacerts"];
    let settings = settings.iter().filter_map(|name| home.join(name).canonicalize().ok());
    let mut needed: Vec<PathBuf> = settings.collect();
    // The settings of a package are links, each of its own.
    let folders = needed.clone();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        needed.extend(files.filter_map(|file| file.path().canonicalize().ok()));
    }
    needed.push(home);
    needed
}

pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// A folder for files of a confined program, which only this process's user sees; what an earlier process left in it is removed.
pub fn private_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Writes a file of [`private_folder`], and the folders that it is in.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

impl Child {
    /// `TimedOut` if the program does not read the whole message in time.
    pub fn send(&mut self, message: &[u8], until: Instant) -> io::Result<()> {
        let length = u32::try_from(message.len()).map_err(|_| ErrorKind::InvalidInput)?;
        self.pour(&length.to_be_bytes(), until)?;
        self.pour(message, until)
    }

    fn pour(&mut self, mut rest: &[u8], until: Instant) -> io::Result<()> {
        let pipe = self.process.stdin.as_mut().ok_or(ErrorKind::BrokenPipe)?;
        while !rest.is_empty() {
            match pipe.write(rest) {
                Ok(0) => return Err(ErrorKind::BrokenPipe.into()),
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    wait(pipe.as_fd(), libc::POLLOUT, until)?;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// The next message; `TimedOut` if it has not arrived in time.
    pub fn receive(&mut self, until: Instant) -> io::Result<Vec<u8>> {
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
            wait(pipe.as_fd(), libc::POLLIN, until)?;
            match pipe.read(rest)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => rest = rest.get_mut(read..).unwrap_or_default(),
            }
        }
        Ok(())
    }
}

/// Waits until a pipe is ready, or broken.
fn wait(pipe: BorrowedFd<'_>, events: libc::c_short, until: Instant) -> io::Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // Rounded up, or the last millisecond would be spent asking.
        let left = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let mut of = libc::pollfd { fd: pipe.as_raw_fd(), events, revents: 0 };
        // SAFETY: `of` is one valid pollfd for the duration of the call.
        match unsafe { libc::poll(&mut of, 1, left) } {
            0 => return Err(ErrorKind::TimedOut.into()),
            1.. => return Ok(()),
            _ => match io::Error::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
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

    fn program<'a>(path: &'a str, arguments: &'a [String]) -> Program<'a> {
        let allowed = Allowed { reads: &[], writes: None, memory: 256 << 20 };
        Program { path: Path::new(path), arguments, confined: Some(allowed) }
    }

    fn script(text: &str) -> [String; 2] {
        ["-c".to_owned(), text.to_owned()]
    }

    /// Proves that messages come back, that neither a silent program nor one that does not read is waited for, and that one that ends is an
    /// error.
    #[test]
    fn messages_are_exchanged() {
        let later = deadline(Duration::from_secs(60));
        let soon = || deadline(Duration::from_millis(1));
        let mut child = program("/bin/cat", &[]).start().unwrap();
        for message in [&b"abc"[..], b"", &[7; 10_000]] {
            child.send(message, later).unwrap();
            assert_eq!(child.receive(later).unwrap(), message);
        }
        assert_eq!(child.receive(soon()).unwrap_err().kind(), ErrorKind::TimedOut);
        let mut ended = program("/bin/true", &[]).start().unwrap();
        assert_eq!(ended.receive(later).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        let sleeps = script("read x; read x");
        let mut deaf = program("/bin/sh", &sleeps).start().unwrap();
        // SAFETY: a signal to a process of ours.
        unsafe { libc::kill(deaf.process.id() as i32, libc::SIGSTOP) };
        assert_eq!(deaf.send(&[7; 1 << 20], soon()).unwrap_err().kind(), ErrorKind::TimedOut);
        let failing = script("echo no >&2; exit 1");
        assert_eq!(program("/bin/sh", &failing).run().unwrap(), Err("no".to_owned()));
        assert!(find_program("NO_SUCH_HOME", "cat").is_some());
    }

    /// Proves that the kernel refuses a child what it does not need, and kills it first.
    #[test]
    fn children_are_confined() {
        let said = |text: &str, writes: Option<&Path>| {
            let script = script(text);
            let confined = Some(Allowed { reads: &[], writes, memory: 256 << 20 });
            Program { confined, ..program("/bin/sh", &script) }.run().unwrap()
        };
        let status = "while read a b; do case $a in CapEff:|CapBnd:|NoNewPrivs:) echo $a $b >&2;; esac; done < /proc/self/status; \
                      read x < /proc/self/oom_score_adj; echo $x >&2; ulimit -c >&2; exit 1";
        let none = "0000000000000000";
        let expected = format!("CapEff: {none}\nCapBnd: {none}\nNoNewPrivs: 1\n1000\n0");
        assert_eq!(said(status, None), Err(expected));
        // A shell forks for it.
        assert!(said("(exit 0) && exit 0", None).is_err());
        let folder = std::env::temp_dir().join(format!("halcyon-confined-{}", process::id()));
        private_folder(&folder).unwrap();
        let writing = format!("echo x > {}/file", folder.display());
        assert!(said(&writing, None).is_err());
        assert_eq!(said(&writing, Some(&folder)), Ok(()));
        fs::remove_dir_all(&folder).unwrap();
        if !lacking().contains(&"Landlock") {
            assert!(said("read x < /etc/passwd", None).is_err());
            assert_eq!(said("read x < /proc/self/status", None), Ok(()));
        }
    }
}
