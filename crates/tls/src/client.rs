//! The client's side, for the programs of this project that ask a server.

use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::{PrivateKeyDer, ServerName};

use crate::error::{Error, Result};
use crate::options::Secret;
use crate::store::{self, Store, Wanted, pem};
use crate::trust;

/// The bytes of a client's stores, in PEM or one of Java's formats, and where they come from for errors.
#[derive(Debug, Default)]
pub struct ClientOptions {
    /// Certificates that the server's is trusted by.
    pub trust: (String, Vec<u8>),
    pub trust_password: Option<Secret>,
    /// The client's own key and certificate.
    pub key: Option<(String, Vec<u8>)>,
    pub key_password: Option<Secret>,
    /// Whether the server's certificate must name the host that is connected to.
    pub verifies_name: bool,
}

/// What new sessions are made of; clones are the same.
#[derive(Debug, Clone)]
pub struct Client(pub(crate) Arc<rustls::ClientConfig>);

impl Client {
    /// For sessions that another library drives.
    pub fn config(&self) -> Arc<rustls::ClientConfig> {
        self.0.clone()
    }

    pub fn build(options: ClientOptions) -> Result<Client> {
        let place = |what: &str, file: &str, why: String| Error::Store {
            setting: what.to_owned(),
            file: file.to_owned(),
            what: why,
            cure: "give another file, or its password".to_owned(),
        };
        let (file, bytes) = &options.trust;
        let verifier = trusted(bytes, options.trust_password.as_ref())
            .and_then(|trusted| trust::of_servers(trusted, options.verifies_name))
            .map_err(|e| place("truststore", file, e))?;
        let wrong = |e: rustls::Error| place("TLS", "", e.to_string());
        let builder = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match &options.key {
            None => builder.with_no_client_auth(),
            Some((file, bytes)) => {
                let entry = key(bytes, &options).map_err(|e| place("keystore", file, e))?;
                builder
                    .with_client_auth_cert(entry.chain, PrivateKeyDer::Pkcs8(entry.key))
                    .map_err(|e| place("keystore", file, e.to_string()))?
            }
        };
        Ok(Client(Arc::new(config)))
    }
}

/// PEM, or a store of Java.
fn is_pem(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| text.contains("-----BEGIN "))
}

fn trusted(
    bytes: &[u8],
    password: Option<&Secret>,
) -> Result<Vec<rustls::pki_types::CertificateDer<'static>>, String> {
    let found = match is_pem(bytes) {
        Some(text) => pem::certificates(text)?,
        None => {
            let password = password.map(|password| password.0.as_str());
            store::read(bytes, password, Wanted::Certificates)?.into_trusted()
        }
    };
    if found.is_empty() { Err("it holds no certificate".to_owned()) } else { Ok(found) }
}

fn key(bytes: &[u8], options: &ClientOptions) -> Result<store::KeyEntry, String> {
    let password = options.key_password.as_ref().map(|password| password.0.as_str());
    if let Some(text) = is_pem(bytes) {
        return pem::key(text, password);
    }
    let Store { keys, .. } = store::read(bytes, Some(password.unwrap_or_default()), Wanted::Keys)?;
    keys.into_iter().next().ok_or_else(|| "it holds no private key".to_owned())
}

/// The name that a server's certificate must have.
pub fn server_name(host: &str) -> Result<ServerName<'static>, rustls::Error> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(bare.to_owned())
        .map_err(|_| rustls::Error::General(format!("`{host}` is not the name of a host")))
}
