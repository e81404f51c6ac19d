//! Protocols and cipher suites by their names in Java.

use rustls::crypto::ring::cipher_suite as ring;
use rustls::{CipherSuite, ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion};

use crate::error::{Error, Result};
use crate::options::Options;

/// All suites of rustls with ring: forward secret, with authenticated encryption.
const SUITES: [(&str, SupportedCipherSuite); 9] = [
    ("TLS_AES_256_GCM_SHA384", ring::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", ring::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", ring::TLS13_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", ring::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", ring::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        ring::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", ring::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", ring::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    (
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        ring::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

const VERSIONS: [(&str, &SupportedProtocolVersion); 2] =
    [("TLSv1.3", &rustls::version::TLS13), ("TLSv1.2", &rustls::version::TLS12)];

/// What was chosen of a list, and what was not.
pub(crate) struct Chosen<T> {
    pub(crate) names: Vec<&'static str>,
    pub(crate) values: Vec<T>,
    pub(crate) warnings: Vec<String>,
}

impl<T: Copy> Chosen<T> {
    fn all(table: &[(&'static str, T)]) -> Chosen<T> {
        let (names, values) = table.iter().copied().unzip();
        Chosen { names, values, warnings: Vec::new() }
    }

    fn of(
        wanted: &[String],
        table: &[(&'static str, T)],
        warn: impl Fn(&str) -> String,
    ) -> Chosen<T> {
        let mut chosen = Chosen { names: Vec::new(), values: Vec::new(), warnings: Vec::new() };
        for name in wanted {
            match table.iter().find(|(known, _)| known == name) {
                Some((known, _)) if chosen.names.contains(known) => {}
                Some((known, value)) => {
                    chosen.names.push(known);
                    chosen.values.push(*value);
                }
                None => chosen.warnings.push(warn(name)),
            }
        }
        chosen
    }
}

/// The enabled protocols (`AbstractSslContextFactory.getAcceptedProtocols`): a `protocol` other than TLS is one more.
pub(crate) fn protocols(options: &Options) -> Result<Chosen<&'static SupportedProtocolVersion>> {
    let named = options.protocol.as_ref().filter(|name| !name.eq_ignore_ascii_case("TLS"));
    let mut wanted = options.accepted_protocols.clone().unwrap_or_default();
    if let Some(named) = named
        && !wanted.iter().any(|name| name.eq_ignore_ascii_case(named))
    {
        wanted.push(named.clone());
    }
    if options.accepted_protocols.is_none() && named.is_none() {
        return Ok(Chosen::all(&VERSIONS));
    }
    let setting =
        if options.accepted_protocols.is_some() { "accepted_protocols" } else { "protocol" };
    let cure = "set it to TLSv1.2, TLSv1.3, or both";
    let known = ["TLS", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3", "SSLv2Hello", "SSLv3", "SSL"];
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Error::setting(setting, format!("there is no protocol {unknown}"), cure));
    }
    // In a list, TLS has no meaning of its own in Java either.
    let chosen = Chosen::of(&wanted, &VERSIONS, |name| {
        format!(
            "{name} of client_encryption_options is not offered: Halcyon has TLSv1.2 and TLSv1.3"
        )
    });
    if chosen.values.is_empty() {
        let what = format!("{} is obsolete (RFC 8996) and not supported", wanted.join(", "));
        return Err(Error::setting(setting, what, cure));
    }
    Ok(chosen)
}

/// The enabled suites. As in Cassandra, others are dropped with a warning while one is left (`LoggingCipherSuiteFilter`).
pub(crate) fn cipher_suites(options: &Options) -> Result<Chosen<SupportedCipherSuite>> {
    let Some(wanted) = &options.cipher_suites else { return Ok(Chosen::all(&SUITES)) };
    let chosen = Chosen::of(wanted, &SUITES, |name| {
        format!(
            "Dropping unsupported cipher_suite {name} from client_encryption_options configuration: it {}",
            flaw(name)
        )
    });
    if chosen.values.is_empty() {
        let wanted: Vec<String> =
            wanted.iter().map(|name| format!("{name} {}", flaw(name))).collect();
        let what = format!(
            "No ciphers left after filtering supported cipher suite: {}",
            wanted.join(", ")
        );
        let known: Vec<&str> = SUITES.iter().map(|(name, _)| *name).collect();
        let cure = format!("remove the setting, or choose of {}", known.join(", "));
        return Err(Error::setting("cipher_suites", what, &cure));
    }
    Ok(chosen)
}

/// Why a suite is not supported.
fn flaw(name: &str) -> &'static str {
    if !name.starts_with("TLS_") && !name.starts_with("SSL_") {
        "is unknown"
    } else if name.contains("_CBC_") {
        "encrypts in CBC mode"
    } else if name.starts_with("TLS_RSA_") || name.starts_with("SSL_RSA_") {
        "has no forward secrecy"
    } else {
        "is not supported"
    }
}

/// As `system_views.clients` shows it.
pub(crate) fn protocol_name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        _ => "unknown",
    }
}

pub(crate) fn suite_name(suite: CipherSuite) -> &'static str {
    let found = SUITES.iter().find(|(_, supported)| supported.suite() == suite);
    found.map_or("unknown", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(options: impl FnOnce(&mut Options)) -> Options {
        let mut all = Options::default();
        options(&mut all);
        all
    }

    fn list(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Proves which protocols are enabled, and that old and unknown ones are refused by name.
    #[test]
    fn protocols_by_name() {
        let names = |options: &Options| protocols(options).map(|chosen| chosen.names);
        assert_eq!(names(&Options::default()), Ok(vec!["TLSv1.3", "TLSv1.2"]));
        assert_eq!(names(&with(|o| o.protocol = Some("tls".into()))).unwrap().len(), 2);
        assert_eq!(names(&with(|o| o.protocol = Some("TLSv1.2".into()))), Ok(vec!["TLSv1.2"]));
        let both = with(|o| {
            o.protocol = Some("TLSv1.3".into());
            o.accepted_protocols = list(&["TLSv1.2", "TLSv1.1"]);
        });
        let chosen = protocols(&both).unwrap();
        assert_eq!((chosen.names, chosen.warnings.len()), (vec!["TLSv1.2", "TLSv1.3"], 1));
        for (options, named) in [
            (with(|o| o.protocol = Some("TLSv1.1".into())), "protocol: TLSv1.1 is obsolete"),
            (with(|o| o.accepted_protocols = list(&["TLSv1", "SSLv3"])), "TLSv1, SSLv3"),
            (with(|o| o.accepted_protocols = list(&["TLSv1.4"])), "no protocol TLSv1.4"),
            (with(|o| o.accepted_protocols = list(&[])), "accepted_protocols"),
        ] {
            let refused = names(&options).unwrap_err().to_string();
            assert!(refused.contains(named), "{refused}");
        }
    }

    /// Proves that suites without forward secrecy, in CBC mode and unknown ones are dropped by name, and refused where none is left.
    #[test]
    fn suites_by_name() {
        let weak = ["TLS_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "X"];
        let refused = cipher_suites(&with(|o| o.cipher_suites = list(&weak)));
        let refused = refused.err().unwrap().to_string();
        for part in ["no forward secrecy", "CBC mode", "X is unknown", "No ciphers left"] {
            assert!(refused.contains(part), "{refused}");
        }
        let mixed = [weak[0], "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"];
        let chosen = cipher_suites(&with(|o| o.cipher_suites = list(&mixed))).unwrap();
        assert_eq!((chosen.names, chosen.warnings.len()), (vec![mixed[1]], 1));
        assert_eq!(cipher_suites(&Options::default()).unwrap().values.len(), SUITES.len());
    }
}
