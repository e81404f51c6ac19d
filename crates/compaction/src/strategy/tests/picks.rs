//! Lists of SSTables, and what is picked from them: `picks.txt`.
//!
//! ```text
//! # what the case proves
//! options  class=…;…
//! table    1 size=10M level=0 tokens=0..100 ts=1..5 dies=0 drop=0.3 born=0 hot=0.1
//! moment   now=… gc=… compacting=1,2 memtable=…
//! expect   1,2,3 single 0          (inputs, in any order; what becomes of them)
//! ```
//! Further `expect` lines are picks that follow with the same history. `remaining N` asks for the estimate, `major …; …` for the tasks
//! of a major compaction.

use std::collections::{BTreeMap, BTreeSet};

use halcyon_io::Random;
use halcyon_model::options::{Compaction, MapOption};

use super::super::{
    Candidate, History, Output, PickContext, Reason, Task, estimated_remaining_tasks, major, pick,
};

/// A table of 100 MiB over the whole token space that never dies.
pub(super) fn table(id: u64) -> Candidate {
    Candidate {
        id,
        level: 0,
        size: 100 << 20,
        first: i64::MIN,
        last: i64::MAX,
        min_timestamp: 0,
        max_timestamp: id as i64,
        max_local_deletion_time: i64::MAX,
        droppable_ratio: 0.0,
        created_ms: 0,
        hotness: 0.0,
        token_space_coverage: 0.0,
    }
}

fn size(text: &str) -> u64 {
    let (number, shift) = match text.split_at(text.len() - 1) {
        (number, "K") => (number, 10),
        (number, "M") => (number, 20),
        (number, "G") => (number, 30),
        _ => (text, 0),
    };
    number.parse::<u64>().expect("a size") << shift
}

/// Tokens are written as thousandths of the token space.
fn token(text: &str) -> i64 {
    let thousandths: i128 = text.parse().expect("thousandths");
    ((thousandths << 64) / 1000 - (1 << 63)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn range(text: &str) -> (&str, &str) {
    text.split_once("..").expect("from..to")
}

fn parsed_table(text: &str) -> Candidate {
    let mut words = text.split_whitespace();
    let mut parsed = table(words.next().and_then(|id| id.parse().ok()).expect("an id"));
    for word in words {
        let (name, value) = word.split_once('=').expect("name=value");
        let number = || value.parse::<i64>().expect("a number");
        let share = || value.parse::<f64>().expect("a share");
        match name {
            "size" => parsed.size = size(value),
            "level" => parsed.level = number() as u32,
            "tokens" => {
                let (first, last) = range(value);
                (parsed.first, parsed.last) = (token(first), token(last));
            }
            "ts" => {
                let (min, max) = range(value);
                parsed.min_timestamp = min.parse().expect("a timestamp");
                parsed.max_timestamp = max.parse().expect("a timestamp");
            }
            "dies" => parsed.max_local_deletion_time = number(),
            "drop" => parsed.droppable_ratio = share(),
            "born" => parsed.created_ms = number(),
            "hot" => parsed.hotness = share(),
            other => panic!("{other}"),
        }
    }
    parsed
}

fn shown(task: Option<Task>) -> String {
    let Some(mut task) = task else { return "nothing".to_owned() };
    task.inputs.sort_unstable();
    let list = |ids: &[u64]| ids.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let output = match task.output {
        Output::Single { level } => format!("single {level}"),
        Output::Sized { level, max_size } => format!("sized {level} {}M", max_size >> 20),
        Output::Levels { max_size, fanout } => format!("levels {}M x{fanout}", max_size >> 20),
        Output::Halves { smallest } => format!("halves {}M", smallest >> 20),
        Output::Sharded { shards } => format!("sharded {shards}"),
        Output::Relevel { level } => format!("relevel {level}"),
    };
    let reason = match task.reason {
        Reason::Compaction => "",
        Reason::TombstoneCompaction => " tombstones",
        Reason::Expired => " expired",
    };
    let expired = match &task.expired[..] {
        [] => String::new(),
        expired => format!(" dropping {}", list(expired)),
    };
    format!("{} {output}{reason}{expired}", list(&task.inputs))
}

#[derive(Default)]
struct Case {
    name: String,
    options: BTreeMap<String, String>,
    tables: Vec<Candidate>,
    now_ms: i64,
    gc_before: i64,
    compacting: BTreeSet<u64>,
    memtable: Option<i64>,
    history: Option<History>,
}

impl Case {
    fn moment(&mut self, text: &str) {
        for word in text.split_whitespace() {
            let (name, value) = word.split_once('=').expect("name=value");
            match name {
                "now" => self.now_ms = value.parse().expect("a time"),
                "gc" => self.gc_before = value.parse().expect("a time"),
                "memtable" => self.memtable = Some(value.parse().expect("a time")),
                "compacting" => {
                    let id = |word: &str| word.parse::<u64>().expect("an id");
                    self.compacting = value.split(',').map(id).collect();
                }
                other => panic!("{other}"),
            }
        }
    }

    fn ask<T>(
        &mut self,
        ask: impl Fn(&Compaction, &[Candidate], &PickContext<'_>, &mut History) -> T,
    ) -> T {
        let option = MapOption::checked(self.options.clone()).expect("options");
        let moment = PickContext {
            now_ms: self.now_ms,
            gc_before: self.gc_before,
            compacting: &self.compacting,
            memtable_min_timestamp: self.memtable,
            flush_size: 100 << 20,
        };
        let history = self.history.get_or_insert_with(|| History::new(Random::seeded(1)));
        ask(option.value(), &self.tables, &moment, history)
    }
}

/// Proves each case of `picks.txt`.
#[test]
fn picks() {
    let mut case = Case::default();
    let mut expected = 0;
    for line in include_str!("picks.txt").lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "" => {}
            "#" => case = Case { name: rest.to_owned(), ..Case::default() },
            "options" => {
                let pair = |pair: &str| {
                    let (name, value) = pair.split_once('=').expect("name=value");
                    (name.to_owned(), value.to_owned())
                };
                case.options = rest.split(';').map(pair).collect();
            }
            "table" => case.tables.push(parsed_table(rest)),
            "moment" => case.moment(rest),
            "expect" => {
                let task = case.ask(pick);
                assert_eq!(shown(task), rest, "{}", case.name);
                expected += 1;
            }
            "remaining" => {
                let estimate = case.ask(|compaction, tables, moment, history| {
                    estimated_remaining_tasks(compaction, tables, moment, history)
                });
                assert_eq!(estimate.to_string(), rest, "{}", case.name);
            }
            "major" => {
                let tasks = case.ask(|compaction, tables, _, _| major(compaction, tables, false));
                let tasks: Vec<String> = tasks.into_iter().map(|task| shown(Some(task))).collect();
                assert_eq!(tasks.join("; "), rest, "{}", case.name);
            }
            other => panic!("{other}"),
        }
    }
    assert!(expected > 30, "{expected}");
}
