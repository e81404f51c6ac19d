//! Merge and purge, rule by rule, from `data/*.txt`: a command, its input, `----`, and the expected output.
//! `HALCYON_REWRITE=1` rewrites the expectations, to be reviewed as a diff.
//!
//! ```text
//! # comment                 merge
//! purge gc=10 now=20 bound=5 [strict]
//! stream text, `with` between sources
//! ----
//! stream text
//! ```

use std::path::Path;

use crate::text::{self, TextStream, layout, spell};
use halcyon_stream::{Distinct, Fragment, FragmentStream, Merge, PartitionKey, Purge, PurgeRule};

#[derive(Clone, Copy)]
struct Rule {
    gc_before: u32,
    now: u32,
    bound: i64,
    strict: bool,
}

impl PurgeRule for Rule {
    fn gc_before(&self, _: &PartitionKey) -> u32 {
        self.gc_before
    }
    fn now(&self) -> u32 {
        self.now
    }
    fn strict_liveness(&self) -> bool {
        self.strict
    }
    fn purge_bound(&mut self, _: &PartitionKey) -> i64 {
        self.bound
    }
}

fn rule(command: &str) -> Option<Rule> {
    let mut words = command.split_whitespace();
    if words.next() != Some("purge") {
        return None;
    }
    let mut rule = Rule { gc_before: 0, now: 0, bound: i64::MAX, strict: false };
    for word in words {
        match word.split_once('=') {
            Some(("gc", value)) => rule.gc_before = value.parse().expect("gc"),
            Some(("now", value)) => rule.now = value.parse().expect("now"),
            Some(("bound", value)) => rule.bound = value.parse().expect("bound"),
            _ => rule.strict = true,
        }
    }
    Some(rule)
}

/// A purge that returns after a number of purged fragments, and continues.
struct Interrupted {
    purge: Purge<Merge<TextStream>, Rule>,
    patience: u32,
    interruptions: u32,
}

impl FragmentStream for Interrupted {
    type Error = <Merge<TextStream> as FragmentStream>::Error;

    async fn advance(&mut self) -> Result<bool, Self::Error> {
        loop {
            if let Some(advanced) = self.purge.advance_within(self.patience).await? {
                return Ok(advanced);
            }
            self.interruptions += 1;
        }
    }

    fn fragment(&self) -> Fragment<'_> {
        self.purge.fragment()
    }
}

fn merge(input: &str) -> Merge<TextStream> {
    Merge::new(layout(), input.split("\nwith\n").map(TextStream::parse).collect())
}

fn answer(command: &str, input: &str) -> String {
    let or_error = |spelled: Result<String, _>| spelled.unwrap_or_else(|e| format!("error: {e}\n"));
    let Some(rule) = rule(command) else { return or_error(spell(merge(input))) };
    let found = or_error(spell(Purge::new(merge(input), rule)));
    for patience in 1..4 {
        let purge = Purge::new(merge(input), rule);
        let interrupted = spell(Interrupted { purge, patience, interruptions: 0 });
        assert_eq!(or_error(interrupted), found, "interrupted after {patience}:\n{input}");
    }
    found
}

/// Runs every block of a file; merges also with the sources in the opposite order, which may change only ties.
fn answers(text: &str) -> String {
    let mut out = Vec::new();
    for block in text.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        let (question, _) = block.split_once("----").unwrap_or((block, ""));
        let lines: Vec<&str> = question.lines().collect();
        let start = lines.iter().position(|line| !line.starts_with('#'));
        let Some(start) = start else {
            out.push(format!("{block}\n"));
            continue;
        };
        let (command, input) = (lines[start], lines[start + 1..].join("\n"));
        let found = answer(command, &input);
        let backwards: Vec<&str> = input.split("\nwith\n").collect();
        let backwards = backwards.into_iter().rev().collect::<Vec<_>>().join("\nwith\n");
        assert_eq!(found, answer(command, &backwards), "in the opposite order:\n{block}");
        out.push(format!("{}----\n{found}", question));
    }
    out.join("\n")
}

/// Proves that rows of one clustering that follow each other become one, and that everything else passes.
#[test]
fn rows_that_repeat() {
    let text = "partition k
static s=t@1
row 1 live 5 a=old@5
row 1 live 9 a=new@9 m.p=q@2
row 1 b=x@3
[2 4/4
row 2 a=z@8
row 2 del 7/7
3] 4/4
";
    let merged = "partition k
static s=t@1
row 1 live 9 a=new@9 b=x@3 m.p=q@2
[2 4/4
row 2 del 7/7 a=z@8
3] 4/4
";
    let twice = format!("{text}{}", text.replace("partition k", "partition l"));
    let distinct = |text: &str, merges| {
        let mut stream = Distinct::new(layout(), TextStream::parse(text), merges);
        let spelled = spell(Borrowed(&mut stream)).expect("merges");
        (spelled, stream.duplicates())
    };
    assert_eq!(distinct(text, true), (spell(TextStream::parse(merged)).expect("a stream"), 3));
    assert_eq!(distinct(&twice, true).1, 6);
    assert_eq!(distinct(merged, false), distinct(merged, true));
}

/// A stream that is asked for something afterwards.
struct Borrowed<'a, S>(&'a mut S);

impl<S: FragmentStream> FragmentStream for Borrowed<'_, S> {
    type Error = S::Error;

    async fn advance(&mut self) -> Result<bool, Self::Error> {
        self.0.advance().await
    }

    fn fragment(&self) -> Fragment<'_> {
        self.0.fragment()
    }
}

#[test]
fn rules() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files: Vec<_> =
        std::fs::read_dir(dir).expect("data").map(|e| e.expect("entry").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("readable");
        let found = answers(&text);
        if std::env::var_os("HALCYON_REWRITE").is_some() {
            std::fs::write(&file, &found).expect("writable");
            continue;
        }
        for (i, (a, b)) in text.lines().zip(found.lines()).enumerate() {
            assert_eq!(a, b, "{}:{}", file.display(), i + 1);
        }
        assert_eq!(text.len(), found.len(), "{}", file.display());
    }
}

/// Proves that who purges everything comes back as often as was asked.
#[test]
fn a_purge_of_everything_is_interrupted() {
    let rows: Vec<String> = (0..100).map(|row| format!("row {row} del 1/5")).collect();
    let rule = rule("purge gc=6 now=20").expect("a rule");
    let purge = Purge::new(merge(&format!("partition k\n{}", rows.join("\n"))), rule);
    let mut interrupted = Interrupted { purge, patience: 10, interruptions: 0 };
    assert_eq!(text::now(interrupted.advance()), Ok(false));
    assert_eq!(interrupted.interruptions, 10);
}

/// A stream that has ended stays ended, however often it is advanced.
#[test]
fn nothing_to_merge() {
    let mut merge: Merge<TextStream> = Merge::new(layout(), Vec::new());
    assert_eq!(text::now(merge.advance()), Ok(false));
    assert_eq!(spell(Merge::new(layout(), vec![TextStream::parse("")])).expect("merges"), "");
}
