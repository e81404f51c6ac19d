//! Compacts every table of the golden corpus as Cassandra did, and compares with what Cassandra made of it: the data byte for byte.
//!
//! Runs over `testdata/`, or over the folder that `HALCYON_CORPUS` names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use halcyon_compaction::{Group, Outcome, Progress, Settings, UsableSpace, run};
use halcyon_io::{Disk, Purpose, StreamOptions, block_on};
use halcyon_model::schema::TableSchema;
use halcyon_schema::Schema;
use halcyon_sstable::format::listing;
use halcyon_sstable::{Component, OpenOptions, SSTable};

use crate::sim_table;

fn corpus() -> PathBuf {
    std::env::var_os("HALCYON_CORPUS").map_or_else(sim_table::testdata, PathBuf::from)
}

/// A number of a table's `table.json`.
fn number(json: &str, name: &str) -> Option<u32> {
    let at = json.find(&format!("\"{name}\""))?;
    let rest = json.get(at + name.len() + 2..)?;
    let digits: String =
        rest.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The schema of a table's folder; none for the tables of indexes.
fn schema(table: &Path) -> Option<Arc<TableSchema>> {
    let text = std::fs::read_to_string(table.join("schema.cql")).ok()?;
    let schema = Schema::parse(&text, "corpus").expect("schema.cql is CQL");
    schema.table("corpus", table.file_name()?.to_str()?).cloned().map(Arc::new)
}

async fn open_all(disk: &Disk, dir: &Path, schema: &Option<Arc<TableSchema>>) -> Vec<Arc<SSTable>> {
    let Ok(entries) = disk.list(dir).await else { return Vec::new() };
    let listing = listing::group(dir, entries.iter().map(|e| &e.name));
    let mut opened = Vec::new();
    for listed in &listing.sstables {
        let options = OpenOptions { schema: schema.clone() };
        opened.push(Arc::new(SSTable::open_listed(disk, listed, options).await.expect("opens")));
    }
    opened
}

/// The inputs are kept.
fn settings(inputs: &[Arc<SSTable>], to: &Path, gc_before: u32, now: u32, view: bool) -> Settings {
    let first = inputs.first().expect("inputs");
    let fp = first.statistics().validation.as_ref().map_or(0.01, |v| v.bloom_filter_fp_chance);
    Settings {
        output: Some(to.to_path_buf()),
        keep_inputs: true,
        usable_space: UsableSpace::ALL,
        bloom_filter_fp_chance: fp,
        gc_before,
        now,
        strict_liveness: view,
        read_ahead: StreamOptions::default(),
        read_ahead_budget: 32 << 20,
        write_buffer: 1 << 20,
        ..sim_table::settings(inputs)
    }
}

#[test]
fn what_cassandra_compacted_is_compacted_alike() {
    let mut tables = Vec::new();
    for version in std::fs::read_dir(corpus()).expect("corpus").flatten() {
        let Ok(found) = std::fs::read_dir(version.path()) else { continue };
        tables.extend(found.flatten().map(|t| t.path()).filter(|t| t.join("table.json").exists()));
    }
    tables.sort();
    assert!(tables.len() > 20, "golden files are missing");
    let mut failures = Vec::new();
    let mut compared = 0;
    for table in &tables {
        let disk = block_on(in_memory(table));
        let compared_one = disk.runtime().block_on(async {
            let to = Path::new("/compacted");
            disk.create_dir_all(to).await.expect("creates a folder");
            compare(&disk, table, to).await
        });
        match compared_one {
            Ok(()) => compared += 1,
            Err(what) => failures.push(format!("{}: {what}", table.display())),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} differ:\n{}",
        failures.len(),
        compared + failures.len(),
        failures.join("\n")
    );
}

/// A simulated disk with the SSTables of one table.
async fn in_memory(table: &Path) -> Disk {
    let (disk, _) = Disk::simulated(1);
    for dir in [table.join("sstables"), table.join("compacted")] {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        disk.create_dir_all(&dir).await.expect("creates a folder");
        for entry in entries.flatten() {
            let bytes = std::fs::read(entry.path()).expect("readable file");
            disk.write_new(&entry.path(), &bytes, Purpose::Flush).await.expect("copies a file");
        }
    }
    disk
}

async fn compare(disk: &Disk, table: &Path, to: &Path) -> Result<(), String> {
    let json = std::fs::read_to_string(table.join("table.json")).expect("table.json");
    let now = number(&json, "compacted_between").ok_or("no time of compaction")?;
    // Tables of indexes keep their tombstones for as long as their base table: ten days.
    let gc_before = number(&json, "gc_before").unwrap_or(now - 864_000);
    let schema = schema(table);
    let all = open_all(disk, &table.join("sstables"), &schema).await;
    // Where the file lists inputs, the other SSTables stayed in the table and overlap.
    let lists_inputs = json.contains("compacted_inputs");
    let (inputs, elsewhere) = all.into_iter().partition(|sstable| {
        !lists_inputs || json.contains(&sstable.descriptor().file_name(Component::Data))
    });
    let inputs: Vec<Arc<SSTable>> = inputs;
    let view = schema.as_ref().is_some_and(|s| s.strict_liveness);
    let settings = settings(&inputs, to, gc_before, now, view);
    let task = Group { inputs, elsewhere };
    let outcome: Outcome =
        run(disk, &task, &settings, &Progress::default()).await.map_err(|e| e.to_string())?;
    let cassandra = open_all(disk, &table.join("compacted"), &schema).await;
    if cassandra.len() != outcome.outputs.len() {
        return Err(format!(
            "{} outputs, Cassandra has {}",
            outcome.outputs.len(),
            cassandra.len()
        ));
    }
    for (theirs, ours) in cassandra.iter().zip(&outcome.outputs) {
        let ours =
            SSTable::open(disk, ours, OpenOptions::default()).await.map_err(|e| e.to_string())?;
        let (a, b) = (
            theirs.read_data(disk).await.expect("reads"),
            ours.read_data(disk).await.expect("reads"),
        );
        if a != b {
            let at = a.iter().zip(&b).position(|(x, y)| x != y).unwrap_or(a.len().min(b.len()));
            let around = |bytes: &[u8]| {
                format!(
                    "{:02x?}",
                    &bytes[at.saturating_sub(8).min(bytes.len())..bytes.len().min(at + 24)]
                )
            };
            return Err(format!(
                "data differs at {at}: {} against {} bytes\n  {}\n  {}",
                a.len(),
                b.len(),
                around(&a),
                around(&b)
            ));
        }
    }
    Ok(())
}
