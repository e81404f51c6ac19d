//! The manifest of a snapshot: the SSTables that it has, when it was taken, and when it expires, in the words of Cassandra's.

use halcyon_model::value::{parse_instant, timestamp_iso_string};

/// `files`: quoted names of data files.
pub(super) fn text(files: &[String], created_ms: i64, expires_ms: Option<i64>) -> String {
    let instant = |millis: i64| format!("\"{}\"", timestamp_iso_string(millis));
    format!(
        "{{\n  \"files\" : [ {} ],\n  \"created_at\" : {},\n  \"expires_at\" : {},\n  \"ephemeral\" : false\n}}",
        files.join(", "),
        instant(created_ms),
        expires_ms.map_or("null".to_owned(), instant)
    )
}

/// The time in a field, in milliseconds since 1970.
pub(super) fn time(manifest: &str, field: &str) -> Option<i64> {
    stated(manifest, field).and_then(parse_instant)
}

pub(super) fn is_ephemeral(manifest: &str) -> bool {
    stated(manifest, "ephemeral") == Some("true")
}

/// The value of a field of a manifest.
fn stated<'a>(manifest: &'a str, field: &str) -> Option<&'a str> {
    let (_, rest) = manifest.split_once(&format!("\"{field}\""))?;
    let value = rest.trim_start().strip_prefix(':')?.split([',', '}', '\n']).next()?;
    Some(value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that manifests of Cassandra and of ours are read, and that a damaged one is harmless.
    #[test]
    fn manifests_are_read() {
        let theirs = "{\n  \"files\" : [ \"oa-2-big-Data.db\" ],\n  \"created_at\" : \"2026-11-22T17:35:55.858Z\",\n  \
                      \"expires_at\" : null,\n  \"ephemeral\" : false\n}";
        assert_eq!(time(theirs, "created_at"), Some(1_795_368_955_858));
        assert_eq!(time(theirs, "expires_at"), None);
        assert_eq!(stated(theirs, "ephemeral"), Some("false"));
        assert_eq!(parse_instant("2026-11-22T17:35:55Z"), Some(1_795_368_955_000));
        assert_eq!(stated("{\"files\"", "created_at"), None);
    }
}
