//! An entry of an audit log, as a line of text and as JSON.

use std::borrow::Cow;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use halcyon_model::value::timestamp_json_string;
use halcyon_model::{uuid, visible_indented};
use halcyon_query::AuditType;

/// `AuditLogEntry`
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    /// `None`: before a login.
    pub(super) user: Option<&'a str>,
    pub(super) host: &'a str,
    pub(super) source: SocketAddr,
    /// Milliseconds since 1970.
    pub(super) timestamp: i64,
    pub(super) kind: AuditType,
    pub(super) batch: Option<[u8; 16]>,
    pub(super) keyspace: Option<String>,
    /// The statement names no keyspace; this is the session's.
    pub(super) is_of_session: bool,
    pub(super) scope: Option<String>,
    pub(super) operation: Cow<'a, str>,
}

/// As Java writes an address without a name: eight groups, none left out.
fn java_address(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("/{address}"),
        IpAddr::V6(address) => {
            let groups = address.segments().map(|group| format!("{group:x}"));
            format!("/{}", groups.join(":"))
        }
    }
}

impl Entry<'_> {
    /// `AuditLogEntry.getLogString`
    pub(super) fn text(&self) -> String {
        let (kind, category) = self.kind.names();
        let mut out = String::with_capacity(160 + self.operation.len());
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "user:{}|host:{}|source:{}",
            self.user.unwrap_or("null"),
            self.host,
            java_address(self.source.ip())
        );
        if self.source.port() > 0 {
            let _ = write!(out, "|port:{}", self.source.port());
        }
        let category = category.name();
        let _ = write!(out, "|timestamp:{}|type:{kind}|category:{category}", self.timestamp);
        if let Some(batch) = self.batch {
            let _ = write!(out, "|batch:{}", uuid::text(&batch));
        }
        let parts = [
            ("ks", self.keyspace.as_deref().unwrap_or_default()),
            ("scope", self.scope.as_deref().unwrap_or_default()),
            ("operation", &self.operation),
        ];
        for (name, text) in parts {
            if !text.trim().is_empty() {
                let _ = write!(out, "|{name}:{text}");
            }
        }
        out
    }

    /// The line that Cassandra's example of logback.xml has for it: level, thread, time, class. Other lines of a statement are indented,
    /// so that no text of a client can look like an entry.
    pub(super) fn line(&self, thread: &str, millis: i64) -> Vec<u8> {
        let time = timestamp_json_string(millis);
        let time = time.trim_end_matches('Z').replace('.', ",");
        let text = visible_indented(&self.text());
        format!("INFO  [{thread}] {time} FileAuditLogger.java:51 - {text}\n").into_bytes()
    }

    /// A JSON object in one line. What an entry does not have is left out.
    pub(super) fn json(&self) -> Vec<u8> {
        let (kind, category) = self.kind.names();
        let mut members = serde_json::Map::new();
        let mut put = |name: &str, value: serde_json::Value| {
            members.insert(name.to_owned(), value);
        };
        put("user", self.user.into());
        put("host", self.host.into());
        put("source", self.source.ip().to_string().into());
        put("port", self.source.port().into());
        put("timestamp", self.timestamp.into());
        put("type", kind.into());
        put("category", category.name().into());
        if let Some(batch) = self.batch {
            put("batch", uuid::text(&batch).into());
        }
        if let Some(keyspace) = &self.keyspace {
            put("ks", keyspace.as_str().into());
        }
        if let Some(scope) = &self.scope {
            put("scope", scope.as_str().into());
        }
        put("operation", self.operation.as_ref().into());
        let mut line = serde_json::Value::Object(members).to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry<'static> {
        Entry {
            user: Some("anonymous"),
            host: "/127.0.0.1:7000",
            source: "[::1]:9".parse().unwrap(),
            timestamp: 5,
            kind: AuditType::Update,
            batch: Some([0x11; 16]),
            keyspace: Some("ks".to_owned()),
            is_of_session: false,
            scope: None,
            operation: "INSERT\nINFO  forged \u{1b}".into(),
        }
    }

    /// Proves the order of the parts, that missing ones are left out, and Java's form of addresses.
    #[test]
    fn the_text_is_cassandras() {
        let expected = "user:anonymous|host:/127.0.0.1:7000|source:/0:0:0:0:0:0:0:1|port:9|timestamp:5|type:UPDATE|category:DML\
            |batch:11111111-1111-1111-1111-111111111111|ks:ks|operation:INSERT\nINFO  forged \u{1b}";
        assert_eq!(entry().text(), expected);
        let login =
            Entry { user: None, batch: None, keyspace: None, operation: " ".into(), ..entry() };
        assert!(login.text().starts_with("user:null|") && login.text().ends_with("category:DML"));
    }

    /// Proves that an entry is one event of the file, whatever its statement has in it.
    #[test]
    fn an_entry_cannot_be_forged() {
        let line = String::from_utf8(entry().line("shard-0", 1_777_896_000_123)).unwrap();
        let start =
            "INFO  [shard-0] 2026-05-04 12:00:00,123 FileAuditLogger.java:51 - user:anonymous|";
        assert!(line.starts_with(start), "{line}");
        assert!(line.ends_with("INSERT\n    INFO  forged \\u{1b}\n"), "{line}");
        let json = String::from_utf8(entry().json()).unwrap();
        assert_eq!(json.matches('\n').count(), 1);
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["operation"], "INSERT\nINFO  forged \u{1b}");
        assert_eq!((read["source"].as_str(), read["scope"].is_null()), (Some("::1"), true));
    }
}
