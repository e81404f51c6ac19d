//! `compact`, `compactionstats`, `…autocompaction`, `get…` and `set…` of the throughput and the number of compactors.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use halcyon_io::clock;
use halcyon_server::command::{Command, CompactionThreshold, Stop};
use halcyon_sstable::Descriptor;

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::{Node, uuid_of};
use super::text::{file_size, row, table};

/// How often a major compaction is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Of whole tables, of a range of tokens, of a partition, or of files.
pub(super) async fn compact(call: &Call, node: &mut Node) -> Result<()> {
    let given = |name: &str| call.option(name).unwrap_or_default();
    let (start, end, key) = (given("-st"), given("-et"), given("--partition"));
    let has_range = !start.is_empty() || !end.is_empty();
    let files = call.has("--user-defined");
    if call.has("-s") && (files || has_range || !key.is_empty()) {
        return Failure::failed("Invalid option combination: Can not use split-output here");
    }
    if files && (has_range || !key.is_empty()) {
        return Failure::failed(
            "Invalid option combination: Can not provide tokens when using user-defined",
        );
    }
    if files {
        return compact_files(call, node).await;
    }
    let argument = match (has_range, key) {
        (true, _) => format!("token-range={start},{end}"),
        (false, "") if call.has("-s") => "split-output".to_owned(),
        (false, "") => String::new(),
        (false, key) => format!("partition={key}"),
    };
    // As in Cassandra only what compacts whole tables flushes them.
    let flushes = !has_range && key.is_empty();
    for (keyspace, table) in tables_to_compact(call, node).await? {
        if flushes {
            node.command(&Command::Flush, (&keyspace, &table)).await?;
        }
        compact_table(node, &keyspace, &table, &argument).await?;
    }
    Ok(())
}

pub(super) async fn tables_to_compact(
    call: &Call,
    node: &mut Node,
) -> Result<Vec<(String, String)>> {
    let keyspaces = node.meant(&call.arguments).await?;
    let tables = node.tables().await?;
    let named = call.arguments.get(1..).unwrap_or_default();
    let mut meant = Vec::new();
    for keyspace in keyspaces {
        for table in named {
            if !tables.contains(&(keyspace.clone(), table.clone())) {
                return Failure::failed(format!("Unknown keyspace/cf pair ({keyspace}.{table})"));
            }
        }
        let is_meant = |(of, table): &&(String, String)| {
            *of == keyspace && (named.is_empty() || named.contains(table))
        };
        meant.extend(tables.iter().filter(is_meant).cloned());
    }
    Ok(meant)
}

/// Files by table: each table's together become one task. A file that no table has is refused before anything is done, where Cassandra
/// does nothing and does not say so.
async fn compact_files(call: &Call, node: &mut Node) -> Result<()> {
    let words = call.arguments.join(",");
    let tables = node.tables().await?;
    let mut files: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    for word in words.split(',') {
        let path = Path::new(word.trim());
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        if Descriptor::parse_file_name(Path::new(""), &name).is_err() {
            return Failure::failed(format!(
                "Invalid sstable file {name}: the name doesn't look like a supported sstable file name"
            ));
        }
        match table_of(path) {
            Some(table) if tables.contains(&table) => {
                files.entry(table).or_default().push(word.trim())
            }
            _ => {
                return Failure::failed(format!(
                    "{} is in no table's folder; its path must have those of the keyspace and the table: ks/t-…/{name}",
                    path.display()
                ));
            }
        }
    }
    for ((keyspace, table), names) in files {
        let argument = format!("user-defined={}", names.join(","));
        compact_table(node, &keyspace, &table, &argument).await?;
    }
    Ok(())
}

/// By the folders of a path: `<keyspace>/<table>-<id>/<file>`.
fn table_of(path: &Path) -> Option<(String, String)> {
    let mut folders =
        path.ancestors().skip(1).map(|of| of.file_name().and_then(|name| name.to_str()));
    let (table, keyspace) = (folders.next()??, folders.next()??);
    Some((keyspace.to_owned(), table.rsplit_once('-')?.0.to_owned()))
}

pub(super) async fn compact_table(
    node: &mut Node,
    keyspace: &str,
    table: &str,
    argument: &str,
) -> Result<()> {
    let look = "SELECT state, failure FROM halcyon_views.major_compactions WHERE keyspace_name = ? AND table_name = ?";
    loop {
        match node.compact(keyspace, table, argument).await {
            // Another one came first; what has been written since is to be compacted too.
            Err(Failure::Failed(why)) if why.contains("is being compacted as a whole already") => {
                clock::sleep(LOOK).await;
            }
            begun => break begun?,
        }
    }
    loop {
        let rows = node.rows_of(look, keyspace, table).await?;
        let Some(of) = rows.iter().next() else { return Ok(()) };
        match of.text("state").as_str() {
            "running" => clock::sleep(LOOK).await,
            "done" => return Ok(()),
            "stopped" => {
                return Failure::failed(format!("compaction of {keyspace}.{table} was stopped"));
            }
            _ => return Failure::failed(of.text("failure")),
        }
    }
}

pub(super) async fn set_automatic(call: &Call, node: &mut Node, enabled: bool) -> Result<()> {
    let command = match enabled {
        true => Command::EnableAutoCompaction,
        false => Command::DisableAutoCompaction,
    };
    match node.on_tables(&command, &call.arguments).await {
        Err(Failure::Failed(why)) if why.starts_with("Unknown keyspace/cf pair") => {
            Failure::usage(why)
        }
        done => done,
    }
}

pub(super) async fn automatic(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let keyspaces = node.meant(&call.arguments).await?;
    let named = call.arguments.get(1..).unwrap_or_default();
    let statement =
        "SELECT keyspace_name, table_name, auto_compaction FROM halcyon_views.table_statistics";
    let rows = node.rows(statement).await?;
    let mut lines = vec![row(["Keyspace", "Table", "Status"])];
    let (mut some_run, mut some_rest) = (false, false);
    for of in rows.iter() {
        let (keyspace, table) = (of.text("keyspace_name"), of.text("table_name"));
        if !keyspaces.contains(&keyspace) || !(named.is_empty() || named.contains(&table)) {
            continue;
        }
        let runs = of.is_true("auto_compaction");
        some_run |= runs;
        some_rest |= !runs;
        lines.push(vec![keyspace, table, if runs { "running" } else { "not running" }.to_owned()]);
    }
    out.push_str(&match call.has("-a") {
        true => table(&lines, " "),
        false if !some_rest => "running\n".to_owned(),
        false if !some_run => "not running\n".to_owned(),
        false => "partially running\n".to_owned(),
    });
    Ok(())
}

/// What `halcyon_views.compaction_pace` says of one name.
async fn pace(node: &mut Node, name: &str) -> Result<u64> {
    let rows = node.rows("SELECT name, value FROM halcyon_views.compaction_pace").await?;
    Ok(rows.iter().find(|row| row.text("name") == name).map_or(0, |row| row.count("value")))
}

/// As Java prints a double.
fn mebibytes(bytes: u64) -> String {
    format!("{:?}", bytes as f64 / f64::from(1 << 20))
}

pub(super) async fn throughput(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let bytes = pace(node, "compaction_throughput").await?;
    if call.has("-d") {
        out.push_str(&format!("Current compaction throughput: {} MiB/s\n", mebibytes(bytes)));
        return Ok(());
    }
    if bytes % (1 << 20) != 0 {
        return Failure::failed(
            "Use the -d flag to quiet this error and get the exact throughput in MiB/s",
        );
    }
    out.push_str(&format!("Current compaction throughput: {} MB/s\n", bytes >> 20));
    Ok(())
}

pub(super) async fn set_throughput(call: &Call, node: &mut Node) -> Result<()> {
    let Some(text) = call.arguments.first() else {
        return Failure::usage("Required parameters are missing: compaction_throughput");
    };
    match text.parse::<i32>() {
        Ok(mebibytes @ 0..) => {
            node.set("compaction_throughput", &format!("{mebibytes}MiB/s")).await
        }
        Ok(_) => Failure::usage("Invalid data rate: value must be non-negative"),
        Err(_) => Failure::usage(format!(
            "compaction_throughput: can not convert \"{text}\" to a Integer"
        )),
    }
}

pub(super) async fn compactors(node: &mut Node, out: &mut String) -> Result<()> {
    let count = pace(node, "concurrent_compactors").await?;
    out.push_str(&format!("Current concurrent compactors in the system is: \n{count}\n"));
    Ok(())
}

pub(super) async fn set_compactors(call: &Call, node: &mut Node) -> Result<()> {
    let Some(text) = call.arguments.first() else {
        return Failure::usage("Required parameters are missing: concurrent_compactors");
    };
    match text.parse::<i32>() {
        Ok(1..) => node.set("concurrent_compactors", text).await,
        Ok(_) => Failure::usage("concurrent_compactors should be great than 0."),
        Err(_) => Failure::usage(format!(
            "concurrent_compactors: can not convert \"{text}\" to a Integer"
        )),
    }
}

/// Without the sums over the node's life, which Halcyon does not keep.
pub(super) async fn stats(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let backlog =
        "SELECT keyspace_name, table_name, pending_tasks FROM halcyon_views.compaction_backlog";
    let backlog = node.rows(backlog).await?;
    let mut pending = 0;
    let mut lines = Vec::new();
    for of in backlog.iter().filter(|of| of.count("pending_tasks") > 0) {
        let tasks = of.count("pending_tasks");
        pending += tasks;
        lines.push(vec![of.text("keyspace_name"), of.text("table_name"), tasks.to_string()]);
    }
    let compactors = pace(node, "concurrent_compactors").await?;
    lines.insert(0, row(["concurrent compactors", &compactors.to_string()]));
    lines.insert(1, row(["pending tasks", &pending.to_string()]));
    let throughput = pace(node, "compaction_throughput").await?;
    let told =
        if throughput == 0 { "throttling disabled (0)".to_owned() } else { mebibytes(throughput) };
    lines.push(row(["compaction throughput (MiB/s)", &told]));
    let left = push_tasks(call, node, &mut lines).await?;
    if let Some(left) = left {
        let seconds = left.checked_div(throughput);
        let time = seconds.map(|s| format!("{}h{:02}m{:02}s", s / 3600, s % 3600 / 60, s % 60));
        lines.push(row([
            "active compaction remaining time",
            &time.unwrap_or_else(|| "n/a".to_owned()),
        ]));
    }
    out.push_str(&table(&lines, " "));
    Ok(())
}

/// The bytes that are left to do; `None` if nothing runs.
async fn push_tasks(
    call: &Call,
    node: &mut Node,
    lines: &mut Vec<Vec<String>>,
) -> Result<Option<u64>> {
    let tasks = node.rows("SELECT * FROM system_views.sstable_tasks").await?;
    if tasks.iter().next().is_none() {
        return Ok(None);
    }
    let as_table = call.has("-V");
    let size = |bytes: u64| if call.has("-H") { file_size(bytes) } else { bytes.to_string() };
    lines.push(match as_table {
        true => row([
            "keyspace",
            "table",
            "task id",
            "completion ratio",
            "kind",
            "progress",
            "sstables",
            "total",
            "total compressed",
            "unit",
            "target directory",
        ]),
        false => row([
            "id",
            "compaction type",
            "keyspace",
            "table",
            "completed",
            "total",
            "unit",
            "progress",
        ]),
    });
    let mut left = 0;
    for of in tasks.iter() {
        let (done, total) = (of.count("progress"), of.count("total"));
        left += total.saturating_sub(done);
        let ratio = match total {
            0 => "n/a".to_owned(),
            total => format!("{:.2}%", done as f64 / total as f64 * 100.0),
        };
        let id = uuid_of(&of, "task_id");
        let (keyspace, table, kind) =
            (of.text("keyspace_name"), of.text("table_name"), of.text("kind"));
        lines.push(match as_table {
            true => vec![
                keyspace,
                table,
                id,
                ratio,
                kind,
                size(done),
                of.count("sstables").to_string(),
                size(total),
                size(of.count("total_compressed")),
                of.text("unit"),
                of.text("target_directory"),
            ],
            false => {
                vec![id, kind, keyspace, table, size(done), size(total), of.text("unit"), ratio]
            }
        });
    }
    Ok(Some(left))
}

pub(super) async fn thresholds(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let [keyspace, table] = call.arguments.as_slice() else {
        return Failure::usage("getcompactionthreshold requires ks and cf args");
    };
    let statement = "SELECT min_threshold, max_threshold FROM halcyon_views.table_statistics WHERE keyspace_name = ? AND table_name = ?";
    let rows = node.rows_of(statement, keyspace, table).await?;
    let Some(row) = rows.iter().next() else {
        return Failure::no_table(keyspace, table);
    };
    let (min, max) = (row.count("min_threshold"), row.count("max_threshold"));
    out.push_str(&format!(
        "Current compaction thresholds for {keyspace}/{table}: \n min = {min},  max = {max}\n"
    ));
    Ok(())
}

pub(super) async fn set_thresholds(call: &Call, node: &mut Node) -> Result<()> {
    let [keyspace, table, min, max] = call.arguments.as_slice() else {
        return Failure::usage(
            "setcompactionthreshold requires ks, cf, min, and max threshold args.",
        );
    };
    let number = |text: &String| match text.parse::<i32>() {
        Ok(number) => Ok(number),
        Err(_) => Failure::usage(format!("For input string: \"{text}\"")),
    };
    let (min, max) = (number(min)?, number(max)?);
    if min > max {
        return Failure::usage("Min threshold cannot be greater than max.");
    }
    let (Ok(min @ 2..), Ok(max)) = (usize::try_from(min), usize::try_from(max)) else {
        return Failure::usage("Min threshold must be at least 2");
    };
    if !node.tables().await?.contains(&(keyspace.clone(), table.clone())) {
        return Failure::no_table(keyspace, table);
    }
    let command = Command::SetCompactionThreshold(CompactionThreshold { min, max });
    node.command(&command, (keyspace, table)).await
}

/// Kinds of tasks as Cassandra names them. Those of the second list have no tasks here that could be stopped.
const COMPACTIONS: [&str; 3] = ["COMPACTION", "SCRUB", "TOMBSTONE_COMPACTION"];
const OTHER_TASKS: [&str; 10] = [
    "VALIDATION",
    "CLEANUP",
    "UPGRADE_SSTABLES",
    "INDEX_BUILD",
    "ANTICOMPACTION",
    "VERIFY",
    "VIEW_BUILD",
    "INDEX_SUMMARY",
    "RELOCATE",
    "GARBAGE_COLLECT",
];

pub(super) async fn stop(call: &Call, node: &mut Node) -> Result<()> {
    let id = call.option("-id").map(str::to_owned);
    let kind = call.arguments.first().map(|kind| kind.to_uppercase());
    match &kind {
        Some(kind) if OTHER_TASKS.contains(&kind.as_str()) => return Ok(()),
        Some(kind) if !COMPACTIONS.contains(&kind.as_str()) => {
            let kind = call.arguments.first().map_or("", String::as_str);
            return Failure::usage(format!(
                "compaction_type: can not convert \"{kind}\" to a OperationType"
            ));
        }
        _ => {}
    }
    node.command(&Command::Stop(Stop { kind, id }), ("", "")).await
}
