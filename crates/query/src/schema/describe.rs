//! DESCRIBE: the schema's own texts as pages of rows.
//!
//! The paging state is the number of rows sent so far and the schema's version: the result is computed again for
//! each page, and must still be the same one.

use std::sync::Arc;

use halcyon_cql::plan::{self, Plan, Work};
use halcyon_model::request::{ColumnSpec, Consistency};
use halcyon_model::{CqlType, Cursor};
use halcyon_schema::describe::{Element, describe};
use halcyon_syntax::ast::{Describe, DescribeTarget};
use halcyon_syntax::parse_statement;

use crate::coordinator::Coordinator;
use crate::request::Request;
use crate::select::execute_select;
use crate::{Error, Outcome, QueryOptions, Result, Rows};

fn column(name: &str, cql_type: CqlType) -> ColumnSpec {
    ColumnSpec {
        keyspace: "system".to_owned(),
        table: "describe".to_owned(),
        name: name.to_owned(),
        cql_type,
    }
}

fn push(content: &mut Vec<u8>, value: &[u8]) {
    let length = i32::try_from(value.len()).unwrap_or(i32::MAX);
    content.extend_from_slice(&length.to_be_bytes());
    content.extend_from_slice(value);
}

pub(super) async fn execute(
    coordinator: &Coordinator,
    wanted: &Describe,
    options: &QueryOptions<'_>,
) -> Result<Outcome> {
    if wanted.target == DescribeTarget::Cluster {
        return cluster(coordinator, options.keyspace.is_some()).await;
    }
    let catalog = coordinator.shard().tables().catalog();
    let elements = describe(&catalog, wanted, options.keyspace)?;
    let from = resume(options.paging_state, &catalog.version)?;
    let size = options.page_size.and_then(|size| usize::try_from(size).ok()).filter(|n| *n > 0);
    let page: Vec<&Element> = elements.iter().skip(from).take(size.unwrap_or(usize::MAX)).collect();
    let lists = matches!(
        wanted.target,
        DescribeTarget::Keyspaces
            | DescribeTarget::Tables
            | DescribeTarget::Types
            | DescribeTarget::Functions
            | DescribeTarget::Aggregates
    );
    let mut names = vec!["keyspace_name", "type", "name"];
    if !lists {
        names.push("create_statement");
    }
    let columns: Vec<ColumnSpec> =
        names.into_iter().map(|name| column(name, CqlType::Text)).collect();
    let mut content = Vec::new();
    for element in &page {
        for text in [&element.keyspace, element.kind, &element.name] {
            push(&mut content, text.as_bytes());
        }
        if let Some(statement) = &element.statement {
            push(&mut content, statement.as_bytes());
        }
    }
    let sent = from.saturating_add(page.len());
    let paging_state = (sent < elements.len()).then(|| state(sent, &catalog.version));
    Ok(Outcome::Rows(Rows {
        columns: Arc::from(columns),
        count: u32::try_from(page.len()).unwrap_or(u32::MAX),
        content,
        paging_state,
        ..Rows::default()
    }))
}

fn state(sent: usize, version: &[u8; 16]) -> Vec<u8> {
    let mut state = (sent as u64).to_be_bytes().to_vec();
    state.extend_from_slice(version);
    state
}

fn resume(state: Option<&[u8]>, version: &[u8; 16]) -> Result<usize> {
    let Some(state) = state else { return Ok(0) };
    let parts = state.split_first_chunk::<8>();
    let Some((sent, rest)) = parts.filter(|(_, rest)| rest.len() == version.len()) else {
        return Err(Error::Protocol("Invalid value for the paging state".to_owned()));
    };
    if rest != version {
        return Err(Error::Invalid(
            "The schema has changed since the previous page of the DESCRIBE statement result. Please retry the DESCRIBE statement."
                .to_owned(),
        ));
    }
    Ok(usize::try_from(u64::from_be_bytes(*sent)).unwrap_or(usize::MAX))
}

/// The ring in `system.local`, of which this node is the only member.
async fn cluster(coordinator: &Coordinator, with_ownership: bool) -> Result<Outcome> {
    let text = "SELECT cluster_name, partitioner, broadcast_address, broadcast_port, tokens FROM system.local";
    let catalog = coordinator.shard().tables().catalog();
    let work = Work::while_there_is_time(&|| true);
    let plan = plan::prepare(&parse_statement(text)?, &catalog, None, &work)?.plan;
    let options = QueryOptions {
        consistency: Consistency::One,
        protocol_version: 5,
        ..QueryOptions::default()
    };
    let request = Request::new(text.len(), &[], &options, coordinator.uuids());
    let found = match &plan {
        Plan::Select(plan) => {
            Box::pin(execute_select(coordinator, plan, &request, &options)).await?
        }
        _ => Outcome::Void,
    };
    let mut values: Vec<Vec<u8>> = Vec::new();
    if let Outcome::Rows(rows) = &found {
        let mut cursor = Cursor::new(&rows.content);
        while let Some(value) = take(&mut cursor) {
            values.push(value.to_vec());
        }
    }
    let value = |index: usize| values.get(index).map_or(&[][..], Vec::as_slice);
    let partitioner = String::from_utf8_lossy(value(1)).into_owned();
    let short = partitioner.rsplit('.').next().unwrap_or_default();
    let mut columns: Vec<ColumnSpec> = ["cluster", "partitioner", "snitch"]
        .into_iter()
        .map(|name| column(name, CqlType::Text))
        .collect();
    let mut content = Vec::new();
    for text in [value(0), short.as_bytes(), b"DynamicEndpointSnitch"] {
        push(&mut content, text);
    }
    if with_ownership {
        let owners = CqlType::Frozen(Box::new(CqlType::List(Box::new(CqlType::Text))));
        let ownership = CqlType::Map(Box::new(CqlType::Text), Box::new(owners));
        columns.push(column("range_ownership", ownership));
        push(&mut content, &ownership_of(value(2), value(3), value(4)));
    }
    Ok(Outcome::Rows(Rows { columns: Arc::from(columns), count: 1, content, ..Rows::default() }))
}

fn take<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let length = cursor.i32().ok()?;
    match u64::try_from(length) {
        Ok(length) => cursor.take_u64(length).ok(),
        Err(_) => Some(&[]),
    }
}

/// Each token with the only node, the owner of the range before it, as a serialized map of lists.
fn ownership_of(address: &[u8], port: &[u8], tokens: &[u8]) -> Vec<u8> {
    let ip = match (<[u8; 4]>::try_from(address), <[u8; 16]>::try_from(address)) {
        (Ok(v4), _) => format!("/{}", std::net::Ipv4Addr::from(v4)),
        (_, Ok(v6)) => format!("/[{}]", std::net::Ipv6Addr::from(v6)),
        _ => "/".to_owned(),
    };
    let port = <[u8; 4]>::try_from(port).map_or(0, i32::from_be_bytes);
    let mut owners = 1i32.to_be_bytes().to_vec();
    push(&mut owners, format!("{ip}:{port}").as_bytes());
    let mut cursor = Cursor::new(tokens);
    let count = cursor.i32().unwrap_or(0);
    let mut entries = 0i32;
    let mut map = Vec::new();
    for _ in 0..count {
        let Some(token) = take(&mut cursor) else { break };
        push(&mut map, token);
        push(&mut map, &owners);
        entries += 1;
    }
    let mut out = entries.to_be_bytes().to_vec();
    out.append(&mut map);
    out
}
