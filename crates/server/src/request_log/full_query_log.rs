//! Records of the full query log (`FullQueryLogger`): requests that succeeded, except for PREPARE.

use halcyon_binlog::record::{self, Query, Record, Value};
use halcyon_protocol::{QueryParameters, Request, Version};
use halcyon_query::PreparedStatement;

use super::Watched;

fn values(values: &[halcyon_model::request::Value<'_>]) -> Vec<Value> {
    values.iter().map(Value::from).collect()
}

fn query(statement: &PreparedStatement, given: &[halcyon_model::request::Value<'_>]) -> Query {
    Query { text: statement.text_without_password().into_owned(), values: values(given) }
}

fn single(parameters: &QueryParameters<'_>, watched: &Watched) -> Option<record::Request> {
    let statement = watched.statements.first()?;
    let specs = statement.variables.specs.iter().map(|spec| spec.name.as_str());
    let values = parameters.values.in_order(specs);
    Some(record::Request::Single(query(statement, &values)))
}

/// The record of a request; `None`: it is of a kind that is not logged, or larger than a record may be.
pub(super) fn record(
    request: &Request<'_>,
    version: Version,
    watched: &Watched,
) -> Option<Vec<u8>> {
    let (parameters, request) = match request {
        Request::Query { parameters, .. } | Request::Execute { parameters, .. } => {
            (parameters, single(parameters, watched)?)
        }
        Request::Batch { kind, entries, parameters } => {
            let queries = watched.statements.iter().zip(entries);
            let queries = queries.map(|(statement, (_, values))| query(statement, values));
            (parameters, record::Request::Batch(*kind, queries.collect()))
        }
        _ => return None,
    };
    let keyspace = parameters.keyspace.map(str::to_owned).or(watched.client.keyspace.clone());
    Record {
        query_start_time: watched.began,
        protocol_version: version.number(),
        generated_timestamp: watched.timestamp,
        generated_now_in_seconds: Some(watched.began.div_euclid(1000)),
        keyspace,
        options: record::Options {
            consistency: parameters.consistency,
            serial_consistency: parameters.serial_consistency,
            page_size: parameters.page_size,
            paging_state: parameters.paging_state.map(<[u8]>::to_vec),
            timestamp: parameters.timestamp,
            now_in_seconds: parameters.now_in_seconds,
        },
        request,
    }
    .framed()
}
