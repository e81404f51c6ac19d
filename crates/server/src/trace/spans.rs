//! Which requests are sampled, and the way of their spans to a collector.

use std::net::SocketAddr;

use halcyon_io::Disk;
use halcyon_operate::{Collector, Exporter, Span};
use halcyon_tls::{Client, ClientOptions, STORE_MAX};

use super::probability::TraceProbability;
use crate::log::Log;
use crate::settings::SpanOptions;

/// Letters of a text that are sent.
const TEXT_MAX: usize = 2_000;

/// Which requests are sampled, and the way to the collector.
pub(crate) struct Spans {
    sampled: TraceProbability,
    exporter: Exporter,
}

impl Spans {
    /// `None`: the settings name no collector.
    pub(crate) async fn start(
        disk: &Disk,
        options: Option<&SpanOptions>,
        node: SocketAddr,
        log: &Log,
    ) -> Result<Option<Spans>, String> {
        let Some(options) = options else { return Ok(None) };
        let tls = match &options.truststore {
            None => None,
            Some(file) => {
                let bytes = disk.read(file, STORE_MAX).await;
                let bytes = bytes.map_err(|e| format!("tracing_otlp_truststore: {e}"))?;
                let trust = (file.display().to_string(), bytes);
                let options = ClientOptions { trust, verifies_name: true, ..Default::default() };
                Some(Client::build(options).map_err(|e| format!("tracing_otlp_truststore: {e}"))?)
            }
        };
        let collector = Collector::parse(&options.endpoint, tls.as_ref());
        let collector = collector.map_err(|why| format!("tracing_otlp_endpoint: {why}"))?;
        let ratio = options.ratio;
        log.say(format_args!(
            "spans of a share of {ratio} of all requests are sent to {collector}"
        ));
        let named = [
            ("service.name", "halcyon".to_owned()),
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("service.instance.id", node.to_string()),
        ];
        let named = named.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let told = log.clone();
        let tell = Box::new(move |text| told.warning(format_args!("{text}")));
        let exporter = Exporter::start(collector, named, tell);
        let exporter = exporter.map_err(|e| format!("the thread of spans cannot start: {e}"))?;
        let sampled = TraceProbability::default();
        sampled.set(ratio);
        Ok(Some(Spans { sampled, exporter }))
    }

    /// Whether this request is sampled.
    pub(crate) fn chooses(&self) -> bool {
        self.sampled.chooses()
    }

    pub(super) fn offer(&self, spans: Vec<Span>) {
        self.exporter.offer(spans);
    }
}

/// A text, short enough to be sent.
pub(super) fn bounded(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The names of OpenTelemetry's conventions for a parameter of a tracing session.
pub(super) fn attribute(parameter: &str) -> &str {
    match parameter {
        "query" => "db.query.text",
        "consistency_level" => "cassandra.consistency.level",
        "page_size" => "cassandra.page.size",
        other => other,
    }
}
