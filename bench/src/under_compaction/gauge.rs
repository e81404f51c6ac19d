//! Everything that is measured of a stretch of time beside the reads themselves.

use std::path::Path;

use crate::Result;
use crate::block_trace::{BlockTrace, ByKind};
use crate::connection::Connection;
use crate::histogram::Histogram;
use crate::pressure::Pressure;
use crate::process::{Cost, Watch};
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
    pub(super) cost: Cost,
    pub(super) pressure: Pressure,
    /// Of the block device, by kind.
    pub(super) device: ByKind,
    /// As Halcyon itself counts.
    pub(super) purposes: ByKind,
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
