//! Clients, and the port through which they come.

use std::collections::BTreeMap;

use halcyon_client::Row;
use halcyon_server::command::{Command, DisableBinary};

use super::arguments::Call;
use super::failure::Result;
use super::node::Node;
use super::text::{row, table};

const COLUMNS: [&str; 10] = [
    "Address",
    "SSL",
    "Cipher",
    "Protocol",
    "Version",
    "User",
    "Keyspace",
    "Requests",
    "Driver-Name",
    "Driver-Version",
];

pub(super) async fn close_port(call: &Call, node: &mut Node) -> Result<()> {
    let command = Command::DisableBinary(DisableBinary { force: call.has("--force") });
    node.command(&command, ("", "")).await
}

pub(super) async fn stats(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    call.refuse(&["--by-protocol", "--clear-history"])?;
    let clients = node.rows("SELECT * FROM system_views.clients").await?;
    for (option, has_options) in [("--all", false), ("--client-options", true)] {
        if call.has(option) {
            let mut rows = vec![row(COLUMNS)];
            rows.extend(clients.iter().map(|client| cells(&client)));
            if has_options {
                let titles = std::iter::once("Client-Options".to_owned());
                let options = titles.chain(clients.iter().map(|client| options(&client)));
                rows.iter_mut().zip(options).for_each(|(row, options)| row.push(options));
            }
            out.push_str(&table(&rows, " "));
            out.push('\n');
        }
    }
    let mut users = BTreeMap::<String, usize>::new();
    for client in clients.iter() {
        *users.entry(client.text("username")).or_default() += 1;
    }
    out.push_str(&format!("Total connected clients: {}\n\n", users.values().sum::<usize>()));
    let mut rows = vec![row(["User", "Connections"])];
    rows.extend(users.iter().map(|(user, count)| row([user, &count.to_string()])));
    out.push_str(&table(&rows, " "));
    Ok(())
}

/// As `ConnectedClient.asMap` has them.
fn cells(client: &Row<'_>) -> Vec<String> {
    let or_undefined = |name: &str| match client.bytes(name) {
        Some(_) => client.text(name),
        None => "undefined".to_owned(),
    };
    let address = client.address("address").map_or(String::new(), |address| address.to_string());
    vec![
        format!("/{address}:{}", client.count("port")),
        client.is_true("ssl_enabled").to_string(),
        or_undefined("ssl_cipher_suite"),
        or_undefined("ssl_protocol"),
        client.count("protocol_version").to_string(),
        or_undefined("username"),
        client.text("keyspace_name"),
        client.count("request_count").to_string(),
        or_undefined("driver_name"),
        or_undefined("driver_version"),
    ]
}

/// A map is encoded as the list of its keys and values.
fn options(client: &Row<'_>) -> String {
    let texts = client.texts("client_options");
    let pairs = texts.chunks_exact(2).map(|pair| pair.join("="));
    pairs.collect::<Vec<_>>().join(", ")
}
