//! What the requests and connections of all clients hold in memory: one budget, counted before it is taken.
//!
//! 1. Code that keeps bytes for a client has a [`Held`] with their number, and gives them back by dropping it. It may move between shards.
//! 2. Counting touches a cache line that all shards share. So small requests are not counted one by one: a connection holds what its usual
//!    requests take ([`SMALL`]), and more only when it grows.
//! 3. The last part of the budget is for what is small: large requests and answers cannot take all of it, and other clients are served.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{Error, Result};

/// Bytes of a request or an answer that are not counted one by one.
pub const SMALL: u64 = 16 << 10;

/// Large requests may not take the last 1/`KEPT_FOR_SMALL` of the budget.
const KEPT_FOR_SMALL: u64 = 8;

/// A page ends before its rows are so large a part of the budget.
const PAGE_SHARE: u64 = 32;

/// What one computation may make of a short text is so large a part of the budget.
const ONE_SHARE: u64 = 16;

/// How often an answer's rows are in memory: here, in the encoder, and compressed or cut into frames.
pub(crate) const COPIES: u64 = 3;

/// No page is larger, whatever the budget.
const PAGE_MAX: u64 = 64 << 20;

/// The budget. Each shard has one of these for the same count, because every read holds its own (`for_shard`).
#[derive(Debug)]
pub struct RequestMemory {
    limit: u64,
    held: Arc<AtomicU64>,
}

/// A part of the budget that is taken.
#[derive(Debug)]
pub struct Held {
    memory: Arc<RequestMemory>,
    bytes: u64,
}

impl RequestMemory {
    pub fn bounded(limit: u64) -> Arc<RequestMemory> {
        Arc::new(RequestMemory { limit, held: Arc::default() })
    }

    /// The same budget, with a reference count of its own.
    pub fn for_shard(&self) -> Arc<RequestMemory> {
        Arc::new(RequestMemory { limit: self.limit, held: self.held.clone() })
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// Whether so much is taken that clients who keep memory without need should be disconnected.
    pub fn is_short(&self) -> bool {
        self.held() > self.limit / 4 * 3
    }

    /// Bytes after which a page ends, whatever its number of rows.
    pub fn page_bytes(&self) -> u64 {
        (self.limit / PAGE_SHARE).clamp(SMALL, PAGE_MAX)
    }

    /// What one computation may make of a short text before it is counted.
    pub fn for_one(&self) -> u64 {
        self.limit / ONE_SHARE
    }

    /// What one row of an answer may become while it is computed elsewhere, before it is counted. It takes twice as much while it grows.
    pub fn for_row(&self) -> u64 {
        self.for_large() / COPIES / 2
    }

    fn for_large(&self) -> u64 {
        self.limit - self.limit / KEPT_FOR_SMALL
    }

    fn take(&self, bytes: u64, most: u64) -> bool {
        let before = self.held.fetch_add(bytes, Relaxed);
        let fits = before.saturating_add(bytes) <= most;
        if !fits {
            self.held.fetch_sub(bytes, Relaxed);
        }
        fits
    }

    /// `OverloadedException`'s text.
    pub fn refusal(&self) -> String {
        format!(
            "Request breached limit on memory of requests in flight. ({}/{} bytes.) Server is currently in an overloaded state and \
             cannot accept more requests. Ask for smaller pages, or raise native_transport_max_request_data_in_flight.",
            self.held(),
            self.limit
        )
    }
}

impl Held {
    /// Nothing, yet.
    pub fn nothing(memory: &Arc<RequestMemory>) -> Held {
        Held { memory: memory.clone(), bytes: 0 }
    }

    /// `bytes`, if a large request may have them.
    pub fn large(memory: &Arc<RequestMemory>, bytes: u64) -> Option<Held> {
        let mut held = Held::nothing(memory);
        held.grow_to(bytes).then_some(held)
    }

    /// `bytes`, if any request may have them.
    pub fn small(memory: &Arc<RequestMemory>, bytes: u64) -> Option<Held> {
        memory.take(bytes, memory.limit).then(|| Held { memory: memory.clone(), bytes })
    }

    /// The keys of one request, at `each` bytes; few are not counted one by one.
    pub fn of_keys(memory: &Arc<RequestMemory>, count: usize, each: u64) -> Result<Held> {
        let bytes = (count as u64).saturating_mul(each);
        if bytes <= SMALL {
            return Ok(Held::nothing(memory));
        }
        Held::large(memory, bytes).ok_or_else(|| Error::Overloaded(memory.refusal()))
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes more, if there is room for something large; never gives back.
    pub fn grow_to(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let fits = more == 0 || self.memory.take(more, self.memory.for_large());
        if fits {
            self.bytes += more;
        }
        fits
    }

    /// As `grow_to`, with the part of the budget that is kept for what is small.
    pub fn grow_small_to(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let fits = more == 0 || self.memory.take(more, self.memory.limit);
        if fits {
            self.bytes += more;
        }
        fits
    }

    /// As `grow_to`; the error is the client's.
    pub fn grow_or_refuse(&mut self, bytes: u64) -> Result<()> {
        match self.grow_to(bytes) {
            true => Ok(()),
            false => Err(Error::Overloaded(self.memory.refusal())),
        }
    }

    /// Becomes `bytes`, even beyond the budget: what it stands for was counted elsewhere until now, or has been freed.
    pub fn become_bytes(&mut self, bytes: u64) {
        if bytes >= self.bytes {
            self.memory.held.fetch_add(bytes - self.bytes, Relaxed);
        } else {
            self.memory.held.fetch_sub(self.bytes - bytes, Relaxed);
        }
        self.bytes = bytes;
    }

    pub fn memory(&self) -> &Arc<RequestMemory> {
        &self.memory
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.become_bytes(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what is large leaves the last part of the budget to what is small, and that all is given back.
    #[test]
    fn the_last_part_is_for_what_is_small() {
        let memory = RequestMemory::bounded(800);
        let mut large = Held::large(&memory, 600).unwrap();
        assert!(large.grow_to(700) && !large.grow_to(701));
        assert!(Held::large(&memory, 1).is_none());
        let small = Held::small(&memory, 100).unwrap();
        assert!(Held::small(&memory, 1).is_none());
        assert_eq!((memory.held(), memory.is_short()), (800, true));
        drop(small);
        large.become_bytes(0);
        assert_eq!((memory.held(), memory.is_short()), (0, false));
        drop(large);
        assert_eq!(memory.held(), 0);
    }

    /// Proves that the refusal is Cassandra's overload error, with the numbers and a cure.
    #[test]
    fn the_refusal_names_its_cure() {
        let mut held = Held::nothing(&RequestMemory::bounded(8));
        let Err(Error::Overloaded(text)) = held.grow_or_refuse(9) else { panic!("it fits") };
        assert!(text.contains("(0/8 bytes.)") && text.contains("overloaded state"), "{text}");
        assert!(text.contains("native_transport_max_request_data_in_flight"), "{text}");
    }
}
