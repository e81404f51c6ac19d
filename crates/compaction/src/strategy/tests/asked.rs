//! What functions of Apache Cassandra 5.0.9 answered to random questions.

use halcyon_model::options::compaction::{OverlapInclusion, Tiers};
use halcyon_model::options::{Compaction, MapOption, Strategy, Unified};

use super::super::candidates::Candidate;
use super::super::{overlaps, shard_boundaries, tiers};
use super::picks::table;

fn numbers<T: std::str::FromStr>(text: &str, between: char) -> Vec<T> {
    let number = |word: &str| word.parse().unwrap_or_else(|_| panic!("{word} is not a number"));
    text.split(between).filter(|word| !word.is_empty()).map(number).collect()
}

fn shown(sets: impl IntoIterator<Item = Vec<u64>>) -> String {
    let set = |mut set: Vec<u64>| {
        set.sort_unstable();
        set.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
    };
    sets.into_iter().map(set).collect::<Vec<_>>().join(" ")
}

fn buckets(question: &str) -> String {
    let words: Vec<&str> = question.split(' ').collect();
    let [low, high, min, sizes] = words[..] else { panic!("{question}") };
    let [bucket_low, bucket_high] = [low, high].map(|word| word.parse().expect("a share"));
    let tiers = Tiers { bucket_low, bucket_high, min_sstable_size: min.parse().expect("a size") };
    let with_size = |(id, size)| Candidate { size, ..table(id as u64) };
    let tables: Vec<Candidate> =
        numbers(sizes, ',').into_iter().enumerate().map(with_size).collect();
    let buckets = tiers::buckets(&tables.iter().collect::<Vec<_>>(), &tiers);
    let mut shown: Vec<String> = buckets
        .into_iter()
        .map(|bucket| shown([bucket.iter().map(|table| table.id).collect()]))
        .collect();
    shown.sort();
    shown.join(" ")
}

fn shards(question: &str) -> String {
    let words: Vec<f64> = numbers(question, ' ');
    let [base, growth, min, target, density] = words[..] else { panic!("{question}") };
    let options = [("class".to_owned(), "UnifiedCompactionStrategy".to_owned())].into();
    let option = MapOption::<Compaction>::checked(options).expect("defaults");
    let Strategy::Unified(unified) = option.value().strategy.clone() else {
        panic!("it was asked for")
    };
    let unified = Unified {
        base_shard_count: base as u32,
        sstable_growth: growth,
        min_sstable_size: min as u64,
        target_sstable_size: target,
        ..unified
    };
    unified.shard_count(density).to_string()
}

fn overlapping(question: &str) -> String {
    let range = |(id, range): (usize, &str)| {
        let [first, last] = numbers(&range.replace("..", " "), ' ')[..] else { panic!("{range}") };
        Candidate { first, last, ..table(id as u64) }
    };
    let tables: Vec<Candidate> = question.split(',').enumerate().map(range).collect();
    let sections = overlaps::sections(&tables.iter().collect::<Vec<_>>());
    let ids = |section: &overlaps::Section| section.iter().map(|index| *index as u64).collect();
    let mut answer = shown(sections.iter().map(ids));
    let methods = [OverlapInclusion::None, OverlapInclusion::Single, OverlapInclusion::Transitive];
    for method in methods {
        let groups = overlaps::grouped(3, method, &sections);
        let all = |group: std::ops::Range<usize>| {
            let all: overlaps::Section = sections[group].iter().flatten().copied().collect();
            ids(&all)
        };
        answer += " | ";
        answer += &shown(groups.into_iter().map(all));
    }
    answer
}

/// Proves that buckets of sizes, numbers of shards, sets of overlapping SSTables and their groups are Cassandra's. Where
/// several buckets would take an SSTable, Cassandra goes by the order of a hash map: such questions are few, and left out.
#[test]
fn as_cassandra_answers() {
    let (mut asked, mut differ) = (0, Vec::new());
    for line in include_str!("asked.txt").lines() {
        let (question, answer) = line.split_once(" | ").expect("question | answer");
        let (what, question) = question.split_once(' ').expect("what is asked");
        let ours = match what {
            "buckets" => buckets(question),
            "shards" => shards(question),
            _ => overlapping(question),
        };
        asked += 1;
        if ours.trim_end() != answer.trim_end() {
            differ.push(format!("{what} {question}\n  ours   {ours}\n  theirs {answer}"));
        }
    }
    assert!(differ.is_empty(), "{} of {asked}:\n{}", differ.len(), differ.join("\n"));
}

/// Proves that shards are even parts of the token space, and that those of a power of two are among those of the next.
#[test]
fn boundaries() {
    assert_eq!(shard_boundaries(1), []);
    assert_eq!(shard_boundaries(2), [0]);
    assert_eq!(shard_boundaries(4), [i64::MIN / 2, 0, 1 << 62]);
    let eight = shard_boundaries(8);
    assert!(shard_boundaries(4).iter().all(|token| eight.contains(token)));
    assert!(shard_boundaries(1000).is_sorted_by(|a, b| a < b));
}
