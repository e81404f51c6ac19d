//! `client_encryption_options`: members and defaults are Cassandra's (`EncryptionOptions`). What the values mean is `halcyon_tls`'s.

use halcyon_tls::{ClientAuth, Factory, Options, Secret};

use super::file::Node;
use super::{Error, Result, Values, value};

const KEY: &str = "client_encryption_options";
const MEMBERS: [&str; 14] = [
    "accepted_protocols",
    "algorithm",
    "cipher_suites",
    "enabled",
    "keystore",
    "keystore_password",
    "optional",
    "protocol",
    "require_client_auth",
    "require_endpoint_verification",
    "ssl_context_factory",
    "store_type",
    "truststore",
    "truststore_password",
];
const PARAMETERS: [&str; 3] = ["private_key", "private_key_password", "trusted_certificates"];

impl Values {
    pub(super) fn client_encryption(&self) -> Result<Options> {
        let Some(node) = self.node(KEY) else { return Ok(Options::default()) };
        let Node::Map(members) = node else { return Err(self.wrong(KEY, "a mapping")) };
        let unknown: Vec<String> = members
            .iter()
            .filter(|(name, _)| !MEMBERS.contains(&name.as_str()))
            .map(|(name, _)| format!("{KEY}.{name}"))
            .collect();
        if !unknown.is_empty() {
            return Err(Error::Unknown(unknown));
        }
        let of = Members(node);
        let defaults = Options::default();
        Ok(Options {
            enabled: of.boolean("enabled")?.unwrap_or(false),
            optional: of.boolean("optional")?,
            require_client_auth: of.client_auth()?,
            require_endpoint_verification: of
                .boolean("require_endpoint_verification")?
                .unwrap_or(false),
            keystore: of.text("keystore")?.unwrap_or(defaults.keystore),
            keystore_password: of.text("keystore_password")?.map(Secret),
            truststore: of.text("truststore")?.unwrap_or(defaults.truststore),
            truststore_password: of.text("truststore_password")?.map(Secret),
            protocol: of.text("protocol")?,
            accepted_protocols: of.list("accepted_protocols")?,
            cipher_suites: of.list("cipher_suites")?,
            algorithm: of.text("algorithm")?,
            store_type: of.text("store_type")?.unwrap_or(defaults.store_type),
            factory: of.factory()?,
        })
    }
}

fn wrong(member: &str, node: &Node, allowed: &str) -> Error {
    // The value may be a secret, which its name decides.
    let shown = Node::Map(vec![(member.to_owned(), node.clone())]).to_string();
    let value = shown.trim_start_matches('{').trim_end_matches('}').to_owned();
    let value = value.split_once('=').map(|(_, value)| value.to_owned()).unwrap_or(value);
    Error::Wrong { key: format!("{KEY}.{member}"), value, allowed: allowed.to_owned() }
}

struct Members<'n>(&'n Node);

impl Members<'_> {
    fn get(&self, member: &str) -> Option<&Node> {
        self.0.get(member).filter(|node| **node != Node::Null)
    }

    fn text(&self, member: &str) -> Result<Option<String>> {
        let Some(node) = self.get(member) else { return Ok(None) };
        let text = node.scalar().ok_or_else(|| wrong(member, node, "a text"))?;
        Ok(Some(text.to_owned()))
    }

    fn boolean(&self, member: &str) -> Result<Option<bool>> {
        let Some(node) = self.get(member) else { return Ok(None) };
        let read = node.scalar().and_then(value::boolean);
        read.map(Some).ok_or_else(|| wrong(member, node, "true or false"))
    }

    fn list(&self, member: &str) -> Result<Option<Vec<String>>> {
        let text = |node: &Node| node.scalar().map(|text| text.trim().to_owned());
        let Some(node) = self.get(member) else { return Ok(None) };
        let items = match node {
            Node::List(items) => items.iter().map(text).collect(),
            Node::Scalar(items) => {
                Some(items.split(',').map(|item| item.trim().to_owned()).collect())
            }
            _ => None,
        };
        items.map(Some).ok_or_else(|| wrong(member, node, "a list"))
    }

    /// Cassandra 5.0 has `true` and `false`; 6.0 has `optional` beside them.
    fn client_auth(&self) -> Result<ClientAuth> {
        let member = "require_client_auth";
        let Some(node) = self.get(member) else { return Ok(ClientAuth::default()) };
        match node.scalar() {
            Some(text) if text.eq_ignore_ascii_case("optional") => Ok(ClientAuth::Optional),
            _ => match node.scalar().and_then(value::boolean) {
                Some(true) => Ok(ClientAuth::Required),
                Some(false) => Ok(ClientAuth::NotRequired),
                None => Err(wrong(member, node, "true, false or optional")),
            },
        }
    }

    fn factory(&self) -> Result<Factory> {
        let member = "ssl_context_factory";
        let Some(node) = self.get(member) else { return Ok(Factory::default()) };
        let class = node.scalar().or_else(|| node.get("class_name")?.scalar()).unwrap_or_default();
        match class.rsplit('.').next() {
            Some("DefaultSslContextFactory") => Ok(Factory::Stores),
            Some("PEMBasedSslContextFactory") => pem(member, node),
            _ => Err(wrong(
                member,
                node,
                "DefaultSslContextFactory or PEMBasedSslContextFactory (others are not supported)",
            )),
        }
    }
}

/// Parameters are a mapping, or a list with one.
fn pem(member: &str, node: &Node) -> Result<Factory> {
    let parameters = match node.get("parameters") {
        Some(Node::List(items)) => items.first(),
        other => other,
    };
    if let Some(Node::Map(members)) = parameters
        && let Some((unknown, _)) =
            members.iter().find(|(name, _)| !PARAMETERS.contains(&name.as_str()))
    {
        return Err(Error::Unknown(vec![format!("{KEY}.{member}.parameters.{unknown}")]));
    }
    let text = |name: &str| {
        let text = parameters.and_then(|parameters| parameters.get(name)).and_then(Node::scalar);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    Ok(Factory::Pem {
        private_key: text("private_key").map(Secret),
        private_key_password: text("private_key_password").map(Secret),
        trusted_certificates: text("trusted_certificates"),
    })
}
