//! The node's TLS: what `client_encryption_options` lead to, and the certificates that new connections get.
//!
//! 1. Stores are read through the disk's handle, and opened on a thread for computations, because a password takes many rounds.
//! 2. Every ten minutes, and at `nodetool reloadssl`, changed files are read again (`SSLFactory`). New connections get what they say;
//!    open ones keep what they have. Unusable files change nothing, and are logged.
//! 3. A port has a policy: encrypted, both, or neither (`NativeTransportService`).

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use halcyon_io::clock::{self, Instant, now, unix_seconds};
use halcyon_io::{Disk, Mutex, Pool, compute, core_count};
use halcyon_tls::{Built, ClientAuth, Options, Policy, STORE_MAX, Server, Stores};

use crate::log::Log;
use crate::settings::Transport;

/// `SSLFactory.DEFAULT_HOT_RELOAD_PERIOD_SEC`
const RELOAD_PERIOD: Duration = Duration::from_secs(600);
/// How often failed handshakes are logged. Cassandra's `NoSpamLogger` takes a minute.
const REPORT_PERIOD: Duration = Duration::from_secs(60);
/// Cassandra's word for it in the log.
const CONTEXT: &str = "client_encryption_options";

pub(crate) struct Encryption {
    options: Options,
    /// Of the port that is encrypted.
    policy: Policy,
    disk: Disk,
    log: Log,
    current: ArcSwap<Server>,
    /// Does the computations of handshakes: expensive requests wait for none of them.
    handshakes: Pool,
    /// The files as they were read last: when they were changed, and their lengths.
    seen: Mutex<Seen>,
    /// When a failed handshake was logged last, and how many there were since.
    reported: Mutex<(Option<Instant>, u64)>,
}

type Seen = [Option<(i64, u64)>; 2];

impl Encryption {
    /// `None`: the node has no TLS. The error has the cure.
    pub(crate) async fn open(
        disk: &Disk,
        transport: &Transport,
        log: &Log,
    ) -> Result<Option<Arc<Encryption>>, String> {
        let options = &transport.encryption;
        let exists = match options.keystore_file() {
            Some(file) => disk.exists(Path::new(file)).await.map_err(|e| e.to_string())?,
            None => true,
        };
        let policy = options.policy(exists);
        if transport.port_ssl.is_some() {
            log.warning(format_args!(
                "Usage of dual ports (native_transport_port together with native_transport_port_ssl) is deprecated since Cassandra 5.0 \
                 and it will be removed in next releases. Please consider to use one port only (native_transport_port) which can \
                 support unencrypted as well as encrypted traffic. This feature is effectively not functioning properly except a \
                 corner-case of having a cluster consisting of just one node. For more information, please consult deprecation \
                 section in NEWS.txt"
            ));
        }
        if policy == Policy::Unencrypted {
            return match transport.port_ssl {
                Some(port) if port != transport.address.port() => Err(
                    "Encryption must be enabled in client_encryption_options for native_transport_port_ssl"
                        .to_owned(),
                ),
                _ => Ok(None),
            };
        }
        let seen = seen(disk, options).await;
        let built = build(disk, options).await?;
        for warning in &built.warnings {
            log.warning(format_args!("{warning}"));
        }
        log.say(format_args!("{CONTEXT} enabled TLS protocols: {}", built.protocols.join(", ")));
        log.say(format_args!(
            "{CONTEXT} enabled cipher suites: {}",
            built.cipher_suites.join(", ")
        ));
        let optionally = if policy == Policy::Optional { "optionally " } else { "" };
        log.say(format_args!(
            "Enabling {optionally}encrypted CQL connections between client and server"
        ));
        Ok(Some(Arc::new(Encryption {
            options: options.clone(),
            policy,
            disk: disk.clone(),
            log: log.clone(),
            current: ArcSwap::from_pointee(built.server),
            handshakes: Pool::start("tls", core_count().div_ceil(2)),
            seen: Mutex::new(seen),
            reported: Mutex::default(),
        })))
    }

    pub(crate) fn policy(&self) -> Policy {
        self.policy
    }

    pub(crate) fn requires_certificates(&self) -> bool {
        self.options.require_client_auth == ClientAuth::Required
    }

    pub(crate) fn handshakes(&self) -> Pool {
        self.handshakes
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// What a new connection gets.
    pub(crate) fn server(&self) -> Arc<Server> {
        self.current.load_full()
    }

    /// Looks after the files for as long as the node runs.
    pub(crate) async fn watch(self: Arc<Self>) {
        loop {
            clock::sleep(RELOAD_PERIOD).await;
            // The log has said why.
            let _ = self.reload(false).await;
        }
    }

    /// Reads the files again if they have changed, or in any case. The error says why the certificates stay as they were.
    pub(crate) async fn reload(&self, forced: bool) -> Result<(), String> {
        self.log
            .debug(format_args!("Checking whether certificates have been updated for {CONTEXT}"));
        let seen = seen(&self.disk, &self.options).await;
        if std::mem::replace(&mut *self.seen.lock(), seen) == seen && !forced {
            return Ok(());
        }
        match build(&self.disk, &self.options).await {
            Ok(built) => {
                for warning in &built.warnings {
                    self.log.warning(format_args!("{warning}"));
                }
                self.current.store(Arc::new(built.server));
                self.log.say(format_args!(
                    "SSL certificates have been updated for {CONTEXT}. Resetting the ssl contexts for new connections."
                ));
                Ok(())
            }
            Err(why) => {
                self.log.error(format_args!(
                    "Failed to hot reload the SSL Certificates! Please check the certificate files for {CONTEXT}. {why}"
                ));
                Err(why)
            }
        }
    }

    /// Logs a failed handshake: for debugging each one, as a warning one in a while, for anyone who reaches the port can cause them.
    pub(crate) fn report(&self, peer: SocketAddr, why: &str) {
        self.log.debug(format_args!("{peer} is disconnected: {why}"));
        let mut reported = self.reported.lock();
        let (last, missed) = *reported;
        if last.is_some_and(|last| now() - last < REPORT_PERIOD) {
            reported.1 += 1;
            return;
        }
        *reported = (Some(now()), 0);
        drop(reported);
        let before = match missed {
            0 => String::new(),
            missed => format!("; {missed} clients before it are not listed"),
        };
        self.log.warning(format_args!("{peer} is disconnected: TLS failed: {why}{before}"));
    }
}

/// When the files were changed; none for one that is missing or not used.
async fn seen(disk: &Disk, options: &Options) -> Seen {
    let mut seen = Seen::default();
    for (found, file) in seen.iter_mut().zip(files(options)) {
        let Some(file) = file else { continue };
        let stat = disk.stat(Path::new(file)).await.ok();
        *found = stat.map(|stat| (stat.modified_ms, stat.len));
    }
    seen
}

/// Keystore and truststore, where they are used.
fn files(options: &Options) -> [Option<&str>; 2] {
    let truststore = options.truststore_file().filter(|_| options.verifies_clients());
    [options.keystore_file(), truststore]
}

async fn build(disk: &Disk, options: &Options) -> Result<Built, String> {
    let mut read = [None, None];
    for (bytes, (file, setting)) in
        read.iter_mut().zip(files(options).into_iter().zip(["keystore", "truststore"]))
    {
        let Some(file) = file else { continue };
        let found = disk.read(Path::new(file), STORE_MAX).await;
        *bytes = Some(found.map_err(|e| format!("{CONTEXT}.{setting}: {e}; correct {setting}"))?);
    }
    let [keystore, truststore] = read;
    let (options, stores) = (options.clone(), Stores { keystore, truststore });
    let now = unix_seconds().try_into().unwrap_or(0);
    let built = compute(move || Server::build(&options, &stores, now)).await;
    built.map_err(|gone| gone.to_string())?.map_err(|e| e.to_string())
}
