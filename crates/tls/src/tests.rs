//! Tests over stores that keytool made (`testdata/make.sh`), and of whole sessions.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::store;
use crate::{
    Client, ClientAuth, ClientOptions, Factory, Failure, Options, Secret, Server, Session, Stores,
    identity,
};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const NODE_JKS: &[u8] = include_bytes!("../testdata/node.jks");
const NODE_P12: &[u8] = include_bytes!("../testdata/node.p12");
const LEGACY_P12: &[u8] = include_bytes!("../testdata/legacy.p12");
const KEYPASS_JKS: &[u8] = include_bytes!("../testdata/keypass.jks");
const TRUST_JKS: &[u8] = include_bytes!("../testdata/trust.jks");
const TRUST_P12: &[u8] = include_bytes!("../testdata/trust.p12");
const NODE_PEM: &str = include_str!("../testdata/node.pem");
const ENCRYPTED_PEM: &str = include_str!("../testdata/encrypted.pem");
const STRANGER_PEM: &str = include_str!("../testdata/stranger.pem");
const CA_PEM: &str = include_str!("../testdata/ca.pem");

fn secret(text: &str) -> Option<Secret> {
    Some(Secret(text.to_owned()))
}

fn options() -> Options {
    Options {
        enabled: true,
        keystore_password: secret("cassandra"),
        truststore_password: secret("cassandra"),
        ..Options::default()
    }
}

fn stores(keystore: &[u8], truststore: &[u8]) -> Stores {
    Stores { keystore: Some(keystore.to_vec()), truststore: Some(truststore.to_vec()) }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn build(options: &Options, stores: &Stores) -> crate::Result<Server> {
    Server::build(options, stores, now()).map(|built| built.server)
}

fn refused(options: &Options, stores: &Stores) -> String {
    match build(options, stores) {
        Ok(_) => panic!("it is not refused"),
        Err(error) => error.to_string(),
    }
}

fn client(with_certificate: bool) -> Client {
    Client::build(ClientOptions {
        trust: ("ca.pem".to_owned(), CA_PEM.as_bytes().to_vec()),
        key: with_certificate.then(|| ("node.pem".to_owned(), NODE_PEM.as_bytes().to_vec())),
        verifies_name: true,
        ..ClientOptions::default()
    })
    .unwrap()
}

/// Hands over what one session has to say, and returns what the other gets of it.
fn hand_over(from: &mut Session, to: &mut Session) -> Result<Vec<u8>, Failure> {
    let (mut bytes, mut plain) = (Vec::new(), Vec::with_capacity(1 << 20));
    from.take_output(&mut bytes);
    to.receive(&bytes, &mut plain)?;
    Ok(plain)
}

/// A handshake to its end, or why one side refused.
fn shake_hands(client: &mut Session, server: &mut Session) -> Result<(), Failure> {
    for _ in 0..8 {
        hand_over(client, server)?;
        hand_over(server, client)?;
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(())
}

fn pair(client: &Client, server: &Server) -> (Session, Session) {
    (Session::client(client, "localhost").unwrap(), Session::server(server, HERE).unwrap())
}

/// Proves that each kind of store that keytool and openssl make serves: JKS, PKCS12 of JDK 17 and of those before, PEM in files and
/// inline, encrypted and not; and that bytes go through in both directions.
#[test]
fn every_kind_of_store_serves() {
    let pem = |private_key: Option<&str>, trusted_certificates: Option<&str>| Factory::Pem {
        private_key: private_key.and_then(secret),
        private_key_password: None,
        trusted_certificates: trusted_certificates.map(str::to_owned),
    };
    let java = |keystore, truststore| (options(), stores(keystore, truststore));
    let with = |factory| Options { factory, ..options() };
    let ca = CA_PEM.as_bytes();
    let no_password = |factory| Options { keystore_password: None, ..with(factory) };
    let cases = [
        java(NODE_JKS, TRUST_JKS),
        java(NODE_P12, TRUST_P12),
        java(LEGACY_P12, TRUST_P12),
        (no_password(pem(None, None)), stores(NODE_PEM.as_bytes(), ca)),
        (with(pem(None, None)), stores(ENCRYPTED_PEM.as_bytes(), ca)),
        (with(pem(Some(ENCRYPTED_PEM), Some(CA_PEM))), Stores::default()),
    ];
    for (case, (mut options, stores)) in cases.into_iter().enumerate() {
        options.require_client_auth = ClientAuth::Required;
        let server = build(&options, &stores).unwrap_or_else(|e| panic!("{case}: {e}"));
        let (mut client, mut server) = pair(&client(true), &server);
        shake_hands(&mut client, &mut server).unwrap_or_else(|e| panic!("{case}: {e}"));
        let facts = server.facts().unwrap();
        assert_eq!((facts.protocol, facts.certificates.len()), ("TLSv1.3", 2));
        assert!(facts.cipher_suite.starts_with("TLS_"));
        let large = vec![7; 300_000];
        let mut sealed = Vec::new();
        client.seal(&large, &mut sealed).unwrap();
        // A small buffer takes it in parts.
        let (mut got, mut at) = (Vec::new(), 0);
        while got.len() < large.len() {
            let mut part = Vec::with_capacity(10_000);
            at += server.receive(&sealed[at..], &mut part).unwrap();
            assert!(!part.is_empty() && part.len() <= 10_000);
            got.extend(part);
        }
        assert!(got == large);
        server.seal(b"answer", &mut Vec::new()).unwrap();
    }
}

/// Proves which clients each `require_client_auth` admits: with a certificate, without one, and with one of an unknown authority.
#[test]
fn clients_are_let_in_as_required() {
    let stranger = Client::build(ClientOptions {
        trust: ("ca.pem".to_owned(), CA_PEM.as_bytes().to_vec()),
        key: Some(("stranger.pem".to_owned(), STRANGER_PEM.as_bytes().to_vec())),
        ..ClientOptions::default()
    })
    .unwrap();
    for (auth, without, unknown) in [
        (ClientAuth::NotRequired, true, true),
        (ClientAuth::Optional, true, false),
        (ClientAuth::Required, false, false),
    ] {
        let options = Options { require_client_auth: auth, ..options() };
        let server = build(&options, &stores(NODE_P12, TRUST_JKS)).unwrap();
        for (client, let_in) in
            [(client(true), true), (client(false), without), (stranger.clone(), unknown)]
        {
            let (mut client, mut server) = pair(&client, &server);
            let shaken = shake_hands(&mut client, &mut server);
            assert_eq!(shaken.is_ok(), let_in, "{auth:?} {shaken:?}");
        }
    }
}

/// Proves that a server is refused by a client that trusts another authority or meant another host, and that a self-signed certificate is
/// trusted which is in the truststore itself.
#[test]
fn servers_are_verified() {
    let server = build(&options(), &stores(NODE_JKS, TRUST_JKS)).unwrap();
    let trust = ("stranger.pem".to_owned(), STRANGER_PEM.as_bytes().to_vec());
    let other = ClientOptions { trust, verifies_name: true, ..ClientOptions::default() };
    let other = Client::build(other).unwrap();
    let (mut client, mut session) = pair(&other, &server);
    assert!(shake_hands(&mut client, &mut session).is_err());
    let mut elsewhere = Session::client(&self::client(false), "127.0.0.2").unwrap();
    assert!(shake_hands(&mut elsewhere, &mut Session::server(&server, HERE).unwrap()).is_err());
    let mut here = Session::client(&self::client(false), "127.0.0.1").unwrap();
    shake_hands(&mut here, &mut Session::server(&server, HERE).unwrap()).unwrap();
    let factory = Factory::Pem {
        private_key: secret(STRANGER_PEM),
        private_key_password: None,
        trusted_certificates: None,
    };
    let options = Options { factory, keystore_password: None, ..options() };
    let server = build(&options, &Stores::default()).unwrap();
    let (mut client, mut session) = pair(&other, &server);
    shake_hands(&mut client, &mut session).unwrap();
}

/// Proves that each refusal names setting, file and reason.
#[test]
fn refusals_name_setting_and_file() {
    let java = stores(NODE_JKS, TRUST_JKS);
    let required = Options { require_client_auth: ClientAuth::Required, ..options() };
    let wrong = Options { keystore_password: secret("wrong"), ..options() };
    let none = Options { keystore_password: None, ..options() };
    let pem = Factory::Pem {
        private_key: None,
        private_key_password: secret("wrong"),
        trusted_certificates: None,
    };
    let pem = Options { factory: pem, keystore_password: None, ..options() };
    let plain = Options { factory: Factory::default(), ..pem.clone() };
    for (options, stores, parts) in [
        (&wrong, java, ["keystore conf/.keystore", "password was incorrect"]),
        (&wrong, stores(NODE_P12, b""), ["keystore conf/.keystore", "password was incorrect"]),
        (&none, stores(NODE_JKS, b""), ["keystore_password", "must be specified"]),
        (&plain, stores(NODE_JKS, b""), ["keystore_password", "must be specified"]),
        (&options(), Stores::default(), ["keystore conf/.keystore", "does not exist"]),
        (&options(), stores(KEYPASS_JKS, b""), ["keystore", "password is another one"]),
        (&options(), stores(TRUST_JKS, b""), ["keystore", "no private key"]),
        (&options(), stores(NODE_PEM.as_bytes(), b""), ["keystore", "PEMBasedSslContextFactory"]),
        (&options(), stores(b"nonsense", b""), ["keystore", "neither a JKS nor a PKCS12"]),
        (&required, stores(NODE_JKS, b""), ["truststore conf/.truststore", "it is empty"]),
        (&pem, stores(ENCRYPTED_PEM.as_bytes(), b""), ["keystore", "password of its private key"]),
        (&pem, stores(CA_PEM.as_bytes(), b""), ["keystore", "Invalid private key format"]),
    ] {
        let refused = refused(options, &stores);
        for part in parts {
            assert!(refused.contains(part), "{refused}");
        }
    }
    let both = Options { optional: Some(true), ..required };
    assert!(refused(&both, &Stores::default()).contains("require_client_auth"));
    let other = Options { algorithm: Some("MD5".to_owned()), ..options() };
    assert!(refused(&other, &Stores::default()).contains("algorithm: MD5"));
    let other = Options { store_type: "JCEKS".to_owned(), ..options() };
    assert!(refused(&other, &Stores::default()).contains("store_type: JCEKS"));
}

/// Proves that an expired certificate is reported, as Cassandra reports it, and served.
#[test]
fn an_expired_certificate_is_reported() {
    let later = now() + 200 * 365 * 86_400;
    let built = Server::build(&options(), &stores(NODE_JKS, TRUST_JKS), later).unwrap();
    let [warning] = built.warnings.as_slice() else { panic!("{:?}", built.warnings) };
    assert!(warning.starts_with("Certificate for ") && warning.contains(" expired on "));
}

/// Proves that clients of TLS 1.2 agree on a suite that is enabled, and that a suite that is not is not agreed on.
#[test]
fn an_older_protocol_is_agreed_on_where_it_is_enabled() {
    let suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
    let older = Options {
        accepted_protocols: Some(vec!["TLSv1.2".to_owned()]),
        cipher_suites: Some(vec![suite.to_owned()]),
        ..options()
    };
    let server = build(&older, &stores(NODE_P12, b"")).unwrap();
    let (mut client, mut session) = pair(&client(false), &server);
    shake_hands(&mut client, &mut session).unwrap();
    let facts = session.facts().unwrap();
    assert_eq!((facts.protocol, facts.cipher_suite), ("TLSv1.2", suite));
    // The key of this store is RSA's.
    let server = build(&older, &stores(NODE_JKS, b"")).unwrap();
    let (mut client, mut session) = pair(&self::client(false), &server);
    assert!(shake_hands(&mut client, &mut session).is_err());
}

/// Proves that a peer without TLS is refused by its first bytes, and that a closed session ends.
#[test]
fn sessions_end() {
    let server = build(&options(), &stores(NODE_P12, b"")).unwrap();
    let mut session = Session::server(&server, HERE).unwrap();
    let plain = session.receive(&[4, 0, 0, 0, 5], &mut Vec::with_capacity(16));
    assert!(matches!(plain, Err(Failure::Plaintext(shown)) if shown == "0400000005"));
    let (mut client, mut session) = pair(&client(false), &server);
    shake_hands(&mut client, &mut session).unwrap();
    client.close();
    assert!(hand_over(&mut client, &mut session).unwrap().is_empty() && session.has_ended());
}

/// A generator of numbers, so that a failure is repeated by its seed.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

/// Proves that a damaged handshake is refused and causes no panic.
#[test]
fn damaged_handshakes_cause_no_panic() {
    let seed = now();
    println!("seed {seed}");
    let mut state = seed;
    let options = Options { require_client_auth: ClientAuth::Required, ..options() };
    let server = build(&options, &stores(NODE_P12, TRUST_P12)).unwrap();
    let client = client(true);
    for _ in 0..200 {
        let (mut client, mut session) = pair(&client, &server);
        let mut plain = Vec::with_capacity(1 << 10);
        for _ in 0..3 {
            let mut bytes = Vec::new();
            client.take_output(&mut bytes);
            if !bytes.is_empty() {
                let at = next(&mut state) % bytes.len();
                bytes[at] ^=
                    (1 << (next(&mut state) % 8)) * u8::from(next(&mut state).is_multiple_of(2));
            }
            if session.receive(&bytes, &mut plain).is_err() {
                break;
            }
            if hand_over(&mut session, &mut client).is_err() {
                break;
            }
        }
        assert!(plain.is_empty());
    }
}

/// Proves that the identities in a certificate are those that Cassandra's validators find.
#[test]
fn identities_of_a_certificate() {
    let leaf = store::pem::certificates(NODE_PEM).unwrap().remove(0);
    assert_eq!(identity::spiffe(&leaf).as_deref(), Ok("spiffe://cluster/node"));
    assert_eq!(identity::common_name(&leaf).as_deref(), Some("localhost"));
    assert_eq!(identity::subject(&leaf).as_deref(), Some("OU=Test, CN=localhost"));
    let authority = store::pem::certificates(CA_PEM).unwrap().remove(0);
    for without in [authority.as_ref(), b"nonsense"] {
        let why = "Unable to extract Spiffe from the certificate";
        assert_eq!(identity::spiffe(without), Err(why));
    }
    assert_eq!((identity::common_name(b""), identity::subject(b"")), (None, None));
}

/// Proves that with require_endpoint_verification a client's certificate must name the address that it connects from, and that a client
/// that shows none is not concerned.
#[test]
fn endpoints_are_verified() {
    let options = Options {
        require_client_auth: ClientAuth::Optional,
        require_endpoint_verification: true,
        ..options()
    };
    let server = build(&options, &stores(NODE_P12, TRUST_JKS)).unwrap();
    for (address, with_certificate, admitted) in
        [("127.0.0.1", true, true), ("127.0.0.2", true, false), ("127.0.0.2", false, true)]
    {
        let mut client = Session::client(&client(with_certificate), "localhost").unwrap();
        let mut session = Session::server(&server, address.parse().unwrap()).unwrap();
        let shaken = shake_hands(&mut client, &mut session);
        assert_eq!(shaken.is_ok(), admitted, "{address} {shaken:?}");
    }
}
