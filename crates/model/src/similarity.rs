//! How near two vectors of floats are, by the functions that indexes on vectors and CQL have.

use std::collections::BTreeMap;

use crate::value::float_to_string;

/// The option of an index.
const FUNCTION: &str = "similarity_function";

/// Larger components are refused: their squares could not be added.
const MAX_COMPONENT: f32 = 1e17;

/// Sums that do not wait for each other, so that the compiler can use vector registers.
const LANES: usize = 16;

/// Components that jvector adds to each other before it adds them to the sum.
const GROUP: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Similarity {
    Cosine,
    Euclidean,
    DotProduct,
}

impl Similarity {
    /// Of an index. The options were checked when it was made.
    pub fn of_options(options: &BTreeMap<String, String>) -> Similarity {
        match options.get(FUNCTION).map(|name| name.to_ascii_uppercase()).as_deref() {
            Some("EUCLIDEAN") => Similarity::Euclidean,
            Some("DOT_PRODUCT") => Similarity::DotProduct,
            _ => Similarity::Cosine,
        }
    }

    /// Between 0 and 1, but for dot products of long vectors. No number for the cosine of a vector of zeros. Sums are rounded in the order
    /// of jvector 1.0.2 without vector instructions (`DefaultVectorUtilSupport`), which is what Cassandra 5.0 has on Java 11 and 17.
    pub fn score(self, a: &[f32], b: &[f32]) -> f32 {
        match self {
            Similarity::DotProduct => {
                let first = a.len() % GROUP;
                let (a, b) = (a.split_at(first), b.split_at(first.min(b.len())));
                let first = in_order(a.0, b.0, |a, b| a * b);
                (1.0 + by_groups(first, a.1, b.1, |a, b| a * b)) / 2.0
            }
            Similarity::Euclidean => {
                let square = |a: f32, b: f32| (a - b) * (a - b);
                let last = a.len() - a.len() % GROUP;
                let (a, b) = (a.split_at(last), b.split_at(last.min(b.len())));
                let groups = by_groups(0.0, a.0, b.0, square);
                1.0 / (1.0 + a.1.iter().zip(b.1).fold(groups, |sum, (a, b)| sum + square(*a, *b)))
            }
            Similarity::Cosine => {
                let product = |a: &[f32], b: &[f32]| f64::from(in_order(a, b, |a, b| a * b));
                let cosine = product(a, b) / (product(a, a) * product(b, b)).sqrt();
                (1.0 + cosine as f32) / 2.0
            }
        }
    }

    /// Why an index cannot have a vector, or be asked for what is near it, in Cassandra's words.
    pub fn refusal(self, vector: &[f32]) -> Option<String> {
        let odd = vector.iter().enumerate().find_map(|(at, value)| {
            if !value.is_finite() {
                Some(format!("non-finite value at vector[{at}]={}", float_to_string(*value)))
            } else if value.abs() > MAX_COMPONENT {
                Some(format!("Out-of-bounds value at vector[{at}]={}", float_to_string(*value)))
            } else {
                None
            }
        });
        let is_zero = || vector.iter().all(|value| *value == 0.0);
        odd.or_else(|| match self {
            Similarity::Cosine if is_zero() => {
                Some("Zero vectors cannot be indexed or queried with cosine similarity".to_owned())
            }
            _ => None,
        })
    }

    /// What an index keeps of a vector: of directions only, their unit vectors.
    pub fn kept(self, mut vector: Vec<f32>) -> Vec<f32> {
        if self == Similarity::Cosine {
            let squares: f64 = vector.iter().map(|value| f64::from(*value).powi(2)).sum();
            let length = squares.sqrt();
            for value in &mut vector {
                *value = (f64::from(*value) / length) as f32;
            }
        }
        vector
    }

    /// How near two kept vectors are: grows with their score, and is faster.
    pub fn closeness(self, a: &[f32], b: &[f32]) -> f32 {
        match self {
            Similarity::Euclidean => -sum_of(a, b, |a, b| (a - b) * (a - b)),
            Similarity::Cosine | Similarity::DotProduct => sum_of(a, b, |a, b| a * b),
        }
    }

    /// The score that belongs to a closeness.
    pub fn score_of(self, closeness: f32) -> f32 {
        match self {
            Similarity::Euclidean => 1.0 / (1.0 - closeness),
            Similarity::Cosine | Similarity::DotProduct => (1.0 + closeness) / 2.0,
        }
    }
}

/// One addition after the other.
fn in_order(a: &[f32], b: &[f32], of: impl Fn(f32, f32) -> f32) -> f32 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + of(*a, *b))
}

/// The sum of each [`GROUP`] is added to a sum.
fn by_groups(sum: f32, a: &[f32], b: &[f32], of: impl Fn(f32, f32) -> f32) -> f32 {
    let groups = a.chunks_exact(GROUP).zip(b.chunks_exact(GROUP));
    groups.fold(sum, |sum, (a, b)| sum + in_order(a, b, &of))
}

fn sum_of(a: &[f32], b: &[f32], of: impl Fn(f32, f32) -> f32) -> f32 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += of(*a, *b);
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| of(*a, *b)).sum();
    sums.iter().sum::<f32>() + rest
}

/// Of a serialized vector.
pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|float| f32::from_be_bytes(*float)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Similarity; 3] =
        [Similarity::Cosine, Similarity::Euclidean, Similarity::DotProduct];

    /// Proves that what an index compares gives the scores of the functions, for vectors of any length.
    #[test]
    fn closeness_gives_the_score() {
        for length in 1..70 {
            let of = |seed: usize| -> Vec<f32> {
                (0..length).map(|i| ((i * 37 + seed * 11) % 23) as f32 / 5.0 - 2.0).collect()
            };
            for similarity in ALL {
                let (a, b) = (of(1), of(2));
                let (kept_a, kept_b) = (similarity.kept(a.clone()), similarity.kept(b.clone()));
                let score = similarity.score_of(similarity.closeness(&kept_a, &kept_b));
                let wanted = similarity.score(&a, &b);
                assert!(
                    (score - wanted).abs() <= wanted.abs() * 1e-5 + 1e-5,
                    "{similarity:?} {length}"
                );
            }
        }
    }

    /// Proves that vectors are refused that have no place in an order.
    #[test]
    fn odd_vectors_are_refused() {
        for similarity in ALL {
            assert_eq!(similarity.refusal(&[1.0, -1e17]), None);
            let refused = similarity.refusal(&[1.0, f32::NAN]);
            assert_eq!(refused.as_deref(), Some("non-finite value at vector[1]=NaN"));
            let refused = similarity.refusal(&[-1e18]);
            // As Java 17 writes the float, not always with the fewest digits.
            let text = "Out-of-bounds value at vector[0]=-9.9999998E17";
            assert_eq!(refused.as_deref(), Some(text));
            let is_cosine = similarity == Similarity::Cosine;
            assert_eq!(similarity.refusal(&[0.0, -0.0]).is_some(), is_cosine);
        }
    }
}
