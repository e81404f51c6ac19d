//! JSON as a source of values: `INSERT … JSON` and `from_json()`.
//!
//! 1. `parse` reads the text, `value` turns each member into the value of its column.
//! 2. A literal is read when the statement is prepared, a marker's text once per execution, before anything is bound.
//! 3. Names of members are lower-cased unless they stand in quotes of their own, as names in statements are.

mod parse;
mod value;

use std::collections::{HashMap, HashSet};

use halcyon_model::CqlType;
use halcyon_model::request::{ColumnSpec, Value};

use crate::plan::execution::{Execution, Given, Work};
use halcyon_syntax::{Error, Result};
use parse::{Json, Malformed};
use value::{Fault, named_as_columns};

/// What a byte of a text costs, in units of work.
const BYTE: u64 = 20;

/// Where the JSON of an INSERT comes from.
#[derive(Debug, Clone)]
pub(crate) struct JsonMarker {
    pub index: u16,
    /// In the order in which terms read the values.
    pub columns: Vec<ColumnSpec>,
}

impl JsonMarker {
    /// The values of all columns in one execution.
    pub(crate) fn bind(&self, execution: &Execution<'_>) -> Result<Vec<Given>> {
        let bytes = match execution.values.get(usize::from(self.index)) {
            Some(Value::Bytes(bytes)) => *bytes,
            Some(Value::Unset) => &[],
            Some(Value::Null) | None => return Err(got_null()),
        };
        let Ok(text) = std::str::from_utf8(bytes) else {
            return CqlType::Text
                .validate(bytes)
                .map_err(Error::InvalidRequest)
                .map(|()| Vec::new());
        };
        values(text, &self.columns, execution.work)
    }
}

fn got_null() -> Error {
    Error::invalid_request("Got null for INSERT JSON values")
}

fn undecodable(malformed: &Malformed, text: &str) -> Error {
    Error::InvalidRequest(format!(
        "Could not decode JSON string as a map: {}: {}. (String was: {text})",
        malformed.class, malformed.message
    ))
}

/// The values of columns in a JSON object (`Json.parseJson`).
pub(crate) fn values(text: &str, columns: &[ColumnSpec], work: &Work<'_>) -> Result<Vec<Given>> {
    work.spend_on(text.len(), BYTE)?;
    let parsed = parse::parse_object(text).map_err(|malformed| undecodable(&malformed, text))?;
    let members = named_as_columns(parsed.ok_or_else(got_null)?);
    let of_name: HashMap<&str, &Json> =
        members.iter().map(|(name, json)| (name.as_str(), json)).collect();
    let mut given = Vec::with_capacity(columns.len());
    for column in columns {
        given.push(match of_name.get(column.name.as_str()) {
            None => Given::Nothing,
            Some(Json::Null) => Given::Null,
            Some(json) => Given::Value(value::value(&column.cql_type, json).map_err(|fault| {
                Error::InvalidRequest(match fault {
                    Fault::Marshal(why) => {
                        format!("Error decoding JSON value for {}: {why}", column.name)
                    }
                    Fault::Invalid(why) => why,
                })
            })?),
        });
    }
    let known: HashSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    match members.iter().find(|(name, _)| !known.contains(name.as_str())) {
        None => Ok(given),
        Some((name, _)) => Err(Error::InvalidRequest(format!(
            "JSON values map contains unrecognized column: {name}"
        ))),
    }
}

/// `from_json()`: a value of the type that is expected; `None` is null.
pub(crate) fn from_json(cql_type: &CqlType, text: &[u8]) -> Result<Option<Vec<u8>>> {
    let failed = |message: String| Error::FunctionFailure {
        function: "system.from_json".to_owned(),
        arguments: vec!["text".to_owned()],
        message,
    };
    let text = String::from_utf8_lossy(text);
    let json = parse::parse(&text).map_err(|malformed| {
        failed(format!(
            "execution of 'system.from_json[text]' failed: Could not decode JSON string '{text}': {}: {}",
            malformed.class, malformed.message
        ))
    })?;
    if json == Json::Null {
        return Ok(None);
    }
    value::value(cql_type, &json).map(Some).map_err(|fault| match fault {
        Fault::Marshal(why) => {
            failed(format!("org.apache.cassandra.serializers.MarshalException: {why}"))
        }
        Fault::Invalid(why) => Error::InvalidRequest(why),
    })
}
