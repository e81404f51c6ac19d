//! Hints to the processor.

/// A cache line of every processor that we know of.
const LINE: usize = 64;

/// Begins to bring bytes into the caches that are used soon. A processor does so by itself only where one line after the other is
/// read; of what another core has written, each other line is waited for.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint; it reads nothing, and the address is that of a live slice anyway.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
