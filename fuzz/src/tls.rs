//! Stores of keys, and what clients send before they are served.

use std::net::Ipv4Addr;
use std::sync::LazyLock;

use halcyon_tls::{ClientAuth, Factory, Options, Secret, Server, Session, Stores};

const NODE: &[u8] = include_bytes!("../../crates/tls/testdata/node.p12");
const TRUST: &[u8] = include_bytes!("../../crates/tls/testdata/trust.p12");

fn options(factory: Factory) -> Options {
    let password = || Some(Secret("cassandra".to_owned()));
    Options {
        enabled: true,
        require_client_auth: ClientAuth::Required,
        keystore_password: password(),
        truststore_password: password(),
        factory,
        ..Options::default()
    }
}

/// A keystore or a truststore, in each format.
pub fn stores(bytes: &[u8]) {
    let pem =
        Factory::Pem { private_key: None, private_key_password: None, trusted_certificates: None };
    for factory in [Factory::Stores, pem] {
        let options = options(factory);
        for (keystore, truststore) in [(bytes, TRUST), (NODE, bytes)] {
            let stores =
                Stores { keystore: Some(keystore.to_vec()), truststore: Some(truststore.to_vec()) };
            let _ = Server::build(&options, &stores, 0);
        }
    }
}

/// The bytes of a client, in reads of as many as the first byte says.
pub fn session(bytes: &[u8]) {
    static SERVER: LazyLock<Server> = LazyLock::new(|| {
        let stores = Stores { keystore: Some(NODE.to_vec()), truststore: Some(TRUST.to_vec()) };
        Server::build(&options(Factory::Stores), &stores, 0).expect("a server").server
    });
    let Some((first, bytes)) = bytes.split_first() else { return };
    let mut session = Session::server(&SERVER, Ipv4Addr::LOCALHOST.into()).expect("a session");
    let (mut plain, mut answer) = (Vec::with_capacity(1 << 10), Vec::new());
    for part in bytes.chunks(usize::from(*first) + 1) {
        let outcome = session.receive(part, &mut plain);
        session.take_output(&mut answer);
        if outcome.is_err() {
            break;
        }
    }
    // The session passes on nothing from a client that has not proved its certificate's key.
    assert!(plain.is_empty() && session.facts().is_none());
}
