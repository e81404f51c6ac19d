//! A server with one kind of protection, and the role and certificate by which it is asked.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use halcyon_client::Credentials;
use halcyon_client::blocking::Connection;
use halcyon_oracle::{Result, Version, call};

use crate::connection::{self, ROLE, create_keyspace};
use crate::load::KEYSPACE;
use crate::programs::Programs;
use crate::server::{Plan, Server};

/// Of the store, of the superuser, and of everybody else.
const PASSWORD: &str = "cassandra";
/// A new node makes its superuser some seconds after its start.
const SUPERUSER_WITHIN: Duration = Duration::from_secs(60);
/// bcrypt of a text that no login gives, with Cassandra's default of rounds.
const HASH: &str = "$2a$10$JSJEMFm6GeaW9XxT5JIheuEtPvat6i7uKbnTcxX3c1wshIIsGyUtG";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Nothing is asked.
    Open,
    /// Roles with passwords, and permissions that are asked at each request.
    Password,
    Tls,
}

impl Access {
    pub(super) const ALL: [Access; 3] = [Access::Open, Access::Password, Access::Tls];

    pub(super) fn mode(self) -> &'static str {
        match self {
            Access::Open => "open",
            Access::Password => "with passwords and permissions",
            Access::Tls => "with TLS",
        }
    }

    pub(super) fn folder(self) -> &'static str {
        match self {
            Access::Open => "open",
            Access::Password => "password",
            Access::Tls => "tls",
        }
    }
}

pub(super) struct Secured {
    pub(super) server: Server,
    pub(super) access: Access,
    /// The certificate that its clients trust, in PEM.
    pub(super) trust: Option<PathBuf>,
}

impl Secured {
    /// Without rows; the keyspace is there.
    pub(super) fn start(
        programs: &Programs,
        version: Option<Version>,
        access: Access,
        dir: PathBuf,
        heap: &str,
    ) -> Result<Secured> {
        let folder = dir.clone();
        let plan = match version {
            None => Plan::halcyon(access.mode(), dir),
            Some(version) => Plan::cassandra(version, access.mode(), dir).heap(heap),
        };
        let plan = plan.durable();
        let (plan, trust) = match access {
            Access::Open => (plan, None),
            Access::Password => {
                let plan = plan.set("authenticator: PasswordAuthenticator");
                (plan.set("authorizer: CassandraAuthorizer"), None)
            }
            Access::Tls => {
                let (store, trust) = make_store(&folder)?;
                // Also in plain text: what prepares the experiment needs no TLS.
                let plan = plan.set(format!(
                    "client_encryption_options: {{enabled: true, optional: true, keystore: {}, keystore_password: {PASSWORD}, store_type: PKCS12}}",
                    store.display()
                ));
                (plan, Some(trust))
            }
        };
        let server = Server::start(programs, &plan)?;
        let secured = Secured { server, access, trust };
        if access == Access::Password {
            secured.make_role()?;
        }
        Ok(secured)
    }

    pub(super) fn superuser(port: u16) -> Result<Connection> {
        connection::as_role(connection::local(port), &credentials(PASSWORD, PASSWORD))
    }

    /// The role of all connections that the experiment opens.
    fn make_role(&self) -> Result<()> {
        let began = Instant::now();
        let mut superuser = loop {
            match Secured::superuser(self.server.port) {
                Ok(superuser) => break superuser,
                Err(error) if began.elapsed() > SUPERUSER_WITHIN => return Err(error),
                Err(_) => sleep(Duration::from_millis(100)),
            }
        };
        create_keyspace(&mut superuser, KEYSPACE)?;
        superuser
            .query(&format!("CREATE ROLE {ROLE} WITH PASSWORD = '{ROLE}' AND LOGIN = true"))?;
        // What it asks, and what prepares that.
        let needed =
            ["SELECT ON KEYSPACE bench", "MODIFY ON KEYSPACE bench", "CREATE ON ALL KEYSPACES"];
        let flushes = [
            "MODIFY ON KEYSPACE halcyon_views",
            "EXECUTE ON MBEAN 'org.apache.cassandra.db:type=StorageService'",
        ];
        let flushes = flushes.into_iter().filter(|_| self.server.is_halcyon());
        for right in needed.into_iter().chain(flushes) {
            superuser.query(&format!("GRANT {right} TO {ROLE}"))?;
        }
        Ok(())
    }

    /// Roles whose passwords are changed.
    pub(super) fn make_roles(&self, count: u32) -> Result<()> {
        let mut superuser = Secured::superuser(self.server.port)?;
        for number in 0..count {
            superuser.query(&format!(
                "CREATE ROLE IF NOT EXISTS r{number} WITH HASHED PASSWORD = '{HASH}' AND LOGIN = true"
            ))?;
        }
        Ok(())
    }
}

fn credentials(username: &str, password: &str) -> Credentials {
    Credentials {
        username: Some(username.to_owned()),
        password: Some(password.to_owned()),
        encryption: None,
    }
}

/// A key in a store of Java's, and its certificate.
fn make_store(beside: &Path) -> Result<(PathBuf, PathBuf)> {
    let (store, trust) = (beside.with_extension("p12"), beside.with_extension("pem"));
    for old in [&store, &trust] {
        if old.exists() {
            std::fs::remove_file(old)?;
        }
    }
    let keytool = |what: &[&str]| -> Result<()> {
        let mut command = Command::new("keytool");
        command.args(what).arg("-keystore").arg(&store);
        command.args(["-storetype", "PKCS12", "-storepass", PASSWORD, "-alias", "server"]);
        call(&mut command)
    };
    keytool(&[
        "-genkeypair",
        "-keyalg",
        "EC",
        "-groupname",
        "secp256r1",
        "-dname",
        "CN=localhost",
        "-ext",
        "SAN=DNS:localhost,IP:127.0.0.1",
        "-validity",
        "400",
    ])?;
    let file = trust.display().to_string();
    keytool(&["-exportcert", "-rfc", "-file", &file])?;
    Ok((store, trust))
}
