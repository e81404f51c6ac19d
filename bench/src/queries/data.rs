//! The rows and vectors that are asked for, made from their numbers alone, so that the generator knows every answer.

use crate::load::Random;

/// Of `share`s: one row in 100, in 1,000; the number of a row is its own.
pub(super) const HUNDREDTH: u64 = 100;
pub(super) const THOUSANDTH: u64 = 1_000;
pub(super) const DIMENSIONS: usize = 128;
/// Vectors lie around centres, as those of texts do.
const CENTRES: u64 = 1_000;
const SPREAD: f32 = 0.25;

fn mixed(number: u64, salt: u64) -> u64 {
    Random(number ^ salt << 48).next()
}

pub(super) fn of_hundred(id: u64) -> u32 {
    (mixed(id, 1) % HUNDREDTH) as u32
}

pub(super) fn of_thousand(id: u64) -> u32 {
    (mixed(id, 2) % THOUSANDTH) as u32
}

/// `id, hundred, thousand, own, word`, as they are sent.
pub(super) fn row(id: u64) -> Vec<Vec<u8>> {
    vec![
        id.to_be_bytes().to_vec(),
        of_hundred(id).to_be_bytes().to_vec(),
        of_thousand(id).to_be_bytes().to_vec(),
        id.to_be_bytes().to_vec(),
        format!("word {} of row {id}", of_thousand(id)).into_bytes(),
    ]
}

/// Around one of the centres; `salt` tells the vectors of rows from those that are searched for.
pub(super) fn vector(number: u64, salt: u64) -> Vec<f32> {
    let centre = mixed(number, salt) % CENTRES;
    let (mut around, mut own) = (Random(mixed(centre, 7)), Random(mixed(number, salt + 1)));
    let unit = |random: &mut Random| (random.next() >> 40) as f32 / (1 << 23) as f32 - 1.0;
    (0..DIMENSIONS).map(|_| unit(&mut around) + SPREAD * unit(&mut own)).collect()
}

pub(super) fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|component| component.to_be_bytes()).collect()
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

/// The numbers of the vectors nearest to one, found by looking at all.
pub(super) fn nearest(all: &[Vec<f32>], to: &[f32], count: usize) -> Vec<u64> {
    let mut scored: Vec<(f32, u64)> =
        all.iter().zip(0..).map(|(vector, number)| (cosine(vector, to), number)).collect();
    scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    scored.into_iter().take(count).map(|(_, number)| number).collect()
}
