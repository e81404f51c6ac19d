//! `client_encryption_options`, as the file has them.

use std::fmt;

/// Cassandra's defaults (`EncryptionOptions`).
pub(crate) const KEYSTORE: &str = "conf/.keystore";
pub(crate) const TRUSTSTORE: &str = "conf/.truststore";

/// A password or a private key, which no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<REDACTED>")
    }
}

/// `require_client_auth`. Cassandra 5.0 has the two of a boolean; `optional` is that of 6.0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientAuth {
    #[default]
    NotRequired,
    /// A client may show no certificate; one that it shows must be trusted.
    Optional,
    Required,
}

/// `ssl_context_factory`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Factory {
    /// `DefaultSslContextFactory`: stores in Java's formats.
    #[default]
    Stores,
    /// `PEMBasedSslContextFactory`: PEM in the parameters or in the files.
    Pem {
        private_key: Option<Secret>,
        private_key_password: Option<Secret>,
        trusted_certificates: Option<String>,
    },
}

/// Which connections a port takes (`EncryptionOptions.TlsEncryptionPolicy`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    #[default]
    Unencrypted,
    Optional,
    Encrypted,
}

/// Names and defaults are Cassandra's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub enabled: bool,
    /// `None`: as the keystore's existence says.
    pub optional: Option<bool>,
    pub require_client_auth: ClientAuth,
    pub require_endpoint_verification: bool,
    pub keystore: String,
    pub keystore_password: Option<Secret>,
    pub truststore: String,
    pub truststore_password: Option<Secret>,
    pub protocol: Option<String>,
    pub accepted_protocols: Option<Vec<String>>,
    pub cipher_suites: Option<Vec<String>>,
    pub algorithm: Option<String>,
    pub store_type: String,
    pub factory: Factory,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            enabled: false,
            optional: None,
            require_client_auth: ClientAuth::default(),
            require_endpoint_verification: false,
            keystore: KEYSTORE.to_owned(),
            keystore_password: None,
            truststore: TRUSTSTORE.to_owned(),
            truststore_password: None,
            protocol: None,
            accepted_protocols: None,
            cipher_suites: None,
            algorithm: None,
            store_type: "JKS".to_owned(),
            factory: Factory::default(),
        }
    }
}

impl Options {
    /// The policy of the encrypted port. Where nothing says `optional`, a keystore makes a node that is not `enabled` take both
    /// (`EncryptionOptions.applyConfig`).
    pub fn policy(&self, keystore_exists: bool) -> Policy {
        let has_key = self.keystore_file().is_none() || keystore_exists;
        match self.optional.unwrap_or(has_key && !self.enabled) {
            true => Policy::Optional,
            false if self.enabled => Policy::Encrypted,
            false => Policy::Unencrypted,
        }
    }

    /// `None`: the key is in the parameters of the factory.
    pub fn keystore_file(&self) -> Option<&str> {
        match &self.factory {
            Factory::Pem { private_key: Some(_), .. } => None,
            _ => Some(&self.keystore),
        }
    }

    /// `None`: the certificates are in the parameters of the factory.
    pub fn truststore_file(&self) -> Option<&str> {
        match &self.factory {
            Factory::Pem { trusted_certificates: Some(_), .. } => None,
            _ => Some(&self.truststore),
        }
    }

    /// Whether the truststore is read (`SSLFactory.validateSslContext`).
    pub fn verifies_clients(&self) -> bool {
        self.require_client_auth != ClientAuth::NotRequired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves Cassandra's table of `enabled`, `optional` and a keystore that exists.
    #[test]
    fn policies() {
        let policy = |enabled, optional, exists| {
            Options { enabled, optional, ..Options::default() }.policy(exists)
        };
        assert_eq!(policy(false, None, false), Policy::Unencrypted);
        assert_eq!(policy(false, None, true), Policy::Optional);
        assert_eq!(policy(true, None, true), Policy::Encrypted);
        assert_eq!(policy(true, Some(true), true), Policy::Optional);
        assert_eq!(policy(false, Some(true), false), Policy::Optional);
        assert_eq!(policy(false, Some(false), true), Policy::Unencrypted);
    }

    /// Proves that no secret is printed.
    #[test]
    fn secrets_are_not_printed() {
        let secret = Some(Secret("hunter2".to_owned()));
        let factory = Factory::Pem {
            private_key: secret.clone(),
            private_key_password: secret.clone(),
            trusted_certificates: None,
        };
        let options = Options {
            keystore_password: secret.clone(),
            truststore_password: secret,
            factory,
            ..Options::default()
        };
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}
