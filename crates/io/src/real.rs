//! The system calls of the real disk, each blocking; they run on the pool of threads.

use std::{
    ffi::CString,
    fs, io,
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{
            ffi::OsStrExt,
            fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
        },
    },
    path::Path,
};

use crate::background::OPERATION;
use crate::disk::entry::{DirEntry, FileStat};

fn check(code: libc::c_int) -> io::Result<libc::c_int> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) }
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the path contains a zero byte"))
}

pub(crate) fn open_read(path: &Path, direct: bool) -> io::Result<(OwnedFd, u64)> {
    let flags = if direct { libc::O_DIRECT } else { 0 };
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    Ok((file.into(), metadata.len()))
}

pub(crate) fn create(path: &Path, direct: bool, like: Option<Ownership>) -> io::Result<OwnedFd> {
    let flags = if direct { libc::O_DIRECT } else { 0 };
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .custom_flags(flags)
        .open(path)?;
    give(&file, path, like)?;
    Ok(file.into())
}

/// Whose a file is, and who may do what with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ownership {
    user: u32,
    group: u32,
    mode: u32,
}

pub(crate) fn ownership(path: &Path) -> io::Result<Ownership> {
    let file = fs::metadata(path)?;
    Ok(Ownership { user: file.uid(), group: file.gid(), mode: file.mode() & 0o777 })
}

/// Gives a file that was just created to another user; if that fails, it is removed.
fn give(file: &fs::File, path: &Path, to: Option<Ownership>) -> io::Result<()> {
    let Some(Ownership { user, group, mode }) = to else { return Ok(()) };
    let own = file.metadata()?;
    let owned = match (own.uid(), own.gid()) == (user, group) {
        true => Ok(()),
        false => fchown(file, Some(user), Some(group)),
    };
    let given = owned.and_then(|()| file.set_permissions(fs::Permissions::from_mode(mode)));
    given.map_err(|e| {
        let _ = fs::remove_file(path);
        let what = format!(
            "{e}: it has to belong to user {user} and group {group}, as the files beside it do; run this as that user, or as root"
        );
        io::Error::new(e.kind(), what)
    })
}

pub(crate) fn open_write(path: &Path, direct: bool) -> io::Result<OwnedFd> {
    let flags = if direct { libc::O_DIRECT } else { 0 };
    let file = fs::OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    Ok(file.into())
}

/// Preallocates `len` bytes, which read as zeros. A file system without preallocation is ignored.
///
/// The length is set too because ext4 gives a write beyond it to a worker thread and makes it wait
/// for all others; one inside it goes to the device from the ring, beside them.
pub(crate) fn preallocate(file: &OwnedFd, len: u64) -> io::Result<()> {
    let len = libc::off_t::try_from(len).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    // SAFETY: the descriptor is open.
    let code = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len) };
    match check(code) {
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Sets the length and gives back the blocks beyond it.
pub(crate) fn truncate(file: &OwnedFd, len: u64) -> io::Result<()> {
    let len = libc::off_t::try_from(len).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    // SAFETY: the descriptor is open.
    check(unsafe { libc::ftruncate(file.as_raw_fd(), len) }).map(|_| ())
}

pub(crate) fn sync_data(file: &OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    check(unsafe { libc::fdatasync(file.as_raw_fd()) }).map(|_| ())
}

/// Writes a range back to the device, waits for it, and drops its pages.
pub(crate) fn write_back_and_drop(file: &impl AsRawFd, offset: u64, len: u64) -> io::Result<()> {
    let how = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the descriptor is open.
    check(unsafe { libc::sync_file_range(file.as_raw_fd(), offset as i64, len as i64, how) })?;
    drop_pages(file, offset, len);
    Ok(())
}

/// A length of 0 is the whole file. Small components are read and written whole, once: their pages would only push others
/// out of the cache. Advice only: a file system that ignores it causes no error.
pub(crate) fn drop_pages(file: &impl AsRawFd, offset: u64, len: u64) {
    let advice = libc::POSIX_FADV_DONTNEED;
    // SAFETY: the descriptor is open.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), offset as i64, len as i64, advice) };
}

/// In pieces: a system call that copies 12 MB, a large filter, keeps its core for 5 ms where the kernel is not preempted
/// (PREEMPT_NONE), from threads of any class. A pipe or a device is refused: reading it may never end.
pub(crate) fn read_bounded(path: &Path, max_len: u64) -> io::Result<Result<Vec<u8>, u64>> {
    use std::io::Read;
    // The open of a pipe waits for one that writes to it.
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let len = metadata.len();
    if len > max_len {
        return Ok(Err(len));
    }
    // One byte more than allowed, so that a file that grows meanwhile is noticed.
    let most = max_len.saturating_add(1);
    let mut bytes = Vec::with_capacity(len as usize);
    loop {
        let piece = (most - bytes.len() as u64).min(OPERATION as u64);
        if (&file).take(piece).read_to_end(&mut bytes)? == 0 {
            break;
        }
    }
    drop_pages(&file, 0, 0);
    Ok(if bytes.len() as u64 > max_len { Err(bytes.len() as u64) } else { Ok(bytes) })
}

/// In pieces, as it is read, each of which the device gets before the next: all at once would be a burst.
pub(crate) fn write_new(path: &Path, bytes: &[u8], like: Option<Ownership>) -> io::Result<()> {
    use std::io::Write;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    give(&file, path, like)?;
    let mut written = 0;
    for piece in bytes.chunks(OPERATION) {
        file.write_all(piece)?;
        if bytes.len() > OPERATION {
            write_back_and_drop(&file, written, piece.len() as u64)?;
        }
        written += piece.len() as u64;
    }
    file.sync_all()?;
    drop_pages(&file, 0, 0);
    Ok(())
}

pub(crate) fn append_sync(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    let mut file = fs::OpenOptions::new().append(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_data()
}

pub(crate) fn truncate_sync(path: &Path, len: u64) -> io::Result<()> {
    let file = fs::OpenOptions::new().write(true).open(path)?;
    file.set_len(len)?;
    file.sync_all()
}

pub(crate) fn list(dir: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let is_dir = match entry.file_type()? {
            kind if kind.is_symlink() => fs::metadata(entry.path()).is_ok_and(|m| m.is_dir()),
            kind => kind.is_dir(),
        };
        // A name that is not UTF-8 cannot be one of ours or Cassandra's.
        if let Ok(name) = entry.file_name().into_string() {
            entries.push(DirEntry { name, is_dir });
        }
    }
    entries.sort();
    Ok(entries)
}

pub(crate) fn stat(path: &Path) -> io::Result<FileStat> {
    let metadata = fs::metadata(path)?;
    let modified_ms = metadata.mtime() * 1000 + metadata.mtime_nsec() / 1_000_000;
    Ok(FileStat { len: metadata.len(), modified_ms, is_dir: metadata.is_dir() })
}

pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

pub(crate) fn hard_link(original: &Path, link: &Path) -> io::Result<()> {
    fs::hard_link(original, link)
}

pub(crate) fn create_dir_all(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    fs::File::open(dir)?.sync_all()
}

/// Takes a directory for this process, alone or with others that share it, until what is returned is dropped.
pub(crate) fn lock_dir(dir: &Path, shared: bool) -> io::Result<fs::File> {
    let file = fs::File::open(dir)?;
    if shared {
        file.try_lock_shared()?
    } else {
        file.try_lock()?
    }
    Ok(file)
}

/// A write lease, for as long as the file is open; the kernel refuses it with `EAGAIN` while anybody else has the file open.
pub(crate) fn lease(file: &fs::File) -> io::Result<()> {
    // SAFETY: no memory is passed, and the descriptor is the file's.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) }).map(|_| ())
}

/// Bytes of a file system.
pub(crate) struct Space {
    /// What an unprivileged process may still write.
    pub(crate) free: u64,
    pub(crate) total: u64,
}

pub(crate) fn free_space(dir: &Path) -> io::Result<u64> {
    let path = c_path(dir)?;
    // SAFETY: the path is zero-terminated, and `stat` is a writable statvfs.
    Ok(space(|stat| unsafe { libc::statvfs(path.as_ptr(), stat) })?.free)
}

pub(crate) fn space_around(file: &fs::File) -> io::Result<Space> {
    // SAFETY: the descriptor is the file's, and `stat` is a writable statvfs.
    space(|stat| unsafe { libc::fstatvfs(file.as_raw_fd(), stat) })
}

fn space(ask: impl FnOnce(*mut libc::statvfs) -> libc::c_int) -> io::Result<Space> {
    let mut stat = MaybeUninit::<libc::statvfs>::zeroed();
    check(ask(stat.as_mut_ptr()))?;
    // SAFETY: zeroes are valid, and so is what the kernel has written.
    let stat = unsafe { stat.assume_init() };
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Ok(Space { free: bytes(stat.f_bavail), total: bytes(stat.f_blocks) })
}

/// The magic number of the file system that holds the path.
pub(crate) fn file_system(path: &Path) -> io::Result<i64> {
    let path = c_path(path)?;
    let mut stat = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the path is zero-terminated, and `stat` is a writable statfs; zeroes are valid.
    let stat = unsafe {
        check(libc::statfs(path.as_ptr(), stat.as_mut_ptr()))?;
        stat.assume_init()
    };
    Ok(stat.f_type)
}

pub(crate) fn device_of(path: &Path) -> io::Result<u64> {
    Ok(fs::metadata(path)?.dev())
}
