//! The files of a table's directory by kind: SSTables with their components, leftovers, and others.
//!
//! ```text
//!   oa-1-big-Data.db   oa-1-big-TOC.txt   oa-1-big-SAI+aa+GroupMeta.db   oa-1-big-Statistics.db.tmp
//!   └── component ──┘                     └── extra ────────────────┘    └── temporary ───────┘
//!   manifest.json  schema.cql  backups  snapshots  .index  oa_txn_….log                foreign
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use super::descriptor::{Component, Descriptor};

/// The file names of one directory, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the order of their descriptors.
    pub sstables: Vec<ListedSSTable>,
    /// Half-written replacements (`….tmp`), deleted at start-up.
    pub temporary: Vec<String>,
    /// Names that belong to no SSTable.
    pub foreign: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSSTable {
    pub descriptor: Descriptor,
    /// Sorted.
    pub components: Vec<Component>,
    /// Names of other components: secondary indexes and whatever carries the prefix. They live and die with it.
    pub extra: Vec<String>,
}

impl ListedSSTable {
    pub fn has(&self, component: Component) -> bool {
        self.components.contains(&component)
    }
}

/// Groups file names of one directory. A name that would be spelled differently (`oa-01-big-Data.db`) is foreign.
pub fn group<S: AsRef<str>>(directory: &Path, names: impl IntoIterator<Item = S>) -> Listing {
    let mut sstables: BTreeMap<Descriptor, ListedSSTable> = BTreeMap::new();
    let mut listing = Listing::default();
    for name in names {
        let name = name.as_ref();
        let parsed = Descriptor::parse_file_name(directory, name).ok();
        let Some((descriptor, component)) =
            parsed.filter(|(d, component)| name == d.file_prefix() + component)
        else {
            listing.foreign.push(name.to_string());
            continue;
        };
        if component.ends_with(".tmp") {
            listing.temporary.push(name.to_string());
            continue;
        }
        let sstable = sstables.entry(descriptor.clone()).or_insert_with(|| ListedSSTable {
            descriptor,
            components: Vec::new(),
            extra: Vec::new(),
        });
        match component.parse() {
            Ok(known)
                if Component::of_format(sstable.descriptor.version.format).contains(&known) =>
            {
                sstable.components.push(known);
            }
            _ => sstable.extra.push(component.to_string()),
        }
    }
    listing.sstables = sstables.into_values().collect();
    for sstable in &mut listing.sstables {
        sstable.components.sort_unstable();
        sstable.extra.sort_unstable();
    }
    listing.temporary.sort_unstable();
    listing.foreign.sort_unstable();
    listing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory() {
        let listing = group(
            Path::new("ks/t-1"),
            [
                "da-3dyh_000i_4sqcu2q57ww3mxrulb-bti-Data.db",
                "oa-10-big-TOC.txt",
                "oa-2-big-Statistics.db",
                "oa-2-big-SAI+aa+GroupMeta.db",
                "oa-2-big-SI_x.db",
                "oa-2-big-Data.db",
                "oa-2-big-Rows.db",
                "oa-2-big-Statistics.db.tmp",
                "oa-02-big-Data.db",
                "manifest.json",
                "schema.cql",
                "backups",
                "snapshots",
                ".idx",
                "oa_txn_flush_50554d6e-29bb-11e5-b345-feff819cdc9f.log",
            ],
        );
        let seen: Vec<String> = listing
            .sstables
            .iter()
            .map(|s| format!("{} {:?} {:?}", s.descriptor.file_prefix(), s.components, s.extra))
            .collect();
        assert_eq!(
            seen,
            [
                r#"oa-2-big- [Data, Statistics] ["Rows.db", "SAI+aa+GroupMeta.db", "SI_x.db"]"#,
                "oa-10-big- [Toc] []",
                "da-3dyh_000i_4sqcu2q57ww3mxrulb-bti- [Data] []",
            ]
        );
        assert_eq!(listing.temporary, ["oa-2-big-Statistics.db.tmp"]);
        assert_eq!(listing.foreign.len(), 7);
    }
}
