//! Everything that is measured of a stretch of time beside the reads themselves.

use std::path::Path;

use halcyon_oracle::Result;
use serde_json::{Value, json};

use crate::block_trace::BlockTrace;
use crate::connection::{self, bigint};
use crate::histogram::{ByKind, counted, since};
use crate::machine::Counters;
use crate::pressure;
use crate::process::Watch;
use crate::record::Measurements;
use crate::server::Server;

/// Read when the stretch begins.
pub(crate) struct Gauge {
    watch: Watch,
    pressure: Counters,
    /// Of the block device, by kind.
    device: ByKind,
    /// As Halcyon itself counts.
    purposes: ByKind,
}

impl Gauge {
    pub(crate) fn begin(
        server: &Server,
        folder: &Path,
        trace: Option<&BlockTrace>,
    ) -> Result<Gauge> {
        Ok(Gauge {
            purposes: purposes(server)?,
            device: trace.map(BlockTrace::now).unwrap_or_default(),
            pressure: pressure::counters(),
            watch: Watch::process(server.pid, folder)?,
        })
    }

    /// Measurements, and details.
    pub(crate) fn end(
        self,
        server: &Server,
        trace: Option<&BlockTrace>,
    ) -> Result<(Measurements, Value)> {
        let cost = self.watch.stop()?;
        let device = trace.map(BlockTrace::now).unwrap_or_default();
        let figures = Measurements::default()
            .with("server_cpu_seconds", cost.cpu_seconds)
            .with("server_peak_memory_bytes", cost.peak_memory_bytes as f64)
            .fields("", &cost)
            .fields("", &pressure::counters().since(&self.pressure));
        let details = json!({
            "server_cpu_seconds_by_thread": cost.threads,
            "device": since(&device, &self.device),
            "purposes": since(&purposes(server)?, &self.purposes),
        });
        Ok((figures, details))
    }
}

/// What Halcyon has read for users since its start, as it counts itself.
#[derive(Clone, Copy)]
pub(crate) struct UserReads {
    pub(crate) operations: f64,
    pub(crate) bytes: f64,
}

impl UserReads {
    /// Not a number of Cassandra, which does not count.
    pub(crate) fn of(server: &Server) -> Result<UserReads> {
        const OWN: &str =
            "SELECT operations, bytes FROM halcyon_views.io_operations WHERE purpose = 'user_read'";
        if !server.is_halcyon() {
            return Ok(UserReads { operations: f64::NAN, bytes: f64::NAN });
        }
        let page = connection::open(server.port)?.page(OWN)?;
        let row = page.rows.first().ok_or("no reads of users are counted")?;
        let number = |at: usize| bigint(row.get(at)?.as_ref()).map(|number| number as f64);
        let [operations, bytes] = [0, 1].map(|at| number(at).unwrap_or(f64::NAN));
        Ok(UserReads { operations, bytes })
    }

    pub(crate) fn since(self, before: UserReads) -> UserReads {
        UserReads {
            operations: self.operations - before.operations,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// Halcyon's own histograms; Cassandra has none.
fn purposes(server: &Server) -> Result<ByKind> {
    const LATENCY: &str = "SELECT purpose, below_ns, operations FROM halcyon_views.io_latency";
    if server.is_halcyon() { counted(server.port, LATENCY) } else { Ok(ByKind::new()) }
}
