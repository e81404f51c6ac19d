//! Vectors with their components rounded to a byte: a search that compares these first loads a quarter of the memory, and memory is what
//! it waits for. What it finds is compared exactly then, so rounding can cost a neighbour, but never a score.

use halcyon_model::similarity::Similarity;

/// Of a whole graph; or of one vector that is searched for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rounded {
    dimension: usize,
    /// One vector behind the other.
    components: Vec<i8>,
    /// Of each vector, what a component is multiplied with, and the square of its length.
    scales: Vec<(f32, f32)>,
}

impl Rounded {
    pub(super) fn of(vectors: &[f32], dimension: usize) -> Rounded {
        let count = vectors.len() / dimension.max(1);
        let mut components = Vec::with_capacity(count * dimension);
        let mut scales = Vec::with_capacity(count);
        for vector in vectors.chunks_exact(dimension.max(1)) {
            let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            let scale = largest / f32::from(i8::MAX);
            let by = if scale > 0.0 { scale.recip() } else { 0.0 };
            // The conversion saturates.
            components.extend(vector.iter().map(|value| (value * by).round_ties_even() as i8));
            scales.push((scale, vector.iter().map(|value| value * value).sum()));
        }
        Rounded { dimension, components, scales }
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        self.components.len() + self.scales.len() * size_of::<(f32, f32)>()
    }

    pub(super) fn vector(&self, node: u32) -> &[i8] {
        let start = node as usize * self.dimension;
        self.components.get(start..start + self.dimension).unwrap_or_default()
    }

    /// About how near a vector is to the only one of `to`; grows with their score.
    pub(super) fn closeness(&self, similarity: Similarity, to: &Rounded, node: u32) -> f32 {
        let of = |rounded: &Rounded, node: u32| rounded.scales.get(node as usize).copied();
        let (own, other) = (of(self, node).unwrap_or_default(), of(to, 0).unwrap_or_default());
        let product = product(self.vector(node), to.vector(0)) as f32 * own.0 * other.0;
        match similarity {
            Similarity::Cosine | Similarity::DotProduct => product,
            Similarity::Euclidean => 2.0 * product - own.1 - other.1,
        }
    }
}

/// Integers add up to the same in any order, so the compiler uses vector registers.
fn product(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

#[cfg(test)]
mod tests {
    use halcyon_io::Random;

    use super::*;

    /// Proves that closeness of rounded vectors is that of the vectors, but for rounding, whatever their length.
    #[test]
    fn rounding_costs_little() {
        let mut random = Random::seeded(1);
        for dimension in [1, 3, 16, 17, 128] {
            for scale in [1e-6, 1.0, 1e6] {
                let mut vector = || -> Vec<f32> {
                    let component = |random: &mut Random| random.below(2001) as f32 / 1e3 - 1.0;
                    (0..dimension).map(|_| scale * component(&mut random)).collect()
                };
                let (a, b) = (vector(), vector());
                let all = Rounded::of(&[a.clone(), b.clone()].concat(), dimension);
                let to = Rounded::of(&b, dimension);
                for similarity in [Similarity::DotProduct, Similarity::Euclidean] {
                    let exact = similarity.closeness(&a, &b);
                    let error = (all.closeness(similarity, &to, 0) - exact).abs();
                    let largest = scale * scale * dimension as f32;
                    assert!(error <= 0.02 * largest, "{similarity:?} {dimension} {scale}: {error}");
                }
            }
        }
        assert_eq!(
            Rounded::of(&[0.0; 4], 2).closeness(
                Similarity::DotProduct,
                &Rounded::of(&[1.0; 2], 2),
                1
            ),
            0.0
        );
    }
}
