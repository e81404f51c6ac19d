//! Settings: Cassandra's own names, values and defaults; a user's `cassandra.yaml` starts Halcyon.
//!
//! 1. `keys.txt` lists every setting of Cassandra 5.0 with its kind, default and older names; Halcyon's own stand at its end.
//! 2. [`Settings::load`] checks a file against it: unknown keys and wrong values are refused.
//! 3. What a starred key says becomes a field here or an option of the engine; the others are listed once at start, unless they
//!    protect the user (`protection.rs`).

mod access;
mod audit;
mod denylist;
mod encryption;
mod error;
mod file;
mod guardrails;
mod keys;
mod limits;
mod listed;
mod log;
mod password_policy;
mod protection;
mod running;
mod storage;
mod value;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use halcyon_io::{AccessMode, BackendChoice, DiskOptions};
use halcyon_operate::Names;
use halcyon_schema::{DATA_CENTER, RACK};

use error::Errors;
pub use error::{Error, Result};
use halcyon_model::units;

use crate::log::{LogOptions, Threshold};
use crate::request_log::options::RequestLogOptions;
use file::Node;
pub(crate) use guardrails::GivenGuardrails;
use keys::{Key, Listed, Support};
pub(crate) use log::SpanOptions;
pub(crate) use running::RunningSettings;

/// What the command line and the environment say; it goes before the file.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub data_dir: Option<PathBuf>,
    pub listen: Option<String>,
    pub port: Option<u16>,
    pub shards: Option<usize>,
    pub io_engine: Option<BackendChoice>,
    pub log_level: Option<Threshold>,
    /// What `cassandra-rackdc.properties` says, if there is one beside the file.
    pub rackdc: Option<String>,
}

/// What defaults depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Bytes that this process may use.
    pub memory: u64,
    pub cores: usize,
}

/// What limits clients; names are the settings'.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transport {
    pub address: SocketAddr,
    /// `native_transport_shard_aware_port`; `None`: none.
    pub shard_aware_port: Option<u16>,
    /// `native_transport_port_ssl`; `None`: `native_transport_port` is the only one.
    pub port_ssl: Option<u16>,
    pub nodetool: NodetoolAddress,
    /// `client_encryption_options`
    pub encryption: halcyon_tls::Options,
    pub start_native_transport: bool,
    pub max_frame_size: usize,
    pub max_message_size: usize,
    pub max_connections: Option<usize>,
    pub max_connections_per_ip: Option<usize>,
    pub max_request_data_in_flight: u64,
    pub max_request_data_in_flight_per_ip: u64,
    /// What connections and requests may take in memory, all together.
    pub request_memory: u64,
    pub receive_queue_capacity: u64,
    /// `None`: no limit.
    pub max_requests_per_second: Option<u32>,
    pub keepalive: bool,
    /// `None`: connections may be idle for ever.
    pub idle_timeout: Option<Duration>,
    /// Overload answers with an error although the client did not ask for that.
    pub throw_on_overload: bool,
    pub allow_older_protocols: Switch,
    pub prepared_statements_cache_size: u64,
    pub trace_ttl: Duration,
}

/// A setting that can change while the node runs; clones share it.
#[derive(Debug, Clone)]
pub struct Switch(Arc<AtomicBool>);

impl Switch {
    pub(crate) fn of(is_on: bool) -> Switch {
        Switch(Arc::new(is_on.into()))
    }

    pub(crate) fn get(&self) -> bool {
        self.0.load(Relaxed)
    }

    pub(crate) fn set(&self, is_on: bool) {
        self.0.store(is_on, Relaxed);
    }
}

impl PartialEq for Switch {
    fn eq(&self, other: &Switch) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Switch {}

/// How caches are saved and warmed; names are the settings'.
#[derive(Debug, Clone)]
pub struct SavedCaches {
    /// `None`: not at all.
    pub key_cache_save_period: Option<Duration>,
    pub key_cache_keys_to_save: SavedEntries,
    pub row_cache_save_period: Option<Duration>,
    pub row_cache_keys_to_save: SavedEntries,
    pub cache_load_timeout: Duration,
}

/// How many entries of a cache are saved. The number can change while the node runs; clones share it.
#[derive(Debug, Clone)]
pub struct SavedEntries(Arc<AtomicUsize>);

impl SavedEntries {
    pub(crate) fn of(entries: usize) -> SavedEntries {
        let shared = SavedEntries(Arc::default());
        shared.set(entries);
        shared
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// Cassandra takes 0 for all.
    pub(crate) fn set(&self, entries: usize) {
        self.0.store(if entries == 0 { usize::MAX } else { entries }, Relaxed);
    }
}

/// Where an operator reaches a node whose ports for clients are closed, or have no connection to spare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodetoolAddress {
    /// `None`: nowhere.
    pub address: Option<SocketAddr>,
    /// The file does not choose it.
    pub is_default: bool,
}

/// Where the node shows its metrics over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricsAddress {
    /// `None`: nowhere.
    pub address: Option<SocketAddr>,
    /// The file does not choose it.
    pub is_default: bool,
    /// For requests that choose none.
    pub names: Names,
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// `None`: what the data directory says, else the default.
    pub cluster_name: Option<String>,
    /// `None`: what the data directory says, else the default.
    pub data_center: Option<String>,
    pub rack: Option<String>,
    /// Of a node that has none yet.
    pub num_tokens: usize,
    pub storage_port: u16,
    pub transport: Transport,
    pub metrics: MetricsAddress,
    pub limits: halcyon_query::RequestLimits,
    pub access: halcyon_access::Settings,
    /// Holds the default directories, and the lock against a second process.
    pub data_dir: PathBuf,
    pub disk: DiskOptions,
    pub engine: halcyon_engine::Options,
    pub saved_caches: SavedCaches,
    pub(crate) request_logs: RequestLogOptions,
    /// `None`: no spans are sent.
    pub(crate) spans: Option<SpanOptions>,
    /// Zero: no request is slow.
    pub slow_query_log_timeout: Duration,
    /// `monitoring_report_interval` and `disk_usage_monitor_interval`
    pub(crate) watch_intervals: (Duration, Duration),
    pub log: LogOptions,
    /// `None`: off.
    pub denylist: Option<halcyon_query::DenylistOptions>,
    /// Directories to be made, beside the engine's.
    pub hints_directory: PathBuf,
    /// The guardrails that the file sets.
    pub(crate) given_guardrails: GivenGuardrails,
    /// All settings as `system_views.settings` shows them.
    pub(crate) listed: Listed,
    /// Keys of the file that Halcyon ignores.
    pub meaningless: Vec<&'static str>,
}

/// Values by name: of the file, else defaults.
struct Values {
    keys: Vec<Key>,
    file: BTreeMap<&'static str, Node>,
}

impl Settings {
    /// `text` is the file's.
    pub fn load(text: Option<&str>, overrides: &Overrides, machine: Machine) -> Result<Settings> {
        let keys = keys::keys();
        let (file, mut errors) = file::read(text.unwrap_or(""), &keys)?;
        let values = Values { keys, file };
        values.refuse_what_cannot_be(&mut errors);
        values.refuse_protection(&mut errors);
        let access = values.access(&mut errors);
        let access = errors.take(access);
        let data_dir = values.data_dir(overrides);
        let place = errors.take(values.datacenter_and_rack(overrides)).flatten();
        let num_tokens = errors.take(values.num_tokens());
        let storage_port = errors.take(values.port("storage_port"));
        let transport = errors.take(values.transport(overrides, machine));
        let metrics = errors.take(values.metrics());
        let limits = errors.take(values.limits());
        let buffers = errors.take(values.bytes("io_buffer_budget"));
        let saved_caches = errors.take(values.saved_caches());
        let request_logs = errors.take(values.request_logs(&data_dir));
        let log = errors.take(values.log(&data_dir, overrides));
        let spans = errors.take(values.spans()).flatten();
        let slow = errors.take(values.slow_queries()).unwrap_or_default();
        let denylist = errors.take(values.denylist()).flatten();
        let shards = errors.take(values.shards(overrides, machine));
        let engine = errors.take(values.engine(&data_dir, shards.unwrap_or(1), machine));
        errors.check()?;
        let all =
            (num_tokens, storage_port, transport, metrics, limits, buffers, saved_caches, engine);
        let (Some(request_logs), Some(log)) = (request_logs, log) else {
            return Err(Error::Refused("the options of a log cannot be read".to_owned()));
        };
        let (
            Some(num_tokens),
            Some(storage_port),
            Some(transport),
            Some(metrics),
            Some(limits),
            Some(buffers),
            Some(saved_caches),
            Some(engine),
        ) = all
        else {
            return Err(Error::Refused("a setting cannot be read".to_owned()));
        };
        let settings = Settings {
            listed: values.listed(&transport, &engine, &data_dir),
            cluster_name: values.node("cluster_name").and_then(|_| values.text("cluster_name")),
            data_center: place.as_ref().map(|(data_center, _)| data_center.clone()),
            rack: place.map(|(_, rack)| rack),
            num_tokens,
            storage_port: storage_port.unwrap_or(7000),
            transport,
            metrics,
            limits,
            access: access.unwrap_or_default(),
            disk: values.disk(buffers, overrides, machine),
            hints_directory: values.directory("hints_directory", &data_dir, "hints"),
            engine,
            saved_caches,
            request_logs,
            spans,
            slow_query_log_timeout: slow.0,
            watch_intervals: slow.1,
            log,
            denylist,
            given_guardrails: values.given_guardrails(),
            meaningless: values.meaningless(),
            data_dir,
        };
        Ok(settings)
    }
}

impl Values {
    fn node(&self, name: &str) -> Option<&Node> {
        self.file.get(name)
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.node(name) {
            Some(node) => node.scalar().map(str::to_owned),
            None => self.keys.iter().find(|key| key.name == name)?.default.map(str::to_owned),
        }
    }

    /// Words were checked against the table.
    fn parsed<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.to_ascii_lowercase().parse().ok()
    }

    fn wrong(&self, name: &str, allowed: &str) -> Error {
        let value = self.node(name).map(Node::to_string).or(self.text(name)).unwrap_or_default();
        Error::Wrong { key: name.to_owned(), value, allowed: allowed.to_owned() }
    }

    fn get<T>(&self, name: &str, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let kind = self.keys.iter().find(|key| key.name == name).map(|key| key.kind.allowed());
        read(&text).map(Some).ok_or_else(|| self.wrong(name, &kind.unwrap_or_default()))
    }

    fn bytes(&self, name: &str) -> Result<Option<u64>> {
        self.get(name, units::settings::size)
    }

    fn duration(&self, name: &str) -> Result<Option<Duration>> {
        self.get(name, units::settings::duration)
    }

    fn integer(&self, name: &str) -> Result<Option<i64>> {
        self.get(name, |text| text.parse().ok())
    }

    fn boolean(&self, name: &str) -> Result<bool> {
        Ok(self.get(name, value::boolean)?.unwrap_or(false))
    }

    /// `class_name` of a setting that names a class, without its package.
    fn class(&self, name: &str) -> Option<String> {
        let node = match self.node(name)? {
            Node::List(items) => items.first()?,
            node => node,
        };
        let class = node.scalar().or_else(|| node.get("class_name")?.scalar())?;
        Some(class.rsplit('.').next().unwrap_or(class).to_owned())
    }

    fn mode(&self, name: &str) -> AccessMode {
        // What Cassandra calls mmap or legacy is what it does by itself: leave it to us.
        self.parsed(name).unwrap_or_default()
    }

    fn refuse_what_cannot_be(&self, errors: &mut Errors) {
        let partitioner = "Murmur3Partitioner";
        if self.class("partitioner").is_some_and(|found| found != partitioner) {
            let allowed = format!("{partitioner} (others are not supported yet)");
            errors.add(self.wrong("partitioner", &allowed));
        }
        if self.node("rpc_interface").is_some() {
            let text = "rpc_interface is not supported; set rpc_address to the interface's address";
            errors.add(Error::Refused(text.to_owned()));
        }
    }

    fn num_tokens(&self) -> Result<usize> {
        Ok(self.count_within("num_tokens", 1, 1536)?.unwrap_or_default())
    }

    /// A number of things that there have to be some of.
    fn count_within(&self, name: &str, least: usize, most: usize) -> Result<Option<usize>> {
        match self.integer(name)?.map(usize::try_from) {
            None => Ok(None),
            Some(Ok(count)) if (least..=most).contains(&count) => Ok(Some(count)),
            Some(_) => Err(self.wrong(name, &format!("{least} to {most}"))),
        }
    }

    fn data_dir(&self, overrides: &Overrides) -> PathBuf {
        overrides.data_dir.clone().unwrap_or_else(|| PathBuf::from("halcyon-data"))
    }

    fn directory(&self, name: &str, data_dir: &Path, default: &str) -> PathBuf {
        self.text(name).map_or_else(|| data_dir.join(default), PathBuf::from)
    }

    fn shards(&self, overrides: &Overrides, machine: Machine) -> Result<usize> {
        let shards = match overrides.shards {
            Some(shards) => Some(i64::try_from(shards).unwrap_or(i64::MAX)),
            None => self.integer("shards")?,
        };
        match shards {
            None => Ok(machine.cores.max(1)),
            Some(shards @ 1..=1024) => Ok(shards as usize),
            Some(shards) => Err(Error::Wrong {
                key: "shards".to_owned(),
                value: shards.to_string(),
                allowed: "1 to 1024".to_owned(),
            }),
        }
    }

    fn transport(&self, overrides: &Overrides, machine: Machine) -> Result<Transport> {
        let port = match overrides.port {
            Some(port) => port,
            None => self.port("native_transport_port")?.unwrap_or(9042),
        };
        let host = overrides.listen.clone().or(self.text("rpc_address"));
        let limit = |limit: Option<i64>| limit.and_then(|limit| usize::try_from(limit).ok());
        let of_memory = |share: u64| machine.memory / share;
        // Cassandra takes a tenth and a fortieth of its heap.
        let limit_or = |name: &str, share| Ok(self.bytes(name)?.unwrap_or(of_memory(share)));
        let in_flight = limit_or("native_transport_max_request_data_in_flight", 10)?;
        let in_flight_per_ip = limit_or("native_transport_max_request_data_in_flight_per_ip", 40)?;
        let max_frame_size =
            self.bytes("native_transport_max_frame_size")?.unwrap_or(16 << 20) as usize;
        Ok(Transport {
            address: SocketAddr::new(resolve("rpc_address", host)?, port),
            shard_aware_port: self.port("native_transport_shard_aware_port")?.filter(|p| *p != 0),
            port_ssl: self.port("native_transport_port_ssl")?,
            nodetool: self.nodetool()?,
            encryption: self.client_encryption()?,
            start_native_transport: self.boolean("start_native_transport")?,
            max_frame_size,
            // Cassandra's default: what one client may have under way.
            max_message_size: self
                .bytes("native_transport_max_message_size")?
                .unwrap_or(in_flight_per_ip.min(in_flight))
                .try_into()
                .unwrap_or(usize::MAX),
            max_connections: limit(self.integer("native_transport_max_concurrent_connections")?),
            max_connections_per_ip: limit(
                self.integer("native_transport_max_concurrent_connections_per_ip")?,
            ),
            max_request_data_in_flight: in_flight,
            max_request_data_in_flight_per_ip: in_flight_per_ip,
            // What is under way takes more than its bytes: values and statements that are parsed, answers that are made.
            request_memory: in_flight.saturating_mul(2).max(of_memory(5)),
            receive_queue_capacity: self
                .bytes("native_transport_receive_queue_capacity")?
                .unwrap_or(1 << 20),
            max_requests_per_second: self.requests_per_second()?,
            keepalive: self.boolean("rpc_keepalive")?,
            idle_timeout: self.duration("native_transport_idle_timeout")?.filter(|t| !t.is_zero()),
            throw_on_overload: self.boolean("native_transport_throw_on_overload")?,
            allow_older_protocols: Switch::of(
                self.boolean("native_transport_allow_older_protocols")?,
            ),
            prepared_statements_cache_size: self
                .bytes("prepared_statements_cache_size")?
                .unwrap_or_else(|| of_memory(256).max(10 << 20)),
            trace_ttl: self.duration("trace_type_query_ttl")?.unwrap_or(Duration::from_secs(86400)),
        })
    }

    fn disk(&self, buffers: Option<u64>, overrides: &Overrides, machine: Machine) -> DiskOptions {
        // Enough for compactions beside reads; on a small machine, less.
        let usual = || (machine.memory / 8).clamp(16 << 20, 64 << 20);
        DiskOptions {
            buffer_budget: usize::try_from(buffers.unwrap_or_else(usual)).unwrap_or(usize::MAX),
            backend: overrides.io_engine.or(self.parsed("io_engine")),
            ..DiskOptions::default()
        }
    }

    fn nodetool(&self) -> Result<NodetoolAddress> {
        let (address, is_default) = self.address(["nodetool_address", "nodetool_port"])?;
        let address = Some(address).filter(|address| address.port() != 0);
        Ok(NodetoolAddress { address, is_default })
    }

    /// An address by the settings of its host and port, and whether it is the default.
    fn address(&self, names: [&str; 2]) -> Result<(SocketAddr, bool)> {
        let host = resolve(names[0], self.text(names[0]))?;
        let port = self.port(names[1])?.unwrap_or_default();
        let is_default = names.iter().all(|name| self.node(name).is_none());
        Ok((SocketAddr::new(host, port), is_default))
    }

    fn metrics(&self) -> Result<MetricsAddress> {
        let (address, is_default) = self.address(["metrics_address", "metrics_port"])?;
        let is_enabled = self.boolean("metrics_enabled")?;
        let chosen = self.text("metrics_names").unwrap_or_default();
        Ok(MetricsAddress {
            address: is_enabled.then_some(address),
            is_default,
            names: chosen.parse().map_err(Error::Refused)?,
        })
    }

    /// Data centre and rack, if the snitch says them.
    fn datacenter_and_rack(&self, overrides: &Overrides) -> Result<Option<(String, String)>> {
        match self.class("endpoint_snitch").as_deref() {
            Some("SimpleSnitch") => Ok(Some((DATA_CENTER.to_owned(), RACK.to_owned()))),
            Some("GossipingPropertyFileSnitch") => {
                let property = |name: &str| {
                    let lines = overrides.rackdc.as_deref().unwrap_or_default().lines();
                    let pairs = lines.filter_map(|line| line.split_once('='));
                    let found = pairs.rev().find(|(key, _)| key.trim() == name);
                    found.map(|(_, value)| value.trim().to_owned()).filter(|v| !v.is_empty())
                };
                let place = property("dc").zip(property("rack"));
                place.map(Some).ok_or_else(|| {
                    let text = "DC or rack not found in snitch properties, check your configuration in: \
                                cassandra-rackdc.properties, beside the configuration file";
                    Error::Refused(text.to_owned())
                })
            }
            _ => Ok(None),
        }
    }

    fn requests_per_second(&self) -> Result<Option<u32>> {
        let name = "native_transport_max_requests_per_second";
        match self.integer(name)?.map(u32::try_from) {
            None => Ok(None),
            Some(Ok(rate @ 1..)) => {
                let limited = self.boolean("native_transport_rate_limiting_enabled")?;
                Ok(Some(rate).filter(|_| limited))
            }
            Some(_) => Err(self.wrong(name, "1 or more")),
        }
    }

    /// The timeout and the interval of the slow query log (`cassandra.monitoring_report_interval_ms`).
    /// Beside the interval of the watch of disks (`cassandra.disk_usage.monitor_interval_ms`).
    fn slow_queries(&self) -> Result<(Duration, (Duration, Duration))> {
        let timeout = self.duration("slow_query_log_timeout")?.unwrap_or_default();
        let report = self.interval("monitoring_report_interval")?;
        Ok((timeout, (report, self.interval("disk_usage_monitor_interval")?)))
    }

    fn interval(&self, name: &str) -> Result<Duration> {
        let interval = self.duration(name)?.filter(|interval| !interval.is_zero());
        interval.ok_or_else(|| self.wrong(name, "1ms or more"))
    }

    fn saved_caches(&self) -> Result<SavedCaches> {
        let period = |name| Ok(self.duration(name)?.filter(|period| !period.is_zero()));
        let most = |name| {
            let most = self.integer(name)?.and_then(|most| usize::try_from(most).ok());
            Ok(SavedEntries::of(most.unwrap_or(usize::MAX)))
        };
        Ok(SavedCaches {
            key_cache_save_period: period("key_cache_save_period")?,
            key_cache_keys_to_save: most("key_cache_keys_to_save")?,
            row_cache_save_period: period("row_cache_save_period")?,
            row_cache_keys_to_save: most("row_cache_keys_to_save")?,
            cache_load_timeout: self.duration("cache_load_timeout")?.unwrap_or_default(),
        })
    }

    fn port(&self, name: &str) -> Result<Option<u16>> {
        let number = self.integer(name)?;
        number.map(u16::try_from).transpose().map_err(|_| self.wrong(name, "0 to 65535"))
    }

    fn meaningless(&self) -> Vec<&'static str> {
        let unused = self.keys.iter().filter(|key| key.support == Support::Meaningless);
        unused.map(|key| key.name).filter(|name| self.file.contains_key(name)).collect()
    }
}

fn resolve(key: &str, host: Option<String>) -> Result<IpAddr> {
    let Some(host) = host else { return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)) };
    let found = (host.as_str(), 0).to_socket_addrs().ok().and_then(|found| {
        let found: Vec<_> = found.map(|address| address.ip()).collect();
        // `localhost` has both; drivers and cqlsh try the older first.
        found.iter().find(|ip| ip.is_ipv4()).or(found.first()).copied()
    });
    found.ok_or_else(|| Error::Wrong {
        key: key.to_owned(),
        value: host,
        allowed: "an address of this machine, or a name that resolves to one".to_owned(),
    })
}

#[cfg(test)]
mod tests;
