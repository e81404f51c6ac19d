//! Responses and events.

use std::net::SocketAddr;

use halcyon_model::request::{SchemaChange, SchemaTarget};

use crate::envelope::Opcode;
use crate::{Error, Prepared, Rows, Version, error, result, write};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response<'a> {
    Error(Error),
    Ready,
    /// The class name of the authenticator.
    Authenticate(&'a str),
    AuthChallenge(Option<&'a [u8]>),
    AuthSuccess(Option<&'a [u8]>),
    Supported(&'a [(String, Vec<String>)]),
    Void,
    Rows(Rows<'a>),
    SetKeyspace(&'a str),
    Prepared(Prepared<'a>),
    SchemaChange(&'a SchemaChange),
    Event(Event<'a>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopologyChange {
    NewNode,
    RemovedNode,
    MovedNode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusChange {
    Up,
    Down,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    TopologyChange(TopologyChange, SocketAddr),
    StatusChange(StatusChange, SocketAddr),
    SchemaChange(&'a SchemaChange),
}

impl Response<'_> {
    pub fn opcode(&self) -> Opcode {
        match self {
            Response::Error(_) => Opcode::Error,
            Response::Ready => Opcode::Ready,
            Response::Authenticate(_) => Opcode::Authenticate,
            Response::AuthChallenge(_) => Opcode::AuthChallenge,
            Response::AuthSuccess(_) => Opcode::AuthSuccess,
            Response::Supported(_) => Opcode::Supported,
            Response::Void
            | Response::Rows(_)
            | Response::SetKeyspace(_)
            | Response::Prepared(_)
            | Response::SchemaChange(_) => Opcode::Result,
            Response::Event(_) => Opcode::Event,
        }
    }

    /// Appends the body.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, version: Version) {
        match self {
            Response::Error(error) => error::encode(out, error, version),
            Response::Ready => {}
            Response::Authenticate(authenticator) => write::string(out, authenticator),
            Response::AuthChallenge(token) | Response::AuthSuccess(token) => {
                write::bytes(out, *token);
            }
            Response::Supported(options) => {
                write::short(out, write::count(options.len()));
                for (option, values) in options.iter().take(usize::from(u16::MAX)) {
                    write::string(out, option);
                    write::string_list(out, values);
                }
            }
            Response::Void => write::int(out, 1),
            Response::Rows(rows) => {
                write::int(out, 2);
                result::encode_rows(out, rows, version);
            }
            Response::SetKeyspace(keyspace) => {
                write::int(out, 3);
                write::string(out, keyspace);
            }
            Response::Prepared(prepared) => {
                write::int(out, 4);
                result::encode_prepared(out, prepared, version);
            }
            Response::SchemaChange(change) => {
                write::int(out, 5);
                put_schema_change(out, change, version);
            }
            Response::Event(event) => put_event(out, event, version),
        }
    }
}

fn put_event(out: &mut Vec<u8>, event: &Event<'_>, version: Version) {
    match event {
        Event::TopologyChange(change, node) => {
            write::string(out, "TOPOLOGY_CHANGE");
            write::string(
                out,
                match change {
                    TopologyChange::NewNode => "NEW_NODE",
                    TopologyChange::RemovedNode => "REMOVED_NODE",
                    TopologyChange::MovedNode => "MOVED_NODE",
                },
            );
            put_inet(out, node);
        }
        Event::StatusChange(status, node) => {
            write::string(out, "STATUS_CHANGE");
            write::string(
                out,
                match status {
                    StatusChange::Up => "UP",
                    StatusChange::Down => "DOWN",
                },
            );
            put_inet(out, node);
        }
        Event::SchemaChange(change) => {
            write::string(out, "SCHEMA_CHANGE");
            put_schema_change(out, change, version);
        }
    }
}

/// [inet]
fn put_inet(out: &mut Vec<u8>, node: &SocketAddr) {
    match node {
        SocketAddr::V4(node) => {
            out.push(4);
            out.extend(node.ip().octets());
        }
        SocketAddr::V6(node) => {
            out.push(16);
            out.extend(node.ip().octets());
        }
    }
    write::int(out, i32::from(node.port()));
}

fn put_schema_change(out: &mut Vec<u8>, change: &SchemaChange, version: Version) {
    if change.target.has_arguments() && version < Version::V4 {
        // v3 has no function events: report a change of the keyspace. Cassandra adds the empty name, too.
        for text in ["UPDATED", "KEYSPACE", &change.keyspace, ""] {
            write::string(out, text);
        }
        return;
    }
    write::string(out, change.action.name());
    write::string(out, change.target.name());
    write::string(out, &change.keyspace);
    if change.target != SchemaTarget::Keyspace {
        write::string(out, &change.name);
    }
    if change.target.has_arguments() {
        write::string_list(out, &change.arguments);
    }
}
