//! `halcyon fql replay`: sends the requests of full query logs again, one after the other, in their order.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use halcyon_binlog::record::{Query, Record, Request};
use halcyon_client::{Connection, Credentials};
use halcyon_io::{Disk, DiskOptions, clock};
use halcyon_model::request::Value;
use halcyon_model::visible_indented;
use halcyon_protocol::client::Answer;
use halcyon_protocol::{BatchQuery, QueryParameters, Values};
use halcyon_tls::Client;

use super::logs::Logs;
use crate::console::Console;
use crate::encryption::{self, EncryptionArgs};
use crate::failure::{Failure, Result};

/// Send the requests of full query logs to a server again, as Cassandra's `fqltool replay` does
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  halcyon fql replay --target 127.0.0.1:9042 /var/log/halcyon/fql
  halcyon fql replay --target test:secret@10.0.0.7 --keyspace shop --rate 500 /tmp/fql

Each request waits for the answer to the one before. Writes keep the timestamps that they had. A statement about roles whose password
the log does not have is never sent. The first errors are printed; exit code 1 says that there were some.")]
pub(crate) struct ReplayArgs {
    /// Files of a log, or folders of them; several are merged by time
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where to send them, several times for several servers
    #[arg(long, required = true, value_name = "[USER:PASSWORD@]HOST[:PORT]")]
    target: Vec<String>,
    /// Only requests in this keyspace, and those without one
    #[arg(long)]
    keyspace: Option<String>,
    /// Also CREATE, ALTER and DROP
    #[arg(long)]
    replay_ddl_statements: bool,
    /// At most N requests a second [default: as fast as they are answered]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    #[command(flatten)]
    encryption: EncryptionArgs,
}

/// Errors that are printed.
const PRINTED: u64 = 10;

/// A server, and the keyspace that is in force there.
struct Target {
    connection: Connection,
    keyspace: Option<String>,
}

#[derive(Default)]
struct Counts {
    sent: u64,
    failed: u64,
    other_keyspaces: u64,
    ddl: u64,
    hidden: u64,
}

pub(super) async fn run(args: &ReplayArgs, console: Console) -> Result<()> {
    let mut logs = Logs::open(&args.paths, console)?;
    let mut targets = Vec::with_capacity(args.target.len());
    let disk = Disk::real(DiskOptions::default());
    for target in &args.target {
        let encryption = encryption::client(&disk, &args.encryption).await;
        targets.push(connect(target, encryption.map_err(Failure::usage)?).await?);
    }
    let pause = args.rate.map(|rate| Duration::from_secs(1) / rate);
    let mut counts = Counts::default();
    let mut due = clock::now();
    while let Some(record) = logs.next()? {
        if is_left_out(&record, args, &mut counts) {
            continue;
        }
        if let Some(pause) = pause {
            let now = clock::now();
            clock::sleep(due.saturating_since(now)).await;
            due = due.max(now) + pause;
        }
        for target in &mut targets {
            counts.sent += 1;
            if let Some(why) = target.send(&record).await? {
                counts.failed += 1;
                if counts.failed <= PRINTED {
                    let (server, why) = (target.connection.server(), visible_indented(&why));
                    eprintln!("halcyon: {server}: {why}");
                }
            }
        }
    }
    let Counts { sent, failed, other_keyspaces, ddl, hidden } = counts;
    println!(
        "{sent} requests sent, {failed} of them failed; left out: {ddl} DDL, {other_keyspaces} of other keyspaces, {hidden} with a hidden password"
    );
    match failed {
        0 => Ok(()),
        _ => Err(Failure::problem(format!("{failed} of {sent} requests failed"))),
    }
}

async fn connect(target: &str, encryption: Option<Client>) -> Result<Target> {
    let (user, host) = match target.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, target),
    };
    let pair = user.and_then(|user| user.split_once(':'));
    if user.is_some() && pair.is_none() {
        return Err(Failure::usage("a target is [USER:PASSWORD@]HOST[:PORT]"));
    }
    let credentials = Credentials {
        username: pair.map(|(name, _)| name.to_owned()),
        password: pair.map(|(_, password)| password.to_owned()),
        encryption,
    };
    let connection = Connection::open(host, &credentials).await;
    let connection = connection.map_err(|error| Failure::unreadable(error.to_string()))?;
    Ok(Target { connection, keyspace: None })
}

fn values(query: &Query) -> Vec<Value<'_>> {
    query.values.iter().map(|value| value.as_value()).collect()
}

fn text_of(query: &Query) -> &str {
    &query.text
}

fn queries(record: &Record) -> &[Query] {
    match &record.request {
        Request::Single(query) => std::slice::from_ref(query),
        Request::Batch(_, queries) => queries,
    }
}

fn is_left_out(record: &Record, args: &ReplayArgs, counts: &mut Counts) -> bool {
    let wanted = args.keyspace.as_ref().zip(record.keyspace.as_ref());
    if wanted.is_some_and(|(wanted, keyspace)| wanted != keyspace) {
        counts.other_keyspaces += 1;
        return true;
    }
    let mut words = queries(record).first().map(|query| query.text.as_str()).unwrap_or_default();
    words = words.trim_start();
    let first: Vec<String> =
        words.split_whitespace().take(2).map(str::to_ascii_uppercase).collect();
    let is_change =
        first.first().is_some_and(|word| ["CREATE", "ALTER", "DROP"].contains(&word.as_str()));
    let is_role = first.get(1).is_some_and(|word| ["ROLE", "USER"].contains(&word.as_str()));
    if is_change && is_role && words.contains("*******") {
        counts.hidden += 1;
        return true;
    }
    if is_change && !is_role && !args.replay_ddl_statements {
        counts.ddl += 1;
        return true;
    }
    false
}

impl Target {
    /// Why the server refuses it, if it does. An error is that of the connection.
    async fn send(&mut self, record: &Record) -> Result<Option<String>> {
        if let Some(keyspace) = &record.keyspace
            && self.keyspace.as_ref() != Some(keyspace)
        {
            let text = format!("USE \"{}\"", keyspace.replace('"', "\"\""));
            let parameters = QueryParameters::new(record.options.consistency);
            self.connection.client.query(0, &text, &parameters);
            if let Some(why) = self.answer().await? {
                return Ok(Some(format!("{text}: {why}")));
            }
            self.keyspace = Some(keyspace.clone());
        }
        let options = &record.options;
        let mut parameters = QueryParameters::new(options.consistency);
        parameters.serial_consistency = options.serial_consistency;
        parameters.page_size = options.page_size;
        parameters.timestamp = options.timestamp.or(record.generated_timestamp);
        let text = match &record.request {
            Request::Single(query) => {
                parameters.values = Values::Positional(values(query));
                self.connection.client.query(0, &query.text, &parameters);
                query.text.as_str()
            }
            Request::Batch(kind, queries) => {
                let entry = |query| (BatchQuery::Text(text_of(query)), values(query));
                let entries: Vec<_> = queries.iter().map(entry).collect();
                self.connection.client.batch(0, *kind, &entries, &parameters);
                "a batch"
            }
        };
        Ok(self.answer().await?.map(|why| format!("{text}: {why}")))
    }

    async fn answer(&mut self) -> Result<Option<String>> {
        let answer = self.connection.ask().await;
        match answer.map_err(|error| Failure::unreadable(error.to_string()))?.1 {
            Answer::Error { message, .. } => Ok(Some(message)),
            _ => Ok(None),
        }
    }
}
