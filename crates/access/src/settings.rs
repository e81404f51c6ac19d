//! What `cassandra.yaml` says of roles and permissions; names are the settings'.

use std::sync::Arc;
use std::time::Duration;

use crate::password_policy::PasswordPolicy;

/// How long something that was read from `system_auth` is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSettings {
    /// Zero: nothing is kept.
    pub validity: Duration,
    /// Entries of each shard.
    pub max_entries: usize,
    /// How often entries are read again before they are asked for (`…_cache_active_update`); `None`: when they are asked for.
    pub active_update: Option<Duration>,
}

impl Default for CacheSettings {
    fn default() -> CacheSettings {
        CacheSettings { validity: Duration::from_secs(2), max_entries: 1000, active_update: None }
    }
}

/// `authenticator`: what clients log in with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Login {
    /// `AllowAllAuthenticator`: clients do not log in.
    #[default]
    Never,
    /// `PasswordAuthenticator`
    Password,
    /// `MutualTlsAuthenticator`
    Certificate(Identity),
    /// `MutualTlsWithPasswordFallbackAuthenticator`: a client without a certificate has a password.
    CertificateOrPassword(Identity),
}

/// `validator_class_name`: where a certificate says whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// `SpiffeCertificateValidator`: the first SPIFFE URI among its alternative names.
    Spiffe,
    /// The common name of its subject. Cassandra leaves this to classes of its users.
    CommonName,
}

/// The parameters of `cidr_authorizer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CidrSettings {
    pub mode: CidrMode,
    /// `cidr_checks_for_superusers`
    pub superusers: bool,
    /// How long the groups that were read are believed: `cidr_groups_cache_refresh_interval`.
    pub refresh: Duration,
}

/// `cidr_authorizer_mode`: what happens to a role that comes from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CidrMode {
    /// It is logged.
    Monitor,
    Enforce,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub login: Login,
    /// `authorizer` is `CassandraAuthorizer`: permissions are asked for.
    pub authorizes: bool,
    /// `network_authorizer` is `CassandraNetworkAuthorizer`.
    pub restricts_datacenters: bool,
    /// `cidr_authorizer` is `CassandraCIDRAuthorizer`.
    pub cidrs: Option<CidrSettings>,
    pub roles: CacheSettings,
    pub permissions: CacheSettings,
    pub credentials: CacheSettings,
    /// What passwords must be like; `None`: anything.
    pub password_policy: Option<Arc<PasswordPolicy>>,
    /// `auth_cache_warming_enabled`: what is kept is read before the first client connects.
    pub warms_caches: bool,
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
            login: Login::Never,
            authorizes: false,
            restricts_datacenters: false,
            cidrs: None,
            roles: CacheSettings::default(),
            permissions: CacheSettings::default(),
            credentials: CacheSettings::default(),
            password_policy: None,
            warms_caches: false,
            auth_threads: 4,
            hash_rounds: 10,
            password_update_min_interval: Duration::from_secs(5),
            superuser_setup_delay: Duration::from_secs(10),
        }
    }
}

impl Settings {
    pub fn asks_for_login(&self) -> bool {
        self.login != Login::Never
    }

    /// Whether roles have passwords.
    pub fn takes_passwords(&self) -> bool {
        matches!(self.login, Login::Password | Login::CertificateOrPassword(_))
    }
}
