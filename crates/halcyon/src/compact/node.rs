//! `halcyon compact --node`: a running Cassandra, with the jar on its class path and without an agent, hands compactions of tables over.
//!
//! 1. The class of a table's local compaction parameters is set to ours by JMX (`sidecar`); the schema and other nodes do not notice.
//! 2. A restart of the node and an ALTER of the table's compaction take it back, so `--watch` looks again and again.
//!
//! An error that names the node is one of four: it is away (`--watch` waits), its release is another, a name is unknown, or it refuses.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use halcyon_io::{Disk, block_on, clock, on_stop};
use halcyon_model::units::arguments;
use serde_json::json;

use super::sidecar::{Report, Request, Sidecar, TableReport, Unanswered};
use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::plugin;

const JMX_PORT: u16 = 7199;
const PASSWORD: &str = "HALCYON_JMX_PASSWORD";
const LONGEST_FILE: u64 = 1 << 20;
const PACKAGE: &str = "org.apache.cassandra.db.compaction.";

#[derive(Debug, Args)]
#[command(
    next_help_heading = "Tables of a running Cassandra (docs/operate/cassandra-plugin.md, `Without an agent`)"
)]
#[group(conflicts_with_all = ["FileArgs", "SchemaArgs"])]
pub(super) struct NodeArgs {
    /// Where its JMX listens [default port: 7199]; its class path must have halcyon-cassandra.jar
    #[arg(long, value_name = "HOST[:PORT]")]
    node: Option<String>,
    /// Comma-separated KEYSPACE or KEYSPACE.TABLE [default: all but the system's]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "node")]
    tables: Vec<String>,
    /// Take the tables back: Cassandra's own strategy with the same options
    #[arg(long, requires = "node")]
    remove: bool,
    /// Stay, and set the tables again after a restart of the node or an ALTER TABLE; SIGTERM ends it
    #[arg(long, requires = "node", conflicts_with_all = ["remove", "dry_run"])]
    watch: bool,
    /// How often --watch looks
    #[arg(long, value_name = "DURATION", value_parser = arguments::duration, default_value = "30s", requires = "watch")]
    every: Duration,
    /// The user of JMX
    #[arg(short, long, value_name = "USER", requires = "node")]
    username: Option<String>,
    /// The user's password, visible in the process list; prefer --password-file, or HALCYON_JMX_PASSWORD in the environment
    #[arg(long, value_name = "PASSWORD", requires = "username", conflicts_with = "password_file")]
    password: Option<String>,
    /// A file with lines USER PASSWORD, as nodetool takes it
    #[arg(long, value_name = "FILE", requires = "username")]
    password_file: Option<PathBuf>,
    /// JMX over TLS, by the properties in this file: javax.net.ssl.trustStore=… and so on, a line each, as in nodetool-ssl.properties
    #[arg(long, value_name = "FILE", requires = "node")]
    ssl: Option<PathBuf>,
    /// The jar, as the node has it [default: halcyon-cassandra.jar beside this program]
    #[arg(long, value_name = "FILE", requires = "node")]
    jar: Option<PathBuf>,
}

impl NodeArgs {
    pub(super) fn is_asked(&self) -> bool {
        self.node.is_some()
    }
}

/// The action, and whether it is done.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    pub(super) dry_run: bool,
    pub(super) json: bool,
}

pub(super) fn run(node: &NodeArgs, shown: Shown, disk: &Disk, console: Console) -> Result<()> {
    let request = block_on(request(node, shown, disk))?;
    let jar = block_on(plugin::find_jar(disk, node.jar.as_deref()))?;
    let mut talk =
        Talk { sidecar: Sidecar::new(jar)?, request, json: shown.json, known: BTreeMap::new() };
    if node.watch { talk.watch(node.every, console) } else { talk.once(console) }
}

async fn request(node: &NodeArgs, shown: Shown, disk: &Disk) -> Result<Request> {
    let (host, port) = address(node.node.as_deref().unwrap_or_default())?;
    if let Some(name) =
        node.tables.iter().find(|name| name.trim().is_empty() || name.matches('.').count() > 1)
    {
        return Err(Failure::usage(format!(
            "--tables: `{name}` is not KEYSPACE or KEYSPACE.TABLE"
        )));
    }
    let properties = match &node.ssl {
        Some(file) => ssl(file, &text(disk, file).await?)?,
        None => Vec::new(),
    };
    Ok(Request {
        action: match (node.remove, node.watch) {
            (true, _) => "remove",
            (_, true) => "keep",
            _ => "set",
        },
        dry_run: shown.dry_run,
        host,
        port,
        user: node.username.clone().unwrap_or_default(),
        password: password(node, disk).await?,
        tables: node.tables.iter().map(|name| name.trim()).collect::<Vec<_>>().join(","),
        properties,
    })
}

/// `host`, `host:7199`, `[::1]:7199`
fn address(given: &str) -> Result<(String, u16)> {
    let (host, port) = match given.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => {
            (host, port.parse().ok())
        }
        _ => (given, Some(JMX_PORT)),
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-_:%".contains(c);
    match port {
        Some(port) if !bare.is_empty() && bare.chars().all(is_host) => {
            Ok((if bare.contains(':') { format!("[{bare}]") } else { bare.to_owned() }, port))
        }
        _ => Err(Failure::usage(format!("--node: `{given}` is not HOST or HOST:PORT"))),
    }
}

async fn password(node: &NodeArgs, disk: &Disk) -> Result<String> {
    let Some(user) = &node.username else { return Ok(String::new()) };
    if let Some(password) = &node.password {
        return Ok(password.clone());
    }
    if let Some(file) = &node.password_file {
        let text = text(disk, file).await?;
        let mut users = text.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
        let found = users.find(|(name, _)| name == user);
        return found
            .map(|(_, password)| password.trim().to_owned())
            .ok_or_else(|| Failure::of_file(file, format!("no line `{user} PASSWORD`")));
    }
    std::env::var(PASSWORD).map_err(|_| {
        Failure::usage(format!(
            "--username needs --password-file, {PASSWORD} in the environment, or --password"
        ))
    })
}

fn ssl(file: &std::path::Path, text: &str) -> Result<Vec<(String, String)>> {
    let mut properties = vec![("com.sun.management.jmxremote.ssl".to_owned(), "true".to_owned())];
    for line in
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (name, value) = line
            .trim_start_matches("-D")
            .split_once('=')
            .ok_or_else(|| Failure::of_file(file, format!("`{line}` is not NAME=VALUE")))?;
        properties.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(properties)
}

async fn text(disk: &Disk, file: &std::path::Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&disk.read(file, LONGEST_FILE).await?).into_owned())
}

/// Questions to one node, and what was told of its tables.
struct Talk {
    sidecar: Sidecar,
    request: Request,
    json: bool,
    known: BTreeMap<String, TableReport>,
}

impl Talk {
    fn once(&mut self, console: Console) -> Result<()> {
        match self.sidecar.ask(&self.request) {
            Ok(report) => self.tell(&report, console),
            Err(Unanswered::Away(why) | Unanswered::Denied(why)) => Err(Failure::unreadable(why)),
            Err(Unanswered::Failed(failure)) => Err(failure),
        }
    }

    fn watch(&mut self, every: Duration, console: Console) -> Result<()> {
        // Its process ends with this one.
        on_stop(|| std::process::exit(0))
            .map_err(|e| Failure::unreadable(format!("signal handler: {e}")))?;
        let mut away = None;
        let mut has_answered = false;
        loop {
            match self.sidecar.ask(&self.request) {
                Ok(report) => {
                    away = None;
                    has_answered = true;
                    self.tell(&report, console)?;
                }
                Err(Unanswered::Denied(why)) if !has_answered => {
                    return Err(Failure::unreadable(why));
                }
                Err(Unanswered::Away(why) | Unanswered::Denied(why)) => {
                    if away.as_ref() != Some(&why) {
                        console.warn(format_args!("{why}; --watch waits"));
                    }
                    away = Some(why);
                }
                Err(Unanswered::Failed(failure)) => return Err(failure),
            }
            block_on(clock::sleep(every));
        }
    }

    /// Of each table once, and again when it changes.
    fn tell(&mut self, report: &Report, console: Console) -> Result<()> {
        let is_first = self.known.is_empty();
        let mut news = Vec::new();
        for table in &report.tables {
            // What was set is kept from then on.
            let lasting = match table.action.as_str() {
                "set" => TableReport {
                    action: "kept".to_owned(),
                    before: table.after.clone(),
                    ..table.clone()
                },
                _ => table.clone(),
            };
            let before = self.known.insert(table.name.clone(), lasting.clone());
            if table.action == "set" || before.as_ref() != Some(&lasting) {
                news.push(table);
            }
        }
        if !is_first && news.is_empty() {
            return Ok(());
        }
        if !report.is_enabled {
            console.warn("the node's Halcyon is switched off: the attribute Enabled of halcyon.cassandra:type=Halcyon");
        }
        let mut out = std::io::stdout().lock();
        if self.json {
            writeln!(out, "{}", self.json(report, &news))?;
        } else {
            writeln!(
                out,
                "{}: Cassandra {}; Halcyon: {}",
                self.request.node(),
                report.release,
                report.service
            )?;
            for table in &news {
                writeln!(out, "  {:<30} {}", table.name, self.words(table))?;
            }
            if report.tables.is_empty() {
                writeln!(out, "  no tables")?;
            }
        }
        out.flush()?;
        Ok(())
    }

    fn words(&self, table: &TableReport) -> String {
        let strategy = table.before.trim_start_matches(PACKAGE);
        let would = if self.request.dry_run { "would be " } else { "" };
        match (table.action.as_str(), self.request.action) {
            ("set", "remove") => {
                format!("{would}taken back: {}", table.after.trim_start_matches(PACKAGE))
            }
            ("set", _) => format!("{would}handed over: {strategy}, with its options"),
            ("kept", "remove") => format!("is Cassandra's: {strategy}"),
            ("kept", _) => format!("is handed over: {strategy}"),
            _ => format!("left: {}", table.reason),
        }
    }

    fn json(&self, report: &Report, news: &[&TableReport]) -> serde_json::Value {
        let table = |of: &&TableReport| json!({ "table": of.name, "action": of.action, "before": of.before, "after": of.after, "reason": of.reason });
        json!({
            "node": self.request.node(),
            "release": report.release,
            "service": report.service,
            "enabled": report.is_enabled,
            "dry_run": self.request.dry_run,
            "tables": news.iter().map(table).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let read = |given| address(given).ok();
        assert_eq!(read("db1"), Some(("db1".to_owned(), 7199)));
        assert_eq!(read("db1:80"), Some(("db1".to_owned(), 80)));
        assert_eq!(read("::1"), Some(("[::1]".to_owned(), 7199)));
        assert_eq!(read("[::1]:80"), Some(("[::1]".to_owned(), 80)));
        for wrong in ["", ":80", "db1:x", "db1:99999", "a/b", "a b"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    /// Proves that a file of nodetool's is read, and that a line of something else is refused with its text.
    #[test]
    fn properties_of_tls_are_read() {
        let file = std::path::Path::new("f");
        let read = ssl(
            file,
            "# one\n-Djavax.net.ssl.trustStore=/a=b\n\njavax.net.ssl.trustStorePassword = x\n",
        )
        .unwrap();
        assert_eq!(
            read[1..],
            [
                ("javax.net.ssl.trustStore".to_owned(), "/a=b".to_owned()),
                ("javax.net.ssl.trustStorePassword".to_owned(), "x".to_owned())
            ]
        );
        assert!(ssl(file, "nonsense").unwrap_err().to_string().contains("`nonsense`"));
    }
}
