//! A cache of one thread, bounded in bytes: S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023).
//!
//! ```text
//!   insert ──> small ── used ──> main ──┐ used: one use less, and around again
//!                │                │ ▲───┘
//!              not used        not used
//!                ▼                ▼
//!              ghost            gone          inserted again, a ghost goes to main
//! ```
//! 1. `small` has a tenth: what was used once leaves soon, and does not displace what is used often.
//! 2. No step is long. Where everything was used since it was looked at last, a search for something that was not would pass all entries:
//!    after [`STEPS`] the next one goes, used or not.
//! 3. Entries belong to groups (an SSTable, a table). Those of one are found without a search, and removed a few at a time: what belongs
//!    to a file that was replaced does not take room until it has aged.
//! 4. Memory can be lent to it: it takes entries in beyond its budget, until others are removed that have become useless.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

/// Some 10 µs.
const STEPS: usize = 512;
const USES_MAX: u8 = 3;
const SMALL_PART: u64 = 10;

const NONE: u32 = u32::MAX;

/// Entries have a group, a key in it, and a value.
pub struct Cache<G, K, V> {
    slots: Slots<G, K, V>,
    /// Numbers of slots.
    found: HashTable<u32>,
    hasher: DefaultHashBuilder,
    small: List,
    main: List,
    groups: HashMap<G, List>,
    ghosts: Ghosts,
    small_weight: u64,
    weight: u64,
    capacity: u64,
    lent: u64,
}

impl<G: Copy + Eq + Hash, K: Copy + Eq + Hash, V> Cache<G, K, V> {
    /// A cache of `bytes`, whose entries have about `each`.
    ///
    /// A table that grows, or that is so full that removals leave tombstones, moves all entries in one step: 20 ms and more of a shard. So
    /// it is made for twice the entries that are expected; memory that is not used yet is only address space.
    pub fn new(capacity: u64, each: u64) -> Cache<G, K, V> {
        let items = usize::try_from(capacity / each).unwrap_or(0).max(16);
        Cache {
            slots: Slots { all: Vec::with_capacity(2 * items), free: Vec::new() },
            found: HashTable::with_capacity(2 * items),
            hasher: DefaultHashBuilder::default(),
            small: List::EMPTY,
            main: List::EMPTY,
            groups: HashMap::new(),
            ghosts: Ghosts::of(items),
            small_weight: 0,
            weight: 0,
            capacity,
            lent: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.found.len()
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Bytes of all entries.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    pub fn set_capacity(&mut self, bytes: u64) {
        self.capacity = bytes;
        self.fit();
    }

    pub fn get(&self, key: &(G, K)) -> Option<&V> {
        let slot = self.slots.get(self.at(key)?)?;
        let uses = slot.uses.get();
        // Of what is used often nothing is written.
        if uses < USES_MAX {
            slot.uses.set(uses + 1);
        }
        Some(&slot.value)
    }

    /// Does not count as a use, so it does not delay eviction.
    pub fn peek(&self, key: &(G, K)) -> Option<&V> {
        Some(&self.slots.get(self.at(key)?)?.value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&(G, K), &V)> {
        self.slots.all.iter().flatten().map(|slot| (&slot.key, &slot.value))
    }

    /// Gives back one of those that it has displaced.
    pub fn insert(&mut self, key: (G, K), value: V, weight: u64) -> Option<V> {
        let returns = self.ghosts.take(Ghosts::hash(&key), self.found.len());
        self.put(key, value, weight, if returns { Queue::Main } else { Queue::Small }, 0)
    }

    /// Inserts what is used often: it does not have to prove that first.
    pub fn insert_used(&mut self, key: (G, K), value: V, weight: u64) -> Option<V> {
        self.put(key, value, weight, Queue::Main, 1)
    }

    pub fn remove(&mut self, key: &(G, K)) -> Option<V> {
        let at = self.at(key)?;
        Some(self.take_out(at)?.value)
    }

    /// Removes some of a group, at most `most`. Whether there may be more.
    pub fn forget(&mut self, group: G, most: usize) -> bool {
        for _ in 0..most {
            let Some(first) = self.groups.get(&group).map(|list| list.first) else { return false };
            self.take_out(first);
        }
        true
    }

    /// Grows by `bytes`, until they are given back.
    pub fn lend(&mut self, bytes: u64) {
        self.lent += bytes;
    }

    pub fn give_back(&mut self, bytes: u64) {
        self.lent = self.lent.saturating_sub(bytes);
        self.fit();
    }

    fn fit(&mut self) {
        while self.weight > self.limit() && self.evict().is_some() {}
    }

    fn limit(&self) -> u64 {
        self.capacity + self.lent
    }

    fn at(&self, key: &(G, K)) -> Option<u32> {
        let is_it = |at: &u32| self.slots.get(*at).is_some_and(|slot| slot.key == *key);
        self.found.find(self.hasher.hash_one(key), is_it).copied()
    }

    fn put(&mut self, key: (G, K), value: V, weight: u64, queue: Queue, uses: u8) -> Option<V> {
        let replaced = self.at(&key).and_then(|at| self.take_out(at));
        if weight > self.limit() {
            return Some(value);
        }
        let mut displaced = None;
        while self.weight + weight > self.limit() {
            displaced = self.evict();
        }
        let (queue, uses) = match &replaced {
            Some(slot) => (slot.queue, slot.uses.get().max(uses)),
            None => (queue, uses),
        };
        let links = [Links::default(); 2];
        let at = self.slots.add(Slot { key, value, weight, uses: uses.into(), queue, links });
        let hash_of =
            |at: &u32| self.slots.get(*at).map_or(0, |slot| self.hasher.hash_one(slot.key));
        self.found.insert_unique(self.hasher.hash_one(key), at, hash_of);
        self.weight += weight;
        self.enqueue(at, queue);
        self.groups.entry(key.0).or_insert(List::EMPTY).push(&mut self.slots, Chain::Group, at);
        displaced.or(replaced.map(|slot| slot.value))
    }

    fn evict(&mut self) -> Option<V> {
        for steps_left in (0..STEPS).rev() {
            let is_small = self.small_weight > self.limit() / SMALL_PART || self.main.is_empty();
            let at = if is_small { self.small.first } else { self.main.first };
            let slot = self.slots.get_mut(at)?;
            if slot.uses.get() == 0 || steps_left == 0 {
                if is_small {
                    self.ghosts.add(Ghosts::hash(&slot.key));
                }
                return Some(self.take_out(at)?.value);
            }
            *slot.uses.get_mut() -= 1;
            self.dequeue(at);
            self.enqueue(at, Queue::Main);
        }
        None
    }

    /// At the end of a queue.
    fn enqueue(&mut self, at: u32, queue: Queue) {
        let Some(slot) = self.slots.get_mut(at) else { return };
        slot.queue = queue;
        let list = match queue {
            Queue::Small => {
                self.small_weight += slot.weight;
                &mut self.small
            }
            Queue::Main => &mut self.main,
        };
        list.push(&mut self.slots, Chain::Queue, at);
    }

    fn dequeue(&mut self, at: u32) {
        let Some(slot) = self.slots.get(at) else { return };
        let list = match slot.queue {
            Queue::Small => {
                self.small_weight -= slot.weight;
                &mut self.small
            }
            Queue::Main => &mut self.main,
        };
        list.unlink(&mut self.slots, Chain::Queue, at);
    }

    fn take_out(&mut self, at: u32) -> Option<Slot<G, K, V>> {
        let slot = self.slots.get(at)?;
        let (key, weight) = (slot.key, slot.weight);
        if let Ok(found) = self.found.find_entry(self.hasher.hash_one(key), |other| *other == at) {
            found.remove();
        }
        self.weight -= weight;
        self.dequeue(at);
        if let Some(group) = self.groups.get_mut(&key.0) {
            group.unlink(&mut self.slots, Chain::Group, at);
            if group.is_empty() {
                self.groups.remove(&key.0);
            }
        }
        self.slots.take(at)
    }
}

struct Slot<G, K, V> {
    key: (G, K),
    value: V,
    weight: u64,
    /// Since it was looked at last.
    uses: Cell<u8>,
    queue: Queue,
    links: [Links; 2],
}

#[derive(Clone, Copy)]
enum Queue {
    Small,
    Main,
}

struct Slots<G, K, V> {
    all: Vec<Option<Slot<G, K, V>>>,
    free: Vec<u32>,
}

impl<G, K, V> Slots<G, K, V> {
    fn get(&self, at: u32) -> Option<&Slot<G, K, V>> {
        self.all.get(at as usize)?.as_ref()
    }

    fn get_mut(&mut self, at: u32) -> Option<&mut Slot<G, K, V>> {
        self.all.get_mut(at as usize)?.as_mut()
    }

    fn add(&mut self, slot: Slot<G, K, V>) -> u32 {
        if let Some(at) = self.free.pop()
            && let Some(free) = self.all.get_mut(at as usize)
        {
            *free = Some(slot);
            return at;
        }
        self.all.push(Some(slot));
        (self.all.len() - 1) as u32
    }

    fn take(&mut self, at: u32) -> Option<Slot<G, K, V>> {
        let slot = self.all.get_mut(at as usize)?.take();
        self.free.extend(slot.is_some().then_some(at));
        slot
    }

    fn links(&mut self, at: u32, chain: Chain) -> Option<&mut Links> {
        self.get_mut(at)?.links.get_mut(chain as usize)
    }
}

/// A slot is in two lists: that of its queue, and that of its group.
#[derive(Clone, Copy)]
enum Chain {
    Queue,
    Group,
}

#[derive(Clone, Copy)]
struct Links {
    before: u32,
    after: u32,
}

impl Default for Links {
    fn default() -> Links {
        Links { before: NONE, after: NONE }
    }
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const EMPTY: List = List { first: NONE, last: NONE };

    fn is_empty(&self) -> bool {
        self.first == NONE
    }

    fn push<G, K, V>(&mut self, slots: &mut Slots<G, K, V>, chain: Chain, at: u32) {
        if let Some(links) = slots.links(at, chain) {
            *links = Links { before: self.last, after: NONE };
        }
        match slots.links(self.last, chain) {
            Some(links) => links.after = at,
            None => self.first = at,
        }
        self.last = at;
    }

    fn unlink<G, K, V>(&mut self, slots: &mut Slots<G, K, V>, chain: Chain, at: u32) {
        let Some(Links { before, after }) = slots.links(at, chain).map(|links| *links) else {
            return;
        };
        match slots.links(before, chain) {
            Some(links) => links.after = after,
            None => self.first = after,
        }
        match slots.links(after, chain) {
            Some(links) => links.before = before,
            None => self.last = before,
        }
    }
}

/// Hashes of what left `small`, in buckets: the oldest of a bucket gives way.
struct Ghosts {
    buckets: Box<[[Ghost; 4]]>,
    /// Counts them; it may wrap.
    now: u32,
}

#[derive(Clone, Copy, Default)]
struct Ghost {
    /// 0 if there is none.
    mark: u32,
    since: u32,
}

impl Ghosts {
    fn of(items: usize) -> Ghosts {
        let buckets = (items / 4).next_power_of_two();
        Ghosts { buckets: vec![Default::default(); buckets].into(), now: 0 }
    }

    /// The same in each process: which entries stay is, in simulations too.
    fn hash(key: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        hasher.finish()
    }

    fn bucket(&mut self, hash: u64) -> (u32, Option<&mut [Ghost; 4]>) {
        let at = hash as usize & (self.buckets.len() - 1);
        ((hash >> 32) as u32 | 1, self.buckets.get_mut(at))
    }

    fn add(&mut self, hash: u64) {
        self.now = self.now.wrapping_add(1);
        let now = self.now;
        let (mark, bucket) = self.bucket(hash);
        let age = |ghost: &&mut Ghost| match ghost.mark {
            0 => u32::MAX,
            _ => now.wrapping_sub(ghost.since),
        };
        if let Some(oldest) = bucket.into_iter().flatten().max_by_key(age) {
            *oldest = Ghost { mark, since: now };
        }
    }

    /// Whether it is there, and at most this many others are newer.
    fn take(&mut self, hash: u64, others: usize) -> bool {
        let now = self.now;
        let (mark, bucket) = self.bucket(hash);
        let Some(ghost) = bucket.into_iter().flatten().find(|ghost| ghost.mark == mark) else {
            return false;
        };
        ghost.mark = 0;
        now.wrapping_sub(ghost.since) as usize <= others
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use halcyon_io::Random;

    use super::*;

    fn cache(capacity: u64) -> Cache<u64, u64, u64> {
        Cache::new(capacity, 1)
    }

    impl Cache<u64, u64, u64> {
        /// The keys of a list, from its first to its last and back.
        fn walked(&self, list: List, chain: Chain) -> Vec<(u64, u64)> {
            let walk = |from: u32, next: fn(Links) -> u32| {
                let slot = |at: u32| self.slots.get(at);
                let following = |at: &u32| slot(*at).map(|slot| next(slot.links[chain as usize]));
                let all = std::iter::successors(Some(from), following).map_while(slot);
                all.map(|slot| slot.key).collect::<Vec<_>>()
            };
            let keys = walk(list.first, |links| links.after);
            let mut back = walk(list.last, |links| links.before);
            back.reverse();
            assert_eq!(keys, back);
            keys
        }

        fn check(&self) {
            assert!(self.weight <= self.limit());
            let slots = || self.slots.all.iter().flatten();
            assert_eq!(self.weight, slots().map(|slot| slot.weight).sum::<u64>());
            let small = self.walked(self.small, Chain::Queue);
            let weight_of = |key: &(u64, u64)| slots().find(|s| s.key == *key).unwrap().weight;
            assert_eq!(self.small_weight, small.iter().map(weight_of).sum::<u64>());
            let mut queued = [small, self.walked(self.main, Chain::Queue)].concat();
            let lists = self.groups.values();
            let mut grouped: Vec<_> =
                lists.flat_map(|list| self.walked(*list, Chain::Group)).collect();
            let mut all: Vec<_> = slots().map(|slot| slot.key).collect();
            [&mut queued, &mut grouped, &mut all].into_iter().for_each(|keys| keys.sort_unstable());
            assert_eq!((&queued, &grouped, all.len()), (&all, &all, self.len()));
            assert!(self.groups.iter().all(|(of, list)| {
                !list.is_empty() && self.walked(*list, Chain::Group).iter().all(|(g, _)| g == of)
            }));
        }

        fn uses(&self) -> usize {
            self.slots.all.iter().flatten().map(|slot| usize::from(slot.uses.get())).sum()
        }
    }

    #[test]
    fn it_has_what_was_put_in_or_nothing() {
        for seed in 0..30 {
            let mut random = Random::seeded(seed);
            let mut cache = cache([0, 1, 40, 400][random.below(4) as usize]);
            let mut model = HashMap::new();
            let mut lent = 0;
            for step in 0..2000 {
                let key = (random.below(5), random.below(40));
                match random.below(20) {
                    0..9 => {
                        let weight = 1 + random.below(9);
                        model.insert(key, step);
                        match random.below(3) {
                            0 => cache.insert_used(key, step, weight),
                            _ => cache.insert(key, step, weight),
                        };
                    }
                    9 => {
                        let had = cache.peek(&key).copied();
                        assert_eq!(cache.remove(&key), had);
                    }
                    10 => {
                        let has = cache.iter().filter(|(at, _)| at.0 == key.0).count();
                        assert_eq!(cache.forget(key.0, 7), has >= 7);
                        let left = cache.iter().filter(|(at, _)| at.0 == key.0).count();
                        assert_eq!(left, has.saturating_sub(7));
                    }
                    11 => {
                        lent += key.1;
                        cache.lend(key.1);
                    }
                    12 => cache.give_back(std::mem::take(&mut lent)),
                    _ => {
                        let value = cache.get(&key).copied();
                        assert!(value.is_none() || value == model.get(&key).copied(), "{seed}");
                    }
                }
                cache.check();
            }
        }
    }

    #[test]
    fn what_is_used_stays_while_others_pass() {
        let mut cache = cache(1000);
        for turn in 0..200 {
            for hot in 0..800 {
                if cache.get(&(0, hot)).is_none() {
                    assert!(turn < 5, "{hot} was displaced in turn {turn}");
                    cache.insert((0, hot), 0, 1);
                }
            }
            (0..400).for_each(|cold| {
                cache.insert((1, turn * 400 + cold), 0, 1);
            });
        }
    }

    #[test]
    fn what_comes_again_soon_is_used() {
        let mut cache = cache(1000);
        (0..1500).for_each(|key| {
            cache.insert((0, key), 0, 1);
        });
        assert!(cache.peek(&(0, 400)).is_none());
        cache.insert((0, 400), 0, 1);
        (2000..4000).for_each(|key| {
            cache.insert((0, key), 0, 1);
        });
        assert!(cache.peek(&(0, 400)).is_some());
        // One that left long ago is like a new one.
        cache.insert((0, 1), 0, 1);
        (5000..7000).for_each(|key| {
            cache.insert((0, key), 0, 1);
        });
        assert!(cache.peek(&(0, 1)).is_none());
    }

    #[test]
    fn an_insertion_passes_few_entries_though_all_are_used() {
        let mut cache = cache(10_000);
        for key in 0..10_000 {
            cache.insert((0, key), 0, 1);
            (0..3).for_each(|_| assert!(cache.get(&(0, key)).is_some()));
        }
        for key in 10_000..10_100 {
            let before = cache.uses();
            cache.insert((0, key), 0, 1);
            let lost = before - cache.uses();
            assert!((1..=STEPS + usize::from(USES_MAX)).contains(&lost), "{lost} at {key}");
        }
    }

    #[test]
    fn what_replaces_others_displaces_only_them() {
        let mut cache = cache(1000);
        for key in 0..500 {
            cache.insert((1, key), 0, 1);
            cache.insert((2, key), 0, 1);
            (0..3).for_each(|_| assert!(cache.get(&(1, key)).is_some()));
        }
        cache.lend(400);
        (0..400).for_each(|key| assert_eq!(cache.insert_used((3, key), 0, 1), None));
        assert_eq!(cache.weight(), 1400);
        while cache.forget(1, 16) {}
        cache.give_back(400);
        cache.set_capacity(950);
        assert_eq!((cache.weight(), cache.len()), (900, 900));
        let count = |group: u64| cache.iter().filter(|(key, _)| key.0 == group).count();
        assert_eq!((count(1), count(2), count(3)), (0, 500, 400));
        cache.set_capacity(850);
        assert_eq!(cache.weight(), 850);
    }
}
