//! The report of a compaction, and the plan of `--dry-run`.

use std::io::{self, Write};
use std::time::Duration;

use halcyon_compaction::Outcome;
use halcyon_io::PurposeStats;
use halcyon_model::units;
use halcyon_tools::compact::{Compacted, Table};
use serde_json::{Value, json};

use crate::bars;
use crate::failure::Result;

pub(super) struct Summary<'a> {
    pub(super) outcomes: &'a [Compacted],
    pub(super) took: Duration,
    pub(super) io: Vec<PurposeStats>,
}

impl Summary<'_> {
    pub(super) fn print(&self, as_json: bool) -> Result<()> {
        let mut out = io::stdout().lock();
        if as_json {
            writeln!(out, "{}", self.json())?;
            return Ok(());
        }
        for (table, outcomes) in self.outcomes {
            for outcome in outcomes {
                self.print_outcome(&mut out, table, outcome)?;
            }
        }
        for stats in self.io.iter().filter(|stats| stats.operations > 0) {
            write!(out, "\n{}", bars::io_latency(stats))?;
        }
        Ok(())
    }

    fn print_outcome(&self, out: &mut impl Write, table: &str, o: &Outcome) -> io::Result<()> {
        let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        writeln!(out, "{table}: {} SSTables into {}", o.inputs, o.outputs.len())?;
        for output in &o.outputs {
            writeln!(out, "  wrote       {output}")?;
        }
        writeln!(
            out,
            "  on disk     {} to {} ({:.1} %)",
            units::bytes(o.file_read),
            units::bytes(o.file_written),
            share(o.file_written, o.file_read)
        )?;
        writeln!(
            out,
            "  data        {} to {}",
            units::bytes(o.data_read),
            units::bytes(o.data_written)
        )?;
        let merged: Vec<String> = o
            .merged_partitions
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(n, count)| format!("{} from {n}", units::count(*count)))
            .collect();
        writeln!(
            out,
            "  partitions  {} ({})",
            units::count(o.partitions_written),
            merged.join(", ")
        )?;
        writeln!(
            out,
            "  purged      {} tombstones, {} expired cells, {} partitions",
            units::count(o.purged.tombstones_purged),
            units::count(o.purged.cells_expired),
            units::count(o.purged.partitions_dropped)
        )?;
        if o.duplicate_rows > 0 {
            let rows = units::count(o.duplicate_rows);
            writeln!(out, "  duplicates  {rows} rows that an input had twice, merged")?;
        }
        writeln!(
            out,
            "  took        {} ({}/s of data)",
            units::duration(self.took),
            units::bytes(self.rate())
        )?;
        Ok(())
    }

    /// Uncompressed bytes read per second, over all tables.
    fn rate(&self) -> u64 {
        let read: u64 = self.outcomes.iter().flat_map(|(_, o)| o).map(|o| o.data_read).sum();
        (read as f64 / self.took.as_secs_f64().max(1e-9)) as u64
    }

    fn json(&self) -> Value {
        let outcome = |o: &Outcome| {
            json!({
                "inputs": o.inputs,
                "outputs": o.outputs.iter().map(|d| d.to_string()).collect::<Vec<_>>(),
                "data_read": o.data_read,
                "data_written": o.data_written,
                "file_read": o.file_read,
                "file_written": o.file_written,
                "partitions_written": o.partitions_written,
                "merged_partitions": o.merged_partitions,
                "tombstones_purged": o.purged.tombstones_purged,
                "cells_expired": o.purged.cells_expired,
                "partitions_dropped": o.purged.partitions_dropped,
                "duplicate_rows": o.duplicate_rows,
            })
        };
        let tables: Vec<Value> = self
            .outcomes
            .iter()
            .map(|(table, outcomes)| {
                json!({ "table": table, "compactions": outcomes.iter().map(outcome).collect::<Vec<_>>() })
            })
            .collect();
        let used = self.io.iter().filter(|stats| stats.operations > 0);
        json!({
            "tables": tables,
            "seconds": self.took.as_secs_f64(),
            "data_bytes_per_second": self.rate(),
            "io": used.map(io).collect::<Vec<_>>(),
        })
    }
}

fn io(stats: &PurposeStats) -> Value {
    let latency: Vec<Value> = stats
        .latency
        .filled()
        .map(|(b, count)| json!({ "from_ns": b.from, "to_ns": b.below, "count": count }))
        .collect();
    json!({
        "purpose": stats.purpose.to_string(),
        "operations": stats.operations,
        "bytes": stats.bytes,
        "errors": stats.errors,
        "overlapped": stats.overlapped,
        "queue_depth_max": stats.queue_depth_max,
        "p50_ns": stats.quantile_ns(0.5),
        "p99_ns": stats.quantile_ns(0.99),
        "latency": latency,
    })
}

/// Prints the plan of `--dry-run`.
pub(super) fn plan(tables: &[Table], as_json: bool) -> Result<()> {
    let mut out = io::stdout().lock();
    for table in tables {
        let output = table.settings.output.as_ref().unwrap_or(&table.folder.directory);
        let size: u64 = table.inputs.iter().map(|i| i.file_length()).sum();
        if as_json {
            let line = json!({
                "table": table.folder.table.to_string(),
                "inputs": table.inputs.iter().map(|i| i.descriptor().to_string()).collect::<Vec<_>>(),
                "file_bytes": size,
                "output": output.display().to_string(),
                "keep_inputs": table.settings.keep_inputs,
                "version": table.settings.version.to_string(),
                "gc_before": table.settings.gc_before,
                "reasons": table.reasons,
            });
            writeln!(out, "{line}")?;
            continue;
        }
        writeln!(
            out,
            "{}: {} SSTables, {}, would be compacted",
            table.folder.table,
            table.inputs.len(),
            units::bytes(size)
        )?;
        for input in &table.inputs {
            writeln!(
                out,
                "  from  {} ({})",
                input.descriptor(),
                units::bytes(input.file_length())
            )?;
        }
        writeln!(out, "  into  {}", output.display())?;
        for reason in &table.reasons {
            writeln!(out, "  {reason}")?;
        }
        let kept =
            if table.settings.keep_inputs { "kept" } else { "deleted when the outputs are live" };
        writeln!(out, "  inputs are {kept}")?;
    }
    Ok(())
}
