//! `audit_logging_options` and `full_query_logging_options`, with Cassandra's names and defaults (`AuditLogOptions`,
//! `FullQueryLoggerOptions`, `BinLogOptions`).
//!
//! An archive command is a program that the node runs: it comes from the file only. `allow_nodetool_archive_command`, which would let
//! clients choose it, is refused.

use std::path::{Path, PathBuf};

use halcyon_binlog::Options;

use super::file::Node;
use super::{Error, Result, Values, value};
use crate::request_log::options::{
    AuditLogger, AuditOptions, Lists, RequestLogOptions, set_log_option,
};

impl Values {
    pub(super) fn request_logs(&self, data_dir: &Path) -> Result<RequestLogOptions> {
        Ok(RequestLogOptions {
            audit: self.audit(data_dir)?,
            full_query_log: self.full_query_log()?,
        })
    }

    /// The members of a mapping that are not null; those that are themselves mappings as they are.
    pub(super) fn members(&self, key: &str) -> Result<Vec<(&str, &Node)>> {
        match self.node(key) {
            None => Ok(Vec::new()),
            Some(Node::Map(members)) => {
                let given = members.iter().filter(|(_, node)| *node != Node::Null);
                Ok(given.map(|(name, node)| (name.as_str(), node)).collect())
            }
            Some(_) => Err(self.wrong(key, "a mapping")),
        }
    }

    fn audit(&self, data_dir: &Path) -> Result<AuditOptions> {
        const KEY: &str = "audit_logging_options";
        let directory = data_dir.join("logs").join("audit");
        let mut options = AuditOptions {
            enabled: false,
            logger: AuditLogger::Bin,
            lists: Lists::defaults(),
            log: Options { directory, ..Options::default() },
        };
        let refused = |why: String| Error::Refused(format!("{KEY}: {why}"));
        for (name, node) in self.members(KEY)? {
            match (name, node.scalar()) {
                ("logger", _) => options.logger = logger(node).map_err(refused)?,
                ("enabled", Some(text)) => {
                    let allowed = || wrong_member(KEY, name, text, "true or false");
                    options.enabled = value::boolean(text).ok_or_else(allowed)?;
                }
                ("audit_logs_dir", Some(text)) => options.log.directory = PathBuf::from(text),
                (_, Some(text)) => match options.lists.get_mut(name) {
                    Some(list) => *list = text.to_owned(),
                    None => set_member(KEY, &mut options.log, name, text)?,
                },
                (_, None) => return Err(wrong_member(KEY, name, &node.to_string(), "a scalar")),
            }
        }
        if let Err(category) = options.lists.check() {
            return Err(refused(format!(
                "category {category} not found in org.apache.cassandra.audit.AuditLogEntryCategory"
            )));
        }
        if options.enabled {
            options.logger.check().map_err(refused)?;
        }
        Ok(options)
    }

    fn full_query_log(&self) -> Result<Options> {
        const KEY: &str = "full_query_logging_options";
        let mut options = Options::default();
        for (name, node) in self.members(KEY)? {
            match (name, node.scalar()) {
                ("log_dir", Some(text)) => options.directory = PathBuf::from(text),
                (_, Some(text)) => set_member(KEY, &mut options, name, text)?,
                (_, None) => return Err(wrong_member(KEY, name, &node.to_string(), "a scalar")),
            }
        }
        Ok(options)
    }
}

fn wrong_member(key: &str, name: &str, value: &str, allowed: &str) -> Error {
    Error::Wrong {
        key: format!("{key}.{name}"),
        value: value.to_owned(),
        allowed: allowed.to_owned(),
    }
}

fn set_member(key: &str, options: &mut Options, name: &str, text: &str) -> Result<()> {
    match name {
        "archive_command" => options.archive_command = text.to_owned(),
        "allow_nodetool_archive_command" => match value::boolean(text) {
            Some(false) => {}
            Some(true) => {
                return Err(Error::Refused(format!(
                    "{key}: allow_nodetool_archive_command would let clients run commands as this server, and is not supported; \
                     set archive_command in the file"
                )));
            }
            None => return Err(wrong_member(key, name, text, "true or false")),
        },
        // YAML has more words for it.
        "block" if value::boolean(text).is_some() => {
            options.block = value::boolean(text) == Some(true);
        }
        _ => match set_log_option(options, name, text) {
            Some(set) => set.map_err(|why| Error::Refused(format!("{key}: {why}")))?,
            None => return Err(Error::Unknown(vec![format!("{key}.{name}")])),
        },
    }
    Ok(())
}

/// A class by its name, or a mapping (or a list of one) of `class_name` and `parameters`.
fn logger(node: &Node) -> Result<AuditLogger, String> {
    let node = match node {
        Node::List(items) => items.first().unwrap_or(&Node::Null),
        node => node,
    };
    let class = match node {
        Node::Scalar(class) => Some(class.as_str()),
        node => node.get("class_name").and_then(Node::scalar),
    };
    let is_empty = |node: &Node| match node {
        Node::Null => true,
        Node::Map(members) => members.is_empty(),
        Node::List(items) => items.iter().all(|item| *item == Node::Null),
        Node::Scalar(text) => text.is_empty(),
    };
    if let Some(parameters) = node.get("parameters").filter(|node| !is_empty(node)) {
        return Err(format!("the loggers here have no parameters: remove {parameters}"));
    }
    let known = || AuditLogger::known();
    match class {
        // Cassandra then takes its default.
        None => Ok(AuditLogger::Bin),
        Some(class) => AuditLogger::named(class).ok_or_else(|| {
            format!("Unable to find audit log class '{class}'; allowed: {}", known())
        }),
    }
}
