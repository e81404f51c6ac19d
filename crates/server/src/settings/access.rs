//! Who logs in how, and who decides what they may do.

use std::time::Duration;

use halcyon_access::{CacheSettings, CidrMode, CidrSettings, Identity, Login, Settings};
use halcyon_tls::{ClientAuth, Options};

use super::error::{Error, Result};
use super::file::Node;
use super::{Errors, Values};

/// Cassandra's package; classes of others are another program's.
const PACKAGE: &str = "org.apache.cassandra.auth.";

const MUTUAL_TLS: &str = "MutualTlsAuthenticator";
const MUTUAL_TLS_OR_PASSWORD: &str = "MutualTlsWithPasswordFallbackAuthenticator";
/// The parameter of both, and its values. The second one is Halcyon's own.
const VALIDATOR: &str = "validator_class_name";
const VALIDATORS: [(&str, Identity); 2] = [
    ("SpiffeCertificateValidator", Identity::Spiffe),
    ("CommonNameCertificateValidator", Identity::CommonName),
];

/// Settings that name a class, and the classes that there are; the first one is the default.
const CLASSES: [(&str, &[&str]); 5] = [
    (
        "authenticator",
        &["AllowAllAuthenticator", "PasswordAuthenticator", MUTUAL_TLS, MUTUAL_TLS_OR_PASSWORD],
    ),
    ("authorizer", &["AllowAllAuthorizer", "CassandraAuthorizer"]),
    ("role_manager", &["CassandraRoleManager"]),
    ("network_authorizer", &["AllowAllNetworkAuthorizer", "CassandraNetworkAuthorizer"]),
    ("cidr_authorizer", &["AllowAllCIDRAuthorizer", CIDR]),
];

const CIDR: &str = "CassandraCIDRAuthorizer";
/// Its parameters. The last one is the size of a cache that the lookup here does not need.
const CIDR_PARAMETERS: [&str; 4] = [
    "cidr_authorizer_mode",
    "cidr_checks_for_superusers",
    "cidr_groups_cache_refresh_interval",
    "ip_cache_max_size",
];

impl Values {
    pub(super) fn access(&self, errors: &mut Errors) -> Result<Settings> {
        for (name, classes) in CLASSES {
            if let Err(error) = self.check_auth_class(name, classes) {
                errors.add(error);
            }
        }
        let is = |name, class| self.auth_class(name) == Some(class);
        let settings = Settings {
            login: self.login()?,
            authorizes: is("authorizer", "CassandraAuthorizer"),
            restricts_datacenters: is("network_authorizer", "CassandraNetworkAuthorizer"),
            cidrs: is("cidr_authorizer", CIDR).then(|| self.cidrs()).transpose()?,
            roles: self.auth_cache("roles")?,
            permissions: self.auth_cache("permissions")?,
            credentials: self.auth_cache("credentials")?,
            password_policy: self.password_policy()?,
            warms_caches: self.boolean("auth_cache_warming_enabled")?,
            auth_threads: self
                .count_within("native_transport_max_auth_threads", 0, 1024)?
                .unwrap_or(4),
            hash_rounds: self
                .count_within("auth_bcrypt_gensalt_log2_rounds", 4, 30)?
                .and_then(|rounds| u32::try_from(rounds).ok())
                .unwrap_or(10),
            password_update_min_interval: self.time("role_password_update_min_interval")?,
            superuser_setup_delay: self.time("superuser_setup_delay")?,
        };
        check_classes(&settings, errors);
        // An encryption that cannot be read is refused where it is used.
        if let Ok(encryption) = self.client_encryption() {
            check_certificates(settings.login, &encryption, errors);
        }
        Ok(settings)
    }

    fn login(&self) -> Result<Login> {
        match self.auth_class("authenticator") {
            Some("PasswordAuthenticator") => Ok(Login::Password),
            Some(MUTUAL_TLS) => Ok(Login::Certificate(self.identity()?)),
            Some(MUTUAL_TLS_OR_PASSWORD) => Ok(Login::CertificateOrPassword(self.identity()?)),
            // Another class was refused by name.
            _ => Ok(Login::Never),
        }
    }

    /// A parameter of a setting that names a class; an empty one counts as none.
    fn parameter(&self, name: &str, parameter: &str) -> Option<&str> {
        let parameters = match self.parameterized(name)?.get("parameters")? {
            Node::List(items) => items.first()?,
            node => node,
        };
        parameters.get(parameter)?.scalar().filter(|value| !value.is_empty())
    }

    fn cidrs(&self) -> Result<CidrSettings> {
        const NAME: &str = "cidr_authorizer";
        let wrong = |parameter: &str, value: &str, allowed: &str| Error::Wrong {
            key: format!("{NAME}.parameters.{parameter}"),
            value: value.to_owned(),
            allowed: allowed.to_owned(),
        };
        let [mode, superusers, refresh, _] = CIDR_PARAMETERS;
        let text = self.parameter(NAME, mode).unwrap_or("MONITOR");
        let chosen = match text.to_ascii_uppercase().as_str() {
            "MONITOR" => CidrMode::Monitor,
            "ENFORCE" => CidrMode::Enforce,
            _ => return Err(wrong(mode, text, "MONITOR or ENFORCE")),
        };
        let minutes = self.parameter(NAME, refresh).unwrap_or("5");
        let whole = minutes.parse::<u32>().map_err(|_| wrong(refresh, minutes, "minutes"))?;
        let checked = self.parameter(NAME, superusers);
        Ok(CidrSettings {
            mode: chosen,
            superusers: checked.is_some_and(|value| value.eq_ignore_ascii_case("true")),
            refresh: Duration::from_secs(60 * u64::from(whole)),
        })
    }

    /// Where certificates say whose they are.
    fn identity(&self) -> Result<Identity> {
        let Some(class) = self.parameter("authenticator", VALIDATOR) else {
            let text = format!("authenticator.parameters.{VALIDATOR} is not set");
            return Err(Error::Refused(text));
        };
        let name = class.strip_prefix(PACKAGE).unwrap_or(class);
        let found = VALIDATORS.iter().find(|(known, _)| *known == name);
        found.map(|(_, identity)| *identity).ok_or_else(|| Error::Wrong {
            key: format!("authenticator.parameters.{VALIDATOR}"),
            value: class.to_owned(),
            allowed: format!(
                "{} (others are not supported)",
                VALIDATORS.map(|(name, _)| name).join(" or ")
            ),
        })
    }

    /// The mapping of a setting that names a class with parameters.
    fn parameterized(&self, name: &str) -> Option<&Node> {
        match self.node(name)? {
            Node::List(items) => items.first(),
            node => Some(node),
        }
    }

    fn time(&self, name: &str) -> Result<Duration> {
        Ok(self.duration(name)?.unwrap_or_default())
    }

    fn auth_cache(&self, what: &str) -> Result<CacheSettings> {
        let validity = self.time(&format!("{what}_validity"))?;
        let interval = self.duration(&format!("{what}_update_interval"))?;
        let entries = self.count_within(&format!("{what}_cache_max_entries"), 0, 10_000_000)?;
        let is_active = self.boolean(&format!("{what}_cache_active_update"))?;
        Ok(CacheSettings::of(validity, interval, entries.unwrap_or(1000), is_active))
    }

    /// The class that a setting names, without Cassandra's package.
    fn auth_class(&self, name: &str) -> Option<&str> {
        let class = self.parameterized(name)?;
        let class = class.scalar().or_else(|| class.get("class_name")?.scalar())?;
        Some(class.strip_prefix(PACKAGE).unwrap_or(class))
    }

    fn check_auth_class(&self, name: &str, classes: &[&str]) -> Result<()> {
        let Some(node) = self.parameterized(name) else { return Ok(()) };
        let others = format!("{} (others are not supported yet)", classes.join(" or "));
        if !self.auth_class(name).is_some_and(|class| classes.contains(&class)) {
            return Err(self.wrong(name, &others));
        }
        let known: &[&str] = match self.auth_class(name) {
            Some(MUTUAL_TLS | MUTUAL_TLS_OR_PASSWORD) => &[VALIDATOR],
            // Cassandra's file has them for both classes.
            _ if name == "cidr_authorizer" => &CIDR_PARAMETERS,
            _ => &[],
        };
        let Some(Node::Map(members)) = node.get("parameters") else { return Ok(()) };
        match members.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(_) if known.is_empty() => {
                Err(self.wrong(name, &format!("{others}, without parameters")))
            }
            Some((key, _)) => {
                Err(self.wrong(name, &format!("no parameters but {}, not {key}", known.join(", "))))
            }
        }
    }
}

/// `MutualTlsAuthenticator.checkMtlsConfigurationIsValid`. With the fallback, a client may also show none.
fn check_certificates(login: Login, encryption: &Options, errors: &mut Errors) {
    let is_asked_for = match login {
        Login::Never | Login::Password => return,
        Login::Certificate(_) => encryption.require_client_auth == ClientAuth::Required,
        Login::CertificateOrPassword(_) => encryption.verifies_clients(),
    };
    if !encryption.enabled || !is_asked_for {
        errors.add(Error::Refused(
            "MutualTlsAuthenticator requires client_encryption_options.enabled to be true & client_encryption_options.require_client_auth to be true"
                .to_owned(),
        ));
    }
}

/// `AuthConfig.applyAuth`
fn check_classes(settings: &Settings, errors: &mut Errors) {
    if settings.asks_for_login() {
        return;
    }
    let authenticator = "org.apache.cassandra.auth.AllowAllAuthenticator";
    if settings.authorizes {
        errors.add(Error::Refused(format!(
            "{PACKAGE}CassandraAuthorizer has authorization enabled which requires {authenticator} to enable authentication; \
             set authenticator to PasswordAuthenticator"
        )));
    }
    if settings.cidrs.is_some() {
        errors.add(Error::Refused(format!(
            "CassandraCIDRAuthorizer can't be used with {authenticator}; set authenticator to PasswordAuthenticator"
        )));
    }
    if settings.restricts_datacenters {
        errors.add(Error::Refused(format!(
            "CassandraNetworkAuthorizer can't be used with {authenticator}; set authenticator to PasswordAuthenticator"
        )));
    }
}
