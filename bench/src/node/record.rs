//! What is kept of a run.

use serde_json::{Value, json};

use super::server::Started;
use crate::contender::{Contender, Spread};
use crate::flush::Flush;
use crate::latency::Latencies;
use crate::load::Figures;
use crate::profile::Share;

/// What is asked of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    RoundTrip,
    DurableWrites,
    PeriodicWrites,
    MemoryReads,
    DeviceReads,
}

impl Work {
    pub(super) const ALL: [Work; 5] = [
        Work::RoundTrip,
        Work::DurableWrites,
        Work::PeriodicWrites,
        Work::MemoryReads,
        Work::DeviceReads,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Work::RoundTrip => "Empty round trips",
            Work::DurableWrites => "Writes, durable before acknowledged",
            Work::PeriodicWrites => "Writes, synced every 10 s",
            Work::MemoryReads => "Reads from memory",
            Work::DeviceReads => "Reads of ten times the cache",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Work::RoundTrip => "round-trip",
            Work::DurableWrites => "durable-writes",
            Work::PeriodicWrites => "periodic-writes",
            Work::MemoryReads => "memory-reads",
            Work::DeviceReads => "device-reads",
        }
    }
}

/// One server, one kind of request, one number of them in flight, for a while.
pub(super) struct Measured {
    pub(super) work: Work,
    pub(super) contender: Contender,
    pub(super) in_flight: usize,
    pub(super) operations: u64,
    pub(super) seconds: f64,
    pub(super) latencies: Latencies,
    pub(super) server_cpu_seconds: f64,
    pub(super) client_cpu_seconds: f64,
    /// Load of the machine before.
    pub(super) load: f64,
}

impl Measured {
    pub(super) fn new(
        work: Work,
        contender: Contender,
        in_flight: usize,
        figures: &Figures,
        server_cpu_seconds: f64,
        load: f64,
    ) -> Measured {
        Measured {
            work,
            contender,
            in_flight,
            operations: figures.operations,
            seconds: figures.seconds,
            latencies: figures.latencies,
            server_cpu_seconds,
            client_cpu_seconds: figures.client_cpu_seconds,
            load,
        }
    }

    pub(super) fn rate(&self) -> f64 {
        self.operations as f64 / self.seconds.max(1e-9)
    }

    pub(super) fn server_cpu(&self) -> f64 {
        1e6 * self.server_cpu_seconds / self.operations.max(1) as f64
    }

    pub(super) fn client_cpu(&self) -> f64 {
        1e6 * self.client_cpu_seconds / self.operations.max(1) as f64
    }

    fn to_json(&self) -> Value {
        json!({
            "work": self.work.name(),
            "peer": self.contender.peer,
            "mode": self.contender.mode,
            "in_flight": self.in_flight,
            "seconds": self.seconds,
            "operations_per_second": self.rate(),
            "latency": self.latencies.to_json(),
            "server_cpu_us_per_operation": self.server_cpu(),
            "client_cpu_us_per_operation": self.client_cpu(),
            "load_before": self.load,
        })
    }
}

/// Everything of one invocation.
pub(super) struct Record {
    pub(super) machine: Value,
    pub(super) settings: Value,
    pub(super) starts: Vec<(Contender, Started)>,
    pub(super) flushes: Vec<Flush>,
    pub(super) measured: Vec<Measured>,
    /// Of Halcyon, by work.
    pub(super) profiles: Vec<(Work, Vec<Share>)>,
    /// What could not be measured, and why.
    pub(super) missing: Vec<String>,
}

impl Record {
    pub(super) fn in_flight(&self, work: Work) -> Vec<usize> {
        let mut found: Vec<usize> = self.of(work).map(|measured| measured.in_flight).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn of(&self, work: Work) -> impl Iterator<Item = &Measured> {
        self.measured.iter().filter(move |measured| measured.work == work)
    }

    /// By contender, in the order of their first turn.
    pub(super) fn contenders(
        &self,
        work: Work,
        in_flight: usize,
    ) -> Vec<(Contender, Vec<&Measured>)> {
        let mut grouped: Vec<(Contender, Vec<&Measured>)> = Vec::new();
        for measured in self.of(work).filter(|measured| measured.in_flight == in_flight) {
            match grouped.iter_mut().find(|(contender, _)| *contender == measured.contender) {
                Some((_, all)) => all.push(measured),
                None => grouped.push((measured.contender.clone(), vec![measured])),
            }
        }
        grouped
    }

    /// The median of one of Halcyon's modes, or of Cassandra.
    pub(super) fn median(
        &self,
        work: Work,
        in_flight: usize,
        wanted: &Contender,
        of: impl Fn(&Measured) -> f64,
    ) -> Option<f64> {
        let all = self.of(work).filter(|m| m.in_flight == in_flight && m.contender == *wanted);
        let values: Vec<f64> = all.map(of).collect();
        (!values.is_empty()).then(|| Spread::of(values).median)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "experiment": "node",
            "machine": self.machine,
            "settings": self.settings,
            "starts": self.starts.iter().map(|(contender, started)| json!({
                "peer": contender.peer,
                "mode": contender.mode,
                "seconds": started.seconds,
                "resident_bytes": started.resident,
            })).collect::<Vec<_>>(),
            "device_flushes": self.flushes.iter().map(|flush| flush.to_json()).collect::<Vec<_>>(),
            "measured": self.measured.iter().map(Measured::to_json).collect::<Vec<_>>(),
            "profiles": self.profiles.iter().map(|(work, shares)| json!({
                "work": work.name(),
                "shares": shares.iter().map(Share::to_json).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "missing": self.missing,
        })
    }
}
