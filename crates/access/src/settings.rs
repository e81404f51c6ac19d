//! What `cassandra.yaml` says of roles and permissions; names are the settings'.

use std::sync::Arc;
use std::time::Duration;

use crate::password_policy::PasswordPolicy;

/// What shards keep of `system_auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthCache {
    Roles,
    Permissions,
    Credentials,
}

impl AuthCache {
    pub const ALL: [AuthCache; 3] =
        [AuthCache::Roles, AuthCache::Permissions, AuthCache::Credentials];

    /// How the names of its settings begin.
    pub fn prefix(self) -> &'static str {
        match self {
            AuthCache::Roles => "roles",
            AuthCache::Permissions => "permissions",
            AuthCache::Credentials => "credentials",
        }
    }
}

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

impl CacheSettings {
    /// Cassandra refreshes an entry in the background after its update interval; here it is read again then, before it is used.
    pub fn of(
        validity: Duration,
        update_interval: Option<Duration>,
        max_entries: usize,
        is_active: bool,
    ) -> CacheSettings {
        let interval = update_interval.map_or(validity, |interval| interval.min(validity));
        CacheSettings {
            validity: if is_active { validity } else { interval },
            max_entries,
            // Before they are not believed any more.
            active_update: Some(interval * 3 / 4).filter(|every| is_active && !every.is_zero()),
        }
    }
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
    /// At the start.
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
    pub(crate) fn cache(&self, cache: AuthCache) -> CacheSettings {
        match cache {
            AuthCache::Roles => self.roles,
            AuthCache::Permissions => self.permissions,
            AuthCache::Credentials => self.credentials,
        }
    }

    pub fn asks_for_login(&self) -> bool {
        self.login != Login::Never
    }

    /// Whether roles have passwords.
    pub fn takes_passwords(&self) -> bool {
        matches!(self.login, Login::Password | Login::CertificateOrPassword(_))
    }
}
