//! Secondary indexes of a table: what each indexes, as `system_schema.indexes` stores it.

use std::collections::BTreeMap;
use std::ops::Bound;

use halcyon_model::CqlType;
use halcyon_model::analysis::{Matching, Sasi, TextAnalysis};
use halcyon_model::similarity::Similarity;

/// The option that says what is indexed, as CQL: `v`, `keys(m)`, `"Quoted"`.
pub const TARGET: &str = "target";
/// The option that names the class of a custom index, as its statement spelled it.
pub const CLASS_NAME: &str = "class_name";

/// What `USING` calls Cassandra's own indexes.
pub(crate) const LEGACY: &str = "legacy_local_table";
pub(crate) const SASI: &str = "org.apache.cassandra.index.sasi.SASIIndex";
pub(crate) const SAI: &str = "org.apache.cassandra.index.sai.StorageAttachedIndex";

/// What a node's settings say of the making of indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSettings {
    /// `default_secondary_index`: the class where a statement has no `USING`.
    pub default_class: String,
    /// `default_secondary_index_enabled`
    pub has_default: bool,
    /// `sasi_indexes_enabled`
    pub is_sasi_allowed: bool,
}

impl Default for IndexSettings {
    fn default() -> IndexSettings {
        IndexSettings {
            default_class: LEGACY.to_owned(),
            has_default: true,
            is_sasi_allowed: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Unique in its keyspace.
    pub name: String,
    pub kind: IndexKind,
    /// The name of the indexed column: a column's place among others changes when one is added. An indexed column cannot be renamed.
    pub column: String,
    pub part: IndexPart,
    /// All options as they are stored, with `target` and `class_name`.
    pub options: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexKind {
    /// Cassandra's own `legacy_local_table`.
    Composites,
    /// The same on tables that were made through Thrift.
    Keys,
    /// Storage-attached.
    Sai,
    Sasi(Sasi),
    /// Another class: known from a directory that Cassandra wrote, and not kept up to date.
    Other(String),
}

/// What of a column's value the terms of an index are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexPart {
    /// A value that is not a collection.
    Value,
    /// The values of a list or map, the elements of a set.
    Values,
    Keys,
    Entries,
    /// A whole frozen collection.
    Full,
}

/// What a statement asks of an index; values are serialised in the type of its terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSearch {
    pub index: String,
    pub search: Search,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Search {
    Equal(Vec<u8>),
    Range {
        start: Bound<Vec<u8>>,
        end: Bound<Vec<u8>>,
    },
    /// Of SASI: texts that are so like one.
    Like(Matching, Vec<u8>),
}

/// What an `ORDER BY … ANN OF` asks of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct NearestSearch {
    pub index: String,
    pub similarity: Similarity,
    pub vector: Vec<f32>,
}

impl Index {
    /// An index as stored; `type_of` knows the table's columns. What no column can be found for is not kept up to date.
    pub fn stored<'a>(
        name: String,
        kind: &str,
        options: BTreeMap<String, String>,
        type_of: impl Fn(&str) -> Option<&'a CqlType>,
    ) -> Index {
        let target = options.get(TARGET).map_or("", String::as_str);
        let (column, part) = parse_target(target);
        let found = type_of(&column);
        let kind = match kind {
            _ if found.is_none() => IndexKind::Other(format!("on {target}")),
            "COMPOSITES" => IndexKind::Composites,
            "KEYS" => IndexKind::Keys,
            _ => match class(&options) {
                Some(SAI) => IndexKind::Sai,
                Some(SASI) => of_sasi(&options, found),
                other => IndexKind::Other(other.unwrap_or_default().to_owned()),
            },
        };
        let is_multi_cell = found.is_some_and(CqlType::is_multi_cell);
        let part = match part {
            IndexPart::Value if is_multi_cell => IndexPart::Values,
            part => part,
        };
        Index { name, kind, column, part, options }
    }

    /// The type of the terms, by the type of the column. Entries are composites of key and value, as in Cassandra.
    pub fn term_type(&self, column: &CqlType) -> CqlType {
        match (self.part, column.base()) {
            (IndexPart::Values, CqlType::List(element) | CqlType::Set(element)) => {
                CqlType::clone(element)
            }
            (IndexPart::Values, CqlType::Map(_, value)) => CqlType::clone(value),
            (IndexPart::Keys, CqlType::Map(key, _)) => CqlType::clone(key),
            (IndexPart::Entries, CqlType::Map(key, value)) => {
                CqlType::Composite(vec![CqlType::clone(key), CqlType::clone(value)])
            }
            (_, whole) => whole.clone(),
        }
    }

    /// What texts become before they are indexed, or compared with what is asked. Analysed values are text or ASCII.
    pub fn analysis(&self) -> Option<TextAnalysis> {
        match self.kind {
            IndexKind::Sai => TextAnalysis::of_options(&self.options),
            _ => None,
        }
    }

    /// How an index on vectors compares them; `None`: its terms are not vectors, or it is not storage-attached.
    pub fn similarity(&self, term: &CqlType) -> Option<Similarity> {
        let is_vector = matches!(term, CqlType::Vector(element, _) if **element == CqlType::Float);
        (is_vector && self.kind == IndexKind::Sai).then(|| Similarity::of_options(&self.options))
    }

    /// What a SASI index can be asked for.
    pub fn sasi(&self) -> Option<Sasi> {
        match self.kind {
            IndexKind::Sasi(sasi) => Some(sasi),
            _ => None,
        }
    }

    /// Cassandra's own, not storage-attached.
    pub fn is_legacy(&self) -> bool {
        matches!(self.kind, IndexKind::Composites | IndexKind::Keys)
    }

    pub fn is_storage_attached(&self) -> bool {
        matches!(self.kind, IndexKind::Sai)
    }

    /// Whether writes keep it up to date and searches use it.
    pub fn is_kept(&self) -> bool {
        !matches!(self.kind, IndexKind::Other(_))
    }

    /// As `system_schema.indexes` spells it.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            IndexKind::Keys => "KEYS",
            _ if self.options.contains_key(CLASS_NAME) => "CUSTOM",
            _ => "COMPOSITES",
        }
    }
}

/// One whose options cannot be understood is not kept up to date.
fn of_sasi(options: &BTreeMap<String, String>, column: Option<&CqlType>) -> IndexKind {
    let sasi = column.and_then(|column| Sasi::of_options(options, column).ok());
    sasi.map_or_else(|| IndexKind::Other(SASI.to_owned()), IndexKind::Sasi)
}

/// The full name of the class of a custom index.
pub(crate) fn class(options: &BTreeMap<String, String>) -> Option<&str> {
    let stated = options.get(CLASS_NAME)?;
    match stated.to_ascii_lowercase().as_str() {
        "sai" | "storageattachedindex" => Some(SAI),
        _ => Some(stated),
    }
}

/// The column and the part that a target means (`TargetParser`). Without a function: the column's value.
fn parse_target(target: &str) -> (String, IndexPart) {
    const FUNCTIONS: [(&str, IndexPart); 4] = [
        ("keys(", IndexPart::Keys),
        ("entries(", IndexPart::Entries),
        ("values(", IndexPart::Values),
        ("full(", IndexPart::Full),
    ];
    let inside = |(function, part): (&str, IndexPart)| {
        Some((target.strip_prefix(function)?.strip_suffix(')')?, part))
    };
    let called = FUNCTIONS.into_iter().find_map(inside);
    let (column, part) = called.unwrap_or((target, IndexPart::Value));
    let quoted = column.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    (quoted.map_or_else(|| column.to_owned(), |name| name.replace("\"\"", "\"")), part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a target names column and part, and that the terms have the type of that part.
    #[test]
    fn targets() {
        let map = CqlType::Map(Box::new(CqlType::Int), Box::new(CqlType::Text));
        let frozen = map.clone().freeze();
        let of = |target: &str, column: &CqlType| {
            let options = BTreeMap::from([(TARGET.to_owned(), target.to_owned())]);
            let type_of = |name: &str| (name == "a\"B(").then_some(column);
            let index = Index::stored("i".to_owned(), "COMPOSITES", options, type_of);
            (index.part, index.term_type(column), index.kind)
        };
        let (int, text, kind) = (CqlType::Int, CqlType::Text, IndexKind::Composites);
        let name = "\"a\"\"B(\"";
        assert_eq!(of(name, &int), (IndexPart::Value, CqlType::Int, kind.clone()));
        assert_eq!(of(name, &map), (IndexPart::Values, text, kind.clone()));
        assert_eq!(of(&format!("keys({name})"), &map), (IndexPart::Keys, int, kind.clone()));
        let entry = CqlType::Composite(vec![CqlType::Int, CqlType::Text]);
        assert_eq!(
            of(&format!("entries({name})"), &map),
            (IndexPart::Entries, entry, kind.clone())
        );
        assert_eq!(of(&format!("full({name})"), &frozen), (IndexPart::Full, frozen.clone(), kind));
        assert_eq!(of("b", &frozen).2, IndexKind::Other("on b".to_owned()));
    }
}
