//! What of a row is indexed, and the terms that a search asks for.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use halcyon_model::analysis::{Matching, Mode, Sasi, TextAnalysis};
use halcyon_model::byte_comparable::encode;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::similarity::{Similarity, floats};
use halcyon_model::token::split_key;
use halcyon_model::{Clusterings, CqlType};
use halcyon_stream::{Cell, Layout, Mutation, PartitionKey, Row};

use super::{Entry, Place};

/// Before the bytes of a value, and alone for an empty one that has none.
const VALUE: u8 = 0x40;
const EMPTY: u8 = 0x3f;

/// Where texts are searched for within, their terms are these many bytes from each byte on: a text has no more terms than bytes, however
/// long it is. (SASI has all of what follows each character.)
const GRAM: usize = 4;
/// Of a long text that is searched for, so many of these are asked for: rows decide.
const ASKED: usize = 16;

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

/// Byte-comparable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    pub start: Bound<Box<[u8]>>,
    pub end: Bound<Box<[u8]>>,
}

impl Terms {
    fn one(term: Box<[u8]>) -> Terms {
        Terms { start: Bound::Included(term.clone()), end: Bound::Included(term) }
    }

    /// The one term, if there is only one.
    pub fn single(&self) -> Option<&[u8]> {
        match (&self.start, &self.end) {
            (Bound::Included(start), Bound::Included(end)) if start == end => Some(start),
            _ => None,
        }
    }

    pub fn contains(&self, term: &[u8]) -> bool {
        !self.is_before(term) && !self.is_behind(term)
    }

    /// Whether the terms begin behind this one.
    pub fn is_behind(&self, term: &[u8]) -> bool {
        match &self.start {
            Bound::Included(start) => term < &**start,
            Bound::Excluded(start) => term <= &**start,
            Bound::Unbounded => false,
        }
    }

    /// Whether the terms end before this one.
    pub fn is_before(&self, term: &[u8]) -> bool {
        match &self.end {
            Bound::Included(end) => term > &**end,
            Bound::Excluded(end) => term >= &**end,
            Bound::Unbounded => false,
        }
    }
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

    /// The terms of a value that is stored. A vector that nothing is near to has none.
    fn indexed(&self, value: &[u8], mut see: impl FnMut(Box<[u8]>)) {
        if let Some(sasi) = self.literal() {
            return literal_terms(&sasi, value).into_iter().for_each(see);
        }
        let Some(similarity) = self.similarity else { return see(self.term(value)) };
        let vector = floats(value);
        if vector.len() == self.dimension() && similarity.refusal(&vector).is_none() {
            see(similarity.kept(vector).into_iter().flat_map(f32::to_be_bytes).collect());
        }
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
        term.into()
    }

    pub fn equal(&self, value: &[u8]) -> Terms {
        Terms::one(self.term(value))
    }

    pub fn range(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Terms {
        Terms { start: start.map(|value| self.term(value)), end: end.map(|value| self.term(value)) }
    }

    /// Shows the entries of a mutation of the target's layout.
    pub fn of_mutation(&self, mutation: &Mutation, mut see: impl FnMut(Entry)) {
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
    pub fn of_key(&self, key: &PartitionKey, mut see: impl FnMut(Entry)) {
        if let Source::PartitionKey(at, of) = self.source
            && let Some(value) = split_key(&key.bytes, of).and_then(|parts| parts.get(at).copied())
        {
            self.indexed(value, |term| see(Entry { term, place: Place::partition(key) }));
        }
    }

    pub fn of_static(&self, key: &PartitionKey, row: &Row<'_>, mut see: impl FnMut(Entry)) {
        if let Source::Static(column) = self.source {
            let place = Place::partition(key);
            self.of_cells(column, row, |term| see(Entry { term, place: place.clone() }));
        }
    }

    pub fn of_row(&self, token: i64, key: &Arc<[u8]>, row: &Row<'_>, mut see: impl FnMut(Entry)) {
        let clusterings = &self.layout.clusterings;
        let place = || Place::row(token, key.clone(), row.clustering, clusterings);
        match self.source {
            Source::Regular(column) => {
                self.of_cells(column, row, |term| see(Entry { term, place: place() }));
            }
            // A row that is only deleted has no value.
            Source::Clustering(at) if !row.liveness.is_empty() || !row.cells.is_empty() => {
                let value = clustering_value(clusterings, row.clustering, at);
                if let Some(value) = value {
                    self.indexed(value, |term| see(Entry { term, place: place() }));
                }
            }
            _ => {}
        }
    }

    fn of_cells(&self, column: u16, row: &Row<'_>, mut see: impl FnMut(Box<[u8]>)) {
        let of_column = |cell: &&Cell| cell.column == column && !cell.is_tombstone();
        for cell in row.cells.iter().filter(of_column) {
            let (path, value) = (cell.path.of(row.bytes), cell.value.of(row.bytes));
            match self.part {
                Part::Whole | Part::Values => self.indexed(value, &mut see),
                Part::Keys => self.indexed(path, &mut see),
                Part::Entries => self.indexed(&entry(path, value), &mut see),
            }
        }
    }
}

fn literal(bytes: &[u8]) -> Box<[u8]> {
    [&[VALUE], bytes].concat().into()
}

/// What follows each byte of a term, as far as it is indexed. An empty one has one too, so that it is found.
fn grams(term: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..term.len().max(1)).map(|at| term.get(at..term.len().min(at + GRAM)).unwrap_or_default())
}

/// Each once.
fn literal_terms(sasi: &Sasi, value: &[u8]) -> BTreeSet<Box<[u8]>> {
    let terms = sasi.terms(value);
    match sasi.mode {
        Mode::Contains => terms.iter().flat_map(|term| grams(term)).map(literal).collect(),
        Mode::Prefix | Mode::Sparse => terms.iter().map(|term| literal(term)).collect(),
    }
}

/// All terms that begin so.
fn beginning(bytes: &[u8]) -> Terms {
    let start = literal(bytes);
    let mut end = start.to_vec();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    Terms { start: Bound::Included(start), end: Bound::Excluded(end.into()) }
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
