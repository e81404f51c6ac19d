//! Private keys of elliptic curves as the JDK writes them: without the public key, which ring asks for. The certificate has it.

use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::der::{content, value};

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const BITS: u8 = 0x03;
const PUBLIC_KEY: u8 = 0xa1;
/// 1.2.840.10045.2.1, a key of an elliptic curve.
const EC: [u8; 9] = [0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// The curves of ring, and the bytes of a private key: P-256 and P-384.
const CURVES: [(&[u8], usize); 2] = [
    (&[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], 32),
    (&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22], 48),
];

/// The key with the public key of its certificate, if it is of a curve; any other as it is.
pub(super) fn complete(
    key: PrivatePkcs8KeyDer<'static>,
    certificate: Option<&CertificateDer<'_>>,
) -> PrivatePkcs8KeyDer<'static> {
    certificate
        .and_then(|certificate| completed(key.secret_pkcs8_der(), certificate))
        .map_or(key, PrivatePkcs8KeyDer::from)
}

/// ```text
/// SEQUENCE { 0, SEQUENCE { EC, curve }, OCTET STRING { SEQUENCE { 1, OCTET STRING private key, [1] { BIT STRING public key } } } }
/// ```
fn completed(key: &[u8], certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let (info, _) = content(key, SEQUENCE)?;
    let (_, rest) = content(info, INTEGER)?;
    let (algorithm, rest) = content(rest, SEQUENCE)?;
    let curve = algorithm.strip_prefix(&EC)?;
    let (_, length) = CURVES.iter().find(|(known, _)| *known == curve)?;
    let (sealed, _) = content(rest, OCTETS)?;
    let (fields, _) = content(sealed, SEQUENCE)?;
    let (_, fields) = content(fields, INTEGER)?;
    let (number, _) = content(fields, OCTETS)?;
    let number = padded(number, *length)?;
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let point = certificate.public_key().subject_public_key.data.as_ref();
    let public = value(PUBLIC_KEY, &[&value(BITS, &[&[0], point])]);
    let private = value(SEQUENCE, &[&value(INTEGER, &[&[1]]), &value(OCTETS, &[&number]), &public]);
    let algorithm = value(SEQUENCE, &[algorithm]);
    Some(value(SEQUENCE, &[&value(INTEGER, &[&[0]]), &algorithm, &value(OCTETS, &[&private])]))
}

/// A number with as many bytes as the curve's keys have.
fn padded(number: &[u8], length: usize) -> Option<Vec<u8>> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let digits = number.get(zeros..)?;
    let missing = length.checked_sub(digits.len())?;
    Some([&vec![0; missing], digits].concat())
}
