//! The options of both logs, as the file and `nodetool` set them.

use halcyon_binlog::{Options, RollCycle};
use halcyon_query::AuditCategory;

/// The classes of Cassandra, and one of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditLogger {
    Bin,
    Diagnostic,
    File,
    /// One JSON object a line.
    Json,
    NoOp,
}

impl AuditLogger {
    const ALL: [AuditLogger; 5] = [
        AuditLogger::Bin,
        AuditLogger::Diagnostic,
        AuditLogger::File,
        AuditLogger::Json,
        AuditLogger::NoOp,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            AuditLogger::Bin => "BinAuditLogger",
            AuditLogger::Diagnostic => "DiagnosticEventAuditLogger",
            AuditLogger::File => "FileAuditLogger",
            AuditLogger::Json => "JsonAuditLogger",
            AuditLogger::NoOp => "NoOpAuditLogger",
        }
    }

    /// Their names.
    pub(crate) fn known() -> String {
        AuditLogger::ALL.map(AuditLogger::name).join(", ")
    }

    /// By a class, with or without its package.
    pub(crate) fn named(class: &str) -> Option<AuditLogger> {
        let name = class.strip_prefix("org.apache.cassandra.audit.").unwrap_or(class);
        AuditLogger::ALL.into_iter().find(|logger| logger.name() == name)
    }

    /// What enabling it says, if it cannot be had.
    pub(crate) fn check(self) -> Result<(), String> {
        let cure = "set logger to FileAuditLogger (lines of text) or JsonAuditLogger (a JSON object a line)";
        match self {
            AuditLogger::Bin => Err(format!(
                "BinAuditLogger, which is the default, writes Chronicle queues, which Halcyon does not: {cure}"
            )),
            AuditLogger::Diagnostic => Err(format!(
                "DiagnosticEventAuditLogger publishes diagnostic events, which Halcyon does not have: {cure}"
            )),
            AuditLogger::File | AuditLogger::Json | AuditLogger::NoOp => Ok(()),
        }
    }
}

/// Names separated by commas, as Cassandra keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Lists {
    pub(crate) included_keyspaces: String,
    pub(crate) excluded_keyspaces: String,
    pub(crate) included_categories: String,
    pub(crate) excluded_categories: String,
    pub(crate) included_users: String,
    pub(crate) excluded_users: String,
}

impl Lists {
    pub(crate) fn defaults() -> Lists {
        let excluded_keyspaces = "system,system_schema,system_virtual_schema".to_owned();
        Lists { excluded_keyspaces, ..Lists::default() }
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut String> {
        Some(match name {
            "included_keyspaces" => &mut self.included_keyspaces,
            "excluded_keyspaces" => &mut self.excluded_keyspaces,
            "included_categories" => &mut self.included_categories,
            "excluded_categories" => &mut self.excluded_categories,
            "included_users" => &mut self.included_users,
            "excluded_users" => &mut self.excluded_users,
            _ => return None,
        })
    }

    /// The first category that does not exist (`AuditLogOptions.validate`).
    pub(crate) fn check(&self) -> Result<(), &str> {
        let categories = [&self.included_categories, &self.excluded_categories];
        for category in categories.iter().flat_map(|list| list.split(',')) {
            let is_known = AuditCategory::ALL.iter().any(|known| known.name() == category);
            if !category.is_empty() && !is_known {
                return Err(category);
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditOptions {
    pub(crate) enabled: bool,
    pub(crate) logger: AuditLogger,
    pub(crate) lists: Lists,
    pub(crate) log: Options,
}

/// Both logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestLogOptions {
    pub(crate) audit: AuditOptions,
    /// An empty directory: none was set.
    pub(crate) full_query_log: Options,
}

/// Changes one option of a log, by its name in the file; `None`: it has another name.
pub(crate) fn set_log_option(
    options: &mut Options,
    name: &str,
    text: &str,
) -> Option<Result<(), String>> {
    let positive = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
    let wrong =
        |allowed: &str| Err(format!("Invalid value `{text}` of {name}; allowed: {allowed}"));
    Some(match name {
        "roll_cycle" => match RollCycle::named(text) {
            Some(cycle) => {
                options.roll_cycle = cycle;
                Ok(())
            }
            None => wrong("MINUTELY, HOURLY, DAILY"),
        },
        "block" => match text.to_ascii_lowercase().parse() {
            Ok(block) => {
                options.block = block;
                Ok(())
            }
            Err(_) => wrong("true or false"),
        },
        // An int in Cassandra.
        "max_queue_weight" => match positive(text).filter(|bytes| *bytes <= i32::MAX as u64) {
            Some(bytes) => {
                options.max_queue_weight = bytes;
                Ok(())
            }
            None => wrong("1 to 2147483647 (bytes)"),
        },
        "max_log_size" => match positive(text).filter(|bytes| *bytes <= i64::MAX as u64) {
            Some(bytes) => {
                options.max_log_size = bytes;
                Ok(())
            }
            None => wrong("1 to 9223372036854775807 (bytes)"),
        },
        "max_archive_retries" => match text.parse::<i32>() {
            Ok(retries) => {
                options.max_archive_retries = u32::try_from(retries).unwrap_or(0);
                Ok(())
            }
            Err(_) => wrong("a whole number"),
        },
        _ => return None,
    })
}

/// `AuditLogOptions.Builder.sanitise`: blanks around names go.
pub(crate) fn sanitised(list: &str) -> String {
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect::<Vec<_>>().join(",")
}
