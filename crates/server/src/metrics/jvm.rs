//! What dashboards ask the JVM under Cassandra for, as far as this process has it.
//!
//! | of the JVM | here |
//! |---|---|
//! | the heap | the memory that settings govern: memtables, caches, filters and offsets of open SSTables, requests |
//! | what is not the heap | the rest of the process |
//! | collections of garbage | none, so all of it is 0 |

use std::time::Duration;

use halcyon_io::clock::{Instant, now, process_cpu_time};
use halcyon_io::{Mutex, core_count, resources};
use halcyon_metrics::{Kind, Labels, Metric, Sample, Unit, Value};

const fn memory(name: &'static str, help: &'static str) -> Metric {
    Metric::java("Memory", name, help).of(Kind::Gauge, Unit::Bytes)
}

const fn collector(name: &'static str, unit: Unit) -> Metric {
    Metric::java("GarbageCollector", name, "Always 0: no garbage is collected.")
        .of(Kind::Counter, unit)
}

pub(super) const DECLARED: [Metric; 7] = [
    memory("HeapMemoryUsage", "Memory that settings govern: memtables, caches, requests."),
    memory("NonHeapMemoryUsage", "Memory of the process beside that."),
    Metric::java("OperatingSystem", "ProcessCpuLoad", "Share of all processors, from 0 to 1.")
        .of(Kind::Gauge, Unit::Count),
    Metric::java("OperatingSystem", "TotalPhysicalMemorySize", "Memory that the process may use.")
        .of(Kind::Gauge, Unit::Bytes),
    collector("CollectionCount", Unit::Count),
    collector("CollectionTime", Unit::Milliseconds),
    Metric::java("GarbageCollector", "LastGcInfo", "Always 0: no garbage is collected.")
        .of(Kind::Gauge, Unit::Milliseconds),
];

/// Those of Cassandra's default settings.
const COLLECTORS: [&str; 2] = ["G1 Young Generation", "G1 Old Generation"];

/// Readings closer to each other than this show the load between the two before them: it would be noise.
const LOAD_MIN: Duration = Duration::from_secs(1);

/// The share of all processors that the process has used between two readings.
#[derive(Default)]
pub(super) struct CpuLoad(Mutex<Option<(Instant, Duration, f64)>>);

impl CpuLoad {
    fn read(&self) -> f64 {
        let (at, used) = (now(), process_cpu_time());
        let mut last = self.0.lock();
        let (since, before, load) = last.unwrap_or((at, used, 0.0));
        let passed = at.saturating_since(since);
        if passed < LOAD_MIN && last.is_some() {
            return load;
        }
        let processors = core_count() as f64;
        let load = used.saturating_sub(before).as_secs_f64() / passed.as_secs_f64() / processors;
        let load = if load.is_finite() { load.clamp(0.0, 1.0) } else { 0.0 };
        *last = Some((at, used, load));
        load
    }
}

/// `governed`: bytes in use, and what settings allow.
pub(super) fn walk(cpu: &CpuLoad, (governed, most): (u64, u64), show: &mut dyn FnMut(Sample<'_>)) {
    let [heap, rest, load, physical, collections, spent, last] = &DECLARED;
    let other = resources::resident_memory().saturating_sub(governed);
    for (metric, used, most) in [(heap, governed, most), (rest, other, other)] {
        for (attribute, value) in [("used", used), ("committed", used), ("max", most)] {
            let labels = Labels { path: Some(attribute), ..Labels::default() };
            show(Sample { metric, labels, value: Value::Number(value) });
        }
    }
    let labels = Labels::default();
    show(Sample { metric: load, labels, value: Value::Fraction(cpu.read()) });
    let memory = resources::available_memory();
    show(Sample { metric: physical, labels, value: Value::Number(memory) });
    for scope in COLLECTORS {
        let labels = Labels { scope: Some(scope), ..Labels::default() };
        for metric in [collections, spent] {
            show(Sample { metric, labels, value: Value::Number(0) });
        }
        let labels = Labels { path: Some("duration"), ..labels };
        show(Sample { metric: last, labels, value: Value::Number(0) });
    }
}
