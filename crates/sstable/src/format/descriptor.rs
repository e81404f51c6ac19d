//! File names: `<version>-<id>-<format>-<component>`, exactly four tokens.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::version::{Format, Version};

pub use super::id::SSTableId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Component {
    Data,
    Index,
    Summary,
    Partitions,
    Rows,
    Filter,
    CompressionInfo,
    Crc,
    Statistics,
    Digest,
    Toc,
}

impl Component {
    /// The components that SSTables of a format may have; of `CompressionInfo` and `Crc` each has one.
    pub fn of_format(format: Format) -> &'static [Component] {
        use Component::*;
        match format {
            Format::Big => {
                &[Data, Index, Summary, Filter, CompressionInfo, Crc, Statistics, Digest, Toc]
            }
            Format::Bti => {
                &[Data, Partitions, Rows, Filter, CompressionInfo, Crc, Statistics, Digest, Toc]
            }
        }
    }

    /// Whether an SSTable of the format cannot be opened without this component.
    pub fn is_required(self, format: Format) -> bool {
        match self {
            Component::Data | Component::Statistics => true,
            Component::Index => format == Format::Big,
            Component::Partitions | Component::Rows => format == Format::Bti,
            _ => false,
        }
    }

    pub fn file_suffix(self) -> &'static str {
        match self {
            Component::Data => "Data.db",
            Component::Index => "Index.db",
            Component::Summary => "Summary.db",
            Component::Partitions => "Partitions.db",
            Component::Rows => "Rows.db",
            Component::Filter => "Filter.db",
            Component::CompressionInfo => "CompressionInfo.db",
            Component::Crc => "CRC.db",
            Component::Statistics => "Statistics.db",
            Component::Digest => "Digest.crc32",
            Component::Toc => "TOC.txt",
        }
    }

    const ALL: [Component; 11] = [
        Component::Data,
        Component::Index,
        Component::Summary,
        Component::Partitions,
        Component::Rows,
        Component::Filter,
        Component::CompressionInfo,
        Component::Crc,
        Component::Statistics,
        Component::Digest,
        Component::Toc,
    ];
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.file_suffix())
    }
}

impl FromStr for Component {
    type Err = String;

    fn from_str(s: &str) -> Result<Component, String> {
        Component::ALL
            .into_iter()
            .find(|c| c.file_suffix() == s)
            .ok_or_else(|| format!("no SSTable component is named {s:?}"))
    }
}

/// Order: directory, then version, then identifier (creation order of the identifiers of one kind).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Descriptor {
    pub directory: PathBuf,
    pub version: Version,
    pub id: SSTableId,
}

impl Descriptor {
    pub fn new(directory: impl Into<PathBuf>, version: Version, id: SSTableId) -> Descriptor {
        Descriptor { directory: directory.into(), version, id }
    }

    /// Splits a file name into its SSTable and the component's name, which may be foreign (`SAI+…`).
    /// The version may be unknown to this program: see `Version::readable`.
    pub fn parse_file_name<'a>(
        directory: &Path,
        file_name: &'a str,
    ) -> Result<(Descriptor, &'a str), String> {
        let mut tokens = file_name.split('-');
        let mut token = || tokens.next().filter(|t| !t.is_empty());
        let (Some(version), Some(id), Some(format), Some(component), None) =
            (token(), token(), token(), token(), token())
        else {
            return Err(format!(
                "SSTable file name <version>-<id>-<format>-<component> expected, found {file_name:?}"
            ));
        };
        let version = Version::parse(format.parse()?, version)?;
        Ok((Descriptor::new(directory, version, id.parse()?), component))
    }

    /// The SSTable that a path to one of its components belongs to.
    pub fn of_path(path: &Path) -> Result<(Descriptor, Component), String> {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| format!("{} names no file", path.display()))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let (descriptor, component) = Descriptor::parse_file_name(directory, name)?;
        Ok((descriptor, component.parse()?))
    }

    /// `oa-1-big-`: the prefix of the names of all components.
    pub fn file_prefix(&self) -> String {
        format!("{}-{}-{}-", self.version, self.id, self.version.format)
    }

    pub fn file_name(&self, component: Component) -> String {
        self.file_prefix() + component.file_suffix()
    }

    pub fn component_path(&self, component: Component) -> PathBuf {
        self.directory.join(self.file_name(component))
    }

    /// Path of a component that may be foreign.
    pub fn path_of(&self, component: &str) -> PathBuf {
        self.directory.join(self.file_prefix() + component)
    }
}

/// The path without a component: `dir/oa-1-big`.
impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = self.file_prefix();
        let path = self.directory.join(prefix.trim_end_matches('-'));
        write!(f, "{}", path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for (name, version, component) in [
            ("oa-1-big-Data.db", Version::OA, Component::Data),
            ("da-3dyh_000i_4sqcu2q57ww3mxrulb-bti-Rows.db", Version::DA, Component::Rows),
            ("nb-2147483647-big-Digest.crc32", Version::NB, Component::Digest),
        ] {
            let path = Path::new("ks/t-1").join(name);
            let (descriptor, found) = Descriptor::of_path(&path).expect("valid");
            assert_eq!((descriptor.version, found), (version, component));
            assert_eq!(descriptor.component_path(component), path);
        }
        for component in Component::ALL {
            assert_eq!(component.to_string().parse(), Ok(component));
        }
        for format in [Format::Big, Format::Bti] {
            let required = Component::ALL.into_iter().filter(|c| c.is_required(format));
            for component in required {
                assert!(Component::of_format(format).contains(&component));
            }
        }
    }

    #[test]
    fn foreign_names() {
        for bad in [
            "",
            "oa-1-big",
            "oa-1-big-",
            "oa-1-big-Data.db-x",
            "oa--big-Data.db",
            "oa-1-bag-Data.db",
            "oaa-1-big-Data.db",
            "oa-x-big-Data.db",
            "oa-1-big-Other.db",
            "oa_txn_compaction_50554d6e-29bb-11e5-b345-feff819cdc9f.log",
        ] {
            assert!(Descriptor::of_path(&Path::new("d").join(bad)).is_err(), "{bad}");
        }
    }
}
