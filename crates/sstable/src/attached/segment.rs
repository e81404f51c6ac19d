//! A part of an index on vectors: the vectors, where each of them is, and their graph.
//!
//! ```text
//!  u8 similarity | uvint dimension | uvint vectors | vectors | each: uvint places, the places as entries without a term
//!  u8 whether there is a graph | u32 entry | u32 its level | neighbours on level 0 | u32 of each, where its others are
//!  uvint others | neighbours on upper levels
//! ```
//! 1. A vector that several rows have is there once, with all their places.
//! 2. It is built in memory and searched in memory; its size is bounded, so a large SSTable has several.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use halcyon_model::bytes::Put;
use halcyon_model::similarity::Similarity;
use halcyon_model::{Clusterings, Cursor, DecodeResult};
use halcyon_stream::PrimaryKey;

use super::Entry;
use super::entry::{Entries, encode_entry};
use super::graph::Graph;

/// A place, and how near its vector is to the one that was asked for, by the function of the index.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbour {
    pub score: f32,
    pub place: PrimaryKey,
}

/// The nearest of some part of an index; of several parts, in no order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Neighbours {
    pub near: Vec<Neighbour>,
    /// No other has a better score; `None`: there are no others.
    pub others: Option<f32>,
}

impl Neighbours {
    /// Adds those of another part.
    pub fn add(&mut self, of: Neighbours) {
        self.near.extend(of.near);
        self.others = match (self.others, of.others) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }
}

/// A segment that is being built.
pub(super) struct SegmentBuilder {
    graph: Graph,
    places: Vec<Vec<u8>>,
    /// Numbers of vectors, by hash.
    known: HashMap<u64, u32>,
    size: usize,
    pub(super) entries: u64,
}

/// The floats of a term.
pub(super) fn vector_of(term: &[u8]) -> Vec<f32> {
    term.as_chunks::<4>().0.iter().map(|float| f32::from_be_bytes(*float)).collect()
}

impl SegmentBuilder {
    pub(super) fn new(similarity: Similarity, dimension: usize) -> SegmentBuilder {
        let graph = Graph::new(similarity, dimension);
        SegmentBuilder { graph, places: Vec::new(), known: HashMap::new(), size: 0, entries: 0 }
    }

    /// Takes some 100 µs of a processor.
    pub(super) fn add(&mut self, entry: &Entry) {
        let mut hasher = DefaultHasher::new();
        entry.term.hash(&mut hasher);
        let vector = vector_of(&entry.term);
        let next = self.places.len() as u32;
        let node = *self.known.entry(hasher.finish()).or_insert(next);
        let is_known = node != next && self.graph.vector(node) == vector;
        let place = Entry { term: Box::default(), place: entry.place.clone() };
        if !is_known {
            self.graph.add(&vector);
            self.places.push(Vec::new());
        }
        let node = if is_known { node } else { next };
        if let Some(places) = self.places.get_mut(node as usize) {
            let before = places.len();
            encode_entry(&place, None, places);
            self.size += places.len() - before;
            self.entries += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        let each = size_of::<Vec<u8>>() + size_of::<(u64, u32)>();
        self.graph.size() + self.size + self.places.len() * each
    }

    /// As it is written.
    pub(super) fn encode(self) -> Vec<u8> {
        let SegmentBuilder { graph, places, .. } = self;
        let mut out = Vec::with_capacity(graph.size() + places.len() * 8);
        out.put_u8(match graph.similarity {
            Similarity::Cosine => 0,
            Similarity::Euclidean => 1,
            Similarity::DotProduct => 2,
        });
        out.put_uvint(graph.dimension as u64);
        out.put_uvint(places.len() as u64);
        for float in &graph.vectors {
            out.put_u32(float.to_bits());
        }
        for places in &places {
            out.put_uvint(places.len() as u64);
            out.put(places);
        }
        out.put_u8(u8::from(!graph.base.is_empty()));
        if !graph.base.is_empty() {
            out.put_u32(graph.entry);
            out.put_u32(graph.top);
            graph.base.iter().chain(&graph.upper_at).for_each(|number| out.put_u32(*number));
            out.put_uvint(graph.upper.len() as u64);
            graph.upper.iter().for_each(|number| out.put_u32(*number));
        }
        out
    }
}

/// A segment in memory.
pub struct Segment {
    graph: Graph,
    /// Of the places of each vector.
    ends: Vec<usize>,
    places: Vec<u8>,
    clusterings: Clusterings,
}

impl Segment {
    pub(super) fn decode(
        cursor: &mut Cursor<'_>,
        clusterings: &Clusterings,
    ) -> DecodeResult<Segment> {
        let similarity = match cursor.u8()? {
            0 => Similarity::Cosine,
            1 => Similarity::Euclidean,
            2 => Similarity::DotProduct,
            other => return Err(cursor.error(format!("unknown similarity function {other}"))),
        };
        let mut graph = Graph::new(similarity, cursor.count()?);
        let count = cursor.count()?;
        let vectors = numbers(cursor, count.saturating_mul(graph.dimension))?;
        graph.vectors = vectors.map(f32::from_bits).collect();
        let (mut ends, mut places) = (Vec::with_capacity(count), Vec::new());
        for _ in 0..count {
            places.extend_from_slice(cursor.vbytes()?);
            ends.push(places.len());
        }
        if cursor.bool()? {
            (graph.entry, graph.top) = (cursor.u32()?, cursor.u32()?);
            graph.base = numbers(cursor, count.saturating_mul(super::graph::BASE))?.collect();
            graph.upper_at = numbers(cursor, count)?.collect();
            let upper = cursor.count()?;
            graph.upper = numbers(cursor, upper)?.collect();
        }
        match cursor.remaining() {
            0 => Ok(Segment { graph, ends, places, clusterings: clusterings.clone() }),
            more => Err(cursor.error(format!("{more} bytes behind a segment"))),
        }
    }

    /// Bytes of memory.
    pub fn size(&self) -> usize {
        self.graph.size() + self.ends.len() * size_of::<usize>() + self.places.len()
    }

    /// The places of vectors that are near one that is kept as the index keeps them: at least `count`, if they exist. The nearest of
    /// `of` vectors are looked for.
    pub async fn nearest(&self, vector: &[f32], count: usize, of: u64) -> DecodeResult<Neighbours> {
        let (nodes, mut is_all) = self.graph.nearest(vector, count, of).await;
        let mut near = Vec::with_capacity(nodes.len());
        let mut worst = f32::NEG_INFINITY;
        for node in nodes {
            if near.len() >= count {
                is_all = false;
                break;
            }
            worst = self.graph.similarity.score_of(node.closeness);
            for place in self.places(node.node)? {
                near.push(Neighbour { score: worst, place });
            }
        }
        Ok(Neighbours { near, others: Some(worst).filter(|_| !is_all) })
    }

    fn places(&self, node: u32) -> DecodeResult<Vec<PrimaryKey>> {
        let node = node as usize;
        let start = node.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(node).copied().unwrap_or_default();
        let bytes = self.places.get(start.unwrap_or_default()..end).unwrap_or_default();
        let mut cursor = Cursor::new(bytes);
        let mut entries = Entries::new(&mut cursor, &self.clusterings);
        let mut places = Vec::new();
        while entries.next_term()?.is_some() {
            places.push(entries.primary_key()?);
        }
        Ok(places)
    }
}

fn numbers<'a>(
    cursor: &mut Cursor<'a>,
    count: usize,
) -> DecodeResult<impl Iterator<Item = u32> + use<'a>> {
    let bytes = cursor.take(count.saturating_mul(4))?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|number| u32::from_be_bytes(*number)))
}
