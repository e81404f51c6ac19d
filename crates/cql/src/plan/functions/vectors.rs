//! Similarity of vectors of floats.

use halcyon_model::CqlType;
use halcyon_model::similarity::{Similarity, floats};

use super::inferred::{Shape, inferred, wrong_number};
use super::{Argument, Function};
use halcyon_syntax::{Error, Result};

/// What is written without a type has the type of the receiver, or else that of the other argument.
pub(super) fn candidate(
    name: &str,
    arguments: &[&dyn Argument],
    receiver: Option<&CqlType>,
) -> Result<Option<(Shape, Similarity)>> {
    let similarity = match name {
        "similarity_cosine" => Similarity::Cosine,
        "similarity_euclidean" => Similarity::Euclidean,
        "similarity_dot_product" => Similarity::DotProduct,
        _ => return Ok(None),
    };
    const PARAMETERS: &str = "vector<float, n>, vector<float, n>";
    if arguments.len() != 2 {
        return Err(wrong_number(name, PARAMETERS));
    }
    if arguments.iter().any(|argument| argument.list_len() == Some(0)) {
        return Err(no_dimensions());
    }
    let mut found: Option<CqlType> = None;
    for argument in arguments {
        let vector = if let Some(vector) = float_vector(*argument)? {
            vector
        } else {
            let mut typed = argument.compatible_type()?;
            // Null has the type of the other one.
            for other in arguments {
                if typed.is_none() && float_vector(*other)?.is_none() {
                    typed = other.compatible_type()?;
                }
            }
            match typed.or_else(|| receiver.cloned()) {
                Some(of) if is_float_vector(&of) => of.thawed().clone(),
                Some(of) => return Err(no_float_vector(name, &argument.text(), &of)),
                None => continue,
            }
        };
        if found.replace(vector.clone()).is_some_and(|first| first != vector) {
            return Err(different_dimensions());
        }
    }
    let Some(vector) = found else {
        let Some(of) = inferred(name, arguments, None, PARAMETERS)? else { return Ok(None) };
        let text = arguments.first().map(|argument| argument.text()).unwrap_or_default();
        return Err(no_float_vector(name, &text, &of));
    };
    let types = vec![vector.clone(), vector];
    let shape = Shape { arguments: types, returns: CqlType::Float };
    Ok(Some((shape, similarity)))
}

/// The type of an argument that is, or is written as, a vector of floats.
fn float_vector(argument: &dyn Argument) -> Result<Option<CqlType>> {
    if let Some(exact) = argument.exact_type()? {
        return Ok(Some(exact.thawed().clone()).filter(is_float_vector));
    }
    let dimension = argument.list_len().and_then(|len| u32::try_from(len).ok());
    Ok(dimension.map(|dimension| CqlType::Vector(Box::new(CqlType::Float), dimension)))
}

fn is_float_vector(of: &CqlType) -> bool {
    matches!(of.thawed(), CqlType::Vector(element, _) if **element == CqlType::Float)
}

fn no_float_vector(name: &str, text: &str, of: &CqlType) -> Error {
    Error::InvalidRequest(format!(
        "Function system.{name} requires a float vector argument, but found argument {text} of type {}",
        of.cql_name()
    ))
}

fn no_dimensions() -> Error {
    Error::invalid_request("vectors may only have positive dimensions; given 0")
}

fn different_dimensions() -> Error {
    Error::invalid_request("All arguments must have the same vector dimensions")
}

pub(super) fn call(
    similarity: Similarity,
    function: &Function,
    arguments: &[Option<&[u8]>],
) -> Result<Option<Vec<u8>>> {
    let [Some(left), Some(right)] = arguments else { return Ok(None) };
    let (left, right) = (floats(left), floats(right));
    if left.len() != right.len() {
        return Err(different_dimensions());
    }
    let score = similarity.score(&left, &right);
    let is_zero = |vector: &[f32]| vector.iter().all(|value| *value == 0.0);
    if similarity == Similarity::Cosine && (is_zero(&left) || is_zero(&right)) {
        return Err(Error::InvalidRequest(format!(
            "Function {} doesn't support all-zero vectors.",
            function.full_name()
        )));
    }
    Ok(Some(score.to_be_bytes().to_vec()))
}
