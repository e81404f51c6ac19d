use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.clients (
    address inet,
    port int,
    client_options frozen<map<text, text>>,
    connection_stage text,
    driver_name text,
    driver_version text,
    hostname text,
    keyspace_name text,
    protocol_version int,
    request_count bigint,
    ssl_cipher_suite text,
    ssl_enabled boolean,
    ssl_protocol text,
    username text,
    PRIMARY KEY (address, port)
) WITH ID = 89dc73d4-1447-3765-948b-500c7c35a35d
    AND comment = 'currently connected clients';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with([
        "address",
        "port",
        "client_options",
        "connection_stage",
        "driver_name",
        "driver_version",
        "hostname",
        "keyspace_name",
        "protocol_version",
        "request_count",
        "ssl_cipher_suite",
        "ssl_enabled",
        "ssl_protocol",
        "username",
    ]);
    for (address, requests, told) in node.facts.clients.all() {
        let option = |name: &str| {
            told.options.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
        };
        let stage = if told.protocol_version.is_some() { "ready" } else { "established" };
        rows.push([
            address.ip().into(),
            i32::from(address.port()).into(),
            told.options.as_slice().into(),
            stage.into(),
            option("DRIVER_NAME").into(),
            option("DRIVER_VERSION").into(),
            address.ip().to_string().into(),
            told.keyspace.as_deref().into(),
            told.protocol_version.map(i32::from).into(),
            requests.into(),
            told.encryption.map(|(_, cipher_suite)| cipher_suite).into(),
            told.encryption.is_some().into(),
            told.encryption.map(|(protocol, _)| protocol).into(),
            told.username.as_deref().into(),
        ]);
    }
}
