//! `ExportTraceServiceRequest` of OTLP 1.x in JSON: ids in hex, numbers of 64 bits as texts.

use serde_json::{Value, json};

use super::span::Span;

/// `SPAN_KIND_INTERNAL`, `SPAN_KIND_SERVER`
const KINDS: [u8; 2] = [1, 2];
/// `STATUS_CODE_ERROR`
const ERROR: u8 = 2;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(of: &[(String, String)]) -> Value {
    of.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect()
}

fn span(span: &Span) -> Value {
    let events = span.events.iter();
    let events: Value =
        events.map(|(at, name)| json!({"timeUnixNano": at.to_string(), "name": name})).collect();
    let mut value = json!({
        "traceId": hex(&span.trace),
        "spanId": hex(&span.id),
        "name": span.name,
        "kind": KINDS[usize::from(span.parent.is_none())],
        "startTimeUnixNano": span.began.to_string(),
        "endTimeUnixNano": span.ended.to_string(),
        "attributes": attributes(&span.attributes),
        "events": events,
        "status": {},
    });
    if let Some(parent) = &span.parent {
        value["parentSpanId"] = hex(parent).into();
    }
    if let Some(why) = &span.error {
        value["status"] = json!({"code": ERROR, "message": why});
    }
    value
}

/// The message with these spans; `node` are the attributes of the resource.
pub(super) fn message<'a>(
    node: &[(String, String)],
    spans: impl Iterator<Item = &'a Span>,
) -> Vec<u8> {
    let scope = json!({"name": "halcyon", "version": env!("CARGO_PKG_VERSION")});
    let spans: Value = spans.map(span).collect();
    let message = json!({"resourceSpans": [{
        "resource": {"attributes": attributes(node)},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]});
    message.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the form of the specification: ids in hex, times as texts, a status of an error, a parent only where there is one.
    #[test]
    fn messages_are_otlp_in_json() {
        let whole = Span {
            trace: *b"0123456789abcdef",
            id: [0, 1, 2, 3, 4, 5, 6, 0xff],
            parent: None,
            name: "Execute CQL3 query".to_owned(),
            began: 1_777_896_000_123_456_789,
            ended: 1_777_896_000_123_456_790,
            attributes: vec![("db.query.text".to_owned(), "SELECT \"a\n".to_owned())],
            events: vec![(1, "Parsing".to_owned())],
            error: Some("no".to_owned()),
        };
        let part = Span { parent: Some(whole.id), error: None, ..whole.clone() };
        let node = [("service.name".to_owned(), "halcyon".to_owned())];
        let bytes = message(&node, [&whole, &part].into_iter());
        let read: Value = serde_json::from_slice(&bytes).unwrap();
        let of = &read["resourceSpans"][0];
        let named = json!({"key": "service.name", "value": {"stringValue": "halcyon"}});
        assert_eq!(of["resource"]["attributes"][0], named);
        let spans = &of["scopeSpans"][0]["spans"];
        assert_eq!(spans[0]["traceId"], "30313233343536373839616263646566");
        assert_eq!(spans[0]["spanId"], "00010203040506ff");
        assert_eq!((&spans[0]["kind"], &spans[1]["kind"]), (&json!(2), &json!(1)));
        assert_eq!(spans[0]["startTimeUnixNano"], "1777896000123456789");
        assert_eq!(spans[0]["status"], json!({"code": 2, "message": "no"}));
        assert!(spans[0].get("parentSpanId").is_none());
        assert_eq!(
            (&spans[1]["parentSpanId"], &spans[1]["status"]),
            (&spans[0]["spanId"], &json!({}))
        );
    }
}
