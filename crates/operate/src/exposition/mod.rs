//! Metrics as text for Prometheus, version 0.0.4, or as OpenMetrics 1.0.
//!
//! Cassandra's metrics have the names that jmx_exporter's own example gives them (`jmx_exporter.rs`): dashboards are written for these.
//! What only Halcyon has is in `halcyon_…`, in Prometheus' own manner (`own.rs`).

mod families;
mod jmx_exporter;
mod own;

use halcyon_metrics::{Origin, Registry};

use families::Families;

/// The two text formats that a scraper can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Prometheus,
    OpenMetrics,
}

impl Format {
    /// The format that a request's `Accept` prefers.
    pub(crate) fn accepted(accept: &str) -> Format {
        match accept.contains("application/openmetrics-text") {
            true => Format::OpenMetrics,
            false => Format::Prometheus,
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// All metrics as they are now.
pub(crate) fn render(registry: &Registry, format: Format) -> String {
    let mut families = Families::default();
    registry.walk(&mut |sample| match sample.metric.origin {
        Origin::Cassandra => jmx_exporter::add(&mut families, &sample),
        Origin::Halcyon => own::add(&mut families, &sample),
    });
    families.text(format)
}

#[cfg(test)]
mod tests;
