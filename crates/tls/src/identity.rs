//! The identities in a client's certificate, for authenticators that take a certificate for a login.

use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

const SPIFFE: &str = "spiffe://";

/// The first name of the certificate's SAN that is a SPIFFE URI (`SpiffeCertificateValidator`); the error is Cassandra's text.
pub fn spiffe(certificate: &[u8]) -> Result<String, &'static str> {
    const NONE: &str = "Unable to extract Spiffe from the certificate";
    let (_, certificate) = X509Certificate::from_der(certificate).map_err(|_| NONE)?;
    let names = certificate.subject_alternative_name().map_err(|_| NONE)?.ok_or(NONE)?;
    let uris = names.value.general_names.iter().filter_map(|name| match name {
        GeneralName::URI(uri) => Some(*uri),
        _ => None,
    });
    uris.into_iter().find(|uri| uri.starts_with(SPIFFE)).map(str::to_owned).ok_or(NONE)
}

/// The last CN of the subject, which is the most specific one; `None`: it has none, or one that is not a text.
pub fn common_name(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let last = certificate.subject().iter_common_name().last()?;
    last.as_str().ok().map(str::to_owned)
}

/// The subject, for logs; `None`: the bytes are not a certificate.
pub fn subject(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(certificate.subject().to_string())
}
