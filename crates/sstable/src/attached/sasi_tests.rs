//! Terms of SASI: what a search for a text asks for, every value that is like it has.

use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_model::analysis::{Matching, Sasi};
use halcyon_model::token::Partitioner;
use halcyon_model::{Clusterings, CqlType};
use halcyon_stream::{Layout, PartitionKey};

use super::{Part, Source, Target, Terms};

fn target(mode: &str) -> Target {
    let options = BTreeMap::from([("mode".to_owned(), mode.to_owned())]);
    let layout = Layout {
        partitioner: Partitioner::Murmur3,
        key_type: CqlType::Text,
        clusterings: Clusterings::new(&[]),
        clustering_types: Vec::new(),
        statics: Vec::new(),
        regulars: Vec::new(),
    };
    Target {
        source: Source::PartitionKey(0, 1),
        part: Part::Whole,
        term_type: CqlType::Text,
        analysis: None,
        sasi: Some(Sasi::of_options(&options, &CqlType::Text).expect("options")),
        similarity: None,
        layout: Arc::new(layout),
    }
}

/// Whether the terms of a text are candidates.
fn finds(target: &Target, text: &[u8], asked: &[Terms]) -> bool {
    let mut terms = Vec::new();
    target.of_key(&PartitionKey::of(text), |entry| terms.push(entry.term));
    asked.iter().all(|asked| terms.iter().any(|term| asked.contains(term)))
}

#[test]
fn what_is_like_a_text_is_found() {
    let (prefix, contains) = (target("PREFIX"), target("CONTAINS"));
    let texts: [&[u8]; 8] = [
        b"a",
        b"abc",
        b"abcd",
        b"abcde",
        b"xabcdefghij",
        b"\xff\xff\xff\xff\xff",
        b"aaaaaaaaab",
        b"zz",
    ];
    let asked: [&[u8]; 8] = [b"a", b"abc", b"abcd", b"bcdef", b"ghij", b"\xff\xff", b"aaaab", b"z"];
    for text in texts {
        for asked in asked {
            for how in [Matching::Whole, Matching::Prefix, Matching::Suffix, Matching::Contains] {
                let is_like = how.accepts(&CqlType::Text, text, asked);
                let found = finds(&contains, text, &contains.like(how, asked));
                assert!(found || !is_like, "{text:?} {how:?} {asked:?}");
                if matches!(how, Matching::Whole | Matching::Prefix) {
                    let found = finds(&prefix, text, &prefix.like(how, asked));
                    assert_eq!(found, is_like, "{text:?} {how:?} {asked:?}");
                }
            }
        }
    }
}

/// Proves that a long text has no more terms than bytes, and that few are asked for.
#[test]
fn long_texts_have_short_terms() {
    let contains = target("CONTAINS");
    let text: Vec<u8> = (0..60_000_u32).map(|n| b'a' + (n % 7) as u8).collect();
    let mut count = 0;
    contains.of_key(&PartitionKey::of(&text), |entry| {
        assert!(entry.term.len() <= 5, "{:?}", entry.term);
        count += 1;
    });
    // Seven rotations, and three that are cut short at the end.
    assert_eq!(count, 10);
    assert_eq!(contains.like(Matching::Contains, &text).len(), 16);
}
