//! PEM (RFC 7468), as Cassandra's `PEMReader` takes it: one private key in PKCS#8, encrypted or not, and certificates; other text between
//! them is ignored.

use base64ct::{Base64, Encoding};
use pkcs8::EncryptedPrivateKeyInfoRef;
use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::Kdf;
use rustls::pki_types::CertificateDer;

use super::entries::KeyEntry;

/// Rounds of a key derivation. Chosen: a second; `openssl` takes 2,048.
const ROUNDS_MAX: u32 = 1_000_000;

/// The key and its certificates.
pub(crate) fn key(text: &str, password: Option<&str>) -> Result<KeyEntry, String> {
    let sections = sections(text)?;
    let (label, der) = sections
        .iter()
        .find(|(label, _)| label.ends_with("PRIVATE KEY"))
        .ok_or("Invalid private key format: there is no PRIVATE KEY")?;
    let key = match *label {
        "PRIVATE KEY" => der.clone(),
        "ENCRYPTED PRIVATE KEY" => {
            let password =
                password.ok_or("its private key is encrypted, and there is no password")?;
            decrypt(der, password)?
        }
        other => {
            return Err(format!(
                "a key as {other} is not supported; make it PKCS#8 with `openssl pkcs8 -topk8`"
            ));
        }
    };
    let chain = certificates_of(&sections);
    if chain.is_empty() {
        let none = "Could not read any certificates for the certChain for the private key";
        return Err(none.to_owned());
    }
    Ok(KeyEntry::new(key, chain))
}

pub(crate) fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = certificates_of(&sections(text)?);
    if found.is_empty() {
        return Err("Could not read any certificates from the given PEM".to_owned());
    }
    Ok(found)
}

type Section<'t> = (&'t str, Vec<u8>);

fn certificates_of(sections: &[Section<'_>]) -> Vec<CertificateDer<'static>> {
    let is_certificate =
        |(label, _): &&Section<'_>| matches!(*label, "CERTIFICATE" | "X509 CERTIFICATE");
    sections
        .iter()
        .filter(is_certificate)
        .map(|(_, der)| CertificateDer::from(der.clone()))
        .collect()
}

/// Labels and contents. The markers may stand within a line: a folded scalar of YAML joins lines.
fn sections(text: &str) -> Result<Vec<Section<'_>>, String> {
    const BEGIN: &str = "-----BEGIN ";
    const DASHES: &str = "-----";
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(BEGIN) {
        let (label, after) = after.split_once(DASHES).ok_or("a BEGIN line has no end")?;
        let end = format!("-----END {label}-----");
        let (body, after) =
            after.split_once(end.as_str()).ok_or_else(|| format!("BEGIN {label} has no END"))?;
        let body: String = body.split_ascii_whitespace().collect();
        let der = Base64::decode_vec(&body);
        found.push((label, der.map_err(|e| format!("{label} is not base64: {e}"))?));
        rest = after;
    }
    Ok(found)
}

fn decrypt(der: &[u8], password: &str) -> Result<Vec<u8>, String> {
    let cure = "make it PBES2 with `openssl pkcs8 -topk8 -v2 aes-256-cbc`";
    let sealed = EncryptedPrivateKeyInfoRef::try_from(der).map_err(|e| {
        format!("its private key has an encryption that is not supported ({e}); {cure}")
    })?;
    let rounds = match &sealed.encryption_algorithm {
        EncryptionScheme::Pbes2(scheme) => match &scheme.kdf {
            Kdf::Pbkdf2(kdf) => Some(kdf.iteration_count),
            _ => None,
        },
        _ => None,
    };
    match rounds {
        Some(rounds) if rounds <= ROUNDS_MAX => {}
        Some(rounds) => {
            return Err(format!("its private key takes {rounds} rounds, more than {ROUNDS_MAX}"));
        }
        None => {
            return Err(format!("its private key has an encryption that is not supported; {cure}"));
        }
    }
    let opened =
        sealed.decrypt(password).map_err(|_| "the password of its private key is incorrect")?;
    Ok(opened.as_bytes().to_vec())
}
