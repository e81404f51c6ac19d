//! The PKCS12 format, old (3DES and RC2, before JDK 17) and new (AES), read by a library that bounds the work of its derivations.

use p12_keystore::{KeyStore, KeyStoreEntry, Pkcs12ImportPolicy};
use rustls::pki_types::CertificateDer;

use super::entries::{KeyEntry, Store};

pub(super) fn read(bytes: &[u8], password: &str) -> Result<Store, String> {
    // Strict: as Java, certificates are trusted that are marked so.
    let entries = KeyStore::from_pkcs12(bytes, password, Pkcs12ImportPolicy::Strict);
    let entries = entries.map_err(|e| reason(&e))?;
    let der = |certificate: &p12_keystore::Certificate| {
        CertificateDer::from(certificate.as_der().to_vec())
    };
    let mut store = Store::default();
    for (_, entry) in entries.entries() {
        match entry {
            KeyStoreEntry::PrivateKeyChain(entry) => {
                let chain = entry.certs().iter().map(der).collect();
                store.keys.push(KeyEntry::new(entry.key().as_der().to_vec(), chain));
            }
            KeyStoreEntry::Certificate(certificate) => store.trusted.push(der(certificate)),
            KeyStoreEntry::Secret(_) => {}
        }
    }
    Ok(store)
}

fn reason(error: &p12_keystore::error::Error) -> String {
    use p12_keystore::error::Error::{MacError, Pkcs5Error, UnpadError};
    match error {
        MacError(_) | Pkcs5Error(_) | UnpadError => "keystore password was incorrect".to_owned(),
        other => format!("it cannot be read as PKCS12: {other}"),
    }
}
