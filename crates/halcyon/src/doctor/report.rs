//! The report, as text and as JSON.

use halcyon_tools::doctor::{Facts, Finding, Severity, Table};
use serde_json::{Value, json};

use halcyon_model::units;

/// What was examined: "nothing to cure" must name its subject.
fn looked_at(facts: &Facts) -> Vec<String> {
    let mut seen = Vec::new();
    if let Some(machine) = &facts.machine {
        let device = machine.device.as_ref().map_or("no block device".to_owned(), |d| d.node());
        let kind = machine.file_system.as_ref().map_or("?", |fs| fs.kind.as_str());
        seen.push(format!(
            "{} on {device} ({kind}), Linux {}",
            machine.directory.display(),
            machine.kernel.release
        ));
        let sum = |of: fn(&Table) -> u64| -> u64 { facts.tables.iter().map(of).sum() };
        seen.push(format!(
            "{} tables in {} SSTables, {} stored, {} uncompressed",
            facts.tables.iter().filter(|table| table.folder.is_some()).count(),
            units::count(sum(|table| table.sstables)),
            units::bytes(sum(|table| table.file_bytes)),
            units::bytes(sum(|table| table.data_bytes))
        ));
    }
    if let Some(live) = &facts.live {
        let name = if live.is_halcyon { "Halcyon, compatible with" } else { "Apache Cassandra" };
        let reads: u64 = facts.tables.iter().map(|table| table.reads).sum();
        seen.push(format!(
            "{name} {} at {}, {} tables, {} local reads",
            live.release,
            live.address,
            facts.tables.len(),
            units::count(reads)
        ));
    }
    seen
}

/// What was not examined, and how to have it examined.
fn not_looked_at(facts: &Facts) -> Vec<String> {
    let mut unseen = Vec::new();
    match &facts.live {
        None => unseen.push(
            "caches, and rows and tombstones that reads meet: give --live HOST while the server runs".to_owned(),
        ),
        Some(live) => {
            if !live.missing.is_empty() {
                unseen.push(format!("{}: this server does not have them", live.missing.join(", ")));
            }
            if facts.machine.is_none() {
                let at = live.settings.get("data_file_directories");
                let at = at.map_or("", |at| at.trim_matches(['[', ']']));
                let at = if at.is_empty() { "DIR" } else { at };
                unseen.push(format!(
                    "device, file system and SSTables: give --data-dir {at} on the server's machine"
                ));
            }
        }
    }
    unseen
}

pub(super) fn text(facts: &Facts, findings: &[Finding]) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    looked_at(facts).into_iter().for_each(|seen| line(format!("looked at  {seen}")));
    not_looked_at(facts).into_iter().for_each(|unseen| line(format!("not seen   {unseen}")));
    for (number, finding) in (1..).zip(findings) {
        line(format!(
            "\n{number}. {} {}: {}, {}",
            finding.severity.name().to_uppercase(),
            finding.kind,
            finding.of,
            finding.what
        ));
        finding.evidence.iter().for_each(|evidence| line(format!("   evidence  {evidence}")));
        line(format!("   cost      {}", finding.cost));
        finding.cure.iter().for_each(|cure| line(format!("   cure      {cure}")));
    }
    let to_cure = findings.iter().filter(|finding| finding.severity > Severity::Note).count();
    line(match (to_cure, findings.len()) {
        (0, 0) => "\nNothing to cure.".to_owned(),
        (0, notes) => format!("\nNothing to cure; {notes} worth knowing."),
        (cure, all) => format!("\n{cure} to cure, {} worth knowing.", all - cure),
    });
    out
}

pub(super) fn json(facts: &Facts, findings: &[Finding]) -> Value {
    json!({
        "looked_at": looked_at(facts),
        "not_looked_at": not_looked_at(facts),
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
        "tables": facts.tables.iter().map(table).collect::<Vec<_>>(),
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "severity": finding.severity.name(),
        "kind": finding.kind,
        "of": finding.of,
        "what": finding.what,
        "evidence": finding.evidence,
        "bytes_per_query": finding.bytes_per_query,
        "cost": finding.cost,
        "cure": finding.cure,
    })
}

/// The facts of a table.
fn table(table: &Table) -> Value {
    let (chunk_length, chunk_stored) = table.chunk().unzip();
    json!({
        "keyspace": table.keyspace,
        "table": table.name,
        "sstables": table.sstables,
        "file_bytes": table.file_bytes,
        "data_bytes": table.data_bytes,
        "rows": table.rows,
        "row_bytes": table.row_bytes(),
        "chunk_length": chunk_length,
        "chunk_stored_bytes": chunk_stored,
        "sstables_per_read": table.sstables_of_a_read(),
        "device_bytes_per_read": table.sstables_of_a_read() * table.device_bytes_of_a_chunk(),
        "partition_bytes": {
            "p50": table.partition_bytes.p50,
            "p99": table.partition_bytes.p99,
            "max": table.partition_bytes.max,
        },
        "cells": table.cells,
        "droppable_tombstones": table.droppable,
        "reads": table.reads,
    })
}
