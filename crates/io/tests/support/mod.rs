//! What the I/O tests share.
#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests; not every test uses all")]

use std::{
    ffi::CString,
    fs,
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// A directory on a device (not in a memory file system, where there is no direct I/O), removed at
/// the end.
pub(crate) struct ScratchDir(PathBuf);

impl ScratchDir {
    pub(crate) fn make(name: &str) -> ScratchDir {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let base = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let number = NEXT.fetch_add(1, Relaxed);
        let dir = base.join(format!("io-{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        ScratchDir(dir)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Bytes in which every position differs from its neighbours and from other buffers' positions.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// How many pages of a file are in the page cache, by mincore.
pub(crate) fn cached_pages(path: &Path) -> usize {
    let file = fs::File::open(path).unwrap();
    let len = file.metadata().unwrap().len() as usize;
    if len == 0 {
        return 0;
    }
    let mut resident = vec![0u8; len.div_ceil(4096)];
    // SAFETY: a fresh read-only mapping of an open file, asked about within its length, unmapped.
    unsafe {
        let address = libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(address, libc::MAP_FAILED);
        assert_eq!(libc::mincore(address, len, resident.as_mut_ptr()), 0);
        libc::munmap(address, len);
    }
    resident.iter().filter(|page| **page & 1 == 1).count()
}

pub(crate) fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}
