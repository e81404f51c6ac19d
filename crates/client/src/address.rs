//! The addresses behind a host's name.

use std::net::{SocketAddr, ToSocketAddrs};

/// Cassandra's `native_transport_port`.
const PORT: u16 = 9042;

fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(before, port)| {
        port.parse::<u16>().is_ok() && (!before.contains(':') || before.ends_with(']'))
    })
}

/// The name or address, without a port and brackets.
pub(crate) fn name(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((before, _)) if has_port(host) => before,
        _ => host,
    };
    name.trim_start_matches('[').trim_end_matches(']')
}

/// `host`, `host:port`, `::1`, `[::1]:port`.
pub(crate) fn resolve(host: &str) -> std::io::Result<Vec<SocketAddr>> {
    match has_port(host) {
        true => Ok(host.to_socket_addrs()?.collect()),
        false => Ok((name(host), PORT).to_socket_addrs()?.collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the parsing of hosts with and without a port.
    #[test]
    fn hosts_and_ports() {
        let first = |host: &str| resolve(host).expect("an address")[0].to_string();
        assert_eq!(first("127.0.0.1"), "127.0.0.1:9042");
        assert_eq!(first("127.0.0.1:9142"), "127.0.0.1:9142");
        assert_eq!(first("::1"), "[::1]:9042");
        assert_eq!(first("[::1]:7"), "[::1]:7");
        let names = ["db", "db:9142", "::1", "[::1]:7"].map(name);
        assert_eq!(names, ["db", "db", "::1", "::1"]);
    }
}
