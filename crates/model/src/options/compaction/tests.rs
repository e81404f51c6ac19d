//! Options and messages, as Apache Cassandra 5.0.9 gave them.

use super::super::{Compaction, MapOption, OptionError};
use super::{OverlapInclusion, Strategy};

fn read(line: &str) -> Result<MapOption<Compaction>, OptionError> {
    let option = |pair: &str| {
        let (name, value) = pair.split_once('=').expect("name=value");
        (name.to_owned(), value.to_owned())
    };
    MapOption::checked(line.split(';').map(option).collect())
}

fn parse(line: &str) -> Compaction {
    read(line).expect("accepted").value().clone()
}

/// Proves that what Cassandra accepts is accepted and kept as it keeps it, and that what it refuses is refused in its words.
#[test]
fn as_cassandra_says() {
    let recorded = include_str!("cassandra.txt");
    let mut lines = recorded.lines();
    let mut asked = 0;
    while let (Some(options), Some(answer)) = (lines.next(), lines.next()) {
        asked += 1;
        let ours = match read(options) {
            Ok(option) => {
                let pair = |(name, value): (&String, &String)| format!("{name}={value}");
                let pairs: Vec<String> = option.entries().iter().map(pair).collect();
                format!("ok {{{}}}", pairs.join(", "))
            }
            Err(error) => error.to_string(),
        };
        let theirs = answer.trim_start();
        let theirs = theirs.split_once("Exception: ").map_or(theirs, |(_, message)| message);
        assert_eq!(ours, theirs, "{options}");
    }
    assert!(asked > 160, "{asked}");
}

/// Proves the defaults, and how scaling parameters are read.
#[test]
fn defaults() {
    let option = parse("class=UnifiedCompactionStrategy");
    assert!(option.enabled);
    let Strategy::Unified(unified) = option.strategy else { panic!("unified") };
    assert_eq!(unified.scaling_parameters, [2]);
    assert_eq!((unified.base_shard_count, unified.sstable_growth), (4, 0.333));
    assert_eq!(unified.overlap_inclusion, OverlapInclusion::Transitive);
    let text = "class=UnifiedCompactionStrategy;scaling_parameters=T8, L4,N,-3,+5";
    let Strategy::Unified(unified) = parse(text).strategy else { panic!("unified") };
    assert_eq!(unified.scaling_parameters, [6, -2, 0, -3, 5]);
    let disabled = |text| parse(text).tombstones.disabled;
    assert!(disabled("class=TimeWindowCompactionStrategy"));
    assert!(!disabled("class=TimeWindowCompactionStrategy;tombstone_threshold=0.3"));
    assert!(!disabled("class=LeveledCompactionStrategy"));
    assert!(!parse("class=LeveledCompactionStrategy;enabled=false").enabled);
    assert_eq!(parse("class=SizeTieredCompactionStrategy"), Compaction::default());
}

/// Proves that a stored option that no statement could say counts as far as it can: the class and all that fits it.
#[test]
fn stored_options_count_as_far_as_they_can() {
    let stored = [
        ("class", "org.apache.cassandra.db.compaction.TimeWindowCompactionStrategy"),
        ("compaction_window_size", "7"),
        ("timestamp_resolution", "HOURS"),
        ("unsafe_aggressive_sstable_expiration", "true"),
    ];
    let stored = stored.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let option = MapOption::<Compaction>::lenient(stored.clone().into());
    assert_eq!(option.entries().len(), 4, "it is printed as it was");
    let problem = option.validate().expect_err("a problem").to_string();
    assert_eq!(problem, "HOURS is not valid for timestamp_resolution");
    let Strategy::TimeWindow(windows) = option.value().strategy else { panic!("windows") };
    assert_eq!(windows.size, 7 * 86_400);
    let unknown = [("class".to_owned(), "com.example.Mine".to_owned())];
    let option = MapOption::<Compaction>::lenient(unknown.into());
    assert_eq!(*option.value(), Compaction::default());
}
