//! Metrics as text for Prometheus, version 0.0.4, or as OpenMetrics 1.0.
//!
//! Cassandra's metrics have the names that jmx_exporter's own example gives them (`jmx_exporter.rs`): dashboards are written for these.
//! What only Halcyon has is in `halcyon_…`, in Prometheus' own manner (`own.rs`).

mod families;
mod format;
mod jmx_exporter;
mod own;

use halcyon_metrics::{Origin, Registry};

use families::Families;
pub use format::Format;

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
