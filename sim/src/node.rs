//! The node under test: `halcyon_server` as it is, on the simulated disk, with sizes so small that it always flushes and compacts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use halcyon_io::{Disk, DiskOptions, Random, SimDisk, Task, spawn};
use halcyon_server::settings::{Machine, Overrides, Settings};
use halcyon_server::{Log, serve_on};

const YAML: &str = "\
native_transport_shard_aware_port: 0
commitlog_segment_size: 1MiB
write_request_timeout: 60s
read_request_timeout: 60s
range_request_timeout: 60s
counter_write_request_timeout: 60s
cas_contention_timeout: 60s
materialized_views_enabled: true
column_index_size: 4KiB
";

fn choose<'a>(random: &mut Random, among: &[&'a str]) -> &'a str {
    among.get(random.below(among.len() as u64) as usize).copied().unwrap_or_default()
}

const PERIOD: Duration = Duration::from_millis(10);
/// What a power cut may cost under `periodic`: a sync is due after a period, and writers wait from half a period later on. Beside it, the
/// time that the sync itself takes.
pub const LOST_MAX: Duration = Duration::from_millis(75);

const ROLES: &str = "\
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
auth_bcrypt_gensalt_log2_rounds: 4
superuser_setup_delay: 1ms
";

/// Settings of one start, by the seed. `roles`: clients log in. Not `periodic` with a disk that fails: the log may then be unable to sync
/// what was acknowledged.
pub fn settings(random: &mut Random, faults: bool, roles: bool) -> Result<Settings, String> {
    let mut yaml = YAML.to_owned();
    if roles {
        let validity = choose(random, &["0ms", "50ms", "2000ms"]);
        let active = random.chance(1, 2);
        yaml += ROLES;
        for cache in ["roles", "permissions", "credentials"] {
            yaml +=
                &format!("{cache}_validity: {validity}\n{cache}_cache_active_update: {active}\n");
        }
    }
    let group = "commitlog_sync: group\ncommitlog_sync_group_window: 5ms\n";
    let periodic =
        format!("commitlog_sync: periodic\ncommitlog_sync_period: {}ms\n", PERIOD.as_millis());
    yaml += choose(random, &["", group, if faults { "" } else { &periodic }]);
    let compression = "commitlog_compression:\n  - class_name: LZ4Compressor\n";
    yaml += choose(random, &["", compression]);
    let bti = "storage_compatibility_mode: NONE\nsstable:\n  selected_format: bti\n";
    yaml += choose(random, &["", "storage_compatibility_mode: NONE\n", bti]);
    yaml += choose(random, &["", "uuid_sstable_identifiers_enabled: false\n"]);
    let policy = choose(random, &["stop", "stop_paranoid", "best_effort", "ignore", "die"]);
    yaml += &format!("disk_failure_policy: {policy}\n");
    let policy = choose(random, &["stop", "stop_commit", "ignore", "die"]);
    yaml += &format!("commit_failure_policy: {policy}\n");
    let overrides = Overrides {
        data_dir: Some(PathBuf::from("/halcyon")),
        shards: Some(1 + random.below(4) as usize),
        ..Overrides::default()
    };
    let machine = Machine { memory: 64 << 20, cores: 2 };
    let mut settings =
        Settings::load(Some(&yaml), &overrides, machine).map_err(|e| e.to_string())?;
    let engine = &mut settings.engine;
    let segment = 64 << random.below(3) << 10;
    engine.commitlog.segment_size = segment;
    engine.commitlog.total_space = u64::from(segment) * (3 + random.below(4));
    engine.memtable_space = (16 << random.below(5)) << 10;
    engine.chunk_cache_size = (64 << random.below(5)) << 10;
    engine.row_cache_size = if random.chance(1, 2) { 64 << 10 } else { 0 };
    engine.concurrent_compactors = 1 + random.below(3) as usize;
    engine.direct_write_buffer_size = 16 << 10;
    engine.auto_snapshot = random.chance(1, 4);
    Ok(settings)
}

/// A node that serves.
pub struct Node {
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: Task<Result<(), String>>,
}

impl Node {
    /// Starts it; an error if it refuses.
    pub async fn start(disk: &SimDisk, settings: Settings, log: Log) -> Result<Node, String> {
        let disk = Disk::on_simulated(disk, DiskOptions::default());
        let (stop, stopped) = oneshot::channel::<()>();
        let (told, ready) = oneshot::channel();
        let told = Box::new(move |address| {
            // The starter waits for it.
            let _ = told.send(address);
        });
        let until = Box::pin(async move {
            let _ = stopped.await;
        });
        let serving = serve_on(disk, settings, log, told, until);
        let serving = spawn(async move { serving.await.map_err(|e| e.to_string()) });
        match select(ready, serving).await {
            Either::Left((Ok(address), serving)) => Ok(Node { address, stop, serving }),
            Either::Left((Err(_), serving)) => Err(ended(serving.await)),
            Either::Right((outcome, _)) => Err(ended(outcome)),
        }
    }

    /// Stops it as SIGTERM does.
    pub async fn drain(self) -> Result<(), String> {
        drop(self.stop);
        self.serving.await.unwrap_or_else(|| Err("the node panicked".to_owned()))
    }
}

fn ended(outcome: Option<Result<(), String>>) -> String {
    match outcome {
        None => "the node panicked".to_owned(),
        Some(Ok(())) => "the node ended".to_owned(),
        Some(Err(why)) => why,
    }
}
