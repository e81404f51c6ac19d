//! The rows of `system_views.settings`: every setting with its value, as Cassandra 5.0 shows its own.
//!
//! 1. A setting has a row of its name. One whose members Cassandra knows has a row for each of them instead (`members.txt`).
//! 2. What the file leaves open and Halcyon decides shows the decision.
//! 3. Each name of 4.0 has a row, too: the same value in the unit of that name. A few settings kept their name when they got a unit, and
//!    show the number alone.

use std::path::Path;

use halcyon_engine::Options;
use halcyon_model::request::Consistency;
use halcyon_model::units::settings::in_unit;

use super::file::Node;
use super::keys::{Key, Listed, keys};
use super::value::Kind;
use super::{Transport, Values};

/// A member of a setting that is a mapping: `audit_logging_options.enabled`.
struct Member {
    setting: &'static str,
    path: &'static str,
    default: Option<&'static str>,
    older: Option<&'static str>,
}

impl Member {
    fn name(&self) -> String {
        format!("{}.{}", self.setting, self.path)
    }
}

const MEMBERS: &str = include_str!("members.txt");

fn members() -> Vec<Member> {
    let lines = MEMBERS.lines().filter(|line| !line.starts_with('#'));
    let member = |line: &'static str| {
        let mut words = line.split('\t');
        let (setting, path) = words.next()?.split_once('.')?;
        let default = match words.next()? {
            "null" => None,
            "\"\"" => Some(""),
            text => Some(text),
        };
        Some(Member { setting, path, default, older: words.next() })
    };
    lines.filter_map(member).collect()
}

impl Values {
    /// Rows 1 and 2, by their present names.
    pub(super) fn listed(
        &self,
        transport: &Transport,
        engine: &Options,
        data_dir: &Path,
    ) -> Listed {
        let members = members();
        let is_whole = |key: &&Key| !members.iter().any(|member| member.setting == key.name);
        let whole = self.keys.iter().filter(is_whole);
        let mut listed: Listed =
            whole.map(|key| (key.name.to_owned(), self.text_of(key))).collect();
        for member in &members {
            let node = self.node(member.setting);
            let value = match node.map(|node| value_of(node, member.path)) {
                Some(Found::Text(text)) => Some(text),
                Some(Found::Null) => None,
                Some(Found::Default) | None => member.default.map(str::to_owned),
            };
            listed.insert(member.name(), value);
        }
        for (name, value) in self.decided(transport, engine, data_dir) {
            let shown = listed.entry(name.to_owned()).or_default();
            if shown.as_deref().is_none_or(|text| text == "[]") {
                *shown = Some(value);
            }
        }
        listed
    }

    fn text_of(&self, key: &Key) -> Option<String> {
        match (self.node(key.name), &key.kind) {
            (Some(Node::List(items)), _) => {
                Some(list_of(key.name, items.iter().map(Node::to_string).collect()))
            }
            (Some(node), _) => Some(node.to_string()),
            (None, Kind::List) => Some("[]".to_owned()),
            (None, _) => key.default.map(str::to_owned),
        }
    }

    fn decided(
        &self,
        transport: &Transport,
        engine: &Options,
        data_dir: &Path,
    ) -> [(&'static str, String); 18] {
        let mebibytes = |bytes: u64| format!("{}MiB", bytes >> 20);
        let directory = |path: &Path| path.display().to_string();
        let directories: Vec<_> =
            engine.data_directories.iter().map(|path| directory(path)).collect();
        let hints = self.directory("hints_directory", data_dir, "hints");
        [
            ("commitlog_directory", directory(&engine.commitlog.directory)),
            ("concurrent_compactors", engine.concurrent_compactors.to_string()),
            ("data_file_directories", format!("[{}]", directories.join(", "))),
            ("file_cache_size", mebibytes(engine.chunk_cache_size)),
            ("hints_directory", directory(&hints)),
            ("index_summary_capacity", mebibytes(engine.index_summary_capacity)),
            ("key_cache_size", mebibytes(engine.key_cache_size)),
            ("max_mutation_size", format!("{}KiB", engine.commitlog.segment_size / 2048)),
            ("memtable_heap_space", mebibytes(engine.memtable_space)),
            ("memtable_offheap_space", mebibytes(0)),
            ("native_transport_max_message_size", format!("{}B", transport.max_message_size)),
            (
                "native_transport_max_request_data_in_flight",
                format!("{}B", transport.max_request_data_in_flight),
            ),
            (
                "native_transport_max_request_data_in_flight_per_ip",
                format!("{}B", transport.max_request_data_in_flight_per_ip),
            ),
            ("prepared_statements_cache_size", mebibytes(transport.prepared_statements_cache_size)),
            ("rpc_address", transport.address.ip().to_string()),
            ("saved_caches_directory", directory(&engine.saved_caches_directory)),
            ("shards", engine.shards.to_string()),
            ("sstable.selected_format", "big".to_owned()),
        ]
    }
}

/// The value of a setting that is a list. Consistency levels are in the order of their codes, as in Java's `EnumSet`.
pub(super) fn list_of(setting: &str, mut items: Vec<String>) -> String {
    if setting.contains("_consistency_levels_") {
        items.sort_by_key(|item| {
            Consistency::ALL.iter().position(|level| level.name().eq_ignore_ascii_case(item))
        });
    }
    format!("[{}]", items.join(", "))
}

enum Found {
    Text(String),
    Null,
    Default,
}

/// A class may be its name alone, or a name and parameters, in a mapping or in a list of one.
fn value_of(node: &Node, path: &str) -> Found {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    match (node.only(), name) {
        (Node::Scalar(class), "class_name") => Found::Text(class.clone()),
        (Node::Scalar(_), "parameters") => Found::Text("{}".to_owned()),
        (Node::Map(_), _) => match (node.only().get(name), rest) {
            (Some(Node::Null), _) => Found::Default,
            (Some(member), Some(rest)) => value_of(member, rest),
            (Some(member), None) => Found::Text(member.only().shown_as(name)),
            (None, _) if path.ends_with("parameters") && rest.is_none() => Found::Null,
            (None, _) => Found::Default,
        },
        _ => Found::Default,
    }
}

/// All rows: those of present names, and those of names of 4.0.
pub(super) fn with_older_names(listed: &Listed) -> Listed {
    let mut all = listed.clone();
    let value = |name: &str| listed.get(name).and_then(Option::as_deref);
    for member in members() {
        if let Some(older) = member.older {
            all.insert(older.to_owned(), value(&member.name()).map(str::to_owned));
        }
    }
    for key in keys().iter().filter(|key| !key.is_own) {
        for (older, unit) in &key.older {
            all.insert((*older).to_owned(), under_older_name(older, *unit, value(key.name)));
        }
    }
    all
}

/// The present name of a setting, given an older one.
pub(super) fn present_name(older: &str) -> Option<String> {
    let members = members();
    let member = members.iter().find(|member| member.older == Some(older)).map(Member::name);
    member.or_else(|| {
        let mut keys = keys().into_iter();
        let key = keys.find(|key| key.older.iter().any(|(name, _)| *name == older));
        key.map(|key| key.name.to_owned())
    })
}

fn under_older_name(older: &str, unit: Option<&str>, text: Option<&str>) -> Option<String> {
    match (text, unit) {
        // Where the older name had no null.
        (None, _) if older.ends_with("_update_interval_in_ms") => Some("-1".to_owned()),
        (None, _) => None,
        (Some(text), None) => Some(text.to_owned()),
        // Java's double.
        (Some(text), Some(unit)) if older == "commitlog_sync_group_window_in_ms" => {
            in_unit(text, unit).map(|number| format!("{number}.0"))
        }
        (Some(text), Some(unit)) => in_unit(text, unit),
    }
}
