//! Trust, as Java's trust manager has it: a certificate is trusted by a path to one of the truststore, or because it is one of them.
//!
//! webpki knows paths only, and none for a self-signed certificate that is an authority, which `openssl req -x509` makes. A certificate
//! that is in the truststore itself needs no path; its dates are checked, which Java leaves out.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The certificates of a truststore.
#[derive(Debug)]
struct Trusted(Vec<CertificateDer<'static>>);

impl Trusted {
    /// Whether the certificate is one of them, and valid now.
    fn has(&self, certificate: &CertificateDer<'_>, now: UnixTime) -> Result<bool, Error> {
        if !self.0.iter().any(|trusted| trusted == certificate) {
            return Ok(false);
        }
        let bad = || Error::from(CertificateError::BadEncoding);
        let (_, certificate) = X509Certificate::from_der(certificate).map_err(|_| bad())?;
        let now = i64::try_from(now.as_secs()).map_err(|_| bad())?;
        let validity = certificate.validity();
        if now < validity.not_before.timestamp() {
            return Err(CertificateError::NotValidYet.into());
        }
        if now > validity.not_after.timestamp() {
            return Err(CertificateError::Expired.into());
        }
        Ok(true)
    }
}

/// The anchors of paths. Certificates that cannot be anchors are left out, and counted.
fn anchors(trusted: &[CertificateDer<'static>]) -> (Arc<RootCertStore>, usize) {
    let mut store = RootCertStore::empty();
    let (_, ignored) = store.add_parsable_certificates(trusted.iter().cloned());
    (Arc::new(store), ignored)
}

#[derive(Debug)]
struct Clients {
    trusted: Trusted,
    paths: Arc<dyn ClientCertVerifier>,
}

/// Verifies clients. An error says why the certificates are unusable.
pub(crate) fn of_clients(
    trusted: Vec<CertificateDer<'static>>,
    optional: bool,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let (roots, ignored) = anchors(&trusted);
    if ignored > 0 {
        return Err(format!("{ignored} of its certificates cannot be read"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut paths = WebPkiClientVerifier::builder_with_provider(roots, provider);
    if optional {
        paths = paths.allow_unauthenticated();
    }
    let paths = paths.build().map_err(|e| e.to_string())?;
    Ok(Arc::new(Clients { trusted: Trusted(trusted), paths }))
}

impl ClientCertVerifier for Clients {
    fn offer_client_auth(&self) -> bool {
        self.paths.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.paths.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.paths.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.trusted.has(leaf, now)? {
            true => Ok(ClientCertVerified::assertion()),
            false => self.paths.verify_client_cert(leaf, between, now),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.paths.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.paths.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.paths.supported_verify_schemes()
    }
}

#[derive(Debug)]
struct Servers {
    trusted: Trusted,
    paths: Arc<WebPkiServerVerifier>,
    verifies_name: bool,
}

/// Verifies a server, and whether its certificate names the host that was meant.
pub(crate) fn of_servers(
    trusted: Vec<CertificateDer<'static>>,
    verifies_name: bool,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let (roots, _) = anchors(&trusted);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let paths = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
    let paths = paths.map_err(|e| e.to_string())?;
    Ok(Arc::new(Servers { trusted: Trusted(trusted), paths, verifies_name }))
}

impl ServerCertVerifier for Servers {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.trusted.has(leaf, now)? {
            if self.verifies_name {
                let parsed = rustls::server::ParsedCertificate::try_from(leaf)?;
                rustls::client::verify_server_name(&parsed, name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        match self.paths.verify_server_cert(leaf, between, name, stapled, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.verifies_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.paths.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.paths.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.paths.supported_verify_schemes()
    }
}
