//! A graph of vectors in which those that are near a given one are found by walking: HNSW (Malkov, Yashunin 2018).
//!
//! ```text
//!  level 2   a ──────────────── f            few vectors, far apart
//!  level 1   a ──── c ───────── f ── h
//!  level 0   a ─ b ─ c ─ d ─ e ─ f ─ g ─ h   all, each with up to 32 neighbours
//! ```
//! 1. A search goes down from the top: on each level it walks to the vector that is nearest, which is where it begins on the level below.
//! 2. On level 0 it keeps the nearest of those that it has seen, and looks at the neighbours of each, until none of those that are left
//!    to look at is nearer than the worst that is kept. The more it keeps (its beam), the fewer it misses.
//! 3. A new vector is searched for, and joined to some of what was found, in both directions. A neighbour is left out if it is nearer to
//!    one that was taken than to the vector: edges lead into all directions, so that clusters hang together.
//! 4. Up to [`EXACT`] vectors have no edges: they are all compared. That is exact, and not slower.
//! 5. The same vectors in the same order make the same graph.
//! 6. Vectors are not rounded, neither for a first comparison: in a narrow cluster far from zero all would look the same.
//!
//! Cassandra's graphs (jvector) have one level, are read from the device, and compare compressed vectors first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use halcyon_model::similarity::Similarity;

/// Neighbours on upper levels, and on level 0: Cassandra's `maximum_node_connections`.
const CONNECTIONS: usize = 16;
pub(super) const BASE: usize = 2 * CONNECTIONS;

/// Vectors that are kept while neighbours are searched for: Cassandra's `construction_beam_width`.
const BUILD_BEAM: usize = 100;

/// Vectors without edges, and the most of a part of the index that is compared with all, if `count` is that large.
pub(super) const EXACT: usize = 1024;

/// Levels above level 0.
const TOP: usize = 8;

/// No neighbour.
const NONE: u32 = u32::MAX;

/// Bytes of vectors that a search compares before others run: some 100 µs.
const BYTES_AT_ONCE: usize = 512 << 10;

/// A vector by number, and how near it is; ordered by that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Near {
    pub(super) closeness: f32,
    pub(super) node: u32,
}

impl Eq for Near {}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Near) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Near {
    fn cmp(&self, other: &Near) -> std::cmp::Ordering {
        self.closeness.total_cmp(&other.closeness).then(other.node.cmp(&self.node))
    }
}

/// The vectors that a walk has come to.
struct Seen(Vec<u64>);

impl Seen {
    fn of(count: usize) -> Seen {
        Seen(vec![0; count.div_ceil(64)])
    }

    /// Whether it is the first time.
    fn insert(&mut self, node: u32) -> bool {
        let Some(word) = self.0.get_mut(node as usize / 64) else { return false };
        let before = *word;
        *word |= 1 << (node % 64);
        before != *word
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Graph {
    pub(super) similarity: Similarity,
    pub(super) dimension: usize,
    /// One behind the other.
    pub(super) vectors: Vec<f32>,
    /// [`BASE`] neighbours of each.
    pub(super) base: Vec<u32>,
    /// Of each, where its neighbours on upper levels are; [`NONE`]: it is on level 0 only.
    pub(super) upper_at: Vec<u32>,
    /// [`CONNECTIONS`] for each level.
    pub(super) upper: Vec<u32>,
    /// Where searches begin, and its level.
    pub(super) entry: u32,
    pub(super) top: u32,
}

impl Graph {
    pub(super) fn new(similarity: Similarity, dimension: usize) -> Graph {
        Graph {
            similarity,
            dimension,
            vectors: Vec::new(),
            base: Vec::new(),
            upper_at: Vec::new(),
            upper: Vec::new(),
            entry: 0,
            top: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.vectors.len() / self.dimension.max(1)
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        4 * (self.vectors.len() + self.base.len() + self.upper_at.len() + self.upper.len())
    }

    pub(super) fn vector(&self, node: u32) -> &[f32] {
        let start = node as usize * self.dimension;
        self.vectors.get(start..start + self.dimension).unwrap_or_default()
    }

    /// Loads a part of each of these vectors, so that the processor waits for all of them at once and not for one after the other: they
    /// lie anywhere in memory, and are seldom in a cache.
    fn touch(&self, nodes: &[u32]) {
        let part = |node: &u32| {
            let vector = self.vector(*node);
            let middle = vector.get(vector.len() / 2);
            vector.first().zip(middle).map_or(0, |(a, b)| a.to_bits() ^ b.to_bits())
        };
        std::hint::black_box(nodes.iter().map(part).fold(0, |all, bits| all ^ bits));
    }

    fn near(&self, vector: &[f32], node: u32) -> Near {
        Near { closeness: self.similarity.closeness(vector, self.vector(node)), node }
    }

    fn links_of(&self, node: u32, level: u32) -> (usize, usize) {
        match (level, self.upper_at.get(node as usize)) {
            (0, _) => (node as usize * BASE, BASE),
            (level, Some(at)) if *at != NONE => {
                (*at as usize + (level as usize - 1) * CONNECTIONS, CONNECTIONS)
            }
            _ => (0, 0),
        }
    }

    fn neighbours(&self, node: u32, level: u32) -> impl Iterator<Item = u32> + use<'_> {
        let (start, count) = self.links_of(node, level);
        let all = if level == 0 { &self.base } else { &self.upper };
        let slots = all.get(start..start + count).unwrap_or_default();
        slots.iter().copied().take_while(|node| *node != NONE)
    }

    fn set_neighbours(&mut self, node: u32, level: u32, chosen: impl Iterator<Item = u32>) {
        let (start, count) = self.links_of(node, level);
        let all = if level == 0 { &mut self.base } else { &mut self.upper };
        let slots = all.get_mut(start..start + count).unwrap_or_default();
        for (slot, node) in slots.iter_mut().zip(chosen.chain(std::iter::repeat(NONE))) {
            *slot = node;
        }
    }

    /// Adds a vector; its number is the next. The graph begins with the first one too many to be compared with all.
    pub(super) fn add(&mut self, vector: &[f32]) {
        self.vectors.extend_from_slice(vector);
        let count = self.len();
        if count <= EXACT {
            return;
        }
        let first = if self.base.is_empty() { 0 } else { count - 1 };
        for node in first..count {
            self.join(node as u32);
        }
    }

    /// Of one vector in 16, of one of those in 16, and so on.
    fn level_of(node: u32) -> u32 {
        // The finalizer of MurmurHash3 spreads the numbers.
        let mut hash = u64::from(node) + 0x9e37_79b9_7f4a_7c15;
        hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        ((hash ^ hash >> 33).trailing_zeros() / CONNECTIONS.ilog2()).min(TOP as u32)
    }

    fn join(&mut self, node: u32) {
        let level = Graph::level_of(node);
        self.base.resize(self.base.len() + BASE, NONE);
        let upper = self.upper.len();
        self.upper_at.push(if level == 0 { NONE } else { upper as u32 });
        self.upper.resize(upper + level as usize * CONNECTIONS, NONE);
        if node == 0 {
            (self.entry, self.top) = (0, level);
            return;
        }
        let vector = self.vector(node).to_vec();
        let mut found = vec![self.near(&vector, self.entry)];
        for at in (level + 1..=self.top).rev() {
            found = self.descend(&vector, found, at);
        }
        for at in (0..=level.min(self.top)).rev() {
            let mut walk = Walk::new(self, &vector, &found, BUILD_BEAM, at);
            while walk.step() {}
            found = walk.nearest();
            let chosen = self.choose(&found, if at == 0 { BASE / 2 } else { CONNECTIONS });
            for near in &chosen {
                self.link(near.node, Near { node, ..*near }, at);
            }
            self.set_neighbours(node, at, chosen.iter().map(|near| near.node));
        }
        if level > self.top {
            (self.entry, self.top) = (node, level);
        }
    }

    /// The nearest of a level.
    fn descend(&self, vector: &[f32], from: Vec<Near>, level: u32) -> Vec<Near> {
        let mut walk = Walk::new(self, vector, &from, 1, level);
        while walk.step() {}
        walk.nearest()
    }

    /// Gives a vector a new neighbour, and takes one away if it has too many.
    fn link(&mut self, of: u32, new: Near, level: u32) {
        let (_, most) = self.links_of(of, level);
        let mut all: Vec<u32> = self.neighbours(of, level).collect();
        if all.len() < most {
            all.push(new.node);
            self.set_neighbours(of, level, all.into_iter());
            return;
        }
        let vector = self.vector(of);
        let mut near: Vec<Near> = all.iter().map(|node| self.near(vector, *node)).collect();
        near.push(new);
        near.sort_unstable_by(|a, b| b.cmp(a));
        let chosen = self.choose(&near, most);
        self.set_neighbours(of, level, chosen.into_iter().map(|near| near.node));
    }

    /// Which of these, nearest first, become neighbours: those that are not nearer to one that was taken, then the nearest of the others.
    fn choose(&self, from: &[Near], most: usize) -> Vec<Near> {
        let mut chosen: Vec<Near> = Vec::with_capacity(most);
        let mut others = Vec::new();
        for near in from {
            if chosen.len() == most {
                return chosen;
            }
            let vector = self.vector(near.node);
            let is_nearer = |taken: &Near| self.near(vector, taken.node).closeness > near.closeness;
            let list = if chosen.iter().any(is_nearer) { &mut others } else { &mut chosen };
            list.push(*near);
        }
        let room = most - chosen.len();
        chosen.extend(others.into_iter().take(room));
        chosen
    }

    /// The vectors that are nearest to one, nearest first: at least `count` if they exist. Whether there are no others. The nearest
    /// of `of` vectors are looked for, of which this graph has a part.
    pub(super) async fn nearest(&self, vector: &[f32], count: usize, of: u64) -> (Vec<Near>, bool) {
        let mut pace = 0;
        // With this many, most would be compared anyway; and no edge is missed.
        if self.base.is_empty() || count >= self.len() / 8 {
            let mut all = Vec::with_capacity(self.len());
            for node in 0..self.len() as u32 {
                all.push(self.near(vector, node));
                self.breathe(&mut pace, 1).await;
            }
            let is_all = count >= all.len();
            if !is_all {
                all.select_nth_unstable_by(count, |a, b| b.cmp(a));
                all.truncate(count);
            }
            all.sort_unstable_by(|a, b| b.cmp(a));
            return (all, is_all);
        }
        let mut found = vec![self.near(vector, self.entry)];
        for level in (1..=self.top).rev() {
            found = self.descend(vector, found, level);
        }
        let mut walk =
            Walk::new(self, vector, &found, beam(count, self.len() as f64 / of as f64), 0);
        while walk.step() {
            self.breathe(&mut pace, BASE / 2).await;
        }
        let mut found = walk.nearest();
        found.truncate(count);
        (found, false)
    }

    async fn breathe(&self, pace: &mut usize, vectors: usize) {
        *pace += vectors * 4 * self.dimension;
        if *pace >= BYTES_AT_ONCE {
            *pace = 0;
            halcyon_io::yield_now().await;
        }
    }
}

/// How many vectors a search for some of them keeps. Of the ten nearest of 50,000 vectors, 70 found 92 in 100 and 120 found 98 where there
/// is nothing to find a way by (32 random components), and nearly all where vectors have neighbourhoods, as those of texts have. A graph
/// that has a share of the vectors has that share of the nearest ones, and needs to keep fewer to find them.
fn beam(count: usize, share: f64) -> usize {
    count * 2 + (90.0 * share.min(1.0).sqrt()) as usize
}

/// A search on one level.
struct Walk<'a> {
    graph: &'a Graph,
    vector: &'a [f32],
    level: u32,
    beam: usize,
    seen: Seen,
    /// To be looked at, the nearest first.
    ahead: BinaryHeap<Near>,
    /// The nearest, the worst first.
    kept: BinaryHeap<Reverse<Near>>,
    /// Neighbours that are compared next.
    fresh: Vec<u32>,
}

impl<'a> Walk<'a> {
    fn new(
        graph: &'a Graph,
        vector: &'a [f32],
        from: &[Near],
        beam: usize,
        level: u32,
    ) -> Walk<'a> {
        let mut seen = Seen::of(graph.len());
        for near in from {
            seen.insert(near.node);
        }
        let kept = from.iter().map(|near| Reverse(*near)).collect();
        let ahead = from.iter().copied().collect();
        Walk { graph, vector, level, beam, seen, ahead, kept, fresh: Vec::with_capacity(BASE) }
    }

    /// Looks at the neighbours of the next; whether there is more to do.
    fn step(&mut self) -> bool {
        let Some(next) = self.ahead.pop() else { return false };
        let is_worse = |worst: &Reverse<Near>| next < worst.0;
        if self.kept.len() >= self.beam && self.kept.peek().is_some_and(is_worse) {
            return false;
        }
        let Walk { graph, seen, fresh, .. } = self;
        fresh.clear();
        fresh.extend(graph.neighbours(next.node, self.level).filter(|node| seen.insert(*node)));
        graph.touch(fresh);
        for node in self.fresh.iter().copied() {
            let near = self.graph.near(self.vector, node);
            if self.kept.len() < self.beam {
                self.kept.push(Reverse(near));
                self.ahead.push(near);
            } else if let Some(mut worst) = self.kept.peek_mut()
                && near > worst.0
            {
                *worst = Reverse(near);
                self.ahead.push(near);
            }
        }
        true
    }

    /// Nearest first.
    fn nearest(self) -> Vec<Near> {
        self.kept.into_sorted_vec().into_iter().map(|near| near.0).collect()
    }
}
