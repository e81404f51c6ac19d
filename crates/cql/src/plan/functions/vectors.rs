//! Similarity of vectors of floats.

use halcyon_model::CqlType;

use super::natives::{Scalar, native};
use super::{Argument, Function};
use crate::error::{Error, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Similarity {
    Cosine,
    Euclidean,
    DotProduct,
}

pub(super) fn candidate(name: &str, arguments: &[&dyn Argument]) -> Result<Option<Function>> {
    let similarity = match name {
        "similarity_cosine" => Similarity::Cosine,
        "similarity_euclidean" => Similarity::Euclidean,
        "similarity_dot_product" => Similarity::DotProduct,
        _ => return Ok(None),
    };
    let vector = arguments
        .iter()
        .filter_map(|argument| argument.exact_type())
        .find(|t| matches!(t.thawed(), CqlType::Vector(element, _) if **element == CqlType::Float));
    let literal = || {
        let len = arguments.iter().find_map(|argument| argument.list_len())?;
        Some(CqlType::Vector(Box::new(CqlType::Float), u32::try_from(len).ok()?))
    };
    let Some(vector) = vector.or_else(literal) else {
        return Err(Error::InvalidRequest(format!(
            "Function system.{name} requires a float vector argument"
        )));
    };
    let types = vec![vector.clone(), vector];
    Ok(Some(native(name, types, CqlType::Float, Scalar::Similarity(similarity))))
}

impl Similarity {
    pub(super) fn call(
        self,
        function: &Function,
        arguments: &[Option<&[u8]>],
    ) -> Result<Option<Vec<u8>>> {
        let [Some(left), Some(right)] = arguments else { return Ok(None) };
        let floats = |bytes: &[u8]| -> Vec<f32> {
            let chunks = bytes.chunks_exact(4);
            chunks.map(|c| c.first_chunk().map_or(0.0, |c| f32::from_be_bytes(*c))).collect()
        };
        let (left, right) = (floats(left), floats(right));
        if left.len() != right.len() {
            return Err(Error::InvalidRequest(format!(
                "All arguments must have the same vector dimensions, but {} has {} and {}",
                function.full_name(),
                left.len(),
                right.len()
            )));
        }
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let result = match self {
            Similarity::DotProduct => (1.0 + product(&left, &right)) / 2.0,
            Similarity::Euclidean => {
                let squares = left.iter().zip(&right).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
                1.0 / (1.0 + squares)
            }
            Similarity::Cosine => {
                let lengths = product(&left, &left) * product(&right, &right);
                if lengths == 0.0 {
                    return Err(Error::InvalidRequest(format!(
                        "Function {} doesn't support all-zero vectors.",
                        function.full_name()
                    )));
                }
                let cosine = f64::from(product(&left, &right)) / f64::from(lengths).sqrt();
                ((1.0 + cosine) / 2.0) as f32
            }
        };
        Ok(Some(result.to_be_bytes().to_vec()))
    }
}
