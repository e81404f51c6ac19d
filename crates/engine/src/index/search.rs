//! Searches: which rows of this shard can have the values that are asked for.
//!
//! 1. Each memtable and SSTable that can have them gives its smallest places behind the last search's. What all of them know completely is
//!    the answer; where one had more than the limit, the next search begins behind its last.
//! 2. Of several searches the one with the fewest entries leads. Places that another one does not have are left out, unless it has more
//!    entries than reading the rows is worth.
//! 3. The answer is a superset in the order of the table: the reader asks the rows themselves.

use std::rc::Rc;
use std::sync::Arc;

use halcyon_schema::catalog::Table;
use halcyon_schema::index::{IndexSearch, Search};
use halcyon_sstable::attached::{AttachedIndex, Terms, Wanted};
use halcyon_stream::{PrimaryKey, PrimaryKeyRange};

use super::TableIndex;
use super::memtable::Behind;
use crate::current::Current;
use crate::memtable::Slot;
use crate::shard::{Shard, ShardTable};
use crate::version::LiveSSTable;
use crate::{Error, Result};

/// Entries of a memtable that are looked at before others run.
const STEPS: usize = 1024;

/// Entries of a memtable that are counted to choose an index.
const COUNTED: usize = 256;

/// A search that does not lead is asked if it has at most this many entries for each place that is left: to read a row takes some 10 µs, to
/// look at an entry less than a tenth of one.
const FOLLOWED: u64 = 128;

/// Rows, or whole partitions, in the order of the table.
#[derive(Debug, Default)]
pub struct Candidates {
    pub places: Vec<PrimaryKey>,
    /// Where the next search continues; `None`: at the end.
    pub next: Option<PrimaryKey>,
}

/// One of the searches of a request.
struct Asked {
    index: TableIndex,
    terms: Terms,
    estimate: u64,
}

/// What can have entries.
enum Holder {
    Memtable(Rc<Slot>),
    SSTable(Arc<LiveSSTable>, Arc<AttachedIndex>),
}

/// The smallest places that were shown, up to a limit.
struct Smallest {
    limit: usize,
    places: Vec<PrimaryKey>,
    /// There are others behind them.
    cut: bool,
    in_order: bool,
}

impl Smallest {
    fn new(limit: usize, in_order: bool) -> Smallest {
        Smallest { limit, places: Vec::new(), cut: false, in_order }
    }

    /// Whether more is wanted.
    fn take(&mut self, place: PrimaryKey) -> bool {
        if self.in_order && self.places.len() == self.limit {
            self.cut = true;
            return false;
        }
        self.places.push(place);
        if self.places.len() >= 2 * self.limit + 2 {
            self.trim();
        }
        true
    }

    fn trim(&mut self) {
        self.places.sort_unstable();
        self.places.dedup();
        if self.places.len() > self.limit {
            self.places.truncate(self.limit);
            self.cut = true;
        }
    }
}

impl Shard {
    /// Rows of this shard that can have all of what is searched for, not many more than `limit`. There may be none before `next`.
    pub async fn candidates(
        &self,
        table: &Arc<Table>,
        searches: &[IndexSearch],
        range: PrimaryKeyRange,
        limit: usize,
    ) -> Result<Candidates> {
        let table = self.table(table)?;
        self.tables().check_readable(&table.store)?;
        let (first, last) = self.tokens();
        let own = PrimaryKeyRange {
            start: PrimaryKey::before_token(first),
            end: PrimaryKey::after_token(last),
        };
        let range = range.cut_to(own);
        let found = self.find(&table, searches, range, limit.max(1)).await;
        found.inspect_err(|error| self.reporter().read_failed(error))
    }

    /// How many SSTables' storage-attached indexes can have what is searched for: those of the search that has most.
    pub fn sstable_indexes(
        &self,
        table: &Arc<Table>,
        searches: &[IndexSearch],
        range: &PrimaryKeyRange,
    ) -> Result<usize> {
        let attached = |search: &&IndexSearch| {
            let index = table.index(&search.index);
            index.is_some_and(|index| index.is_storage_attached())
        };
        let current = self.table(table)?.current();
        let mut most = 0;
        for search in searches.iter().filter(attached) {
            let (index, all) = terms_of(&current, search)?;
            let holders = holders(&current, &[], index, range)?;
            let has =
                |holder: &&Holder| all.iter().any(|terms| holder.estimate(index, terms, range) > 0);
            most = most.max(holders.iter().filter(has).count());
        }
        Ok(most)
    }

    async fn find(
        &self,
        table: &Rc<ShardTable>,
        searches: &[IndexSearch],
        range: PrimaryKeyRange,
        limit: usize,
    ) -> Result<Candidates> {
        let current = table.current();
        // With `current`, and no await in between: what a flush moves is seen in one of the two.
        let slots = table.slots();
        let mut asked = Vec::with_capacity(searches.len());
        for search in searches {
            let (index, all) = terms_of(&current, search)?;
            let holders = Rc::new(holders(&current, &slots, index, &range)?);
            for terms in all {
                let estimate =
                    holders.iter().map(|holder| holder.estimate(index, &terms, &range)).sum();
                asked.push((Asked { index: index.clone(), terms, estimate }, holders.clone()));
            }
        }
        asked.sort_by_key(|(asked, _)| asked.estimate);
        let mut asked = asked.into_iter();
        let Some((leader, holders)) = asked.next() else { return Ok(Candidates::default()) };
        let (mut places, next) =
            self.gather((table, &leader), &holders, &range, (limit, None)).await?;
        for (other, holders) in asked {
            if other.estimate > FOLLOWED * places.len() as u64 {
                break;
            }
            if other.index.target.is_of_partitions() != leader.index.target.is_of_partitions() {
                continue;
            }
            let range = PrimaryKeyRange {
                start: range.start.clone(),
                end: next.clone().or(range.end.clone()),
            };
            // Each holder shows at most all of these.
            let these = (places.len(), Some(Wanted(&places)));
            let (also, _) = self.gather((table, &other), &holders, &range, these).await?;
            places.retain(|place| also.binary_search(place).is_ok());
        }
        Ok(Candidates { places, next })
    }

    /// The places of one search, or those of them that are wanted, in order, and where others begin.
    async fn gather(
        &self,
        (table, asked): (&ShardTable, &Asked),
        holders: &[Holder],
        range: &PrimaryKeyRange,
        (limit, wanted): (usize, Option<Wanted<'_>>),
    ) -> Result<(Vec<PrimaryKey>, Option<PrimaryKey>)> {
        let mut places = Vec::new();
        let mut next: Option<PrimaryKey> = None;
        // A partition that was begun is before its rows.
        let whole =
            PrimaryKeyRange { start: range.start.whole_partition(), end: range.end.clone() };
        let range = if asked.index.target.is_of_partitions() { &whole } else { range };
        let of_every_search = asked.index.target.has_several().then(Terms::any);
        for (holder, terms) in holders
            .iter()
            .flat_map(|h| of_every_search.iter().chain([&asked.terms]).map(move |t| (h, t)))
        {
            let asked = (&asked.index, terms);
            let new = || Smallest::new(limit, terms.single().is_some());
            let mut all = holder.show((table, self), asked, range, wanted, new).await?;
            for found in &mut all {
                found.trim();
                if let Some(last) = found.places.last().filter(|_| found.cut) {
                    let behind = last.behind();
                    next = Some(next.map_or(behind.clone(), |next| next.min(behind)));
                }
                places.append(&mut found.places);
            }
        }
        places.sort_unstable();
        places.dedup();
        if let Some(next) = &next {
            places.truncate(places.partition_point(|place| place < next));
        }
        Ok((places, next))
    }
}

/// A row that is found has all of them.
fn terms_of<'a>(
    current: &'a Current,
    search: &IndexSearch,
) -> Result<(&'a TableIndex, Vec<Terms>)> {
    let indexes = &current.definition.indexes;
    let index = indexes.iter().find(|index| index.name == search.index);
    let index = index.ok_or_else(|| Error::IndexNotAvailable(search.index.clone()))?;
    let target = &index.target;
    let terms = match &search.search {
        Search::Equal(value) => vec![target.equal(value)],
        Search::Range { start, end } => {
            vec![target.range(start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice))]
        }
        Search::Like(how, term) => target.like(*how, term),
    };
    Ok((index, terms))
}

/// What can have places of a range; an error if the index is not complete.
fn holders(
    current: &Current,
    slots: &[Rc<Slot>],
    index: &TableIndex,
    range: &PrimaryKeyRange,
) -> Result<Vec<Holder>> {
    let missing = || Error::IndexNotAvailable(index.name.clone());
    let mut holders = Vec::new();
    let last = range.end.as_ref().map_or(i64::MAX, |end| end.token);
    for at in current.version.overlapping(range.start.token, last) {
        let Some(live) = current.version.get(at) else { continue };
        let attached = live.attached(index).ok_or_else(missing)?;
        holders.push(Holder::SSTable(live.clone(), attached));
    }
    for slot in slots {
        let state = slot.with(|memtable| match memtable.index(index) {
            Some(_) => Ok(true),
            None if memtable.is_empty() => Ok(false),
            None => Err(missing()),
        });
        if state? {
            holders.push(Holder::Memtable(slot.clone()));
        }
    }
    Ok(holders)
}

impl Holder {
    fn estimate(&self, index: &TableIndex, terms: &Terms, range: &PrimaryKeyRange) -> u64 {
        match self {
            Holder::SSTable(_, attached) => attached.estimate(terms, &range.start),
            Holder::Memtable(slot) => slot.with(|memtable| {
                let of = memtable.index(index);
                of.map_or(0, |of| of.estimate(terms, &range.start, COUNTED))
            }),
        }
    }

    /// The smallest places of these terms, of each part of what it has.
    async fn show(
        &self,
        (table, shard): (&ShardTable, &Shard),
        (index, terms): (&TableIndex, &Terms),
        range: &PrimaryKeyRange,
        wanted: Option<Wanted<'_>>,
        new: impl Fn() -> Smallest,
    ) -> Result<Vec<Smallest>> {
        let mut found = new();
        let is_wanted = |place: &PrimaryKey| wanted.is_none_or(|wanted| wanted.has(place));
        let slot = match self {
            Holder::SSTable(live, attached) => {
                let mut take = |place: PrimaryKey| !is_wanted(&place) || found.take(place);
                let shown = attached.places(&shard.caches, terms, range, wanted, &mut take).await;
                shown.map_err(|error| match error {
                    halcyon_sstable::Error::Corrupt { .. } => {
                        shard.index_damaged(&table.store, live, index, &error);
                        Error::IndexNotAvailable(index.name.clone())
                    }
                    other => other.into(),
                })?;
                return Ok(vec![found]);
            }
            Holder::Memtable(slot) => slot,
        };
        if let Some(wanted) = wanted.filter(|_| terms.single().is_some()) {
            for some in wanted.0.chunks(STEPS) {
                slot.with(|memtable| {
                    let index = memtable.index(index);
                    let has =
                        |place: &&PrimaryKey| index.is_some_and(|index| index.has(terms, place));
                    found.places.extend(some.iter().filter(has).cloned());
                });
                halcyon_io::yield_now().await;
            }
            return Ok(vec![found]);
        }
        let mut of_parts = Vec::new();
        let mut behind = None;
        loop {
            let next = slot.with(|memtable| {
                let index = memtable.index(index)?;
                let mut take = |place: &PrimaryKey| !is_wanted(place) || found.take(place.clone());
                index.places(terms, range, behind.as_ref(), STEPS, &mut take)
            });
            if matches!((&behind, &next), (None | Some(Behind::Entry(_)), Some(Behind::Set(_)))) {
                of_parts.push(std::mem::replace(&mut found, new()));
            }
            behind = next;
            if behind.is_none() {
                of_parts.push(found);
                return Ok(of_parts);
            }
            halcyon_io::yield_now().await;
        }
    }
}
