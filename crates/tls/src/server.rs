//! From options and the bytes of the stores to what a server needs.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{default_provider, sign::any_supported_type};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, NoClientAuth, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::error::{Error, Result};
use crate::options::{ClientAuth, Factory, Options, Secret};
use crate::store::{self, KeyEntry, Wanted, pem};
use crate::{names, trust};

/// The bytes of the files that [`Options::keystore_file`] and [`Options::truststore_file`] name, where they are needed.
#[derive(Default)]
pub struct Stores {
    pub keystore: Option<Vec<u8>>,
    pub truststore: Option<Vec<u8>>,
}

/// What new sessions are made of; clones are the same.
#[derive(Clone)]
pub struct Server {
    pub(crate) config: Arc<rustls::ServerConfig>,
    /// Whether a client's certificate must name the address from which it connects.
    pub(crate) verifies_endpoints: bool,
}

/// A server, and what the log says of it.
pub struct Built {
    pub server: Server,
    pub protocols: Vec<&'static str>,
    pub cipher_suites: Vec<&'static str>,
    pub warnings: Vec<String>,
}

const KEYS: &str = "failed to build key manager store for secure connections";
const TRUST: &str = "failed to build trust manager store for secure connections";

impl Server {
    /// `now`, in seconds since 1970, is for the warning about expired certificates.
    pub fn build(options: &Options, stores: &Stores, now: u64) -> Result<Built> {
        check(options)?;
        let protocols = names::protocols(options)?;
        let suites = names::cipher_suites(options)?;
        let mut warnings = [protocols.warnings, suites.warnings].concat();
        let keys = keys(options, stores)?;
        warnings.extend(keys.iter().filter_map(|entry| expired(entry.chain.first()?, now)));
        let place = |what: String| {
            let setting = match options.keystore_file() {
                Some(_) => "keystore",
                None => "ssl_context_factory",
            };
            file_error(setting, options.keystore_file(), KEYS, &what)
        };
        let provider = CryptoProvider { cipher_suites: suites.values, ..default_provider() };
        let resolver = resolver(keys).map_err(place)?;
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&protocols.values)
            .map_err(|_| {
                let what = "no suite of it is of an enabled protocol";
                Error::setting("cipher_suites", what, "add one, or enable another protocol")
            })?
            .with_client_cert_verifier(verifier(options, stores)?)
            .with_cert_resolver(Arc::new(resolver));
        // As Java's: the order of `cipher_suites` is the node's preference.
        config.ignore_client_order = true;
        Ok(Built {
            server: Server {
                config: Arc::new(config),
                verifies_endpoints: options.require_endpoint_verification,
            },
            protocols: protocols.names,
            cipher_suites: suites.names,
            warnings,
        })
    }
}

/// Refuses values that no server of TLS could obey.
fn check(options: &Options) -> Result<()> {
    if let Some(algorithm) = &options.algorithm
        && !["SunX509", "PKIX"].iter().any(|known| known.eq_ignore_ascii_case(algorithm))
    {
        let what = format!("{algorithm} is not supported");
        return Err(Error::setting("algorithm", what, "remove it, or set it to SunX509 or PKIX"));
    }
    let is_pem = matches!(options.factory, Factory::Pem { .. });
    if !is_pem && !["JKS", "PKCS12"].iter().any(|k| k.eq_ignore_ascii_case(&options.store_type)) {
        let what = format!("{} is not supported", options.store_type);
        let cure =
            "set it to JKS or PKCS12 (`keytool -importkeystore -deststoretype PKCS12` converts)";
        return Err(Error::setting("store_type", what, cure));
    }
    if options.optional == Some(true) && options.require_client_auth == ClientAuth::Required {
        let what =
            "clients without TLS would need no certificate, although require_client_auth is true";
        return Err(Error::setting("optional", what, "set one of the two to false"));
    }
    Ok(())
}

fn file_error(setting: &str, file: Option<&str>, failed: &str, what: &str) -> Error {
    let cure = match setting {
        "truststore" => "correct truststore and truststore_password",
        "keystore" => "correct keystore and keystore_password",
        _ => "correct its parameters",
    };
    Error::Store {
        setting: format!("client_encryption_options.{setting}"),
        file: file.unwrap_or("parameters").to_owned(),
        what: format!("{failed}: {what}"),
        cure: cure.to_owned(),
    }
}

fn password(secret: Option<&Secret>) -> Option<&str> {
    secret.map(|secret| secret.0.as_str())
}

/// The text of a file of PEM, or of a parameter.
fn text<'t>(inline: Option<&'t str>, bytes: Option<&'t [u8]>) -> Result<&'t str, String> {
    match (inline, bytes) {
        (Some(text), _) => Ok(text),
        (None, Some(bytes)) => std::str::from_utf8(bytes).map_err(|_| "it is not PEM".to_owned()),
        (None, None) => Err("it does not exist".to_owned()),
    }
}

/// The keys that a server can show, at least one.
fn keys(options: &Options, stores: &Stores) -> Result<Vec<KeyEntry>> {
    let file = options.keystore_file();
    let bytes = stores.keystore.as_deref();
    if let Factory::Pem { private_key, private_key_password, .. } = &options.factory {
        let (own, of_file) = (private_key_password.as_ref(), options.keystore_password.as_ref());
        if own.is_some_and(|own| of_file.is_some_and(|of_file| own != of_file)) {
            let what = "'keystore_password' and 'key_password' both configurations are given and the values do not match";
            return Err(Error::setting("private_key_password", what, "remove one of them"));
        }
        let setting = if file.is_some() { "keystore" } else { "ssl_context_factory" };
        let key = text(private_key.as_ref().map(|key| key.0.as_str()), bytes)
            .and_then(|text| pem::key(text, password(own.or(of_file))));
        return Ok(vec![key.map_err(|what| file_error(setting, file, KEYS, &what))?]);
    }
    let place = |what: String| file_error("keystore", file, KEYS, &what);
    let Some(password) = password(options.keystore_password.as_ref()) else {
        let what = "'keystore_password' must be specified";
        return Err(Error::setting("keystore_password", what, "set it to the keystore's password"));
    };
    let bytes = bytes.ok_or_else(|| place("it does not exist".to_owned()))?;
    let mut keys = store::read(bytes, Some(password), Wanted::Keys).map_err(place)?.keys;
    keys.retain(|entry| !entry.chain.is_empty());
    match keys.is_empty() {
        true => Err(place("it holds no private key with a certificate".to_owned())),
        false => Ok(keys),
    }
}

/// The certificates that clients' certificates are trusted by.
fn trusted(options: &Options, stores: &Stores) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = stores.truststore.as_deref();
    let found = match &options.factory {
        Factory::Pem { trusted_certificates, .. } => {
            pem::certificates(text(trusted_certificates.as_deref(), bytes)?)?
        }
        Factory::Stores => {
            let bytes = bytes.ok_or("it does not exist")?;
            let password = password(options.truststore_password.as_ref());
            store::read(bytes, password, Wanted::Certificates)?.into_trusted()
        }
    };
    match found.is_empty() {
        true => Err("the trustAnchors parameter must be non-empty".to_owned()),
        false => Ok(found),
    }
}

fn verifier(options: &Options, stores: &Stores) -> Result<Arc<dyn ClientCertVerifier>> {
    if !options.verifies_clients() {
        return Ok(Arc::new(NoClientAuth));
    }
    let optional = options.require_client_auth == ClientAuth::Optional;
    let verifier =
        trusted(options, stores).and_then(|trusted| trust::of_clients(trusted, optional));
    let file = options.truststore_file();
    let setting = if file.is_some() { "truststore" } else { "ssl_context_factory" };
    verifier.map_err(|what| file_error(setting, file, TRUST, &what))
}

/// The warning of an expired certificate (`FileBasedSslContextFactory.checkExpiredCerts`).
fn expired(certificate: &CertificateDer<'_>, now: u64) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let until = certificate.validity().not_after;
    let is_past = until.timestamp() < i64::try_from(now).ok()?;
    is_past.then(|| format!("Certificate for {} expired on {until}", certificate.subject()))
}

/// Shows the first key whose algorithm the client knows, as Java's key manager.
#[derive(Debug)]
struct Resolver(Vec<Arc<CertifiedKey>>);

fn resolver(entries: Vec<KeyEntry>) -> Result<Resolver, String> {
    let mut keys = Vec::new();
    for KeyEntry { key, chain } in entries {
        let key = any_supported_type(&PrivateKeyDer::Pkcs8(key))
            .map_err(|_| "its private key is neither RSA, ECDSA (P-256, P-384) nor Ed25519")?;
        let key = CertifiedKey::new(chain, key);
        key.keys_match().map_err(|_| "its private key is not the one of its certificate")?;
        keys.push(Arc::new(key));
    }
    Ok(Resolver(keys))
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let schemes = hello.signature_schemes();
        let fits = self.0.iter().find(|key| key.key.choose_scheme(schemes).is_some());
        // Of a client without a scheme or suite for any key rustls then says handshake_failure, as Java does; without a key it would say
        // access_denied.
        fits.or(self.0.first()).cloned()
    }
}
