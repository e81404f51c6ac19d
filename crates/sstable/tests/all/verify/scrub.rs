//! A scrub keeps everything that is sound.

use std::sync::Arc;

use halcyon_io::{Disk, DiskOptions, block_on};
use halcyon_model::Partitioner;
use halcyon_sstable::verify::{Damage, Scrub, ScrubOptions};
use halcyon_sstable::{Component, OpenOptions, SSTable, ScanOptions};
use halcyon_stream::{Fragment, FragmentStream, Layout, Validator};

use super::copy::Copy;
use crate::corpus::{corpus, sstables_below};

const VALIDATED: ScrubOptions =
    ScrubOptions { validates: true, skips_corrupted_counters: false, reinserts_overflowed: false };

/// A partition: its key, then what it holds, in words.
type Partition = (Vec<u8>, Vec<String>);

async fn partitions<S: FragmentStream>(stream: &mut S, layout: &Arc<Layout>) -> Vec<Partition>
where
    S::Error: std::fmt::Debug,
{
    let mut validator = Validator::new(layout.clone());
    let mut found: Vec<Partition> = Vec::new();
    while stream.advance().await.expect("sound") {
        let fragment = stream.fragment();
        validator.check(fragment).expect("in order");
        match fragment {
            Fragment::Start(start) => {
                found.push((start.key.bytes.clone(), vec![format!("{:?}", start.deletion)]));
            }
            other => found.last_mut().expect("a start").1.push(format!("{other:?}")),
        }
    }
    found
}

async fn scrubbed(disk: &Disk, sstable: &Arc<SSTable>) -> (Vec<Partition>, Damage) {
    let scan = ScanOptions::default();
    let mut scrub = Scrub::start(disk, sstable, scan, VALIDATED).await.expect("starts");
    let found = partitions(&mut scrub, sstable.layout()).await;
    assert!(scrub.apart().await.expect("none").is_none());
    (found, scrub.damage().clone())
}

/// Proves that a scrub of sound SSTables, of all that Cassandra wrote, leaves nothing out and finds no damage.
#[test]
fn what_is_sound_is_kept() {
    let mut descriptors = Vec::new();
    sstables_below(&corpus(), &mut descriptors);
    let disk = Disk::real(DiskOptions::default());
    block_on(async {
        for descriptor in &descriptors {
            let opened = SSTable::open(&disk, descriptor, OpenOptions::default()).await;
            let sstable = Arc::new(opened.expect("opens"));
            let mut scan = sstable.scan(&disk, ScanOptions::default()).await.expect("scans");
            let before = partitions(&mut scan, sstable.layout()).await;
            let (after, damage) = scrubbed(&disk, &sstable).await;
            assert!(before == after && damage.is_none(), "{descriptor}: {damage:?}");
        }
    });
}

/// Proves that a flipped bit costs only what lies in its chunk: the partitions beside it are whole, and the one it cuts keeps all rows
/// before it.
#[test]
fn damage_costs_its_chunk_only() {
    for table in ["oa/compressed_lz4_4", "da/compressed_lz4_4", "oa/wide_asc", "da/deletions"] {
        let copy = Copy::of(table);
        let opened = SSTable::open(&copy.disk, &copy.descriptor, OpenOptions::default());
        let sstable = Arc::new(block_on(opened).expect("opens"));
        let mut scan = block_on(sstable.scan(&copy.disk, ScanOptions::default())).expect("scans");
        let before = block_on(partitions(&mut scan, sstable.layout()));
        let length = copy.files.get(&Component::Data).map_or(0, Vec::len) as u64;
        let mut cut = 0;
        for step in 0..24 {
            let offset = length * step / 24;
            let path = copy.path(Component::Data);
            assert!(copy.simulated.flip(&path, offset, (step % 8) as u8));
            let (after, damage) = block_on(scrubbed(&copy.disk, &sstable));
            assert!(copy.simulated.flip(&path, offset, (step % 8) as u8));
            assert!(damage.partitions > 0 && !damage.problems.is_empty(), "{table} {offset}");
            let differing = differing(&before, &after);
            assert!(differing.len() as u64 <= damage.partitions, "{table} {offset}: {damage:?}");
            cut += usize::from(after.len() + differing.len() > before.len());
        }
        println!("{table}: {} partitions, {cut} of 24 flips cut one", before.len());
    }
}

/// The partitions that changed; each keeps its beginning, and perhaps the end of a range tombstone.
fn differing<'a>(before: &'a [Partition], after: &[Partition]) -> Vec<&'a [u8]> {
    let mut after = after.iter().peekable();
    let mut differing = Vec::new();
    for (key, whole) in before {
        match after.next_if(|(left, _)| left == key) {
            Some((_, left)) if left == whole => {}
            Some((_, left)) => {
                let kept = left.iter().zip(whole).take_while(|(left, whole)| left == whole).count();
                let added = &left[kept..];
                let is_end = |text: &String| text == "End" || text.starts_with("Marker");
                assert!(added.len() <= 2 && added.iter().all(is_end), "{added:?}");
                differing.push(key.as_slice());
            }
            None => differing.push(key),
        }
    }
    assert_eq!(after.next(), None, "a partition that was not there");
    differing
}

/// Proves that partitions and rows out of order come in streams of their own, each of them in order, and that none is lost.
#[test]
fn disorder_is_set_apart() {
    // By another partitioner the order of tokens is a disorder, and so is that of rows if clusterings descend.
    let by_bytes = |of: &Layout| Layout { partitioner: Partitioner::ByteOrdered, ..of.clone() };
    block_on(set_apart(&Copy::of("oa/strings"), by_bytes));
    block_on(set_apart(&Copy::of("oa/clustering_text"), Layout::reversed));
}

async fn set_apart(copy: &Copy, change: fn(&Layout) -> Layout) {
    let opened = SSTable::open(&copy.disk, &copy.descriptor, OpenOptions::default()).await;
    let sstable = Arc::new(opened.expect("opens"));
    let mut scan = sstable.scan(&copy.disk, ScanOptions::default()).await.expect("scans");
    let rows = |partitions: Vec<Partition>| {
        let row = |text: &String| text.starts_with("Row");
        let of = |(key, texts): Partition| {
            let rows: Vec<String> = texts.into_iter().filter(row).collect();
            rows.into_iter().map(move |text| (key.clone(), text))
        };
        let mut rows: Vec<_> = partitions.into_iter().flat_map(of).collect();
        rows.sort();
        rows
    };
    let before = rows(partitions(&mut scan, sstable.layout()).await);
    let layout = Arc::new(change(sstable.layout()));
    let scan = ScanOptions { layout: Some(layout.clone()), ..ScanOptions::default() };
    let mut scrub =
        Some(Scrub::start(&copy.disk, &sstable, scan, VALIDATED).await.expect("starts"));
    let (mut after, mut streams) = (Vec::new(), 0);
    while let Some(mut stream) = scrub {
        after.extend(partitions(&mut stream, &layout).await);
        scrub = stream.apart().await.expect("starts");
        assert_eq!(stream.damage().disordered > 0, scrub.is_some());
        streams += 1;
        assert!(streams < 1000, "they never end");
    }
    assert!(streams > 1 && before == rows(after), "{streams} streams");
}
