//! What `cassandra.yaml` says of roles and permissions; names are the settings'.

use std::time::Duration;

/// How long something that was read from `system_auth` is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSettings {
    /// Zero: nothing is kept.
    pub validity: Duration,
    /// Entries of each shard.
    pub max_entries: usize,
}

impl Default for CacheSettings {
    fn default() -> CacheSettings {
        CacheSettings { validity: Duration::from_secs(2), max_entries: 1000 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `authenticator` is `PasswordAuthenticator`: clients log in.
    pub asks_for_password: bool,
    /// `authorizer` is `CassandraAuthorizer`: permissions are asked for.
    pub authorizes: bool,
    /// `network_authorizer` is `CassandraNetworkAuthorizer`.
    pub restricts_datacenters: bool,
    pub roles: CacheSettings,
    pub permissions: CacheSettings,
    pub credentials: CacheSettings,
    /// `native_transport_max_auth_threads`
    pub auth_threads: usize,
    /// The base-2 logarithm of the rounds of bcrypt.
    pub hash_rounds: u32,
    /// Between two changes of one role's password.
    pub password_update_min_interval: Duration,
    /// From the start until the default superuser is made.
    pub superuser_setup_delay: Duration,
}

/// Those of a node that allows everything.
impl Default for Settings {
    fn default() -> Settings {
        Settings {
            asks_for_password: false,
            authorizes: false,
            restricts_datacenters: false,
            roles: CacheSettings::default(),
            permissions: CacheSettings::default(),
            credentials: CacheSettings::default(),
            auth_threads: 4,
            hash_rounds: 10,
            password_update_min_interval: Duration::from_secs(5),
            superuser_setup_delay: Duration::from_secs(10),
        }
    }
}
