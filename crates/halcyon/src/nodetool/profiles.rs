//! `profileload`, `toppartitions`: samplings of requests, which the node makes while the command waits, or in the background.

use halcyon_io::clock::unix_micros;
use halcyon_server::command::{Command, ProfileLoad};
use halcyon_server::profiles::report::{Found, report};
use halcyon_server::{Sampled, Sampler};

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;

const ARGUMENTS: &str = "Invalid arguments, either [keyspace table/* duration] or [keyspace table/*] or [duration] or no args.\nOptionally, use * to represent all tables under the keyspace.";
const DURATION_MS: i32 = 10_000;
const CAPACITY: i32 = 256;
const MOST: i32 = 10;
const CAPACITY_MAX: i32 = 1024;
/// No interval.
const NONE: i32 = -1;

/// What the command line asks for; `None`: all.
struct Asked<'a> {
    keyspace: Option<&'a str>,
    table: Option<&'a str>,
    profile: ProfileLoad,
}

fn number(call: &Call, option: &str, title: &str, default: i32) -> Result<i32> {
    let Some(text) = call.option(option) else { return Ok(default) };
    let wrong = || Failure::Usage(format!("{title}: can not convert \"{text}\" to a int"));
    text.parse().map_err(|_| wrong())
}

fn check(is_right: bool, why: impl Into<String>) -> Result<()> {
    if is_right { Ok(()) } else { Failure::usage(why) }
}

fn positive(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

/// In the order in which Cassandra's tool checks.
fn asked(call: &Call) -> Result<Asked<'_>> {
    let capacity = number(call, "-s", "capacity", CAPACITY)?;
    let most = number(call, "-k", "topCount", MOST)?;
    let interval = number(call, "-i", "intervalMillis", NONE)?;
    check(matches!(call.arguments.len(), 0..=3), ARGUMENTS)?;
    check(most > 0, "TopK count (-k) option must have positive value")?;
    check(
        most < capacity,
        "TopK count (-k) option must be smaller then the summary capacity (-s)",
    )?;
    check(capacity <= CAPACITY_MAX, "Capacity (-s) cannot exceed 1024.")?;
    let duration = |text: &String| {
        text.parse::<i32>().map_err(|_| Failure::Usage(format!("For input string: \"{text}\"")))
    };
    let (keyspace, table, duration) = match call.arguments.as_slice() {
        [keyspace, table, millis] => (Some(keyspace), Some(table), duration(millis)?),
        [keyspace, table] => (Some(keyspace), Some(table), DURATION_MS),
        [millis] => (None, None, duration(millis)?),
        _ => (None, None, DURATION_MS),
    };
    check(duration > 0, format!("Duration: {duration} must be positive"))?;
    check(
        interval == NONE || interval >= duration,
        format!(
            "Invalid scheduled sampling interval. Expecting interval >= duration, but interval: {interval} ms; duration: {duration} ms"
        ),
    )?;
    Ok(Asked {
        keyspace: named(keyspace),
        table: named(table),
        profile: ProfileLoad {
            id: id(),
            samplers: samplers(call.option("-a"))?,
            capacity: positive(capacity),
            most: positive(most),
            duration_ms: positive(duration),
            interval_ms: (interval != NONE).then(|| positive(interval)),
        },
    })
}

/// `*` stands for all.
fn named(name: Option<&String>) -> Option<&str> {
    name.map(String::as_str).filter(|name| *name != "*")
}

/// Of this process at this time.
fn id() -> String {
    format!("{}-{}", std::process::id(), unix_micros())
}

fn samplers(named: Option<&str>) -> Result<Vec<String>> {
    let all = Sampler::ALL.map(Sampler::name);
    let Some(named) = named else { return Ok(all.map(str::to_owned).to_vec()) };
    let mut samplers = Vec::new();
    // As where Java splits it, empty words at its end are dropped.
    let words = if named.is_empty() { named } else { named.trim_end_matches(',') };
    if words.is_empty() && !named.is_empty() {
        return Ok(samplers);
    }
    for word in words.split(',') {
        let name = word.trim().to_uppercase();
        let known = all.contains(&name.as_str());
        check(known, format!("'{word}' sampler is not available from: [{}]", all.join(", ")))?;
        samplers.push(name);
    }
    Ok(samplers)
}

pub(super) async fn profile(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let asked = asked(call)?;
    let (keyspace, table) = (asked.keyspace.unwrap_or_default(), asked.table.unwrap_or_default());
    let shown = |name: Option<&str>| name.unwrap_or("null").to_owned();
    let names = format!("keyspace: {}, table: {}", shown(asked.keyspace), shown(asked.table));
    if call.has("-t") {
        let stopped = node.command(&Command::StopProfileLoad, (keyspace, table)).await;
        let line = format!("Unable to stop the non-existent scheduled sampling for {names}\n");
        return reported(stopped, ProfileLoad::NOT_SCHEDULED, &line, out);
    }
    if call.has("-l") && asked.profile.interval_ms.is_none() {
        return jobs(node, out).await;
    }
    let id = asked.profile.id.clone();
    let samplers = asked.profile.samplers.clone();
    let is_job = asked.profile.interval_ms.is_some();
    if !is_job {
        check_table(node, asked.keyspace, asked.table).await?;
        if samplers.is_empty() {
            out.push('\n');
            return Ok(());
        }
    }
    let done = node.command(&Command::ProfileLoad(asked.profile), (keyspace, table)).await;
    if is_job {
        let line = format!(
            "Unable to schedule sampling for {names} due to existing samplings. Stop the existing sampling jobs first.\n"
        );
        return reported(done, ProfileLoad::SCHEDULED, &line, out);
    }
    done?;
    out.push_str(&report(&found(node, &id, &samplers).await?));
    out.push('\n');
    Ok(())
}

/// A refusal that begins so is a line, and no failure.
fn reported(outcome: Result<()>, refusal: &str, line: &str, out: &mut String) -> Result<()> {
    match outcome {
        Err(Failure::Failed(why)) if why.starts_with(refusal) => {
            out.push_str(line);
            Ok(())
        }
        outcome => outcome,
    }
}

/// A table that is named must be there.
async fn check_table(node: &mut Node, keyspace: Option<&str>, table: Option<&str>) -> Result<()> {
    let (Some(keyspace), Some(table)) = (keyspace, table) else { return Ok(()) };
    match node.tables().await?.contains(&(keyspace.to_owned(), table.to_owned())) {
        true => Ok(()),
        false => Failure::no_table(keyspace, table),
    }
}

async fn found(node: &mut Node, id: &str, samplers: &[String]) -> Result<Found> {
    let statement = "SELECT sampler, count, error, table_name, value FROM halcyon_views.load_profiles WHERE id = ?";
    let rows = node.ask(statement, &[id]).await?;
    let of = |sampler: &Sampler| {
        let rows = rows.iter().filter(|row| row.text("sampler") == sampler.name());
        let samples = rows.map(|row| Sampled {
            table: row.text("table_name"),
            value: row.text("value"),
            count: row.count("count"),
            error: row.count("error"),
        });
        (*sampler, samples.collect())
    };
    let wanted = Sampler::ALL.iter().filter(|of| samplers.iter().any(|name| name == of.name()));
    Ok(wanted.map(of).collect())
}

async fn jobs(node: &mut Node, out: &mut String) -> Result<()> {
    let statement = "SELECT keyspace_name, table_name FROM halcyon_views.load_profile_jobs";
    let rows = node.rows(statement).await?;
    let jobs: Vec<_> =
        rows.iter().map(|row| (row.text("keyspace_name"), row.text("table_name"))).collect();
    // Cassandra does not widen the second column.
    let widest = jobs.iter().map(|(keyspace, _)| keyspace.chars().count()).max();
    let width = widest.unwrap_or(0).max("KEYSPACE".len());
    for (keyspace, table) in
        std::iter::once(("KEYSPACE".to_owned(), "TABLE".to_owned())).chain(jobs)
    {
        out.push_str(&format!("{keyspace:>width$} {table:>5}\n"));
    }
    Ok(())
}
