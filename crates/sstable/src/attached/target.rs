//! What of a row is indexed, and the terms that a search asks for.

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;

use halcyon_model::analysis::{Matching, Mode, Sasi, TextAnalysis};
use halcyon_model::byte_comparable::encode;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::similarity::{Similarity, floats};
use halcyon_model::token::split_key;
use halcyon_model::{Clusterings, CqlType};
use halcyon_stream::{Cell, Layout, Mutation, PartitionKey, PrimaryKey, Row};

use super::{Held, TermSet, Terms};

/// Before the bytes of a value, and alone for an empty one that has none.
const VALUE: u8 = 0x40;
const EMPTY: u8 = 0x3f;

/// Where texts are searched for within, their terms are these many bytes from each byte on: a text has no more terms than bytes, however
/// long it is. (SASI has all of what follows each character.)
const GRAM: usize = 4;
/// A search for a long text asks for at most this many of them: rows decide.
const ASKED: usize = 16;

/// Longer terms are cut off: rows decide. So an entry takes no more memory than a row, whatever is indexed.
const LONGEST: usize = 1 << 10;
/// A text of more terms is a candidate of every search: it has most of what texts are searched for, and reading it costs less than keeping
/// its terms.
const MOST: usize = 8 << 10;

/// Where the values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// By position, and of how many.
    PartitionKey(usize, usize),
    Clustering(usize),
    /// By position in the layout's columns.
    Static(u16),
    Regular(u16),
}

/// What of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// Of a collection with a cell for each element.
    Values,
    Keys,
    Entries,
}

/// What an index has of each row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub source: Source,
    pub part: Part,
    /// Of a term: value, element, key, or a composite of key and value.
    pub term_type: CqlType,
    /// Of texts.
    pub analysis: Option<TextAnalysis>,
    /// Of SASI, which makes several terms of a value.
    pub sasi: Option<Sasi>,
    /// Of vectors: terms are the vectors as they are compared, and in no order.
    pub similarity: Option<Similarity>,
    /// Numbers the columns of what is indexed.
    pub layout: Arc<Layout>,
}

impl Target {
    /// Whether its places are partitions, not rows.
    pub fn is_of_partitions(&self) -> bool {
        self.layout.clusterings.is_empty()
            || matches!(self.source, Source::PartitionKey(..) | Source::Static(_))
    }

    /// Of vectors.
    pub fn dimension(&self) -> usize {
        match &self.term_type {
            CqlType::Vector(_, dimension) => *dimension as usize,
            _ => 0,
        }
    }

    /// Whether a value can have several terms.
    pub fn has_several(&self) -> bool {
        self.literal().is_some_and(|sasi| sasi.mode == Mode::Contains || sasi.is_tokenized())
    }

    /// The terms of a value that is stored. A vector that nothing is near to has none, a text without words neither.
    fn indexed(&self, value: &[u8]) -> Option<Held> {
        if let Some(sasi) = self.literal() {
            return literal_terms(&sasi, value);
        }
        let Some(similarity) = self.similarity else { return Some(Held::One(self.term(value))) };
        let vector = floats(value);
        let is_kept = vector.len() == self.dimension() && similarity.refusal(&vector).is_none();
        let bytes = || similarity.kept(vector).into_iter().flat_map(f32::to_be_bytes).collect();
        is_kept.then(|| Held::One(bytes()))
    }

    /// SASI, where terms are compared as bytes.
    fn literal(&self) -> Option<Sasi> {
        self.sasi.filter(|sasi| sasi.is_literal)
    }

    /// The terms that a value with a term like this one has all of.
    pub fn like(&self, how: Matching, term: &[u8]) -> Vec<Terms> {
        let is_contains = self.sasi.is_some_and(|sasi| sasi.mode == Mode::Contains);
        let whole = matches!(how, Matching::Equal | Matching::Whole);
        match is_contains {
            true if term.len() < GRAM => vec![beginning(term)],
            true => {
                let asked =
                    term.chunks_exact(GRAM).chain(term.last_chunk::<GRAM>().map(|l| &l[..]));
                asked.take(ASKED).map(|gram| Terms::one(literal(gram))).collect()
            }
            false if whole => vec![Terms::one(literal(term))],
            false => vec![beginning(term)],
        }
    }

    pub fn term(&self, value: &[u8]) -> Box<[u8]> {
        let analysed = self.analysis.map(|analysis| analysis.apply(value));
        let value = analysed.as_deref().unwrap_or(value);
        let mut term = Vec::with_capacity(value.len() + 3);
        term.push(VALUE);
        if !encode(&self.term_type, value, &mut term) {
            term.clear();
            term.push(EMPTY);
        }
        term.truncate(LONGEST);
        term.into()
    }

    pub fn equal(&self, value: &[u8]) -> Terms {
        Terms::one(self.term(value))
    }

    pub fn range(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Terms {
        let bound = |bound: Bound<&[u8]>| match bound.map(|value| self.term(value)) {
            // Of what was cut off, some is behind the bound.
            Bound::Excluded(term) if term.len() == LONGEST => Bound::Included(term),
            bound => bound,
        };
        Terms { start: bound(start), end: bound(end) }
    }

    /// Shows what each value of a mutation of the target's layout has.
    pub fn of_mutation(&self, mutation: &Mutation, mut see: impl FnMut(PrimaryKey, Held)) {
        let rows = mutation.rows.iter().map(|row| row.row());
        let of_static = mutation.static_row.as_ref().map(|row| row.row());
        match self.source {
            Source::PartitionKey(..) => {
                if of_static.is_some() || !mutation.rows.is_empty() {
                    self.of_key(&mutation.key, see);
                }
            }
            Source::Static(_) => {
                of_static.into_iter().for_each(|row| self.of_static(&mutation.key, &row, &mut see));
            }
            Source::Clustering(_) | Source::Regular(_) => {
                let key = Arc::from(mutation.key.bytes.as_slice());
                rows.for_each(|row| self.of_row(mutation.key.token, &key, &row, &mut see));
            }
        }
    }

    /// Of a partition that has a row.
    pub fn of_key(&self, key: &PartitionKey, mut see: impl FnMut(PrimaryKey, Held)) {
        if let Source::PartitionKey(at, of) = self.source
            && let Some(value) = split_key(&key.bytes, of).and_then(|parts| parts.get(at).copied())
            && let Some(held) = self.indexed(value)
        {
            see(PrimaryKey::partition(key), held);
        }
    }

    pub fn of_static(
        &self,
        key: &PartitionKey,
        row: &Row<'_>,
        mut see: impl FnMut(PrimaryKey, Held),
    ) {
        if let Source::Static(column) = self.source {
            let place = PrimaryKey::partition(key);
            self.of_cells(column, row, |held| see(place.clone(), held));
        }
    }

    pub fn of_row(
        &self,
        token: i64,
        key: &Arc<[u8]>,
        row: &Row<'_>,
        mut see: impl FnMut(PrimaryKey, Held),
    ) {
        let clusterings = &self.layout.clusterings;
        let place = || PrimaryKey::row(token, key.clone(), row.clustering, clusterings);
        match self.source {
            Source::Regular(column) => {
                let mut of_row = None;
                self.of_cells(column, row, |held| {
                    see(of_row.get_or_insert_with(place).clone(), held);
                });
            }
            // A row that is only deleted has no value.
            Source::Clustering(at) if !row.liveness.is_empty() || !row.cells.is_empty() => {
                let value = clustering_value(clusterings, row.clustering, at);
                if let Some(held) = value.and_then(|value| self.indexed(value)) {
                    see(place(), held);
                }
            }
            _ => {}
        }
    }

    fn of_cells(&self, column: u16, row: &Row<'_>, mut see: impl FnMut(Held)) {
        let of_column = |cell: &&Cell| cell.column == column && !cell.is_tombstone();
        for cell in row.cells.iter().filter(of_column) {
            let (path, value) = (cell.path.of(row.bytes), cell.value.of(row.bytes));
            let held = match self.part {
                Part::Whole | Part::Values => self.indexed(value),
                Part::Keys => self.indexed(path),
                Part::Entries => self.indexed(&entry(path, value)),
            };
            held.into_iter().for_each(&mut see);
        }
    }
}

/// A term that is compared as bytes.
fn literal(bytes: &[u8]) -> Box<[u8]> {
    bytes.get(..LONGEST).unwrap_or(bytes).into()
}

/// What follows each byte of a term, as far as it is indexed; at its end, zeros. An empty one has one too, so that it is found.
fn grams(term: &[u8]) -> impl Iterator<Item = [u8; GRAM]> {
    (0..term.len().max(1)).map(|at| {
        let follows = term.get(at..).unwrap_or_default();
        std::array::from_fn(|of| follows.get(of).copied().unwrap_or_default())
    })
}

/// Each once. `None`: there are none.
fn literal_terms(sasi: &Sasi, value: &[u8]) -> Option<Held> {
    let mut terms: HashSet<Box<[u8]>> = HashSet::new();
    let mut add = |term: &[u8]| {
        let term = term.get(..LONGEST).unwrap_or(term);
        terms.contains(term) || (terms.insert(term.into()) && terms.len() <= MOST)
    };
    sasi.each_term(value, |term| match sasi.mode {
        Mode::Contains => grams(term).all(|gram| add(&gram)),
        Mode::Prefix | Mode::Sparse => add(term),
    });
    match terms.len() {
        0 => None,
        1 => terms.into_iter().next().map(Held::One),
        2..=MOST => Some(Held::Several(TermSet::of(terms.into_iter().collect()))),
        _ => Some(Held::One(Box::default())),
    }
}

/// All terms that begin so.
fn beginning(bytes: &[u8]) -> Terms {
    let start = literal(bytes);
    let mut end = start.to_vec();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    let end = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Bound::Excluded(end.into())
        }
        None => Bound::Unbounded,
    };
    Terms { start: Bound::Included(start), end }
}

/// A composite of two components.
fn entry(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut composite = Vec::with_capacity(key.len() + value.len() + 6);
    for part in [key, value] {
        // What is longer is refused when it is written.
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        composite.extend_from_slice(&length.to_be_bytes());
        composite.extend_from_slice(part);
        composite.push(0);
    }
    composite
}

fn clustering_value<'a>(
    clusterings: &'a Clusterings,
    clustering: &'a [u8],
    at: usize,
) -> Option<&'a [u8]> {
    match clusterings.values(clustering, clusterings.len()).nth(at)? {
        ClusteringValue::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}
