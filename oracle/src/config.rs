//! cassandra.yaml, for a node that writes one SSTable version, and for offline tools.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::Result;
use crate::files;
use crate::release::{Format, Version};

pub(super) struct Ports {
    pub(super) native: u16,
    pub(super) storage: u16,
    pub(super) jmx: u16,
}

pub(super) struct NodeAddress<'a> {
    pub(super) address: Ipv4Addr,
    pub(super) seed: Option<SocketAddr>,
    pub(super) ports: &'a Ports,
}

/// Writes the configuration of a node into `conf`, its data going under `data`.
pub(super) fn write_for_node(
    conf: &Path,
    data: &Path,
    (version, format): (Version, Format),
    place: &NodeAddress<'_>,
    extra: &[String],
) -> Result<PathBuf> {
    let mut yaml = common(data, place) + settings_of(version);
    yaml += &version_settings(format);
    yaml += match format.release() {
        // The cursor compaction of 6.0-alpha2 loses live rows that lie between two range tombstones
        // (seen on table value_empty of the corpus): no oracle for a merge.
        Version::V6 => "cursor_compaction_enabled: false\n",
        _ => "sasi_indexes_enabled: true\n",
    };
    for line in extra {
        yaml = with_setting(&yaml, line);
    }
    write(conf, &yaml)
}

/// `yaml` with a line that replaces the one of the same name, if there is one.
fn with_setting(yaml: &str, line: &str) -> String {
    let name = line.split_inclusive(':').next().unwrap_or(line);
    let kept = yaml.lines().filter(|other| !other.starts_with(name));
    kept.chain([line]).map(|line| format!("{line}\n")).collect()
}

/// Tools read a configuration too; they need nothing special from it.
pub(super) fn write_for_tools(version: Version, conf: &Path, data: &Path) -> Result<PathBuf> {
    let ports = Ports { native: 9042, storage: 7000, jmx: 7199 };
    let place = NodeAddress { address: Ipv4Addr::LOCALHOST, seed: None, ports: &ports };
    let mode = match version {
        Version::V41 => "",
        _ => "storage_compatibility_mode: NONE\n",
    };
    write(conf, &(common(data, &place) + mode))
}

fn write(conf: &Path, yaml: &str) -> Result<PathBuf> {
    fs::create_dir_all(conf)?;
    let path = conf.join("cassandra.yaml");
    files::write(&path, yaml)?;
    Ok(path)
}

/// Settings that not every release has.
fn settings_of(version: Version) -> &'static str {
    match version {
        Version::V41 => "",
        _ => "dynamic_data_masking_enabled: true\n",
    }
}

fn version_settings(format: Format) -> String {
    if format == Format::Stock {
        return String::new();
    }
    let selected = if format.is_bti() { "bti" } else { "big" };
    let mode = if format == Format::Nb { "CASSANDRA_4" } else { "NONE" };
    let uuid = format.is_bti();
    format!(
        "storage_compatibility_mode: {mode}\nsstable:\n  selected_format: {selected}\n\
         uuid_sstable_identifiers_enabled: {uuid}\n"
    )
}

fn common(data: &Path, place: &NodeAddress<'_>) -> String {
    let address = place.address;
    let Ports { native, storage, .. } = place.ports;
    let seed = place.seed.unwrap_or_else(|| (address, *storage).into());
    let data = data.display();
    format!(
        "cluster_name: oracle
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
data_file_directories: [{data}/data]
commitlog_directory: {data}/commitlog
saved_caches_directory: {data}/saved_caches
hints_directory: {data}/hints
cdc_raw_directory: {data}/cdc_raw
commitlog_sync: periodic
commitlog_sync_period: 10000ms
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: \"{seed}\"}}]
listen_address: {address}
rpc_address: {address}
native_transport_port: {native}
storage_port: {storage}
start_native_transport: true
endpoint_snitch: SimpleSnitch
auto_snapshot: false
materialized_views_enabled: true
user_defined_functions_enabled: true
compaction_throughput: 0MiB/s
concurrent_compactors: 1
memtable_flush_writers: 1
flush_compression: table
key_cache_size: 0MiB
counter_cache_size: 0MiB
native_transport_max_frame_size: 64MiB
commitlog_segment_size: 64MiB
"
    )
}
