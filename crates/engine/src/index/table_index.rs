//! The indexes that a table's definition has, and where their files are.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use halcyon_model::CqlType;
use halcyon_model::schema::ColumnKind;
use halcyon_schema::catalog::Table;
use halcyon_schema::index::{Index, IndexPart};
use halcyon_sstable::attached::{AttachedIndex, Part, Source, Target, index_of_component};
use halcyon_sstable::format::listing::ListedSSTable;

/// An index that writes keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableIndex {
    pub(crate) name: String,
    pub(crate) target: Target,
    /// What decides the content: a file of another one is of an index that had the same name.
    pub(crate) fingerprint: Vec<u8>,
}

/// The files of an SSTable's indexes, by name; `None`: not opened, since no index was known by that name, or it could not be used.
pub(crate) type Attached = ArcSwap<BTreeMap<String, Option<Arc<AttachedIndex>>>>;

/// The indexes of a table that are kept.
pub(crate) fn of_table(table: &Table) -> Vec<TableIndex> {
    let kept = table.indexes.iter().filter(|index| index.is_kept());
    kept.filter_map(|index| table_index(table, index)).collect()
}

fn table_index(table: &Table, index: &Index) -> Option<TableIndex> {
    let at = table.indexed_column(index)?;
    let column = table.column(at)?;
    let term_type = index.term_type(&column.cql_type);
    let position = usize::from(at.index);
    let source = match at.kind {
        ColumnKind::PartitionKey => {
            Source::PartitionKey(position, table.schema.partition_key.len())
        }
        ColumnKind::Clustering => Source::Clustering(position),
        ColumnKind::Static => Source::Static(at.index),
        ColumnKind::Regular => Source::Regular(at.index),
    };
    let is_set = matches!(column.cql_type.base(), CqlType::Set(_));
    let part = match index.part {
        IndexPart::Value | IndexPart::Full => Part::Whole,
        // A set's elements are the paths of its cells.
        IndexPart::Values if is_set => Part::Keys,
        IndexPart::Values => Part::Values,
        IndexPart::Keys => Part::Keys,
        IndexPart::Entries => Part::Entries,
    };
    let analysis = index.analysis();
    let similarity = index.similarity(&term_type);
    let of_vectors = similarity.map(|similarity| format!(" {similarity:?}")).unwrap_or_default();
    let sasi = index.sasi();
    let of_sasi = sasi.map(|sasi| format!(" {sasi:?}")).unwrap_or_default();
    let fingerprint =
        format!("{} {part:?} {term_type:?} {analysis:?}{of_vectors}{of_sasi}", index.column);
    let fingerprint = fingerprint.into_bytes();
    let layout = table.layout.clone();
    let target = Target { source, part, term_type, analysis, sasi, similarity, layout };
    Some(TableIndex { name: index.name.clone(), target, fingerprint })
}

/// The files of indexes that an SSTable had when it was opened.
pub(crate) fn files_of(listed: &ListedSSTable) -> Attached {
    let names = listed.extra.iter().filter_map(|name| index_of_component(name));
    ArcSwap::from_pointee(names.map(|name| (name.to_owned(), None)).collect())
}
