//! Similarity of vectors of floats.

use halcyon_model::CqlType;
use halcyon_model::similarity::{Similarity, floats};

use super::inferred::{Shape, inferred, wrong_number};
use super::{Argument, Function};
use halcyon_syntax::{Error, Result};

pub(super) fn candidate(
    name: &str,
    arguments: &[&dyn Argument],
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
        let Some(vector) = float_vector(*argument) else {
            // Null has the type of the other one.
            let is_vector = arguments.iter().any(|other| float_vector(*other).is_some());
            let types = std::iter::once(argument).chain(arguments.iter().filter(|_| !is_vector));
            match types.into_iter().find_map(|of| of.compatible_type()) {
                Some(of) => return Err(no_float_vector(name, &argument.text(), &of)),
                None => continue,
            }
        };
        if found.replace(vector.clone()).is_some_and(|first| first != vector) {
            return Err(different_dimensions());
        }
    }
    let Some(vector) = found else {
        let Some(of) = inferred(name, arguments, 0, PARAMETERS)? else { return Ok(None) };
        let text = arguments.first().map(|argument| argument.text()).unwrap_or_default();
        return Err(no_float_vector(name, &text, &of));
    };
    let types = vec![vector.clone(), vector];
    let shape = Shape { arguments: types, returns: CqlType::Float };
    Ok(Some((shape, similarity)))
}

/// The type of an argument that is, or is written as, a vector of floats.
fn float_vector(argument: &dyn Argument) -> Option<CqlType> {
    let dimension = match (argument.exact_type(), argument.list_len()) {
        (Some(exact), _) => match exact.thawed() {
            CqlType::Vector(element, dimension) if **element == CqlType::Float => *dimension,
            _ => return None,
        },
        (None, Some(len)) => u32::try_from(len).ok()?,
        (None, None) => return None,
    };
    Some(CqlType::Vector(Box::new(CqlType::Float), dimension))
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
