//! Decodes recorded responses into the parts of `Response`, so that they can be encoded again.

use halcyon_model::CqlType;
use halcyon_model::request::{ColumnSpec, SchemaAction, SchemaChange, SchemaTarget};
use halcyon_model::types::UserType;
use halcyon_protocol::{
    Consistency, Envelope, Error, ErrorKind, Flags, Notes, Opcode, Prepared, PreparedMetadata,
    Response, Rows, RowsMetadata, Version,
};

pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    pub(crate) fn short(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().expect("2"))
    }

    pub(crate) fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().expect("4"))
    }

    pub(crate) fn string(&mut self) -> String {
        let len = usize::from(self.short());
        String::from_utf8(self.take(len).to_vec()).expect("UTF-8")
    }

    fn short_bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.short());
        self.take(len)
    }

    fn list(&mut self) -> Vec<String> {
        (0..self.short()).map(|_| self.string()).collect()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        usize::try_from(self.int()).ok().map(|len| self.take(len))
    }

    fn cql_type(&mut self) -> CqlType {
        let boxed = |bytes: &mut Self| Box::new(bytes.cql_type());
        match self.short() {
            0x00 => CqlType::parse(&self.string()).expect("a class"),
            0x01 => CqlType::Ascii,
            0x02 => CqlType::BigInt,
            0x03 => CqlType::Blob,
            0x04 => CqlType::Boolean,
            0x05 => CqlType::Counter,
            0x06 => CqlType::Decimal,
            0x07 => CqlType::Double,
            0x08 => CqlType::Float,
            0x09 => CqlType::Int,
            0x0B => CqlType::Timestamp,
            0x0C => CqlType::Uuid,
            0x0D => CqlType::Text,
            0x0E => CqlType::Varint,
            0x0F => CqlType::TimeUuid,
            0x10 => CqlType::Inet,
            0x11 => CqlType::Date,
            0x12 => CqlType::Time,
            0x13 => CqlType::SmallInt,
            0x14 => CqlType::TinyInt,
            0x15 => CqlType::Duration,
            0x20 => CqlType::List(boxed(self)),
            0x21 => CqlType::Map(boxed(self), boxed(self)),
            0x22 => CqlType::Set(boxed(self)),
            0x30 => {
                let (keyspace, name) = (self.string(), self.string().into_bytes());
                let fields =
                    (0..self.short()).map(|_| (self.string().into_bytes(), self.cql_type()));
                let fields = fields.collect();
                CqlType::Udt(Box::new(UserType { keyspace, name, fields }))
            }
            0x31 => CqlType::Tuple((0..self.short()).map(|_| self.cql_type()).collect()),
            id => panic!("type {id}"),
        }
    }
}

#[derive(Default)]
pub(crate) struct Metadata<'a> {
    pub(crate) flags: i32,
    pub(crate) columns: Vec<ColumnSpec>,
    pub(crate) count: i32,
    pub(crate) paging_state: Option<&'a [u8]>,
    pub(crate) changed: Option<[u8; 16]>,
    pub(crate) partition_key: Vec<u16>,
}

/// `partition_key`: of bind markers, in a version that has it.
pub(crate) fn metadata<'a>(body: &mut Bytes<'a>, partition_key: bool) -> Metadata<'a> {
    let mut metadata = Metadata { flags: body.int(), count: body.int(), ..Metadata::default() };
    let has = |flag: i32| metadata.flags & flag != 0;
    if partition_key {
        metadata.partition_key = (0..body.int()).map(|_| body.short()).collect();
    }
    if has(2) {
        metadata.paging_state = body.bytes();
    }
    if has(8) {
        metadata.changed = Some(body.short_bytes().try_into().expect("MD5"));
    }
    if has(4) {
        return metadata;
    }
    let global = if has(1) { Some((body.string(), body.string())) } else { None };
    for _ in 0..metadata.count {
        let own = |body: &mut Bytes<'_>| (body.string(), body.string());
        let (keyspace, table) = global.clone().unwrap_or_else(|| own(body));
        let (name, cql_type) = (body.string(), body.cql_type());
        metadata.columns.push(ColumnSpec { keyspace, table, name, cql_type });
    }
    metadata
}

/// The optional fields before the body, and the body.
pub(crate) fn notes(envelope: &Envelope) -> (Notes, Bytes<'_>) {
    let mut body = Bytes(&envelope.body);
    let mut notes = Notes::default();
    if envelope.flags.contains(Flags::TRACING) {
        notes.tracing_id = Some(body.take(16).try_into().expect("16"));
    }
    if envelope.flags.contains(Flags::WARNING) {
        notes.warnings = body.list();
    }
    assert!(!envelope.flags.contains(Flags::CUSTOM_PAYLOAD), "Cassandra sends none by itself");
    (notes, body)
}

fn error(body: &mut Bytes<'_>) -> Error {
    let code = body.int();
    let message = body.string();
    let mut level = || Consistency::from_code(body.short()).expect("a level");
    let kind = match code {
        0x0000 => ErrorKind::Server,
        0x000A => ErrorKind::Protocol,
        0x1000 => {
            let consistency = level();
            ErrorKind::Unavailable { consistency, required: body.int(), alive: body.int() }
        }
        0x1400 => ErrorKind::FunctionFailure {
            keyspace: body.string(),
            function: body.string(),
            arguments: body.list(),
        },
        0x2000 => ErrorKind::Syntax,
        0x2200 => ErrorKind::Invalid,
        0x2300 => ErrorKind::Configuration,
        0x2400 => ErrorKind::AlreadyExists { keyspace: body.string(), table: body.string() },
        0x2500 => ErrorKind::Unprepared { id: body.short_bytes().to_vec() },
        code => panic!("code {code:x}"),
    };
    Error::new(kind, message)
}

fn schema_change(body: &mut Bytes<'_>) -> SchemaChange {
    let action = match body.string().as_str() {
        "CREATED" => SchemaAction::Created,
        "UPDATED" => SchemaAction::Updated,
        _ => SchemaAction::Dropped,
    };
    let target = match body.string().as_str() {
        "KEYSPACE" => SchemaTarget::Keyspace,
        "TABLE" => SchemaTarget::Table,
        "TYPE" => SchemaTarget::Type,
        "FUNCTION" => SchemaTarget::Function,
        _ => SchemaTarget::Aggregate,
    };
    let keyspace = body.string();
    let name = if target == SchemaTarget::Keyspace { String::new() } else { body.string() };
    if target == SchemaTarget::Keyspace && !body.0.is_empty() {
        // v3 has no function events: the keyspace changed, with an empty name.
        let (name, arguments) = (body.string(), Vec::new());
        return SchemaChange { action, target: SchemaTarget::Function, keyspace, name, arguments };
    }
    let arguments = if target.has_arguments() { body.list() } else { Vec::new() };
    SchemaChange { action, target, keyspace, name, arguments }
}

/// Calls `then` with the response in an envelope.
pub(crate) fn with_response<R>(
    envelope: &Envelope,
    body: Bytes<'_>,
    then: impl FnOnce(&Response<'_>) -> R,
) -> R {
    let mut body = body;
    match envelope.opcode {
        Opcode::Ready => then(&Response::Ready),
        Opcode::Error => then(&Response::Error(error(&mut body))),
        Opcode::Supported => {
            let options: Vec<_> = (0..body.short()).map(|_| (body.string(), body.list())).collect();
            then(&Response::Supported(&options))
        }
        Opcode::Result => result(body, envelope.version, then),
        other => panic!("{other}"),
    }
}

fn result<R>(mut body: Bytes<'_>, version: Version, then: impl FnOnce(&Response<'_>) -> R) -> R {
    match body.int() {
        1 => then(&Response::Void),
        2 => {
            let metadata = metadata(&mut body, false);
            let columns = &metadata.columns;
            let count = body.int() as u32;
            then(&Response::Rows(Rows {
                metadata: RowsMetadata {
                    columns,
                    paging_state: metadata.paging_state,
                    skip: false,
                    changed: metadata.changed,
                },
                count,
                content: body.0,
            }))
        }
        3 => then(&Response::SetKeyspace(&body.string())),
        4 => {
            let id = body.short_bytes();
            let v5 = version >= Version::V5;
            let result_metadata_id =
                if v5 { body.short_bytes().try_into().expect("MD5") } else { [0; 16] };
            let variables = metadata(&mut body, version >= Version::V4);
            let columns = metadata(&mut body, false);
            let markers = &variables.columns;
            then(&Response::Prepared(Prepared {
                id,
                result_metadata_id,
                variables: PreparedMetadata {
                    columns: markers,
                    partition_key: &variables.partition_key,
                },
                columns: &columns.columns,
            }))
        }
        5 => then(&Response::SchemaChange(&schema_change(&mut body))),
        kind => panic!("kind {kind}"),
    }
}
