//! Tries of random and of chosen shapes against a `BTreeMap`; every kind of node.

use std::collections::{BTreeMap, BTreeSet};

use crate::bti::output::Output;
use crate::bti::trie_writer::TrieWriter;
use crate::bti::{Node, NodeKind, PAGE, Payload, RowPayload, TrieCursor};
use crate::row_index::testing::{Memory, Numbers, now, seed};

type Model = BTreeMap<Vec<u8>, RowPayload>;

pub(super) struct Written {
    pub(super) bytes: Vec<u8>,
    pub(super) root: u64,
    /// Bytes of the file before the trie.
    pub(super) base: u64,
}

pub(super) fn write(model: &Model, base: u64) -> Written {
    let (mut bytes, mut position) = (Vec::new(), base);
    let mut out = Output { bytes: &mut bytes, position: &mut position };
    let mut writer = TrieWriter::new();
    for (key, payload) in model {
        writer.add(key, *payload, &mut out).expect("ascending keys");
    }
    let root = writer.complete(&mut out).expect("at least one key");
    assert_eq!(position, base + bytes.len() as u64);
    Written { bytes, root, base }
}

fn at(offset: u64) -> RowPayload {
    RowPayload { offset, open: None }
}

/// Every node is in one page, once, after its children; returns the kinds.
fn check_layout(written: &Written) -> BTreeSet<NodeKind> {
    let mut kinds = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![written.root];
    while let Some(position) = waiting.pop() {
        assert!(seen.insert(position), "a node has one parent");
        let mut page = vec![0xee; (written.base % PAGE as u64) as usize];
        let page_start = position / PAGE as u64 * PAGE as u64;
        let bytes = if page_start < written.base {
            page.extend(written.bytes.iter().take(PAGE));
            &page[..]
        } else {
            &written.bytes[(page_start - written.base) as usize..]
        };
        let node = Node::read(bytes, position).expect("sound");
        kinds.insert(node.kind());
        if node.payload_bits() != 0 {
            RowPayload::read(node.payload_bits(), &mut node.payload()).expect("in the page");
        }
        let mut after = None;
        while let Some((transition, child)) = node.first_child(after).expect("sound") {
            assert_eq!(node.child(transition).expect("sound"), Some(child));
            after = Some(transition);
            waiting.push(child);
        }
        assert_eq!(node.last_child(None).expect("sound").map(|last| last.0), after);
    }
    kinds
}

fn check_walks(model: &Model, written: &Written) {
    let source = Memory(&written.bytes);
    let mut cursor: TrieCursor<'_, _, RowPayload> = TrieCursor::new(&source, written.root);
    let mut entry = now(cursor.first()).expect("sound");
    for (key, payload) in model {
        let mut found = Vec::new();
        cursor.key(&mut found);
        assert_eq!((&found, entry), (key, Some(*payload)));
        entry = now(cursor.next()).expect("sound");
    }
    assert_eq!(entry, None);
    let mut entry = now(cursor.last()).expect("sound");
    for (key, payload) in model.iter().rev() {
        let mut found = Vec::new();
        cursor.key(&mut found);
        assert_eq!((&found, entry), (key, Some(*payload)));
        entry = now(cursor.previous()).expect("sound");
    }
    assert_eq!(entry, None);
}

fn check_floors(model: &Model, written: &Written, numbers: &mut Numbers, probes: usize) {
    let source = Memory(&written.bytes);
    let mut cursor: TrieCursor<'_, _, RowPayload> = TrieCursor::new(&source, written.root);
    let keys: Vec<&Vec<u8>> = model.keys().collect();
    for _ in 0..probes {
        let mut probe = keys[numbers.below(keys.len() as u64) as usize].clone();
        match numbers.below(4) {
            0 => probe.truncate(numbers.below(probe.len() as u64 + 1) as usize),
            1 => probe.push(numbers.any() as u8),
            2 => {
                if let Some(last) = probe.last_mut() {
                    *last = last.wrapping_add(numbers.below(3) as u8).wrapping_sub(1);
                }
            }
            _ => {}
        }
        let floor = model.range(..=probe.clone()).next_back();
        assert_eq!(
            now(cursor.seek_floor(&probe)).expect("sound"),
            floor.map(|(_, payload)| *payload)
        );
        if floor.is_some() {
            let above = model.range(probe.clone()..).find(|(key, _)| **key != probe);
            assert_eq!(now(cursor.next()).expect("sound"), above.map(|(_, payload)| *payload));
        }
        let prefix = (0..=probe.len()).rev().find_map(|n| model.get(&probe[..n]));
        let leads_on = model.range(probe.clone()..).next().map(|(_, payload)| payload);
        let candidate = now(cursor.seek_candidate(&probe)).expect("sound");
        if let Some(payload) = candidate {
            assert!(Some(&payload) == prefix || Some(&payload) == leads_on);
        } else {
            assert_eq!(leads_on, None);
        }
    }
}

fn random_model(numbers: &mut Numbers, count: u64) -> Model {
    let (longest, alphabet) = (1 + numbers.below(40), 1 + numbers.below(256));
    let open = numbers.below(3) == 0;
    (0..count)
        .map(|_| {
            let len = numbers.below(longest + 1);
            let key = (0..len).map(|_| numbers.below(alphabet) as u8).collect();
            let mut payload = at(numbers.any() >> (9 + numbers.below(55)));
            if open && numbers.below(2) == 0 {
                payload.open = Some(halcyon_model::DeletionTime {
                    marked_for_delete_at: (numbers.any() >> 1) as i64,
                    local_deletion_time: numbers.any() as u32,
                });
            }
            (key, payload)
        })
        .collect()
}

#[test]
fn random_tries_hold_what_was_put_in() {
    let mut numbers = Numbers(seed());
    for round in 0..60 {
        let count = 1 + numbers.below(if round % 20 == 0 { 20_000 } else { 800 });
        let model = random_model(&mut numbers, count);
        let written = write(&model, 0);
        check_layout(&written);
        check_walks(&model, &written);
        check_floors(&model, &written, &mut numbers, 200);
        // The same trie in the middle of a file: pages begin elsewhere.
        let base = numbers.below(1 << 45);
        check_layout(&write(&model, base));
    }
}

#[test]
fn two_hundred_thousand_keys() {
    let mut numbers = Numbers(seed());
    let model: Model =
        (0..200_000).map(|i| (numbers.any().to_be_bytes().to_vec(), at(i))).collect();
    let written = write(&model, 0);
    check_layout(&written);
    check_walks(&model, &written);
    check_floors(&model, &written, &mut numbers, 2_000);
}

/// A path of 100,000 bytes is written in pages as it is completed.
#[test]
fn deep_tries_do_not_recurse_deeply() {
    let mut model = Model::new();
    for (i, len) in [0, 1, 2_000, 4_000, 70_000, 100_000].into_iter().enumerate() {
        model.insert(vec![7; len], at(i as u64));
        model.insert([vec![7; len], vec![9]].concat(), at(99));
    }
    let written = write(&model, 0);
    check_layout(&written);
    check_walks(&model, &written);
}
