//! What an index has of a memtable.
//!
//! 1. An entry stays when its value is overwritten: to take it out, each write would have to look up what it replaces.
//! 2. An entry takes some hundred bytes. A text of many terms has none, but a set of them, which takes no more than a few bytes for each: a
//!    search that finds its terms among the entries then looks at each of these sets.
//! 3. Vectors are in no order, and a search compares all of them: a graph would cost each write more than the write itself.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::ops::Bound;

use halcyon_model::similarity::Similarity;
use halcyon_sstable::attached::{Entry, Held, Neighbour, Target, TermSet, Terms};
use halcyon_stream::{Mutation, PrimaryKey, PrimaryKeyRange};

use super::TableIndex;

pub(crate) struct MemtableIndex {
    pub(crate) of: TableIndex,
    kept: Kept,
}

#[derive(Default)]
struct Kept {
    entries: BTreeSet<Entry>,
    /// Of texts with more than [`FEW`] terms.
    sets: BTreeMap<PrimaryKey, TermSet>,
    /// Of an index on vectors, instead of entries.
    vectors: Vec<Vectors>,
}

/// Terms of a value that become entries: names and addresses are found without a look at all of them.
const FEW: usize = 32;

/// Sets that are looked at to choose an index.
const SAMPLED: usize = 64;

/// Floats of a chunk: some 10 µs to compare, and to grow, none of them has to be moved.
const CHUNK: usize = 32 << 10;

/// Vectors, one behind the other, and their places.
#[derive(Default)]
struct Vectors {
    floats: Vec<f32>,
    places: Vec<PrimaryKey>,
}

/// Where a walk continues.
pub(super) enum Behind {
    Entry(Entry),
    Set(PrimaryKey),
}

impl Kept {
    /// Returns the growth in bytes.
    fn insert(&mut self, of: &Target, place: PrimaryKey, held: Held) -> usize {
        if of.similarity.is_some() {
            let added = |entry: Entry| {
                let size = entry.size();
                Vectors::add(&mut self.vectors, entry);
                size
            };
            return held.entries(place).map(added).sum();
        }
        match held {
            Held::Several(terms) if terms.len() > FEW => self.insert_set(place, terms),
            held => {
                let size = |entry: Entry| {
                    let size = entry.size();
                    if self.entries.insert(entry) { size } else { 0 }
                };
                held.entries(place).map(size).sum()
            }
        }
    }

    fn insert_set(&mut self, place: PrimaryKey, terms: TermSet) -> usize {
        let of_place = place.size() + size_of::<TermSet>();
        match self.sets.entry(place) {
            btree_map::Entry::Vacant(vacant) => of_place + vacant.insert(terms).size(),
            btree_map::Entry::Occupied(mut of_place) => {
                let both = of_place.get().with(&terms);
                let grown = both.size().saturating_sub(of_place.get().size());
                of_place.insert(both);
                grown
            }
        }
    }
}

impl MemtableIndex {
    pub(crate) fn new(of: TableIndex) -> MemtableIndex {
        MemtableIndex { of, kept: Kept::default() }
    }

    /// Takes what the values of a mutation of the memtable's layout have; returns the growth in bytes.
    pub(crate) fn add(&mut self, mutation: &Mutation) -> usize {
        let MemtableIndex { of, kept } = self;
        let mut grown = 0;
        of.target
            .of_mutation(mutation, |place, held| grown += kept.insert(&of.target, place, held));
        grown
    }

    /// Takes what a value has; returns the growth in bytes.
    pub(crate) fn insert(&mut self, place: PrimaryKey, held: Held) -> usize {
        self.kept.insert(&self.of.target, place, held)
    }

    /// Whether the entries alone are all that it has, in order.
    pub(crate) fn is_sorted(&self) -> bool {
        self.kept.sets.is_empty() && self.kept.vectors.is_empty()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.kept.entries.iter()
    }

    /// What is not among the entries.
    pub(crate) fn others(&self) -> impl Iterator<Item = (PrimaryKey, Held)> {
        let dimension = self.of.target.dimension();
        let vectors = self.kept.vectors.iter().flat_map(move |chunk| chunk.entries(dimension));
        let sets = self
            .kept
            .sets
            .iter()
            .map(|(place, terms)| (place.clone(), Held::Several(terms.clone())));
        sets.chain(vectors.map(|entry| (entry.place, Held::One(entry.term))))
    }

    /// How near the vectors of a chunk are to one, of those that are nearer than `floor`; `None`: there is no such chunk.
    pub(super) fn neighbours(
        &self,
        similarity: Similarity,
        vector: &[f32],
        chunk: usize,
        floor: Option<f32>,
    ) -> Option<impl Iterator<Item = Neighbour>> {
        let chunk = self.kept.vectors.get(chunk)?;
        let others = chunk.floats.chunks_exact(vector.len().max(1));
        Some(others.zip(&chunk.places).filter_map(move |(other, place)| {
            let score = similarity.score_of(similarity.closeness(vector, other));
            let is_near = floor.is_none_or(|floor| score > floor);
            is_near.then(|| Neighbour { score, place: place.clone() })
        }))
    }

    /// How many entries there are of these terms, up to `most`, and about how many sets have one.
    pub(super) fn estimate(&self, terms: &Terms, from: &PrimaryKey, most: usize) -> u64 {
        let entries = self.from(terms, from).take_while(|e| !terms.is_before(&e.term)).take(most);
        let sampled = self.kept.sets.range(from..).take(SAMPLED);
        let of_sample = sampled.filter(|(_, set)| set.has(terms)).count() as u64;
        let sets = of_sample * self.kept.sets.len() as u64
            / SAMPLED.min(self.kept.sets.len()).max(1) as u64;
        entries.count() as u64 + sets
    }

    pub(super) fn has(&self, terms: &Terms, place: &PrimaryKey) -> bool {
        let is_entry = |term: &[u8]| {
            self.kept.entries.contains(&Entry { term: term.into(), place: place.clone() })
        };
        terms.single().is_some_and(is_entry)
            || self.kept.sets.get(place).is_some_and(|set| set.has(terms))
    }

    fn from(&self, terms: &Terms, from: &PrimaryKey) -> impl Iterator<Item = &Entry> {
        let start = match (terms.single(), &terms.start) {
            (Some(term), _) => Some((term, from.clone())),
            (None, Bound::Included(term) | Bound::Excluded(term)) => {
                Some((&**term, PrimaryKey::before_token(i64::MIN)))
            }
            (None, Bound::Unbounded) => None,
        };
        let start = start.map(|(term, place)| Entry { term: term.into(), place });
        let bounds = (start.map_or(Bound::Unbounded, Bound::Included), Bound::Unbounded);
        self.kept.entries.range::<Entry, _>(bounds).filter(|entry| !terms.is_behind(&entry.term))
    }

    /// Gives `take` the places of these terms in a range, at most `steps` entries or sets at a time: first those of entries, of a single
    /// term in order, then those of sets, in order; of each until `take` says `false`. Where to continue, if it is not done.
    pub(super) fn places(
        &self,
        terms: &Terms,
        range: &PrimaryKeyRange,
        behind: Option<&Behind>,
        steps: usize,
        take: &mut impl FnMut(&PrimaryKey) -> bool,
    ) -> Option<Behind> {
        let behind = match behind {
            Some(Behind::Set(last)) => return self.places_of_sets(terms, range, last, steps, take),
            Some(Behind::Entry(last)) => Some(last),
            None => None,
        };
        match self.places_of_entries(terms, range, behind, steps, take) {
            Some(last) => Some(Behind::Entry(last)),
            None if self.kept.sets.is_empty() => None,
            None => Some(Behind::Set(PrimaryKey::before_token(i64::MIN))),
        }
    }

    fn places_of_entries(
        &self,
        terms: &Terms,
        range: &PrimaryKeyRange,
        behind: Option<&Entry>,
        steps: usize,
        take: &mut impl FnMut(&PrimaryKey) -> bool,
    ) -> Option<Entry> {
        let is_single = terms.single().is_some();
        let mut walk: Box<dyn Iterator<Item = &Entry>> = match behind {
            Some(last) => {
                let bounds = (Bound::Excluded(last), Bound::Unbounded);
                Box::new(self.kept.entries.range::<Entry, _>(bounds))
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

    fn places_of_sets(
        &self,
        terms: &Terms,
        range: &PrimaryKeyRange,
        behind: &PrimaryKey,
        steps: usize,
        take: &mut impl FnMut(&PrimaryKey) -> bool,
    ) -> Option<Behind> {
        let bounds = match range.start > *behind {
            true => (Bound::Included(&range.start), Bound::Unbounded),
            false => (Bound::Excluded(behind), Bound::Unbounded),
        };
        let mut last = None;
        for (place, set) in self.kept.sets.range::<PrimaryKey, _>(bounds).take(steps) {
            if !range.contains(place) || (set.has(terms) && !take(place)) {
                return None;
            }
            last = Some(place);
        }
        last.map(|last| Behind::Set(last.clone()))
    }
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
