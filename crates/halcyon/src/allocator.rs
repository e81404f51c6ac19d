//! mimalloc, and when it gives memory back to the system.
//!
//! By itself it gives back what was free for a second, on whatever thread next needs a page of memory. After a flush that is the memory
//! of a memtable and the thread is a shard, which then does nothing else for 15 to 75 ms. A node does it on a thread of its own. That is
//! no idle thread: where others keep all cores busy, an idle one does not come to it before the kernel kills a process that holds too much.

use std::time::Duration;

use halcyon_io::clock::sleep;
use halcyon_io::{ThreadPriority, block_on, kept, resources, spawn_thread};
use libmimalloc_sys::{mi_collect, mi_option_set};

/// A request handed over between shards is freed on another thread than the one that allocated it: glibc's allocator takes a lock for
/// that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 3, in milliseconds. The bindings name only options that versions 2 and 3 have in common.
const PURGE_DELAY: i32 = 15;

/// Memory that is free for so long is not needed soon. The next memtable takes the memory of the last one: given back in between, each
/// of its pages would be a page fault of a shard.
const REST: Duration = Duration::from_secs(60);

/// Requests whose sizes fit no free memory let the process grow by tens of MiB a second: what comes between two looks has room in the last
/// eighth of the smallest usual container.
const LOOK: Duration = Duration::from_millis(100);

/// Gives memory back only on a thread of its own: each minute, and as soon as the process holds nearly all of what is available to it.
pub(crate) fn give_back_aside(available: u64) {
    let much = available / 8 * 7;
    // SAFETY: sets a number in mimalloc's table of options, which has this entry in the version that is built here.
    unsafe { mi_option_set(PURGE_DELAY, 1000 * 60 * 60) };
    spawn_thread("memory", ThreadPriority::Batch, move || {
        block_on(kept(|| give_back(much)));
    });
}

async fn give_back(much: u64) {
    loop {
        for _ in 0..REST.as_millis() / LOOK.as_millis() {
            sleep(LOOK).await;
            if resources::resident_memory() > much {
                break;
            }
        }
        // SAFETY: any thread may call it; it takes nothing that is in use.
        unsafe { mi_collect(true) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The option's number is not in the bindings: what it is by default tells whether it is the right one.
    #[test]
    fn the_delay_is_the_option_that_is_set() {
        // SAFETY: reads a number of mimalloc's table of options.
        assert_eq!(unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) }, 1000);
    }
}
