//! The audit log and the full query log: `enable…`, `disable…`, `get…`, `resetfullquerylog`.

use halcyon_server::command::{Command, LogOptions};

use super::arguments::{Call, Choice};
use super::failure::{Failure, Result};
use super::node::Node;
use super::text;

const ARCHIVE_RETRIES: Choice =
    Choice::value(&["--max-archive-retries"], "archive_retries", "Max number of archive retries.");
const BLOCKING: Choice = Choice::value(
    &["--blocking"],
    "blocking",
    "If the queue is full whether to block producers or drop samples [true|false].",
);
const MAX_LOG_SIZE: Choice = Choice::value(
    &["--max-log-size"],
    "max_log_size",
    "How many bytes of log data to store before dropping segments. Might not be respected if a log file hasn't rolled so it can be deleted.",
);
const MAX_QUEUE_WEIGHT: Choice = Choice::value(
    &["--max-queue-weight"],
    "max_queue_weight",
    "Maximum number of bytes of query data to queue to disk before blocking or dropping samples.",
);
const ROLL_CYCLE: Choice = Choice::value(
    &["--roll-cycle"],
    "roll_cycle",
    "How often to roll the log file (MINUTELY, HOURLY, DAILY).",
);

pub(super) const AUDIT_OPTIONS: &[Choice] = &[
    Choice::value(
        &["--archive-command"],
        "archive_command",
        "Refused: the archive command comes from the file, audit_logging_options.archive_command",
    ),
    BLOCKING,
    Choice::value(
        &["--excluded-categories"],
        "excluded_categories",
        "Comma separated list of Audit Log Categories to be excluded for audit log. If not set the value from cassandra.yaml will be used",
    ),
    Choice::value(
        &["--excluded-keyspaces"],
        "excluded_keyspaces",
        "Comma separated list of keyspaces to be excluded for audit log. If not set the value from cassandra.yaml will be used",
    ),
    Choice::value(
        &["--excluded-users"],
        "excluded_users",
        "Comma separated list of users to be excluded for audit log. If not set the value from cassandra.yaml will be used",
    ),
    Choice::value(
        &["--included-categories"],
        "included_categories",
        "Comma separated list of Audit Log Categories to be included for audit log. If not set the value from cassandra.yaml will be used",
    ),
    Choice::value(
        &["--included-keyspaces"],
        "included_keyspaces",
        "Comma separated list of keyspaces to be included for audit log. If not set the value from cassandra.yaml will be used",
    ),
    Choice::value(
        &["--included-users"],
        "included_users",
        "Comma separated list of users to be included for audit log. If not set the value from cassandra.yaml will be used",
    ),
    Choice::value(
        &["--logger"],
        "logger",
        "Logger name to be used for AuditLogging: FileAuditLogger or JsonAuditLogger. If not set the value from cassandra.yaml will be used",
    ),
    ARCHIVE_RETRIES,
    MAX_LOG_SIZE,
    MAX_QUEUE_WEIGHT,
    ROLL_CYCLE,
];

pub(super) const FULL_QUERY_LOG_OPTIONS: &[Choice] = &[
    Choice::value(
        &["--archive-command"],
        "archive_command",
        "Refused: the archive command comes from the file, full_query_logging_options.archive_command",
    ),
    BLOCKING,
    ARCHIVE_RETRIES,
    MAX_LOG_SIZE,
    MAX_QUEUE_WEIGHT,
    Choice::value(&["--path"], "path", "Path to store the full query log at."),
    ROLL_CYCLE,
];

/// The options that were given, by their names in the file.
fn given(call: &Call, choices: &[Choice]) -> Result<LogOptions> {
    let mut given = LogOptions::default();
    for choice in choices {
        let Some(option) = choice.names.first() else { continue };
        let Some(value) = call.option(option) else { continue };
        let name = match *option {
            "--blocking" => "block".to_owned(),
            other => other.trim_start_matches('-').replace('-', "_"),
        };
        let is_boolean =
            |text: &str| ["true", "false"].iter().any(|b| b.eq_ignore_ascii_case(text));
        if name == "block" && !is_boolean(value) {
            return Failure::usage(format!(
                "Invalid [{value}]. Blocking only accepts 'true' or 'false'."
            ));
        }
        let title = choice.value.unwrap_or_default();
        let is_number = matches!(title, "archive_retries" | "max_queue_weight" | "max_log_size");
        if is_number && value.parse::<i64>().is_err() {
            let class = if title == "max_log_size" { "Long" } else { "Integer" };
            return Failure::usage(format!("{title}: can not convert \"{value}\" to a {class}"));
        }
        given.options.insert(name, value.to_owned());
    }
    Ok(given)
}

pub(super) async fn enable_audit(call: &Call, node: &mut Node) -> Result<()> {
    let given = given(call, AUDIT_OPTIONS)?;
    node.command(&Command::EnableAuditLog(given), ("", "")).await
}

pub(super) async fn enable_full(call: &Call, node: &mut Node) -> Result<()> {
    let given = given(call, FULL_QUERY_LOG_OPTIONS)?;
    let outcome = node.command(&Command::EnableFullQueryLog(given), ("", "")).await;
    outcome.map_err(|failure| match failure {
        Failure::Failed(why) if WRONG_USE.contains(&why.as_str()) => Failure::Usage(why),
        failure => failure,
    })
}

/// What Cassandra's nodetool takes for wrong use, though the node says it: illegal states and arguments of Java.
const WRONG_USE: [&str; 2] = [
    "Binlog is already configured",
    "you might have forgotten to specify a directory to save logs",
];

const BIN_LOG: [&str; 6] = [
    "archive_command",
    "roll_cycle",
    "block",
    "max_log_size",
    "max_queue_weight",
    "max_archive_retries",
];
const LISTS: [&str; 6] = [
    "included_keyspaces",
    "excluded_keyspaces",
    "included_categories",
    "excluded_categories",
    "included_users",
    "excluded_users",
];

pub(super) async fn get_audit(node: &mut Node, out: &mut String) -> Result<()> {
    let names = [&["logger", "audit_logs_dir"][..], &BIN_LOG, &LISTS].concat();
    get("audit_log", &names, node, out).await
}

pub(super) async fn get_full(node: &mut Node, out: &mut String) -> Result<()> {
    let names = [&["log_dir"][..], &BIN_LOG].concat();
    get("full_query_log", &names, node, out).await
}

async fn get(log: &str, names: &[&str], node: &mut Node, out: &mut String) -> Result<()> {
    let rows = node.rows("SELECT name, enabled, options FROM halcyon_views.request_logs").await?;
    for row in rows.iter().filter(|row| row.text("name") == log) {
        let options = row.texts("options");
        let enabled = row.is_true("enabled").to_string();
        let mut lines = vec![text::row(["enabled", &enabled])];
        for name in names {
            // A map is read as its keys and values, one after the other.
            let mut pairs = options.chunks_exact(2);
            let pair = pairs.find(|pair| pair.first().is_some_and(|option| option == name));
            let value = pair.and_then(<[String]>::last).map_or("", String::as_str);
            lines.push(text::row([name, value]));
        }
        out.push_str(&text::table(&lines, " "));
    }
    Ok(())
}
