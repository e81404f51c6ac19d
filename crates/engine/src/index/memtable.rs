//! The entries of an index in a memtable.
//!
//! 1. An entry stays when its value is overwritten: to take it out, each write would have to look up what it replaces.
//! 2. Vectors are in no order, and a search compares all of them: a graph would cost each write more than the write itself.

use std::collections::BTreeSet;
use std::ops::Bound;

use halcyon_model::similarity::Similarity;
use halcyon_sstable::attached::{Entry, Neighbour, Place, PlaceRange, Terms};
use halcyon_stream::Mutation;

use super::TableIndex;

pub(crate) struct MemtableIndex {
    pub(crate) of: TableIndex,
    entries: BTreeSet<Entry>,
    /// Of an index on vectors, instead of entries.
    vectors: Vec<Vectors>,
}

/// Floats of a chunk: some 10 µs to compare, and to grow, none of them has to be moved.
const CHUNK: usize = 32 << 10;

/// Vectors, one behind the other, and their places.
#[derive(Default)]
struct Vectors {
    floats: Vec<f32>,
    places: Vec<Place>,
}

impl MemtableIndex {
    pub(crate) fn new(of: TableIndex) -> MemtableIndex {
        MemtableIndex { of, entries: BTreeSet::new(), vectors: Vec::new() }
    }

    /// Takes the entries of a mutation of the memtable's layout; returns the growth in bytes.
    pub(crate) fn add(&mut self, mutation: &Mutation) -> usize {
        let mut grown = 0;
        let MemtableIndex { of, entries, vectors } = self;
        let is_of_vectors = of.target.similarity.is_some();
        of.target.of_mutation(mutation, |entry| {
            grown += insert(entries, vectors, is_of_vectors, entry);
        });
        grown
    }

    /// Takes entries that were made of a mutation; returns the growth in bytes.
    pub(crate) fn add_entries(&mut self, made: impl Iterator<Item = Entry>) -> usize {
        let is_of_vectors = self.of.target.similarity.is_some();
        made.map(|entry| insert(&mut self.entries, &mut self.vectors, is_of_vectors, entry)).sum()
    }

    /// In order; vectors as they were written.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        let vectors =
            self.vectors.iter().flat_map(|chunk| chunk.entries(self.of.target.dimension()));
        self.entries.iter().cloned().chain(vectors)
    }

    /// How near the vectors of a chunk are to one, of those that are nearer than `floor`; `None`: there is no such chunk.
    pub(super) fn neighbours(
        &self,
        similarity: Similarity,
        vector: &[f32],
        chunk: usize,
        floor: Option<f32>,
    ) -> Option<impl Iterator<Item = Neighbour>> {
        let chunk = self.vectors.get(chunk)?;
        let others = chunk.floats.chunks_exact(vector.len().max(1));
        Some(others.zip(&chunk.places).filter_map(move |(other, place)| {
            let score = similarity.score_of(similarity.closeness(vector, other));
            let is_near = floor.is_none_or(|floor| score > floor);
            is_near.then(|| Neighbour { score, place: place.clone() })
        }))
    }

    /// How many entries there are of these terms, up to `most`.
    pub(super) fn estimate(&self, terms: &Terms, from: &Place, most: usize) -> u64 {
        self.from(terms, from).take_while(|e| !terms.is_before(&e.term)).take(most).count() as u64
    }

    pub(super) fn has(&self, term: &[u8], place: &Place) -> bool {
        self.entries.contains(&Entry { term: term.into(), place: place.clone() })
    }

    fn from(&self, terms: &Terms, from: &Place) -> impl Iterator<Item = &Entry> {
        let start = match (terms.single(), &terms.start) {
            (Some(term), _) => Some((term, from.clone())),
            (None, Bound::Included(term) | Bound::Excluded(term)) => {
                Some((&**term, Place::before_token(i64::MIN)))
            }
            (None, Bound::Unbounded) => None,
        };
        let start = start.map(|(term, place)| Entry { term: term.into(), place });
        let bounds = (start.map_or(Bound::Unbounded, Bound::Included), Bound::Unbounded);
        self.entries.range::<Entry, _>(bounds).filter(|entry| !terms.is_behind(&entry.term))
    }

    /// Gives `take` the places of these terms in a range, at most `steps` entries at a time: of a single term in order, until `take` says
    /// `false`. Where to go on, if it is not done.
    pub(super) fn places(
        &self,
        terms: &Terms,
        range: &PlaceRange,
        behind: Option<&Entry>,
        steps: usize,
        take: &mut impl FnMut(&Place) -> bool,
    ) -> Option<Entry> {
        let is_single = terms.single().is_some();
        let mut walk: Box<dyn Iterator<Item = &Entry>> = match behind {
            Some(last) => {
                let bounds = (Bound::Excluded(last), Bound::Unbounded);
                Box::new(self.entries.range::<Entry, _>(bounds))
            }
            None => Box::new(self.from(terms, &range.start)),
        };
        for step in 0..steps {
            let entry = walk.next().filter(|entry| !terms.is_before(&entry.term))?;
            if range.contains(&entry.place) {
                if !take(&entry.place) {
                    return None;
                }
            } else if is_single && range.start <= entry.place {
                return None;
            }
            if step + 1 == steps {
                return Some(entry.clone());
            }
        }
        None
    }
}

fn insert(
    entries: &mut BTreeSet<Entry>,
    vectors: &mut Vec<Vectors>,
    is_of_vectors: bool,
    entry: Entry,
) -> usize {
    let size = entry.size();
    if is_of_vectors {
        Vectors::add(vectors, entry);
        return size;
    }
    if entries.insert(entry) { size } else { 0 }
}

impl Vectors {
    fn add(all: &mut Vec<Vectors>, entry: Entry) {
        let room = |last: &Vectors| last.floats.len() + entry.term.len() / 4 <= CHUNK;
        if !all.last().is_some_and(room) {
            all.push(Vectors::default());
        }
        if let Some(last) = all.last_mut() {
            let floats = entry.term.as_chunks::<4>().0.iter();
            last.floats.extend(floats.map(|float| f32::from_be_bytes(*float)));
            last.places.push(entry.place);
        }
    }

    fn entries(&self, dimension: usize) -> impl Iterator<Item = Entry> {
        let vectors = self.floats.chunks_exact(dimension.max(1));
        vectors.zip(&self.places).map(|(vector, place)| Entry {
            term: vector.iter().flat_map(|float| float.to_be_bytes()).collect(),
            place: place.clone(),
        })
    }
}
