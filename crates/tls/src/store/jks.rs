//! The JKS format of the JDK (`sun.security.provider.JavaKeyStore`): numbers are big-endian.
//!
//! ```text
//!  store  FEEDFEED  version:u32 (1, 2)  count:u32  entry…  SHA-1(password, "Mighty Aphrodite", all before)
//!  entry  1:u32  alias  date:u64  key   chain:u32  certificate…     a private key
//!         2:u32  alias  date:u64  certificate                       a trusted certificate
//!  alias  length:u16  bytes                certificate  (version 2: type as an alias)  length:u32  DER
//!  key    length:u32  SEQUENCE { algorithm, OCTET STRING { salt:20, key xor stream, check:20 } }
//! ```
//! The stream's blocks of 20 bytes are SHA-1(password, block before), the first one's SHA-1(password, salt); the check is
//! SHA-1(password, key). A password counts as UTF-16.

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use rustls::pki_types::CertificateDer;

use super::der::content;
use super::entries::{KeyEntry, Store, Wanted};

const DIGEST: usize = 20;
/// 1.3.6.1.4.1.42.2.17.1.1, the JDK's protection of keys.
const PROTECTION: [u8; 12] =
    [0x06, 0x0a, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x2a, 0x02, 0x11, 0x01, 0x01];

pub(super) fn read(bytes: &[u8], password: Option<&str>, wanted: Wanted) -> Result<Store, String> {
    let (content, digest) =
        bytes.split_last_chunk::<DIGEST>().ok_or_else(|| cut_short("digest"))?;
    let password = password.map(utf16);
    if let Some(password) = &password
        && sha1(&[password, b"Mighty Aphrodite", content]) != *digest
    {
        return Err("Keystore was tampered with, or password was incorrect".to_owned());
    }
    let mut input = Input(content);
    let (_, version) = (input.number("magic")?, input.number("version")?);
    if !(1..=2).contains(&version) {
        return Err(format!("Invalid keystore format: version {version}"));
    }
    let count = input.number("count")?;
    let mut store = Store::default();
    // No memory is reserved for the count: each entry takes bytes of the file.
    for _ in 0..count {
        let kind = input.number("entry")?;
        input.text("alias")?;
        input.take(8, "date")?;
        match kind {
            1 => {
                let key = input.block("private key")?;
                let mut chain = Vec::new();
                for _ in 0..input.number("chain")? {
                    chain.extend(certificate(&mut input, version)?);
                }
                // The leaf of a key that is not wanted is kept: a truststore trusts it.
                let key = match (&password, wanted) {
                    (Some(password), Wanted::Keys) => unprotect(key, password)?,
                    _ => Vec::new(),
                };
                store.keys.push(KeyEntry::new(key, chain));
            }
            2 => store.trusted.extend(certificate(&mut input, version)?),
            other => return Err(format!("Invalid keystore format: entry of kind {other}")),
        }
    }
    match input.0 {
        [] => Ok(store),
        _ => Err("Invalid keystore format: bytes follow the last entry".to_owned()),
    }
}

/// `None`: a certificate of another kind than X.509.
fn certificate(
    input: &mut Input<'_>,
    version: u32,
) -> Result<Option<CertificateDer<'static>>, String> {
    let is_x509 = version == 1 || matches!(input.text("certificate type")?, b"X.509" | b"X509");
    let der = input.block("certificate")?;
    Ok(is_x509.then(|| CertificateDer::from(der.to_vec())))
}

fn unprotect(key: &[u8], password: &[u8]) -> Result<Vec<u8>, String> {
    let malformed = || "a private key is not protected as the JDK does it".to_owned();
    let (info, _) = content(key, 0x30).ok_or_else(malformed)?;
    let (algorithm, rest) = content(info, 0x30).ok_or_else(malformed)?;
    if !algorithm.starts_with(&PROTECTION) {
        return Err(malformed());
    }
    let (sealed, _) = content(rest, 0x04).ok_or_else(malformed)?;
    let (salt, sealed) = sealed.split_first_chunk::<DIGEST>().ok_or_else(malformed)?;
    let (sealed, check) = sealed.split_last_chunk::<DIGEST>().ok_or_else(malformed)?;
    let mut key = sealed.to_vec();
    let mut block = *salt;
    for part in key.chunks_mut(DIGEST) {
        block = sha1(&[password, &block]);
        part.iter_mut().zip(block).for_each(|(byte, mask)| *byte ^= mask);
    }
    if sha1(&[password, &key]) != *check {
        return Err("Cannot recover key: its password is another one than the store's".to_owned());
    }
    Ok(key)
}

fn utf16(password: &str) -> Vec<u8> {
    password.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

fn sha1(parts: &[&[u8]]) -> [u8; DIGEST] {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    parts.iter().for_each(|part| context.update(part));
    let digest = context.finish();
    digest.as_ref().first_chunk().copied().unwrap_or_default()
}

fn cut_short(what: &str) -> String {
    format!("Invalid keystore format: it ends before its {what}")
}

/// The unread bytes.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize, what: &str) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(|| cut_short(what))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, what: &str) -> Result<u32, String> {
        let bytes = self.take(4, what)?.first_chunk().copied().unwrap_or_default();
        Ok(u32::from_be_bytes(bytes))
    }

    fn block(&mut self, what: &str) -> Result<&'a [u8], String> {
        let length = usize::try_from(self.number(what)?).map_err(|_| cut_short(what))?;
        self.take(length, what)
    }

    fn text(&mut self, what: &str) -> Result<&'a [u8], String> {
        let length = self.take(2, what)?.first_chunk().copied().unwrap_or_default();
        self.take(usize::from(u16::from_be_bytes(length)), what)
    }
}
