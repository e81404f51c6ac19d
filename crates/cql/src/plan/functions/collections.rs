//! Functions of collections: keys, values, size, and aggregates of the elements.

use halcyon_model::CqlType;

use super::accumulate::NativeAccumulator;
use super::aggregate::Aggregate;
use super::inferred::{Shape, inferred, wrong_number};
use super::{Argument, Function, math};
use crate::plan::value::collection::{collection_elements, join, reserialized};
use halcyon_syntax::{Error, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collections {
    MapKeys,
    MapValues,
    Count,
    Min,
    Max,
    Sum,
    Avg,
}

/// The function of that name for the type of its argument.
pub(super) fn candidate(
    name: &str,
    arguments: &[&dyn Argument],
) -> Result<Option<(Shape, Collections)>> {
    const NUMBERS: &str = "numeric_set_or_list";
    // The name of its argument in its signature, and in messages.
    let (which, parameter, what) = match name {
        "map_keys" => (Collections::MapKeys, "map", "map"),
        "map_values" => (Collections::MapValues, "map", "map"),
        "collection_count" => (Collections::Count, "collection", "collection"),
        "collection_min" => (Collections::Min, NUMBERS, "set or list"),
        "collection_max" => (Collections::Max, NUMBERS, "set or list"),
        "collection_sum" => (Collections::Sum, NUMBERS, "numeric set/list"),
        "collection_avg" => (Collections::Avg, NUMBERS, "numeric set/list"),
        _ => return Ok(None),
    };
    if arguments.len() != 1 {
        return Err(wrong_number(name, parameter));
    }
    let Some(of) = inferred(name, arguments, None, parameter)? else { return Ok(None) };
    let returns = returned(which, of.thawed()).ok_or_else(|| {
        let shown = arguments.first().map(|argument| argument.text()).unwrap_or_default();
        Error::InvalidRequest(format!(
            "Function system.{name} requires a {what} argument, but found argument {shown} of type {}",
            of.cql_name()
        ))
    })?;
    let shape = Shape { arguments: vec![of], returns };
    Ok(Some((shape, which)))
}

fn returned(which: Collections, of: &CqlType) -> Option<CqlType> {
    Some(match (which, of) {
        (Collections::MapKeys, CqlType::Map(key, _)) => CqlType::Set(key.clone()).freeze(),
        (Collections::MapValues, CqlType::Map(_, value)) => CqlType::List(value.clone()).freeze(),
        (Collections::Count, CqlType::Map(..) | CqlType::Set(_) | CqlType::List(_)) => CqlType::Int,
        (Collections::Min | Collections::Max, CqlType::Set(element) | CqlType::List(element)) => {
            (**element).clone()
        }
        (Collections::Sum | Collections::Avg, CqlType::Set(element) | CqlType::List(element))
            if math::is_number(element) =>
        {
            (**element).clone()
        }
        _ => return None,
    })
}

impl Collections {
    pub(super) fn call(
        self,
        function: &Function,
        arguments: &[Option<&[u8]>],
    ) -> Result<Option<Vec<u8>>> {
        let Some(Some(value)) = arguments.first() else { return Ok(None) };
        let elements = collection_elements(value);
        let is_map =
            matches!(function.arguments.first().map(CqlType::thawed), Some(CqlType::Map(..)));
        let half = |from: usize| {
            let elements_of_half = elements.iter().skip(from).step_by(2);
            let values = elements_of_half.map(|element| element.unwrap_or_default());
            let joined = join(elements.len() / 2, values);
            reserialized(&function.returns, &joined).into_owned()
        };
        let aggregate = match self {
            Collections::MapKeys => return Ok(Some(half(0))),
            Collections::MapValues => return Ok(Some(half(1))),
            Collections::Count => {
                let count = if is_map { elements.len() / 2 } else { elements.len() };
                let count = i32::try_from(count).unwrap_or(i32::MAX);
                return Ok(Some(count.to_be_bytes().to_vec()));
            }
            Collections::Min => Aggregate::Min,
            Collections::Max => Aggregate::Max,
            Collections::Sum => Aggregate::Sum,
            Collections::Avg => Aggregate::Avg,
        };
        let of_elements =
            Function { arguments: vec![function.returns.clone()], ..function.clone() };
        let mut accumulator = NativeAccumulator::new(aggregate, &of_elements);
        for element in elements {
            accumulator.add(element);
        }
        Ok(accumulator.result())
    }
}
