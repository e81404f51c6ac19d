//! The native functions: names, overloads, and what runs them.

use std::borrow::Cow;
use std::sync::LazyLock;

use halcyon_model::CqlType;
use halcyon_model::hex;
use halcyon_model::similarity::Similarity;
use halcyon_model::token::token_of;
use halcyon_model::value::{to_json_string, to_string};

use super::aggregate::Aggregate;
use super::collections::{self, Collections};
use super::inferred::{Shape, inferred, wrong_number};
use super::masking::{self, Mask};
use super::matching::Argument;
use super::math::{self, Math};
use super::time::Time;
use super::vectors;
use super::{Body, Function, Scope};
use crate::plan::execution::Execution;
use crate::plan::json;
use halcyon_schema::catalog::Table;
use halcyon_syntax::ast::{ArithmeticOperator, operator_name};
use halcyon_syntax::{Error, Result};

/// The code of a scalar function; its types are in its `Function`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    Uuid,
    Now,
    Token,
    /// A value as its bytes, or as they are.
    Same,
    FromBlob,
    Convert,
    ToText,
    ToJson,
    FromJson,
    Time(Time),
    Math(Math),
    Collections(Collections),
    Mask(Mask),
    Similarity(Similarity),
}

impl Scalar {
    pub(super) fn is_pure(&self) -> bool {
        !matches!(
            self,
            Scalar::Uuid
                | Scalar::Now
                | Scalar::Time(Time::CurrentTimestamp | Time::CurrentDate | Time::CurrentTime)
        )
    }

    pub(super) fn call(
        &self,
        function: &Function,
        arguments: &[Option<&[u8]>],
        execution: &Execution<'_>,
    ) -> Result<Option<Vec<u8>>> {
        match self {
            Scalar::Uuid => return Ok(Some(execution.uuids.random().to_vec())),
            Scalar::Now => {
                return Ok(Some(execution.uuids.time_based(execution.now_micros).to_vec()));
            }
            Scalar::Time(time) => return time.call(function, arguments, execution),
            Scalar::Math(math) => return math.call(function, arguments),
            Scalar::Collections(collections) => return collections.call(function, arguments),
            Scalar::Mask(mask) => return mask.call(function, arguments),
            Scalar::Similarity(similarity) => {
                return vectors::call(*similarity, function, arguments);
            }
            Scalar::Token => return Ok(token(arguments)),
            Scalar::FromJson => {
                let text = arguments.first().copied().flatten();
                let value = text.map(|text| json::from_json(&function.returns, text));
                return Ok(value.transpose()?.flatten());
            }
            _ => {}
        }
        let Some(of) = function.arguments.first() else { return Ok(None) };
        if *self == Scalar::ToJson {
            // For most types an empty value is null.
            let has_empty = matches!(of.base(), CqlType::Text | CqlType::Ascii | CqlType::Blob);
            let value = arguments.first().copied().flatten();
            let value = value.filter(|value| has_empty || !value.is_empty());
            return Ok(Some(value.map_or("null".into(), |v| to_json_string(of, v)).into_bytes()));
        }
        let Some(Some(value)) = arguments.first() else { return Ok(None) };
        match self {
            Scalar::FromBlob => match function.returns.validate(value) {
                Ok(()) => Ok(Some(value.to_vec())),
                Err(_) => Err(Error::InvalidRequest(format!(
                    "In call to function {}, value 0x{} is not a valid binary representation for type {}",
                    function.full_name(),
                    hex::encode(value),
                    function.returns.cql_name()
                ))),
            },
            Scalar::Convert => Ok(math::convert(of, &function.returns, value)),
            Scalar::ToText if value.is_empty() && of.is_null_if_empty() => Ok(None),
            Scalar::ToText => {
                let of = if of.is_counter() { &CqlType::BigInt } else { of };
                Ok(Some(to_string(of, value).into_bytes()))
            }
            _ => Ok(Some(value.to_vec())),
        }
    }
}

fn token(arguments: &[Option<&[u8]>]) -> Option<Vec<u8>> {
    let parts: Option<Vec<&[u8]>> = arguments.iter().copied().collect();
    token_of(&parts?).map(|token| token.0.to_be_bytes().to_vec())
}

fn native(name: &str, arguments: Vec<CqlType>, returns: CqlType, scalar: Scalar) -> Function {
    Function {
        keyspace: "system".into(),
        name: name.into(),
        arguments,
        returns,
        body: Body::Scalar(scalar),
    }
}

fn aggregate(
    name: &str,
    arguments: Vec<CqlType>,
    returns: CqlType,
    aggregate: Aggregate,
) -> Function {
    Function { body: Body::Aggregate(aggregate), ..native(name, arguments, returns, Scalar::Now) }
}

/// `count(*)`
pub(crate) fn count_rows() -> Function {
    aggregate("count_rows", vec![], CqlType::BigInt, Aggregate::CountRows)
}

/// The names by which a statement can call `count(*)`; the second one only in quotes.
pub(crate) const COUNT_ROWS: [&str; 2] = ["count_rows", "countRows"];

/// The type of a cast that is called by its name, `cast_as_text` or `"castAsText"`, as `CAST(x AS type)` spells it.
pub(crate) fn cast_target(name: &str) -> Option<String> {
    if let Some(to) = name.strip_prefix("cast_as_") {
        return Some(to.to_owned());
    }
    let to = name.strip_prefix("castAs")?;
    let (first, others) = to.split_at_checked(1)?;
    let is_camel = first.chars().all(|c| c.is_ascii_uppercase())
        && others.chars().all(|c| c.is_ascii_lowercase());
    is_camel.then(|| to.to_ascii_lowercase())
}

pub(super) const NUMBERS: [CqlType; 9] = [
    CqlType::TinyInt,
    CqlType::SmallInt,
    CqlType::Int,
    CqlType::BigInt,
    CqlType::Float,
    CqlType::Double,
    CqlType::Decimal,
    CqlType::Varint,
    CqlType::Counter,
];

/// The native type of a name: what casts and conversions are to. Neither is to `blob`.
fn native_named(word: &str) -> Option<CqlType> {
    let mut types = CqlType::NATIVE.into_iter().filter(|of| *of != CqlType::Blob);
    types.find(|of| of.native_name() == Some(word))
}

/// All overloads of a name that could be meant. Operators, of which a statement can have many, are made once.
pub(super) fn candidates(
    name: &str,
    arguments: &[&dyn Argument],
    scope: &Scope<'_>,
    receiver: Option<&CqlType>,
) -> Result<Cow<'static, [Function]>> {
    static OPERATIONS: LazyLock<[Vec<Function>; 5]> = LazyLock::new(|| OPERATORS.map(operations));
    let of = |operator: &ArithmeticOperator| operator_name(Some(*operator)) == name;
    if let Some(found) = OPERATORS.iter().position(of) {
        return Ok(OPERATIONS.get(found).map(Vec::as_slice).unwrap_or_default().into());
    }
    named(name, arguments, scope.table, receiver).map(Cow::Owned)
}

/// Whether a native function has the name, whatever its arguments.
pub(crate) fn is_native(name: &str) -> bool {
    name == "token" || named(name, &[], None, None).map_or(true, |found| !found.is_empty())
}

const OPERATORS: [ArithmeticOperator; 5] = [
    ArithmeticOperator::Add,
    ArithmeticOperator::Subtract,
    ArithmeticOperator::Multiply,
    ArithmeticOperator::Divide,
    ArithmeticOperator::Modulo,
];

fn named(
    name: &str,
    arguments: &[&dyn Argument],
    table: Option<&Table>,
    receiver: Option<&CqlType>,
) -> Result<Vec<Function>> {
    let one = |returns: CqlType, scalar: Scalar| vec![native(name, vec![], returns, scalar)];
    Ok(match name {
        "uuid" => one(CqlType::Uuid, Scalar::Uuid),
        "now" | "currenttimeuuid" | "current_timeuuid" => one(CqlType::TimeUuid, Scalar::Now),
        "currenttimestamp" | "current_timestamp" => {
            one(CqlType::Timestamp, Scalar::Time(Time::CurrentTimestamp))
        }
        "currentdate" | "current_date" => one(CqlType::Date, Scalar::Time(Time::CurrentDate)),
        "currenttime" | "current_time" => one(CqlType::Time, Scalar::Time(Time::CurrentTime)),
        "token" => {
            let Some(table) = table else { return Ok(Vec::new()) };
            let key = table.schema.partition_key.iter().map(|column| column.cql_type.clone());
            vec![native(name, key.collect(), CqlType::BigInt, Scalar::Token)]
        }
        "count" | "min" | "max" | "sum" | "avg" => aggregates(name, arguments, receiver)?,
        _ if COUNT_ROWS.contains(&name) => {
            vec![aggregate(name, vec![], CqlType::BigInt, Aggregate::CountRows)]
        }
        "tojson" | "to_json" => {
            if arguments.len() != 1 {
                return Err(wrong_number(name, "any"));
            }
            let of = inferred(name, arguments, None, "any")?;
            of.map(|of| vec![native(name, vec![of], CqlType::Text, Scalar::ToJson)])
                .unwrap_or_default()
        }
        "fromjson" | "from_json" => vec![from_json(name, arguments, receiver)?],
        _ => several(name, arguments, receiver)?,
    })
}

/// `from_json(text)` gives whatever is expected.
fn from_json(
    name: &str,
    arguments: &[&dyn Argument],
    receiver: Option<&CqlType>,
) -> Result<Function> {
    let [argument] = arguments else {
        return Err(wrong_number(name, "text"));
    };
    if !argument.matches(&CqlType::Text)?.is_assignable() {
        let found = argument.compatible_type()?.map_or_else(|| argument.text(), |t| t.cql_name());
        return Err(Error::InvalidRequest(format!(
            "Function system.{name} requires an argument of type text, but found argument 1 of type {found}"
        )));
    }
    let Some(returns) = receiver.cloned() else {
        return Err(Error::InvalidRequest(format!(
            "{name}() cannot be used in the selection clause of a SELECT statement"
        )));
    };
    Ok(native("from_json", vec![CqlType::Text], returns, Scalar::FromJson))
}

fn several(
    name: &str,
    arguments: &[&dyn Argument],
    receiver: Option<&CqlType>,
) -> Result<Vec<Function>> {
    let found = time_functions(name);
    if !found.is_empty() {
        return Ok(found);
    }
    let found = math_functions(name);
    if !found.is_empty() {
        return Ok(found);
    }
    if let Some(function) = blob_function(name) {
        return Ok(vec![function]);
    }
    if let Some(to) = cast_target(name) {
        return Ok(native_named(&to).map(|to| casts_to(name, &to)).unwrap_or_default());
    }
    let found = if let Some((shape, which)) = collections::candidate(name, arguments)? {
        Some((shape, Scalar::Collections(which)))
    } else if let Some((shape, mask)) = masking::candidate(name, arguments, receiver)? {
        Some((shape, Scalar::Mask(mask)))
    } else {
        let found = vectors::candidate(name, arguments, receiver)?;
        found.map(|(shape, similarity)| (shape, Scalar::Similarity(similarity)))
    };
    let function =
        |(shape, scalar): (Shape, Scalar)| native(name, shape.arguments, shape.returns, scalar);
    Ok(found.map(function).into_iter().collect())
}

fn aggregates(
    name: &str,
    arguments: &[&dyn Argument],
    receiver: Option<&CqlType>,
) -> Result<Vec<Function>> {
    let which = match name {
        "count" => Aggregate::Count,
        "min" => Aggregate::Min,
        "max" => Aggregate::Max,
        "sum" => Aggregate::Sum,
        _ => Aggregate::Avg,
    };
    if matches!(which, Aggregate::Sum | Aggregate::Avg) {
        let of = |number: CqlType| aggregate(name, vec![number.clone()], number, which);
        return Ok(NUMBERS.into_iter().map(of).collect());
    }
    let of = match (arguments, which) {
        // What is counted is taken for bytes, which each column, null and marker is; literals of several values are not.
        (_, Aggregate::Count) => None,
        ([_], _) => inferred(name, arguments, receiver, "any")?,
        _ => return Err(wrong_number(name, "any")),
    };
    let of = of.unwrap_or(CqlType::Blob);
    let returns = if which == Aggregate::Count { CqlType::BigInt } else { of.clone() };
    Ok(vec![aggregate(name, vec![of], returns, which)])
}

fn time_functions(name: &str) -> Vec<Function> {
    let (from, returns, time): (&[CqlType], CqlType, Time) = match name {
        "mintimeuuid" | "min_timeuuid" => {
            (&[CqlType::Timestamp], CqlType::TimeUuid, Time::MinTimeUuid)
        }
        "maxtimeuuid" | "max_timeuuid" => {
            (&[CqlType::Timestamp], CqlType::TimeUuid, Time::MaxTimeUuid)
        }
        "todate" | "to_date" => {
            (&[CqlType::TimeUuid, CqlType::Timestamp], CqlType::Date, Time::ToDate)
        }
        "totimestamp" | "to_timestamp" => {
            (&[CqlType::Date, CqlType::TimeUuid], CqlType::Timestamp, Time::ToTimestamp)
        }
        "tounixtimestamp" | "to_unix_timestamp" => {
            (&[CqlType::TimeUuid, CqlType::Timestamp, CqlType::Date], CqlType::BigInt, Time::ToUnix)
        }
        "floor" => return floor_functions(),
        _ => return Vec::new(),
    };
    let of = |from: &CqlType| native(name, vec![from.clone()], returns.clone(), Scalar::Time(time));
    from.iter().map(of).collect()
}

fn floor_functions() -> Vec<Function> {
    let pairs = [
        (CqlType::Timestamp, CqlType::Timestamp),
        (CqlType::TimeUuid, CqlType::Timestamp),
        (CqlType::Date, CqlType::Date),
    ];
    let floor = |arguments: Vec<CqlType>, returns: CqlType| {
        native("floor", arguments, returns, Scalar::Time(Time::Floor))
    };
    let mut functions: Vec<Function> = pairs
        .into_iter()
        .flat_map(|(of, returns)| {
            let short = vec![of.clone(), CqlType::Duration];
            let long = vec![of, CqlType::Duration, returns.clone()];
            [floor(short, returns.clone()), floor(long, returns)]
        })
        .collect();
    functions.push(floor(vec![CqlType::Time, CqlType::Duration], CqlType::Time));
    functions
}

fn math_functions(name: &str) -> Vec<Function> {
    let math = match name {
        "abs" => Math::Abs,
        "exp" => Math::Exp,
        "log" => Math::Log,
        "log10" => Math::Log10,
        "round" => Math::Round,
        "_negate" => Math::Negate,
        _ => return Vec::new(),
    };
    let of = |number: CqlType| native(name, vec![number.clone()], number, Scalar::Math(math));
    NUMBERS.into_iter().map(of).collect()
}

fn operations(operator: ArithmeticOperator) -> Vec<Function> {
    let name = operator_name(Some(operator));
    let scalar = Scalar::Math(Math::Operator(operator));
    let of = |left: &CqlType, right: &CqlType, returns: CqlType| {
        native(name, vec![left.clone(), right.clone()], returns, scalar.clone())
    };
    let mut functions: Vec<Function> = Vec::new();
    for left in &NUMBERS {
        for right in &NUMBERS {
            functions
                .extend(math::result_type(left, right).map(|returns| of(left, right, returns)));
        }
    }
    if matches!(operator, ArithmeticOperator::Add | ArithmeticOperator::Subtract) {
        for time in [CqlType::Timestamp, CqlType::Date] {
            functions.push(of(&time, &CqlType::Duration, time.clone()));
        }
    }
    if operator == ArithmeticOperator::Add {
        let (text, ascii) = (CqlType::Text, CqlType::Ascii);
        for (left, right, returns) in [
            (&text, &text, &text),
            (&ascii, &ascii, &ascii),
            (&text, &ascii, &text),
            (&ascii, &text, &text),
        ] {
            functions.push(of(left, right, returns.clone()));
        }
    }
    functions
}

fn blob_function(name: &str) -> Option<Function> {
    let named = |word: &str| match word {
        "varchar" => native_named("text"),
        "empty" => Some(CqlType::Empty),
        _ => native_named(word),
    };
    let to = name.strip_suffix("_as_blob").or_else(|| name.strip_suffix("asblob"));
    if let Some(cql_type) = to.and_then(named) {
        return Some(native(name, vec![cql_type], CqlType::Blob, Scalar::Same));
    }
    let from = name.strip_prefix("blob_as_").or_else(|| name.strip_prefix("blobas"));
    let cql_type = from.and_then(named)?;
    Some(native(name, vec![CqlType::Blob], cql_type, Scalar::FromBlob))
}

/// The functions behind `CAST(x AS type)`.
fn casts_to(name: &str, to: &CqlType) -> Vec<Function> {
    let of = |scalar: Scalar| {
        let to = to.clone();
        move |from: CqlType| native(name, vec![from], to.clone(), scalar.clone())
    };
    match to {
        CqlType::Counter => Vec::new(),
        number if math::is_number(number) => {
            let from = NUMBERS.into_iter().filter(|from| from != to);
            from.map(of(Scalar::Convert)).collect()
        }
        CqlType::Text | CqlType::Ascii => {
            let others = [
                CqlType::Boolean,
                CqlType::Ascii,
                CqlType::Inet,
                CqlType::Uuid,
                CqlType::TimeUuid,
                CqlType::Timestamp,
                CqlType::Date,
                CqlType::Time,
            ];
            let from = NUMBERS.into_iter().chain(others).filter(|from| from != to);
            from.map(of(Scalar::ToText)).collect()
        }
        CqlType::Timestamp => [CqlType::TimeUuid, CqlType::Date]
            .into_iter()
            .map(of(Scalar::Time(Time::ToTimestamp)))
            .collect(),
        CqlType::Date => [CqlType::TimeUuid, CqlType::Timestamp]
            .into_iter()
            .map(of(Scalar::Time(Time::ToDate)))
            .collect(),
        _ => Vec::new(),
    }
}
