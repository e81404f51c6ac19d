//! Everything that is measured of a stretch of time beside the reads themselves.

use std::path::Path;

use serde_json::{Value, json};

use crate::Result;
use crate::block_trace::{BlockTrace, ByKind};
use crate::connection::Connection;
use crate::histogram::Histogram;
use crate::pressure::Pressure;
use crate::process::{Cost, Watch};
use crate::record::Measurements;
use crate::server::Server;

const IO_LATENCY: &str = "SELECT purpose, below_ns, operations FROM halcyon_views.io_latency";

/// Read when the stretch begins.
pub(super) struct Gauge {
    watch: Watch,
    pressure: Pressure,
    device: ByKind,
    purposes: ByKind,
}

pub(super) struct Measured {
    cost: Cost,
    pressure: Pressure,
    /// Of the block device, by kind.
    device: ByKind,
    /// As Halcyon itself counts.
    purposes: ByKind,
}

impl Measured {
    pub(super) fn figures(&self, to: Measurements) -> Measurements {
        let (cost, device) = (&self.cost, &self.cost.device);
        self.pressure.figures(
            to.with("server_cpu_seconds", cost.cpu_seconds)
                .with("server_peak_memory_bytes", cost.peak_memory as f64)
                .with("page_cache_growth_peak_bytes", cost.cache_peak as f64)
                .with("page_cache_growth_bytes", cost.cache_after as f64)
                .with("dirty_peak_bytes", cost.dirty_peak as f64)
                .with("device_reads", device.reads as f64)
                .with("device_bytes_read", device.bytes_read as f64)
                .with("device_read_ms", device.read_ms as f64)
                .with("device_writes", device.writes as f64)
                .with("device_bytes_written", device.bytes_written as f64)
                .with("device_write_ms", device.write_ms as f64)
                .with("device_busy_ms", device.busy_ms as f64),
        )
    }

    pub(super) fn details(&self) -> Value {
        json!({
            "server_cpu_seconds_by_thread": self.cost.threads,
            "device": self.device,
            "purposes": self.purposes,
        })
    }
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

    pub(super) fn end(self, server: &Server, trace: Option<&BlockTrace>) -> Result<Measured> {
        let cost = self.watch.stop()?;
        let pressure = Pressure::now().since(&self.pressure);
        let device = trace.map(BlockTrace::now).unwrap_or_default();
        Ok(Measured {
            cost,
            pressure,
            device: since(&device, &self.device),
            purposes: since(&purposes(server)?, &self.purposes),
        })
    }
}

fn since(now: &ByKind, before: &ByKind) -> ByKind {
    let differences =
        now.iter().map(|(kind, counted)| (kind.clone(), counted.since(before.get(kind))));
    differences.filter(|(_, counted)| counted.count() > 0).collect()
}

/// Halcyon's own histograms; of Cassandra there are none.
fn purposes(server: &Server) -> Result<ByKind> {
    let mut found = ByKind::new();
    if !server.is_halcyon() {
        return Ok(found);
    }
    for row in Connection::open(server.port)?.rows(IO_LATENCY)?.rows {
        let [Some(purpose), Some(below), Some(operations)] = row.as_slice() else { continue };
        let purpose = String::from_utf8_lossy(purpose).into_owned();
        let counted: &mut Histogram = found.entry(purpose).or_default();
        counted.add(bigint(below)? / 2, bigint(operations)?);
    }
    Ok(found)
}

fn bigint(bytes: &[u8]) -> Result<u64> {
    let bytes = <[u8; 8]>::try_from(bytes).map_err(|_| "no bigint")?;
    Ok(u64::from_be_bytes(bytes))
}
