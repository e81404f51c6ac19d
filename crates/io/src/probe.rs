//! What a directory can do: direct I/O with which alignment, uncached I/O, or neither.
//!
//! 1. An unnamed temporary file is opened in the directory with `O_DIRECT`; where the file system
//!    knows no unnamed files, a named one that is removed at once; in a read-only directory, the
//!    first regular file that is there.
//! 2. `statx(STATX_DIOALIGN)` says the alignment (Linux 6.1). An older kernel does not answer; then
//!    one aligned block is written or read to see.
//! 3. `RWF_DONTCACHE` is tried on the same file, without `O_DIRECT`.
//!
//! Memory file systems are never direct: their "device" is the page cache. Answers are kept per
//! device for the life of the process.

use std::{
    fs, io,
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
};

use crate::{
    buffer::BUFFER_ALIGNMENT,
    error::{Error, Operation, Result},
    kernel::KernelVersion,
    mode::{AccessMode, Alignment, ModeChoice},
    real,
};

/// What was found, each refusal in words.
#[derive(Debug, Clone)]
pub(crate) struct Abilities {
    pub(crate) direct: Result<(Alignment, String), String>,
    pub(crate) uncached: Result<String, String>,
    /// Why direct writes are refused although reads are fine.
    pub(crate) direct_writes_refused: Option<String>,
}

pub(crate) const EXT4: i64 = 0xef53;
const TMPFS: i64 = 0x0102_1994;
const RAMFS: i64 = 0x8584_58f6;

pub(crate) fn probe(dir: &Path) -> io::Result<Abilities> {
    let magic = real::file_system(dir)?;
    let kernel = KernelVersion::running();
    let direct_writes_refused =
        if magic == EXT4 { kernel.ext4_direct_write_corruption() } else { None };
    let direct = if matches!(magic, TMPFS | RAMFS) {
        Err("the directory is in a memory file system".to_owned())
    } else {
        probe_direct(dir)
    };
    Ok(Abilities { direct, uncached: probe_uncached(dir), direct_writes_refused })
}

fn probe_direct(dir: &Path) -> Result<(Alignment, String), String> {
    let (file, writable) = probe_file(dir, libc::O_DIRECT)
        .map_err(|e| format!("opening a file in it with O_DIRECT failed: {e}"))?;
    match dio_align(&file) {
        Some(Alignment { offset: 0, .. }) => {
            Err("statx says that its file system has no direct I/O".to_owned())
        }
        Some(found) if found.memory as usize > BUFFER_ALIGNMENT => Err(format!(
            "direct I/O there needs memory aligned to {} bytes, more than {BUFFER_ALIGNMENT}",
            found.memory
        )),
        Some(found) => {
            let why = format!(
                "statx reports direct I/O, aligned to {} bytes in memory and {} in the file",
                found.memory, found.offset
            );
            Ok((found, why))
        }
        None => try_block(&file, writable, 0)
            .map(|()| {
                let block = BUFFER_ALIGNMENT as u32;
                let found = Alignment { memory: block, offset: block };
                (found, format!("a direct {block}-byte block went through (this kernel's statx does not say)"))
            })
            .map_err(|e| format!("a direct {BUFFER_ALIGNMENT}-byte block failed: {e}")),
    }
}

fn probe_uncached(dir: &Path) -> Result<String, String> {
    let (file, writable) =
        probe_file(dir, 0).map_err(|e| format!("opening a file in it failed: {e}"))?;
    try_block(&file, writable, libc::RWF_DONTCACHE)
        .map(|()| "RWF_DONTCACHE was accepted".to_owned())
        .map_err(|e| {
            format!(
                "RWF_DONTCACHE was refused ({e}): it needs Linux 6.14 and a file system that has it"
            )
        })
}

/// A file to try things on, and whether it may be written.
fn probe_file(dir: &Path, flags: i32) -> io::Result<(OwnedFd, bool)> {
    let mut writable = fs::OpenOptions::new();
    writable.read(true).write(true);
    if let Ok(file) = writable.clone().custom_flags(libc::O_TMPFILE | flags).open(dir) {
        return Ok((file.into(), true));
    }
    let name = dir.join(format!(".halcyon-probe-{}-{flags}", std::process::id()));
    match writable.create_new(true).custom_flags(flags).open(&name) {
        Ok(file) => {
            fs::remove_file(&name)?;
            Ok((file.into(), true))
        }
        Err(refused) => {
            // Some file systems create the name and then refuse O_DIRECT.
            let _ = fs::remove_file(&name);
            let present = fs::read_dir(dir)?
                .filter_map(|entry| entry.ok())
                .find(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
            let Some(present) = present else { return Err(refused) };
            let file =
                fs::OpenOptions::new().read(true).custom_flags(flags).open(present.path())?;
            Ok((file.into(), false))
        }
    }
}

#[repr(align(4096))]
struct Block([u8; BUFFER_ALIGNMENT]);

fn try_block(file: &OwnedFd, write: bool, flags: i32) -> io::Result<()> {
    let mut block = Block([0; BUFFER_ALIGNMENT]);
    let vector = libc::iovec { iov_base: block.0.as_mut_ptr().cast(), iov_len: block.0.len() };
    // SAFETY: the vector names a live local array; the descriptor is open.
    let done = unsafe {
        if write {
            libc::pwritev2(file.as_raw_fd(), &vector, 1, 0, flags)
        } else {
            libc::preadv2(file.as_raw_fd(), &vector, 1, 0, flags)
        }
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What statx says about direct I/O; `None` if this kernel does not answer.
pub(crate) fn dio_align(file: &impl AsRawFd) -> Option<Alignment> {
    let mut found = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: an empty path with AT_EMPTY_PATH means the descriptor itself, which is open; `found`
    // is a writable statx, for which zeroes are valid.
    let found = unsafe {
        let code = libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            found.as_mut_ptr(),
        );
        if code < 0 {
            return None;
        }
        found.assume_init()
    };
    (found.stx_mask & libc::STATX_DIOALIGN != 0).then_some(Alignment {
        memory: found.stx_dio_mem_align,
        offset: found.stx_dio_offset_align,
    })
}

impl Abilities {
    /// For standard mode, which asks for none.
    pub(crate) fn unasked() -> Abilities {
        let none = "it was not asked for".to_owned();
        Abilities { direct: Err(none.clone()), uncached: Err(none), direct_writes_refused: None }
    }

    /// What `asked` means in the directory; `writing` also heeds the kernels that corrupt.
    pub(crate) fn choose(
        &self,
        dir: &Path,
        asked: AccessMode,
        writing: bool,
    ) -> Result<ModeChoice> {
        let direct = match (&self.direct, &self.direct_writes_refused) {
            (Ok(_), Some(refused)) if writing => Err(refused.clone()),
            (direct, _) => direct.clone(),
        };
        let chosen = |mode, drop_behind, why, alignment| {
            Ok(ModeChoice { mode, drop_behind, why, alignment })
        };
        match (asked, direct, &self.uncached) {
            (AccessMode::Standard, ..) => {
                chosen(AccessMode::Standard, false, "it was asked for".to_owned(), Alignment::NONE)
            }
            (AccessMode::Auto | AccessMode::Direct, Ok((alignment, why)), _) => {
                chosen(AccessMode::Direct, false, why, alignment)
            }
            (AccessMode::Uncached, _, Ok(why)) => {
                chosen(AccessMode::Uncached, false, why.clone(), Alignment::NONE)
            }
            (AccessMode::Auto, Err(no_direct), Ok(why)) => {
                let why = format!("{why}; not direct: {no_direct}");
                chosen(AccessMode::Uncached, false, why, Alignment::NONE)
            }
            (AccessMode::Auto, Err(no_direct), Err(no_uncached)) => {
                let why = format!(
                    "the last resort, with fadvise(DONTNEED) as it goes; not direct: {no_direct}; \
                     not uncached: {no_uncached}"
                );
                chosen(AccessMode::Standard, true, why, Alignment::NONE)
            }
            (AccessMode::Direct, Err(why), _) => Err(refusal(dir, asked, why)),
            (AccessMode::Uncached, _, Err(why)) => Err(refusal(dir, asked, why.clone())),
        }
    }
}

fn refusal(dir: &Path, asked: AccessMode, why: String) -> Error {
    Error::Unsupported {
        path: dir.to_path_buf(),
        operation: Operation::Probe,
        why: format!("disk access mode `{asked}` is not possible there: {why}"),
        cure:
            "set the mode to `auto`, or put the directory on ext4, XFS or btrfs on a block device"
                .to_owned(),
    }
}
