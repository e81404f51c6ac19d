//! What was found for a metric before. A walk shows the metrics of each table in one order, so the next metric is most likely the one that
//! followed last time, and no hash is needed.

use std::collections::HashMap;
use std::hash::Hash;

use halcyon_metrics::{Metric, Origin};

type Key<P> = (Origin, &'static str, &'static str, P);

pub(super) struct Recall<P, T> {
    /// In the order in which they came first.
    known: Vec<(Key<P>, T)>,
    places: HashMap<Key<P>, usize>,
    next: usize,
}

impl<P, T> Default for Recall<P, T> {
    fn default() -> Recall<P, T> {
        Recall { known: Vec::new(), places: HashMap::new(), next: 0 }
    }
}

impl<P: Copy + Eq + Hash, T: Copy> Recall<P, T> {
    /// For a part of a metric; `find` is called once.
    pub(super) fn of(&mut self, metric: &Metric, part: P, find: impl FnOnce() -> T) -> T {
        let key = (metric.origin, metric.group, metric.name, part);
        if let Some((known, found)) = self.known.get(self.next)
            && *known == key
        {
            self.next += 1;
            return *found;
        }
        let Recall { known, places, next } = self;
        let place = *places.entry(key).or_insert_with(|| {
            known.push((key, find()));
            known.len() - 1
        });
        *next = place + 1;
        known[place].1
    }
}
