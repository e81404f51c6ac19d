//! Options and messages, as Apache Cassandra 5.0.9 gave them.

use std::collections::BTreeMap;

use super::super::{Kind, OverlapInclusion, Strategy};

fn parse(line: &str) -> Result<Strategy, String> {
    let option = |pair: &str| {
        let (name, value) = pair.split_once('=').expect("name=value");
        (name.to_owned(), value.to_owned())
    };
    Strategy::parse(&line.split(';').map(option).collect::<BTreeMap<_, _>>())
}

/// Proves that what Cassandra accepts is accepted, and that what it refuses is refused in its words.
#[test]
fn as_cassandra_says() {
    let recorded = include_str!("options.txt");
    let mut lines = recorded.lines();
    let mut asked = 0;
    while let (Some(options), Some(answer)) = (lines.next(), lines.next()) {
        asked += 1;
        let ours = match parse(options) {
            Ok(_) => "ok".to_owned(),
            Err(message) => message,
        };
        let theirs = answer.trim_start();
        let theirs = if theirs.starts_with("ok ") { "ok" } else { theirs };
        let theirs = theirs.split_once("Exception: ").map_or(theirs, |(_, message)| message);
        assert_eq!(ours, theirs, "{options}");
    }
    assert!(asked > 160, "{asked}");
}

/// Proves the defaults, and how scaling parameters are read.
#[test]
fn defaults() {
    let strategy = parse("class=UnifiedCompactionStrategy").expect("defaults");
    assert!(strategy.enabled);
    let Kind::Unified(unified) = strategy.kind else { panic!("unified") };
    assert_eq!(unified.scaling_parameters, [2]);
    assert_eq!((unified.base_shard_count, unified.sstable_growth), (4, 0.333));
    assert_eq!(unified.overlap_inclusion, OverlapInclusion::Transitive);
    let text = "class=UnifiedCompactionStrategy;scaling_parameters=T8, L4,N,-3,+5";
    let Kind::Unified(unified) = parse(text).expect("fine").kind else { panic!("unified") };
    assert_eq!(unified.scaling_parameters, [6, -2, 0, -3, 5]);
    let disabled = |text| parse(text).expect("fine").tombstones.disabled;
    assert!(disabled("class=TimeWindowCompactionStrategy"));
    assert!(!disabled("class=TimeWindowCompactionStrategy;tombstone_threshold=0.3"));
    assert!(!disabled("class=LeveledCompactionStrategy"));
    assert!(!parse("class=LeveledCompactionStrategy;enabled=false").expect("fine").enabled);
}
