//! What the fuzz targets call, over their seeds and over golden files with random changes, for a few seconds.

#[path = "../../../../fuzz/src/components.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod components;
#[path = "../../../../fuzz/src/lz4.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod lz4;
#[path = "../../../../fuzz/src/mutation.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod mutation;
#[path = "../../../../fuzz/src/rows.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod rows;

use mutation::Mutator;

use crate::corpus::testdata;

/// The files of the corpus with this ending, one of each version and table where there are many.
fn samples(ending: &str) -> Vec<Vec<u8>> {
    let root = testdata();
    let mut paths = Vec::new();
    let tables = ["wide_asc", "statics", "compressed_lz4_4", "columns_75", "uncompressed"];
    for version in ["nb", "oa", "pa", "da", "ea"] {
        for table in tables {
            let dir = root.join(version).join(table).join("sstables");
            let entries = std::fs::read_dir(dir).expect("golden files").flatten();
            paths.extend(
                entries.map(|e| e.path()).filter(|p| p.to_string_lossy().ends_with(ending)),
            );
        }
    }
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).expect("readable")).collect()
}

fn try_mutations(name: &str, ending: &str, rounds: u64, target: fn(&[u8])) {
    let samples = samples(ending);
    assert!(!samples.is_empty(), "no {ending}");
    samples.iter().for_each(|bytes| target(bytes));
    mutation::seeds(name).iter().for_each(|bytes| target(bytes));
    for seed in 0..rounds {
        let mut mutator = Mutator::new(seed);
        let bytes = mutator.change_one_of(&samples);
        eprintln!("{ending}, seed {seed}, {} bytes", bytes.len());
        target(&bytes);
    }
}

#[test]
fn components_of_random_bytes() {
    try_mutations("statistics", "-Statistics.db", 12_000, components::statistics);
    try_mutations("compression_info", "-CompressionInfo.db", 30_000, components::compression_info);
    try_mutations("summary", "-Summary.db", 30_000, components::summary);
    try_mutations("filter", "-Filter.db", 30_000, components::filter);
    try_mutations("index_entries", "-Index.db", 30_000, components::index_entries);
    try_mutations("partitions_trie", "-Partitions.db", 30_000, components::partitions_trie);
    // A seed says itself where its entry begins.
    try_mutations("rows_trie", "-Rows.db", 30_000, |bytes| {
        components::rows_trie(bytes);
        components::rows_trie(&[bytes, &[0, 0]].concat());
    });
    try_mutations("toc", "-TOC.txt", 20_000, components::toc);
    try_mutations("crc", "-CRC.db", 20_000, components::crc);
    try_mutations("lz4", "-Data.db", 200, lz4::block);
}

#[test]
fn rows_of_random_bytes() {
    let samples = |(i, table): (usize, &&str)| {
        [&[i as u8], rows::Header::load(table).rows.as_slice()].concat()
    };
    let samples: Vec<Vec<u8>> = rows::TABLES.iter().enumerate().map(samples).collect();
    mutation::seeds("rows").iter().for_each(|bytes| rows::rows(bytes));
    for seed in 0..40_000 {
        let bytes = Mutator::new(seed).change_one_of(&samples);
        eprintln!("seed {seed}");
        rows::rows(&bytes);
    }
}
