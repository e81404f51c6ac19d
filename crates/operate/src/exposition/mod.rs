//! Metrics as text for Prometheus, version 0.0.4, or as OpenMetrics 1.0.
//!
//! 1. Cassandra's metrics have the names of an exporter that is in use with it, because dashboards are written for these names: a file for
//!    each ([`Names`]). A metric without a name in a scheme is left out of it.
//! 2. What only Halcyon has is in `halcyon_…`, in Prometheus' own manner, beside every scheme (`own.rs`).

mod criteo;
mod families;
mod figure;
mod format;
mod instaclustr;
mod jmx_exporter;
mod labels;
mod management_api;
mod names;
mod opentelemetry;
mod own;
mod quantiles;
mod recall;
mod snake;

use halcyon_metrics::{Origin, Registry};

use families::Families;
pub use format::Format;
pub use names::{Names, NodeIdentity};
use recall::Recall;

/// All metrics as they are now; the parts of a text.
pub(crate) fn render(
    registry: &Registry,
    names: Names,
    place: &NodeIdentity,
    format: Format,
) -> Vec<String> {
    let mut families = Families::default();
    let mut criteo = criteo::Paths::default();
    let (mut instaclustr, mut opentelemetry) = (Recall::default(), Recall::default());
    registry.walk(&mut |sample| match (sample.metric.origin, names) {
        (Origin::Halcyon, _) => own::add(&mut families, &sample),
        (_, Names::JmxExporter) => jmx_exporter::add(&mut families, &sample),
        (_, Names::ManagementApi) => management_api::add(&mut families, place, &sample),
        (_, Names::Instaclustr) => {
            instaclustr::add(&mut families, &mut instaclustr, place, &sample);
        }
        (_, Names::Criteo) => criteo::add(&mut families, &mut criteo, place, &sample),
        (_, Names::OpenTelemetry) => {
            opentelemetry::add(&mut families, &mut opentelemetry, &sample);
        }
    });
    families.text(format)
}

#[cfg(test)]
mod tests;
