//! Start and stop of a node.
//!
//! 1. Lock and check the directory, open the engine. No request is served before recovery is complete.
//! 2. Each shard's thread opens its shard and serves its inbox. Then the node writes its row of `system.local` and all shards listen.
//! 3. On a signal that stops (`io/src/signals.rs`): accept no connections and requests, answer those in flight, drain the engine.
//! 4. If the engine stops itself (`disk_failure_policy`, `commit_failure_policy`), report it. As in Cassandra, `stop` closes all
//!    connections and keeps the process, `die` ends it too; if only writes have to stop, reads continue.

use std::future::Future;
use std::io::ErrorKind::AddrInUse;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use halcyon_access::{Access, AuthCache, CacheKeys};
use halcyon_client::Rows;
use halcyon_engine::{Engine, FailurePolicy, RecoveryReport, Severity as EventSeverity};
use halcyon_io::clock::{self, Instant, now};
use halcyon_io::startup::{self, Finding, Severity};
use halcyon_io::{
    Claim, Clock, Disk, Inbox, JobLost, Mesh, Thread, ThreadPriority, block_on, kept, pin_to_core,
    spawn,
};
use halcyon_model::uuid;
use halcyon_operate::NodeIdentity;
use halcyon_query::{ClientRequests, Coordinator, Denylist, LocalDenylist};
use halcyon_schema::LocalNode;
use halcyon_schema::function::FunctionSettings;
use halcyon_tls::Policy;

use crate::admission::Admission;
use crate::cache_rates;
use crate::command::Command;
use crate::denylist;
use crate::disk_usage;
use crate::encryption::Encryption;
use crate::endpoint::{self, Watch};
use crate::findings::Findings;
use crate::internal;
use crate::listen;
use crate::log::{Level, Log};
use crate::login;
use crate::metrics::ClientMetrics;
use crate::metrics::node::OfNode;
use crate::native_transport::NativeTransport;
use crate::persisted;
use crate::prepared::PreparedStatements;
use crate::recent_lines::RecentLines;
use crate::request_log::RequestLogs;
use crate::running::Shown;
use crate::saved_caches;
use crate::settings::{RunningSettings, Settings, Transport};
use crate::shard::{ShardServer, Shared};
use crate::slow_queries::{SlowQueries, noting};
use crate::trace::spans::Spans;
use crate::virtual_tables;
use crate::virtual_tables::facts::Facts;
use crate::virtual_tables::registry::Registry;
use crate::virtual_tables::servers::Servers;
use crate::virtual_tables::table::Node;
use crate::virtual_tables::tables::Tables;

/// Why a node did not start, or did not stop cleanly. The text has the cure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    CannotStart(String),
    #[error("{0}")]
    Stopped(String),
}

/// The capacity of a shard's inbox.
const INBOX_CAPACITY: usize = 256;
/// How long the start waits for a taken port.
const PORT_RELEASE_MAX: Duration = Duration::from_secs(1);

/// Serves until `stop` is ready, then drains. Calls `ready` with the address once clients can connect.
pub fn serve(
    settings: Settings,
    log: &Log,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let watch = endpoint::open(&settings.metrics, log).map_err(Error::CannotStart)?;
    block_on(serve_inside(Disk::real(settings.disk), settings, (log, watch), ready, stop))
}

/// As [`serve`], inside the runtime of a disk, which may be a simulated one; nothing watches such a node. Boxed, so that it is compiled in
/// this crate only.
pub fn serve_on(
    disk: Disk,
    settings: Settings,
    log: Log,
    ready: Box<dyn FnOnce(SocketAddr)>,
    stop: Pin<Box<dyn Future<Output = ()>>>,
) -> Pin<Box<dyn Future<Output = Result<(), Error>>>> {
    Box::pin(async move { serve_inside(disk, settings, (&log, None), ready, stop).await })
}

async fn serve_inside(
    disk: Disk,
    settings: Settings,
    (log, watch): (&Log, Option<Watch>),
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let began = now();
    let lock = take_directory(&disk, &settings).await?;
    check_machine(&disk, &settings, log)?;
    let claim = claim(disk.clock(), settings.transport.address).await?;
    let address = claim.address();
    let aware = shard_aware(&settings.transport, address, log).await;
    let nodetool = nodetool_port(&settings.transport, log).await?;
    let encryption = Encryption::open(&disk, &settings.transport, log).await;
    let encryption = encryption.map_err(Error::CannotStart)?;
    let encrypted =
        encrypted_port(&disk, &settings.transport, address, encryption.as_ref()).await?;
    let virtual_tables =
        virtual_tables::registry().map_err(|e| Error::CannotStart(e.to_string()))?;
    let engine = open_engine(&disk, &settings, &virtual_tables, log).await?;
    let spans = Spans::start(&disk, settings.spans.as_ref(), address, log).await;
    let watched = (encryption, spans.map_err(Error::CannotStart)?);
    let ports = (address, aware.as_ref(), nodetool.as_ref());
    let watched_by = watch.as_ref().map(Watch::watched).unwrap_or_default();
    let transport = NativeTransport::watched_by(watched_by);
    let (shared, inboxes) = share(&settings, ports, transport, watched, log)?;
    let facts = Arc::new(facts(&settings, &shared, &disk));
    let shown = (facts.clone(), Arc::new(virtual_tables));
    let threads = start_shards(&engine, &shared, shown, inboxes).await?;
    let place = join(&engine, &settings, &shared, address).await?;
    let of_node = OfNode::new(engine.clone(), shared.clone(), facts.cache_rates.clone());
    let metrics = Arc::new(of_node.registered(&disk));
    // A node joins once.
    let _ = facts.registry.set(metrics.clone());
    watch.iter().for_each(|watch| watch.show(metrics.clone(), place.clone()));
    resume_view_builds(&shared, log).await?;
    start_first(&shared, settings.watch_intervals).await?;
    denylist::load_before_clients(&shared).await.map_err(Error::CannotStart)?;
    // A shard that has stopped ends the start elsewhere.
    let _ = shared.mesh.on_each(login::warm_caches).await;
    listen(&shared).await?;
    saved_caches::keep(&engine, &settings.saved_caches, log);
    let (watched, rates) = (Arc::downgrade(&engine), facts.cache_rates.clone());
    spawn(kept(move || cache_rates::watch_rates(watched.clone(), rates.clone()))).detach();
    if let Some(encryption) = shared.encryption.clone() {
        spawn(kept(move || encryption.clone().watch())).detach();
    }
    watch.iter().for_each(|watch| watch.open_page(shared.clone()));
    tell_ready(&settings, &shared, &disk, began, log);
    shared.native_transport.tell();
    ready(address);
    until_stopped(stop, &engine, &shared, log).await;
    watch.iter().for_each(Watch::drain);
    log.say(format_args!("draining: no new connections, requests under way are answered"));
    saved_caches::save_all(&engine, &settings.saved_caches, log).await;
    let drained = drain(&engine, &shared, log).await;
    shared.request_logs.stop().await;
    drained?;
    watch.into_iter().for_each(Watch::close);
    drop((shared, facts, engine));
    for thread in threads {
        // The thread has ended; a panic was reported when it happened.
        let _ = thread.join().await;
    }
    drop((claim, aware, nodetool, encrypted, lock));
    log.say(format_args!("drained"));
    Ok(())
}

/// Opens the data; replays the commit log.
async fn open_engine(
    disk: &Disk,
    settings: &Settings,
    virtual_tables: &Registry,
    log: &Log,
) -> Result<Arc<Engine>, Error> {
    let progress = log.clone();
    let tell = Arc::new(move |line| progress.say(format_args!("{line}")));
    let mut options = settings.engine.clone();
    options.virtual_keyspaces = virtual_tables.keyspaces.clone();
    halcyon_functions::configure(&options.functions, &functions_folder(settings));
    tell_confinement(&options.functions, log);
    let opened = Engine::open_reporting(disk.clone(), options, tell).await;
    let (engine, report) = opened.map_err(|e| match e {
        halcyon_engine::Error::Disk(e @ halcyon_io::Error::Busy { .. }) => busy(&e),
        e => Error::CannotStart(e.to_string()),
    })?;
    // A killed process leaves it.
    let left = halcyon_engine::remove_folder(engine.disk(), &functions_folder(settings)).await;
    left.map_err(|e| Error::CannotStart(e.to_string()))?;
    tell_recovery(&report, log);
    Ok(engine)
}

/// Has the views built that are not.
async fn resume_view_builds(shared: &Shared, log: &Log) -> Result<(), Error> {
    let job = |server: Rc<ShardServer>| async move {
        halcyon_query::resume_view_builds(server.coordinator.shard())
            .await
            .map_err(|e| e.to_string())
    };
    match shared.mesh.on(0, job).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(why)) => {
            log.warning(format_args!("materialized views are not built: {why}"));
            Ok(())
        }
        Err(gone) => Err(Error::CannotStart(gone.to_string())),
    }
}

/// Prepares the statements of earlier starts again, under the same ids, and begins what the first shard does by the clock.
async fn start_first(
    shared: &Shared,
    (report_interval, disk_usage_interval): (Duration, Duration),
) -> Result<(), Error> {
    let job = move |server: Rc<ShardServer>| async move {
        let watched = server.clone();
        spawn(kept(move || disk_usage::watch(watched.clone(), disk_usage_interval))).detach();
        let (telling, estimating, slow) = (server.clone(), server.clone(), server.clone());
        spawn(login::set_up(server.clone())).detach();
        spawn(kept(move || persisted::tell_evictions(telling.clone()))).detach();
        spawn(kept(move || estimating.clone().estimate_sizes())).detach();
        spawn(kept(move || noting::report(slow.clone(), report_interval))).detach();
        if let Err(why) = persisted::load(server.clone()).await {
            // Clients prepare them again.
            let log = &server.shared.log;
            log.warning(format_args!("statements prepared before are not loaded: {why}"));
        }
    };
    shared.mesh.on(0, job).await.map_err(|e| Error::CannotStart(e.to_string()))
}

fn share(
    settings: &Settings,
    (address, aware, nodetool): (SocketAddr, Option<&Claim>, Option<&Claim>),
    native_transport: NativeTransport,
    (encryption, spans): (Option<Arc<Encryption>>, Option<Spans>),
    log: &Log,
) -> Result<(Arc<Shared>, Vec<Inbox<ShardServer>>), Error> {
    let host = format!("/{}:{}", address.ip(), settings.storage_port);
    let request_logs = RequestLogs::start(settings.request_logs.clone(), host, log);
    let request_logs = Arc::new(request_logs.map_err(Error::CannotStart)?);
    let mut transport = settings.transport.clone();
    transport.address = address;
    transport.shard_aware_port = aware.map(|claim| claim.address().port());
    transport.nodetool.address = nodetool.map(Claim::address);
    transport.port_ssl = transport.port_ssl.filter(|port| *port != address.port());
    let shards = settings.engine.shards;
    let (mesh, inboxes) = Mesh::new(shards, INBOX_CAPACITY);
    let shared = Shared {
        shards,
        authenticator: login::authenticator(settings.access.login),
        access: Arc::new(Access::new(settings.access.clone())),
        encryption,
        admission: Admission::new(&transport),
        prepared: Arc::new(PreparedStatements::new(transport.prepared_statements_cache_size)),
        transport,
        mesh,
        log: log.clone(),
        told: RecentLines::default(),
        clients: Arc::default(),
        metrics: (0..shards).map(|_| ClientMetrics::default()).collect(),
        requests: Arc::new(ClientRequests::new(shards)),
        limits: settings.limits.clone(),
        tokens: OnceLock::new(),
        trace_probability: Arc::default(),
        request_logs,
        spans,
        native_transport: Arc::new(native_transport),
        is_to_stop: Arc::default(),
        slow_queries: Arc::new(SlowQueries::new(settings.slow_query_log_timeout)),
        denylist: settings.denylist.map(|options| Arc::new(Denylist::new(options))),
    };
    Ok((Arc::new(shared), inboxes))
}

fn facts(settings: &Settings, shared: &Shared, disk: &Disk) -> Facts {
    let engine = &settings.engine;
    let mut io_modes = Vec::new();
    for directory in &engine.data_directories {
        io_modes.push((directory.clone(), "user_read", engine.read_mode, false));
        io_modes.push((directory.clone(), "compaction_read", engine.background_read_mode, false));
        io_modes.push((directory.clone(), "compaction_write", engine.background_write_mode, true));
    }
    io_modes.push((engine.commitlog.directory.clone(), "commitlog", engine.commitlog.mode, true));
    Facts {
        log: shared.log.clone(),
        clients: shared.clients.clone(),
        prepared: shared.prepared.clone(),
        encryption: shared.encryption.clone(),
        metrics: shared.metrics.clone(),
        requests: shared.requests.clone(),
        registry: OnceLock::new(),
        findings: Findings::default(),
        cache_rates: Arc::default(),
        trace_probability: shared.trace_probability.clone(),
        request_logs: shared.request_logs.clone(),
        slow_queries: shared.slow_queries.clone(),
        profiles: Arc::default(),
        is_to_stop: shared.is_to_stop.clone(),
        denylist: shared.denylist.clone(),
        access: shared.access.clone(),
        settings: RunningSettings::of(
            settings,
            shared.slow_queries.clone(),
            shared.limits.clone(),
            shared.access.clone(),
        ),
        data_dir: settings.data_dir.clone(),
        began: now(),
        disk: disk.clone(),
        io_modes,
    }
}

impl Servers for Shared {
    fn running(&self) -> LocalBoxFuture<'_, Vec<Result<Vec<Shown>, JobLost>>> {
        let ask = |server: Rc<ShardServer>| async move { server.running.shown() };
        Box::pin(self.mesh.on_each(ask))
    }

    fn access_keys(&self) -> LocalBoxFuture<'_, Vec<Result<CacheKeys, JobLost>>> {
        let ask =
            |server: Rc<ShardServer>| async move { halcyon_query::cache_keys(&server.coordinator) };
        Box::pin(self.mesh.on_each(ask))
    }

    fn select(&self, statement: String) -> LocalBoxFuture<'_, halcyon_query::Result<Rows>> {
        let job = move |server: Rc<ShardServer>| async move {
            internal::select(&server.coordinator, &statement).await
        };
        Box::pin(async move {
            let selected = self.mesh.on(0, job).await;
            selected.map_err(|gone| halcyon_query::Error::Server(gone.to_string()))?
        })
    }

    fn load_denylist(&self) -> LocalBoxFuture<'_, halcyon_query::Result<()>> {
        let load = |server: Rc<ShardServer>| async move { denylist::load(&server).await };
        Box::pin(async move {
            let loaded = self.mesh.on(0, load).await;
            loaded.map_err(|gone| halcyon_query::Error::Server(gone.to_string()))?
        })
    }

    fn forget_access(&self) {
        self.access.begin_epoch();
    }

    fn has_native_transport(&self) -> bool {
        self.native_transport.is_open()
    }

    fn open_native_transport(&self) -> LocalBoxFuture<'_, halcyon_query::Result<()>> {
        Box::pin(async move {
            if self.native_transport.is_drained() {
                return Err(halcyon_query::Error::Invalid(Command::DRAINED.to_owned()));
            }
            let opened = listen::open(self).await;
            let what = "Error starting native transport";
            opened.map_err(|why| halcyon_query::Error::Server(format!("{what}: {why}")))
        })
    }

    fn close_native_transport(
        &self,
        interrupts: bool,
    ) -> LocalBoxFuture<'_, halcyon_query::Result<()>> {
        Box::pin(async move {
            if self.transport.nodetool.address.is_none() {
                let why = "nodetool could not open the ports again: the node has no other port for it; choose one with nodetool_port";
                return Err(halcyon_query::Error::Invalid(why.to_owned()));
            }
            listen::close(self, interrupts).await;
            Ok(())
        })
    }

    fn drain_native_transport(&self) -> LocalBoxFuture<'_, bool> {
        Box::pin(async move {
            if self.transport.nodetool.address.is_none() {
                return false;
            }
            self.native_transport.drain();
            listen::close(self, false).await;
            true
        })
    }

    fn refresh_size_estimates(&self) -> LocalBoxFuture<'_, halcyon_query::Result<()>> {
        let refresh = |server: Rc<ShardServer>| async move { server.record_sizes(&mut None).await };
        Box::pin(async move {
            let refreshed = self.mesh.on(0, refresh).await;
            refreshed.map_err(|gone| halcyon_query::Error::Server(gone.to_string()))?
        })
    }
}

/// Makes the directories. The one that holds all by default is locked; the engine locks those of the data.
async fn take_directory(
    disk: &Disk,
    settings: &Settings,
) -> Result<Option<halcyon_io::DirLock>, Error> {
    let cannot = |what: &Path, e: halcyon_io::Error| {
        let cure = "choose another with --data-dir or HALCYON_DATA_DIR";
        Error::CannotStart(format!("{}: {e}; {cure}", what.display()))
    };
    let mut directories = vec![&settings.engine.commitlog.directory];
    directories.push(&settings.engine.saved_caches_directory);
    directories.push(&settings.hints_directory);
    directories.extend(&settings.engine.data_directories);
    for directory in &directories {
        disk.create_dir_all(directory).await.map_err(|e| cannot(directory, e))?;
    }
    let common = &settings.data_dir;
    if !directories.iter().any(|directory| directory.starts_with(common)) {
        return Ok(None);
    }
    disk.lock_dir(common).await.map(Some).map_err(|e| match e {
        e @ halcyon_io::Error::Busy { .. } => busy(&e),
        e => cannot(common, e),
    })
}

/// Files of user-defined functions, beside the data. A keyspace has no hyphen in its name, so this folder is not the one of a keyspace,
/// wherever `data_file_directories` lie.
fn functions_folder(settings: &Settings) -> PathBuf {
    let saved = &settings.engine.saved_caches_directory;
    let beside = saved.parent().filter(|_| saved.starts_with(&settings.data_dir));
    let folder = beside.unwrap_or(saved).join("java-functions");
    // The processes of functions run in another directory.
    std::path::absolute(&folder).unwrap_or(folder)
}

fn tell_confinement(functions: &FunctionSettings, log: &Log) {
    let lacking = halcyon_io::child::lacking();
    if functions.are_enabled && !lacking.is_empty() {
        let lacking = lacking.join(" and ");
        log.warning(format_args!(
            "this kernel has no {lacking}: functions in Java are confined by their JVM, limits and lack of privileges only"
        ));
    }
}

fn busy(error: &halcyon_io::Error) -> Error {
    Error::CannotStart(format!("{error}, or choose another with --data-dir or HALCYON_DATA_DIR"))
}

fn check_machine(disk: &Disk, settings: &Settings, log: &Log) -> Result<(), Error> {
    let mut directories: Vec<&Path> =
        settings.engine.data_directories.iter().map(|directory| directory.as_path()).collect();
    directories.push(&settings.engine.commitlog.directory);
    let mut told = Vec::new();
    for Finding { severity, text, cure } in startup::check(disk, &directories) {
        // Directories on one device share its findings.
        if told.contains(&text) {
            continue;
        }
        let cure = if cure.is_empty() { cure } else { format!("; {cure}") };
        match severity {
            Severity::Note => log.say(format_args!("{text}")),
            Severity::Warning => log.warning(format_args!("{text}{cure}")),
            Severity::Refusal => return Err(Error::CannotStart(format!("{text}{cure}"))),
        }
        told.push(text);
    }
    Ok(())
}

/// Takes the port, before the data is opened: of two nodes one starts, and connections are refused until it is ready. If a killed process
/// used io_uring, the kernel closes its sockets some time after its end; so this waits for a taken port.
async fn claim(clock: &Clock, address: SocketAddr) -> Result<Claim, Error> {
    let began = clock.now();
    loop {
        match Claim::take(address).await {
            Ok(claimed) => return Ok(claimed),
            Err(e) if e.kind() == AddrInUse && clock.now() - began < PORT_RELEASE_MAX => {
                clock.sleep(PORT_RELEASE_MAX / 50).await;
            }
            Err(e) => {
                return Err(Error::CannotStart(format!(
                    "cannot listen on {address}: {e}; is another server running there? Stop it, or choose another \
                     port with --port or native_transport_port"
                )));
            }
        }
    }
}

/// Lets all shards listen, after the whole node is ready.
async fn listen(shared: &Shared) -> Result<(), Error> {
    let nodetool = |server: Rc<ShardServer>| async move { listen::start_nodetool(&server).await };
    for opened in shared.mesh.on_each(nodetool).await {
        opened.map_err(|e| e.to_string()).flatten().map_err(Error::CannotStart)?;
    }
    if !shared.transport.start_native_transport {
        shared.log.say(format_args!("not listening: start_native_transport is false"));
        return Ok(());
    }
    listen::open(shared).await.map_err(Error::CannotStart)
}

/// Writes the node's row of `system.local`. A new node gets evenly spread tokens.
async fn join(
    engine: &Engine,
    settings: &Settings,
    shared: &Shared,
    address: SocketAddr,
) -> Result<NodeIdentity, Error> {
    let ring = |n: usize| ((2 * n as u128 + 1) << 63) / settings.num_tokens as u128;
    let node = LocalNode {
        cluster_name: settings.cluster_name.clone().unwrap_or_default(),
        data_center: settings.data_center.clone().unwrap_or_default(),
        rack: settings.rack.clone().unwrap_or_default(),
        host_id: [0; 16],
        tokens: (0..settings.num_tokens).map(|n| (ring(n) as u64 ^ (1 << 63)) as i64).collect(),
        listen_address: address.ip(),
        listen_port: settings.storage_port,
        broadcast_address: address.ip(),
        rpc_address: address.ip(),
        rpc_port: address.port(),
        gossip_generation: i32::try_from(clock::unix_seconds()).unwrap_or(i32::MAX),
        schema_version: engine.tables().schema_version(),
    };
    let node = engine.tables().join(node).await.map_err(|e| Error::CannotStart(e.to_string()))?;
    // A node joins once.
    let _ = shared.tokens.set(node.tokens);
    Ok(NodeIdentity {
        cluster: node.cluster_name,
        datacenter: node.data_center,
        rack: node.rack,
        address: node.broadcast_address.to_string(),
        host_id: uuid::text(&node.host_id),
    })
}

/// The shard-aware port, if it is free. A taken one does not prevent the start, because shard-aware drivers work without it.
async fn shard_aware(transport: &Transport, address: SocketAddr, log: &Log) -> Option<Claim> {
    let address = SocketAddr::new(address.ip(), transport.shard_aware_port?);
    match Claim::take(address).await {
        Ok(claim) => Some(claim),
        Err(e) => {
            log.warning(format_args!(
                "no shard-aware port: cannot listen on {address}: {e}; set native_transport_shard_aware_port"
            ));
            None
        }
    }
}

/// The port of `nodetool`. A taken one that the file does not choose does not prevent the start: several nodes may run on one machine.
async fn nodetool_port(transport: &Transport, log: &Log) -> Result<Option<Claim>, Error> {
    let Some(address) = transport.nodetool.address else { return Ok(None) };
    match Claim::take(address).await {
        Ok(claim) => Ok(Some(claim)),
        Err(e) if e.kind() == AddrInUse && transport.nodetool.is_default => {
            log.say(format_args!(
                "no port of its own for nodetool: another process listens on {address}; choose another with nodetool_port"
            ));
            Ok(None)
        }
        Err(e) => Err(Error::CannotStart(format!(
            "cannot listen on {address} for nodetool: {e}; choose another with nodetool_address and nodetool_port, or 0 for none"
        ))),
    }
}

/// The port of `native_transport_port_ssl`, if it is another one.
async fn encrypted_port(
    disk: &Disk,
    transport: &Transport,
    address: SocketAddr,
    encryption: Option<&Arc<Encryption>>,
) -> Result<Option<Claim>, Error> {
    match transport.port_ssl.filter(|port| *port != address.port()).zip(encryption) {
        Some((port, _)) => claim(disk.clock(), SocketAddr::new(address.ip(), port)).await.map(Some),
        None => Ok(None),
    }
}

type Started = Result<(), String>;
/// What virtual tables show, and which there are.
type Shows = (Arc<Facts>, Arc<Registry>);

async fn start_shards(
    engine: &Arc<Engine>,
    shared: &Arc<Shared>,
    shown: Shows,
    inboxes: Vec<Inbox<ShardServer>>,
) -> Result<Vec<Thread<()>>, Error> {
    let disk = &shown.0.disk;
    let (runtime, io) = (disk.runtime(), disk.backend().backend);
    let mut threads = Vec::new();
    let (told, mut starts) = futures_channel::mpsc::unbounded::<Started>();
    for (index, inbox) in inboxes.into_iter().enumerate() {
        let (engine, shared, told) = (engine.clone(), shared.clone(), told.clone());
        let shown = shown.clone();
        let body = move || {
            // Do not pin with the pool backend: the threads of the pool would inherit the pinning.
            if io == halcyon_io::Backend::Uring {
                pin_to_core(index);
            }
            run_shard((index, engine), shared, shown, inbox, told)
        };
        let name = format!("shard-{index}");
        threads.push(runtime.spawn_thread(&name, ThreadPriority::Normal, body));
    }
    drop(told);
    for _ in 0..threads.len() {
        use futures_util::StreamExt;
        let start = starts.next().await.unwrap_or_else(|| Err("a shard's thread ended".to_owned()));
        start.map_err(Error::CannotStart)?;
    }
    Ok(threads)
}

async fn run_shard(
    (index, engine): (usize, Arc<Engine>),
    shared: Arc<Shared>,
    shown: Shows,
    inbox: Inbox<ShardServer>,
    told: futures_channel::mpsc::UnboundedSender<Started>,
) {
    let outcome = open_shard((index, engine), &shared, shown).await;
    let server = match outcome {
        Ok(server) => server,
        Err(why) => {
            let _ = told.unbounded_send(Err(why));
            return;
        }
    };
    let watched = server.clone();
    spawn(kept(move || watched.clone().shed())).detach();
    if let Some(timeout) = shared.transport.idle_timeout {
        let watched = server.clone();
        spawn(kept(move || watched.clone().close_idle(timeout))).detach();
    }
    if shared.access.settings().asks_for_login() {
        for cache in AuthCache::ALL {
            let refreshed = server.clone();
            spawn(kept(move || login::keep_fresh(refreshed.clone(), cache))).detach();
        }
        let watched = server.clone();
        spawn(kept(move || login::end_revoked(watched.clone()))).detach();
    }
    drop(shared);
    let _ = told.unbounded_send(Ok(()));
    // The inbox never ends on its own: this shard is also a sender.
    spawn(inbox.serve(server.clone())).detach();
    server.until_stopped().await;
}

async fn open_shard(
    (index, engine): (usize, Arc<Engine>),
    shared: &Arc<Shared>,
    (facts, registry): Shows,
) -> Result<Rc<ShardServer>, String> {
    let (shard, inbox) = engine.open_shard(index).await.map_err(|e| e.to_string())?;
    spawn(inbox.serve(shard.clone())).detach();
    let servers = shared.clone();
    let node = Node { engine: engine.clone(), facts, servers };
    let virtual_tables = Tables { node, registry };
    let counted = (&**shared.admission.memory(), shared.requests.clone());
    let coordinator =
        Coordinator::new(engine, shard, Rc::new(virtual_tables), shared.limits.clone(), counted)
            .with_access(shared.access.clone());
    let coordinator = coordinator.denying(shared.denylist.clone().map(LocalDenylist::of));
    let server = Rc::new(ShardServer::new(index, shared.clone(), coordinator));
    if let Some(denylist) = server.coordinator.denylist() {
        denylist.read_from(Box::new(denylist::Rows::of(&server)));
    }
    Ok(server)
}

/// How often the engine's events are logged, and its health is checked.
const ENGINE_CHECK: Duration = Duration::from_secs(1);

/// Returns when the node must stop, or when the engine has failed and the policy is `die`.
async fn until_stopped(
    stop: impl Future<Output = ()>,
    engine: &Engine,
    shared: &Shared,
    log: &Log,
) {
    let watch = async {
        let mut told = false;
        loop {
            log_events(engine, log);
            if shared.is_to_stop.load(Relaxed) {
                return;
            }
            if let Some((why, policy)) = engine.reporter().failure().filter(|_| !told) {
                told = true;
                log.warning(format_args!("the engine has stopped: {why}"));
                match policy {
                    FailurePolicy::Die => return,
                    FailurePolicy::Stop => {
                        let stays = "the process stays until it is ended";
                        log.warning(format_args!("stopping transports; {stays}"));
                        listen::close(shared, false).await;
                    }
                    FailurePolicy::StopWrites => {}
                }
            }
            clock::sleep(ENGINE_CHECK).await;
        }
    };
    futures_util::future::select(pin!(stop), pin!(watch)).await;
}

fn log_events(engine: &Engine, log: &Log) {
    for event in engine.reporter().take_events() {
        let level = match event.severity() {
            EventSeverity::Info => Level::Info,
            EventSeverity::Warning => Level::Warn,
            EventSeverity::Error => Level::Error,
        };
        log.event(level, event.logger(), &event);
    }
}

/// Accepts no more connections and requests; answers those in flight.
async fn close_connections(shared: &Shared, log: &Log) {
    let drain = |server: Rc<ShardServer>| async move { server.drain().await };
    for (shard, drained) in shared.mesh.on_each(drain).await.into_iter().enumerate() {
        if drained.is_err() {
            log.warning(format_args!("shard {shard} has stopped"));
        }
    }
}

async fn drain(engine: &Engine, shared: &Shared, log: &Log) -> Result<(), Error> {
    close_connections(shared, log).await;
    let drained = engine.drain().await;
    log_events(engine, log);
    let _ = shared.mesh.on_each(|server: Rc<ShardServer>| async move { server.stop() }).await;
    drained.map_err(|e| Error::Stopped(format!("the drain failed: {e}")))
}

fn tell_recovery(report: &RecoveryReport, log: &Log) {
    log.say(format_args!(
        "recovery: {} SSTables, {} commit log segments with {} writes replayed",
        report.sstables, report.segments_replayed, report.mutations_replayed
    ));
    if report.mutations_skipped > 0 {
        let skipped = report.mutations_skipped;
        log.say(format_args!("recovery: skipped {skipped} mutations for dropped tables"));
    }
    for note in &report.notes {
        log.say(format_args!("recovery: {note}"));
    }
    for warning in &report.warnings {
        log.warning(format_args!("recovery: {warning}"));
    }
}

fn tell_ready(settings: &Settings, shared: &Shared, disk: &Disk, began: Instant, log: &Log) {
    if !settings.meaningless.is_empty() {
        let names = settings.meaningless.join(", ");
        log.say(format_args!("ignored cassandra.yaml settings: {names}"));
    }
    let mib = |bytes: u64| bytes >> 20;
    let engine = &settings.engine;
    log.say(format_args!(
        "{} shards; I/O engine {}; memory: memtables {} MiB, chunk cache {} MiB, key cache {} MiB at most",
        shared.shards,
        disk.backend().backend,
        mib(engine.memtable_space),
        mib(engine.chunk_cache_size),
        mib(engine.key_cache_size),
    ));
    log.say(format_args!(
        "memory for connections, requests and answers: {} MiB at most",
        mib(shared.admission.memory().limit())
    ));
    let shown = |paths: &[PathBuf]| {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        paths.join(", ")
    };
    log.say(format_args!(
        "data is in {}; the commit log in {}",
        shown(&engine.data_directories),
        engine.commitlog.directory.display()
    ));
    let address = shared.transport.address;
    let is_encrypted = shared.policy() == Policy::Encrypted;
    let asks = settings.access.asks_for_login() || shared.requires_certificates();
    if !address.ip().is_loopback() && !asks {
        let tls = if is_encrypted { "" } else { " and does not require TLS" };
        log.warning(format_args!(
            "ANYONE WHO REACHES {address} CAN READ AND CHANGE ALL DATA: the node asks for no password{tls}. Set authenticator to \
             PasswordAuthenticator and authorizer to CassandraAuthorizer, let only trusted machines reach this port (firewall), or \
             listen on a loopback address (rpc_address, --listen)"
        ));
    }
    log.say(format_args!(
        "ready after {} ms; connect with: cqlsh {}{} {}",
        (now() - began).as_millis(),
        if is_encrypted { "--ssl " } else { "" },
        address.ip(),
        address.port()
    ));
}
