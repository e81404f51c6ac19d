//! How long requests waited from socket to statement, as Halcyon counts it: requests by power of two of nanoseconds, over all shards.

use std::collections::BTreeMap;

use crate::Result;
use crate::connection::Connection;

pub(super) struct Waits(BTreeMap<u64, u64>);

impl Waits {
    pub(super) fn of(port: u16) -> Result<Waits> {
        let page = Connection::open(port)?
            .rows("SELECT below_ns, requests FROM halcyon_views.request_wait")?;
        let number = |cell: Option<&Option<Vec<u8>>>| {
            let bytes = cell?.as_ref()?.first_chunk::<8>()?;
            Some(u64::from_be_bytes(*bytes))
        };
        let mut counts = BTreeMap::new();
        for row in &page.rows {
            if let (Some(below), Some(requests)) = (number(row.first()), number(row.get(1))) {
                *counts.entry(below).or_default() += requests;
            }
        }
        Ok(Waits(counts))
    }

    /// What came after `before`.
    pub(super) fn since(&self, before: &Waits) -> Waits {
        let known = |below: &u64| before.0.get(below).copied().unwrap_or(0);
        let since =
            self.0.iter().map(|(below, count)| (*below, count.saturating_sub(known(below))));
        Waits(since.collect())
    }

    /// This share of the requests waited less, in µs.
    pub(super) fn below_us(&self, share: f64) -> Option<f64> {
        let all: u64 = self.0.values().sum();
        let wanted = (all as f64 * share).ceil() as u64;
        let mut seen = 0;
        let reached = self.0.iter().find(|(_, count)| {
            seen += **count;
            all > 0 && seen >= wanted
        });
        reached.map(|(below, _)| *below as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_stretch_of_time() {
        let before = Waits([(1024, 5)].into());
        let after = Waits([(1024, 104), (4096, 1)].into());
        let waits = after.since(&before);
        assert_eq!(waits.below_us(0.5), Some(1.024));
        assert_eq!(waits.below_us(0.999), Some(4.096));
        assert_eq!(before.since(&before).below_us(0.5), None);
    }
}
