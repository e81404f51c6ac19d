//! The files of a table's directory by kind: SSTables with their components, leftovers, and others.
//!
//! A name that ends in `.db` is data (Cassandra's `Descriptor.isValidFile`). If the name does not say of which SSTable, Cassandra does not
//! start, and this program never passes over the file silently. All other names that belong to no SSTable are ignored.
//!
//! ```text
//!   oa-1-big-Data.db   oa-1-big-TOC.txt   oa-1-big-SAI+aa+GroupMeta.db   oa-1-big-Statistics.db.tmp
//!   └── component ──┘                     └── extra ────────────────┘    └── temporary ───────┘
//!   ks-t-ka-1-Data.db  oa-02-big-Data.db  stray.db                                     unreadable
//!   manifest.json  schema.cql  backups  snapshots  .index  oa_txn_….log                foreign
//!   ks-t-tmp-ka-1-Data.db                                                              foreign: unfinished, before 2.2
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use super::descriptor::{Component, Descriptor};
use super::version::{Format, Version};

/// The file names of one directory, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the order of their descriptors.
    pub sstables: Vec<ListedSSTable>,
    /// Half-written replacements (`….tmp`), deleted at start-up.
    pub temporary: Vec<String>,
    /// By the names of their files.
    pub unreadable: Vec<UnreadableName>,
    /// Names that belong to no SSTable.
    pub foreign: Vec<String>,
}

/// Files of one SSTable, by a name that this program cannot read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableName {
    /// What the names of its files have in common, `ks-t-ka-1`.
    pub name: String,
    /// With the cure.
    pub why: String,
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
            match unreadable(name) {
                Some(files) if listing.unreadable.iter().any(|known| known.name == files.name) => {}
                Some(files) => listing.unreadable.push(files),
                None => listing.foreign.push(name.to_string()),
            }
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
    listing.unreadable.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    listing.foreign.sort_unstable();
    listing
}

/// What is wrong with a name that is not spelled as an SSTable's; none if it need not be.
fn unreadable(name: &str) -> Option<UnreadableName> {
    let stem = name.strip_suffix(".db")?;
    let (files, component) = name.rsplit_once('-').unwrap_or((stem, name));
    let tokens: Vec<&str> = files.split('-').collect();
    if tokens.iter().any(|token| matches!(*token, "tmp" | "tmplink")) {
        return None;
    }
    let legacy = match tokens.as_slice() {
        [.., version, id] if id.parse::<u32>().is_ok() => Version::parse(Format::Big, version).ok(),
        _ => None,
    };
    let why = match legacy.map(Version::readable) {
        Some(Err(why)) => why,
        _ => format!(
            "{name} is not named as an SSTable's file is, <version>-<id>-<format>-{component}: give it its name back, or move it away"
        ),
    };
    Some(UnreadableName { name: files.to_owned(), why })
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
                "ks-t-ka-1-Data.db",
                "ks-t-ka-1-Index.db",
                "ks-t-ka-1-TOC.txt",
                "ks-t-tmplink-ka-2-Data.db",
                "stray.db",
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
        assert_eq!(listing.foreign.len(), 8, "{:?}", listing.foreign);
        let [old, misspelled, stray] = listing.unreadable.as_slice() else {
            panic!("{:?}", listing.unreadable)
        };
        assert_eq!((old.name.as_str(), stray.name.as_str()), ("ks-t-ka-1", "stray"));
        assert!(old.why.contains("SSTable version ka") && old.why.contains("upgradesstables"));
        assert_eq!(misspelled.name, "oa-02-big");
        assert!(misspelled.why.contains("oa-02-big-Data.db is not named"), "{}", misspelled.why);
    }

    /// Which names keep Cassandra 5.0.9 from starting (`Descriptor.isValidFile`, `fromFileWithComponent`, `isCompatible`), and which not.
    /// It reads `oa-02-…` as generation 2, whose files have another name.
    #[test]
    fn what_cassandra_refuses_is_unreadable() {
        let listed = |name: &str| {
            let mut listing = group(Path::new("/t"), [name]);
            let opens = |s: ListedSSTable| s.descriptor.version.readable().is_ok();
            let refused = listing.sstables.pop().is_some_and(|s| !opens(s));
            refused || !listing.unreadable.is_empty()
        };
        for name in [
            "ks-t-ka-1-Data.db",
            "ks-t-jb-1-Data.db",
            "la-1-big-Data.db",
            "zz-1-big-Data.db",
            "oa-x-big-Data.db",
            "oa-1-bag-Data.db",
            "na-1-bti-Data.db",
            "fa-1-bti-Data.db",
            "NB-1-big-Data.db",
            "nb--big-Data.db",
            "nb-1-big-Data-x.db",
            "stray.db",
        ] {
            assert!(listed(name), "{name}");
        }
        for name in [
            "ks-t-tmp-ka-1-Data.db",
            "ks-t-tmplink-ka-1-Data.db",
            "tmp-la-1-big-Data.db",
            "mz-1-big-Data.db",
            "da-1-bti-Data.db",
            "nb-1-big-Other.db",
            "nb-1-big-SAI+aa+x.db",
            "nb-1-big-Data.db.tmp",
            "nb-1-big-Data.db.bak",
            "nb-1-big-Data.DB",
            "manifest.json",
            "x.log",
        ] {
            assert!(!listed(name), "{name}");
        }
    }
}
