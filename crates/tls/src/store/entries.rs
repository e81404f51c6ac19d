//! What stores hold.

use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use super::ec;

/// A private key, and its certificate followed by those of its authorities.
pub(crate) struct KeyEntry {
    pub(crate) key: PrivatePkcs8KeyDer<'static>,
    pub(crate) chain: Vec<CertificateDer<'static>>,
}

impl KeyEntry {
    pub(super) fn new(key: Vec<u8>, chain: Vec<CertificateDer<'static>>) -> KeyEntry {
        let key = ec::complete(PrivatePkcs8KeyDer::from(key), chain.first());
        KeyEntry { key, chain }
    }
}

/// What a store holds, in the order of aliases.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) keys: Vec<KeyEntry>,
    pub(crate) trusted: Vec<CertificateDer<'static>>,
}

impl Store {
    /// Certificates that are trusted if this is a truststore: the trusted ones, and those of its keys
    /// (`sun.security.util.TrustStoreUtil`).
    pub(crate) fn into_trusted(self) -> Vec<CertificateDer<'static>> {
        let of_keys = self.keys.into_iter().filter_map(|entry| entry.chain.into_iter().next());
        self.trusted.into_iter().chain(of_keys).collect()
    }
}

/// Whether keys are wanted, which costs a derivation each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Keys,
    Certificates,
}
