//! One turn of a ring with one data set.
//!
//! 1. The first node compacts half of the set. Then every node gets a copy of the whole one, and answers reads for a while.
//! 2. The page cache is dropped, the hot set is read twice in its order.
//! 3. The open loop runs from here on: idle, a major compaction on the first node, afterwards.
//! 4. The rows must be what they were, and the compaction must have been done by who is measured.
//!
//! Reads go to all nodes in turn, as drivers send them where every node is a replica, so the node that compacts coordinates its share.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use halcyon_oracle::Result;
use halcyon_protocol::Consistency;

use super::nodes::Ring;
use crate::dataset::{DataSet, KEYSPACE};
use crate::gauge::Gauge;
use crate::keys::Keys;
use crate::machine::{cached_bytes, drop_page_cache, files_below, load};
use crate::paced::Paced;
use crate::programs::Programs;
use crate::record::Measurements;
use crate::restore::{sstables_in, wait_until};
use crate::stretch::{Phase, Schedule, Span, Stretch, Watched};

/// To a node that is alone, connections.
const CONNECTIONS: usize = 2;

/// `copies`: the set, in the files of each node.
pub(super) fn run(
    ring: &mut Ring,
    copies: &[DataSet],
    schedule: &Schedule,
    programs: &Programs,
) -> Result<Vec<Stretch>> {
    let load = load();
    let set = copies.first().ok_or("no set")?;
    let folders = ring.give(copies)?;
    let folder = folders.first().ok_or("no folder")?;
    let rows = ring.rows(set, schedule.keys)?;
    let mut watched = WatchedRing { ring, set, folder, rate: schedule.rate };
    watched.read_for(Keys { cold_every: 0, ..schedule.keys }, schedule.warm_up)?;
    let was_cold = schedule.cold && drop_page_cache();
    let mut stretches = watched.course(schedule, folder)?;
    if ring.rows(set, schedule.keys)? != rows {
        return Err("the rows are not what they were before the compaction".into());
    }
    ring.check_who_compacted(set)?;
    wait_until("compacted files are deleted", || sstables_in(folder).len() == 1)?;
    let content = programs.measure(&["inspect".as_ref(), folder.as_os_str()])?;
    ring.empty(set)?;
    let bytes = |name: &str| content[name].as_f64().unwrap_or(f64::NAN);
    for Stretch { phase, figures, .. } in &mut stretches {
        figures.add("cold", f64::from(u8::from(was_cold)));
        figures.add("load_before", load);
        if *phase == Phase::FullSpeed {
            let grown = figures.get("cached_growth_bytes").unwrap_or(f64::NAN);
            let moved = set.file_bytes() as f64 + bytes("file_bytes");
            figures.add("cached_growth_share", grown / moved);
            for name in ["partitions", "rows", "cells", "file_bytes"] {
                figures.add(&format!("output_{name}"), bytes(name));
            }
        }
    }
    Ok(stretches)
}

struct WatchedRing<'a> {
    ring: &'a mut Ring,
    set: &'a DataSet,
    /// Of the table on the node that compacts.
    folder: &'a Path,
    /// Reads a second.
    rate: f64,
}

impl Watched for WatchedRing<'_> {
    fn reads(&self, keys: Keys, seed: u64) -> Result<Paced> {
        let mut addresses = self.ring.addresses();
        if let [one] = addresses[..] {
            addresses = vec![one; CONNECTIONS];
        }
        let reads = keys.reads(&format!("{KEYSPACE}.{}", self.set.table()), seed);
        Paced::at(&addresses, Consistency::Quorum, self.rate, reads)
    }

    fn span(
        &mut self,
        paced: &Paced,
        phase: Phase,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Span> {
        let (cached, cage) = (self.cached(), self.ring.holds());
        let pauses = self.ring.pauses()?;
        let cpu = self.ring.cpu_seconds();
        let gauge = Gauge::begin(self.ring.compacting(), self.folder, None)?;
        let from = paced.now();
        work(self)?;
        let until = paced.now();
        let (mut figures, details) = gauge.end(self.ring.compacting(), None)?;
        figures.add("ring_cpu_seconds", self.ring.cpu_seconds() - cpu);
        let after = self.ring.pauses()?;
        figures.add("gc_pauses", after.count - pauses.count);
        figures.add("gc_ms", after.milliseconds - pauses.milliseconds);
        self.growth(&mut figures, cached, cage);
        Ok(Span { phase, from, until, figures, details })
    }

    fn compact(&mut self) -> Result<()> {
        self.ring.compact(self.set)
    }

    fn data_bytes(&self) -> u64 {
        self.set.data_bytes()
    }
}

impl WatchedRing<'_> {
    /// Of the page cache: of the table's files, and of the cage.
    fn growth(&self, figures: &mut Measurements, files: Option<u64>, cage: Option<(u64, u64)>) {
        let grown = |after: u64, before: u64| after as f64 - before as f64;
        if let (Some(after), Some(before)) = (self.cached(), files) {
            figures.add("cached_growth_bytes", grown(after, before));
        }
        if let (Some((after, all)), Some((before, _))) = (self.ring.holds(), cage) {
            figures.add("cage_page_cache_growth_bytes", grown(after, before));
            figures.add("cage_page_cache_bytes", after as f64);
            figures.add("cage_bytes", all as f64);
        }
    }

    /// Bytes of inputs and outputs that the page cache holds. Inputs that the node has deleted live on as the set's files.
    fn cached(&self) -> Option<u64> {
        let all = self.set.files().into_iter().chain(files_below(self.folder));
        let by_inode: BTreeMap<u64, PathBuf> =
            all.filter_map(|path| Some((path.metadata().ok()?.ino(), path))).collect();
        cached_bytes(&by_inode.into_values().collect::<Vec<_>>())
    }
}
