//! Everything that is measured of a stretch of time beside the reads themselves.

use std::path::Path;

use serde_json::{Value, json};

use crate::Result;
use crate::block_trace::BlockTrace;
use crate::histogram::{ByKind, counted, since};
use crate::pressure::Pressure;
use crate::process::Watch;
use crate::record::Measurements;
use crate::server::Server;

/// Read when the stretch begins.
pub(super) struct Gauge {
    watch: Watch,
    pressure: Pressure,
    /// Of the block device, by kind.
    device: ByKind,
    /// As Halcyon itself counts.
    purposes: ByKind,
}

impl Gauge {
    pub(super) fn begin(
        server: &Server,
        folder: &Path,
        trace: Option<&BlockTrace>,
    ) -> Result<Gauge> {
        Ok(Gauge {
            purposes: purposes(server)?,
            device: trace.map(BlockTrace::now).unwrap_or_default(),
            pressure: Pressure::now(),
            watch: Watch::process(server.pid, folder)?,
        })
    }

    /// Measurements, and details.
    pub(super) fn end(
        self,
        server: &Server,
        trace: Option<&BlockTrace>,
    ) -> Result<(Measurements, Value)> {
        let cost = self.watch.stop()?;
        let pressure = Pressure::now().since(&self.pressure);
        let device = trace.map(BlockTrace::now).unwrap_or_default();
        let moved = &cost.device;
        let figures = Measurements::default()
            .with("server_cpu_seconds", cost.cpu_seconds)
            .with("server_peak_memory_bytes", cost.peak_memory as f64)
            .with("page_cache_growth_peak_bytes", cost.cache_peak as f64)
            .with("page_cache_growth_bytes", cost.cache_after as f64)
            .with("dirty_peak_bytes", cost.dirty_peak as f64)
            .with("device_reads", moved.reads as f64)
            .with("device_bytes_read", moved.bytes_read as f64)
            .with("device_read_ms", moved.read_ms as f64)
            .with("device_writes", moved.writes as f64)
            .with("device_bytes_written", moved.bytes_written as f64)
            .with("device_write_ms", moved.write_ms as f64)
            .with("device_busy_ms", moved.busy_ms as f64);
        let details = json!({
            "server_cpu_seconds_by_thread": cost.threads,
            "device": since(&device, &self.device),
            "purposes": since(&purposes(server)?, &self.purposes),
        });
        Ok((pressure.figures(figures), details))
    }
}

/// Halcyon's own histograms; of Cassandra there are none.
fn purposes(server: &Server) -> Result<ByKind> {
    const LATENCY: &str = "SELECT purpose, below_ns, operations FROM halcyon_views.io_latency";
    if server.is_halcyon() { counted(server.port, LATENCY) } else { Ok(ByKind::new()) }
}
