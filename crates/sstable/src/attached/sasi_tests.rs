//! Terms of SASI: what a search for a text asks for, every value that is like it has.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use halcyon_io::Random;
use halcyon_model::analysis::{Matching, Sasi};
use halcyon_model::token::Partitioner;
use halcyon_model::{Clusterings, CqlType};
use halcyon_stream::{Layout, PartitionKey, PrimaryKey};

use super::{Held, Part, Source, Target, Terms};

fn contains_of(text: &[u8]) -> Vec<Terms> {
    target("CONTAINS").like(Matching::Contains, text).into_iter().take(1).collect()
}

fn words_target() -> Target {
    let options = BTreeMap::from([("analyzed".to_owned(), "true".to_owned())]);
    let sasi = Sasi::of_options(&options, &CqlType::Text).expect("options");
    Target { sasi: Some(sasi), ..target("PREFIX") }
}

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
    target.of_key(&PartitionKey::of(text), |place, held| {
        terms.extend(held.entries(place).map(|entry| entry.term));
    });
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

fn held(target: &Target, text: &[u8]) -> Vec<Held> {
    let mut all = Vec::new();
    target.of_key(&PartitionKey::of(text), |_, held| all.push(held));
    all
}

/// Proves that a long text has no more terms than bytes, that few are asked for, and that they take no more than the text.
#[test]
fn long_texts_have_short_terms() {
    let contains = target("CONTAINS");
    let text: Vec<u8> = (0..60_000_u32).map(|n| b'a' + (n % 7) as u8).collect();
    let held_of_text = held(&contains, &text);
    let [of_text] = held_of_text.as_slice() else { panic!("one value") };
    // Seven rotations, and three that are cut short at the end.
    assert_eq!(of_text.count(), 10);
    let place = PrimaryKey::partition(&PartitionKey::of(&text));
    for entry in of_text.clone().entries(place) {
        assert_eq!(entry.term.len(), 4, "{:?}", entry.term);
    }
    assert_eq!(contains.like(Matching::Contains, &text).len(), 16);
}

/// Proves that a text of very many terms is a candidate of every search, and has one entry.
#[test]
fn texts_of_many_terms_are_found_by_every_search() {
    let mut random = Random::seeded(1);
    let text: Vec<u8> = (0..100_000).map(|_| b'!' + random.below(90) as u8).collect();
    assert_eq!(held(&target("CONTAINS"), &text), [Held::One(Box::default())]);
    assert!(Terms::any().contains(&[]));
    let few = held(&target("CONTAINS"), &text[..2000]);
    let [Held::Several(terms)] = few.as_slice() else { panic!("{few:?}") };
    assert!(terms.size() <= 4 * 2000, "{}", terms.size());
    assert!(text[..1996].windows(4).all(|gram| {
        let [asked] = contains_of(gram).try_into().expect("one");
        terms.has(&asked)
    }));
    let words = words_target();
    let text: Vec<u8> = (0..9_000).flat_map(|n: u32| format!("w{n} ").into_bytes()).collect();
    assert_eq!(held(&words, &text), [Held::One(Box::default())]);
    let some = held(&words, b"two words");
    let [Held::Several(terms)] = some.as_slice() else { panic!("{some:?}") };
    assert!(terms.has(&words.like(Matching::Whole, b"words")[0]));
    assert!(terms.has(&words.like(Matching::Prefix, b"tw")[0]));
    assert!(!terms.has(&words.like(Matching::Prefix, b"wordsx")[0]));
    assert_eq!(held(&words, b" - "), []);
}

/// Proves that what is cut off of long terms does not hide a value.
#[test]
fn long_terms_are_cut_and_found() {
    let plain = Target { sasi: None, ..target("PREFIX") };
    let long = |last: u8| [vec![b'a'; 5000], vec![last]].concat();
    let (b, c) = (long(b'b'), long(b'c'));
    let [Held::One(term)] = &held(&plain, &c)[..] else { panic!("one value") };
    assert!(term.len() <= 1024);
    for asked in [
        plain.equal(&c),
        plain.range(Bound::Excluded(&b), Bound::Unbounded),
        plain.range(Bound::Unbounded, Bound::Excluded(&long(b'd'))),
    ] {
        assert!(asked.contains(term), "{asked:?}");
    }
    let prefix = target("PREFIX");
    let [Held::One(term)] = &held(&prefix, &c)[..] else { panic!("one value") };
    assert!(prefix.like(Matching::Whole, &c)[0].contains(term));
    assert!(prefix.like(Matching::Prefix, &long(b'c')[..3000])[0].contains(term));
}
