//! The columns of a stream, as far as comparing and reconciling rows needs them.
//!
//! Static and regular columns are two lists in on-disk order: simple columns by name, then complex columns by name. A
//! cell refers to its column by the index in the list of its row's kind.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_model::schema::{ColumnDef, TableSchema, compare_column_names};
use halcyon_model::{Clusterings, CqlType, Partitioner};

use crate::fragment::PartitionKey;

/// How cells of a column are stored and reconciled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnShape {
    Simple,
    Counter,
    /// One cell per element, ordered by a path of this type (list: timeuuid; set: element; map: key; UDT: field index).
    Complex {
        path_type: CqlType,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: Vec<u8>,
    pub cql_type: CqlType,
    pub shape: ColumnShape,
}

impl Column {
    pub fn new(name: Vec<u8>, cql_type: CqlType) -> Column {
        let shape = match &cql_type {
            CqlType::Counter => ColumnShape::Counter,
            CqlType::List(_) => ColumnShape::Complex { path_type: CqlType::TimeUuid },
            CqlType::Set(element) => ColumnShape::Complex { path_type: (**element).clone() },
            CqlType::Map(key, _) => ColumnShape::Complex { path_type: (**key).clone() },
            CqlType::Udt(_) => ColumnShape::Complex { path_type: CqlType::SmallInt },
            _ => ColumnShape::Simple,
        };
        Column { name, cql_type, shape }
    }

    pub fn is_complex(&self) -> bool {
        matches!(self.shape, ColumnShape::Complex { .. })
    }

    pub fn is_counter(&self) -> bool {
        self.shape == ColumnShape::Counter
    }

    /// On-disk order: simple before complex, then by name.
    pub fn compare(&self, other: &Column) -> Ordering {
        let names = || compare_column_names(&self.name, &other.name);
        self.is_complex().cmp(&other.is_complex()).then_with(names)
    }
}

/// Which of the two column lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statics {
    Static,
    Regular,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub partitioner: Partitioner,
    pub key_type: CqlType,
    pub clusterings: Clusterings,
    pub clustering_types: Vec<CqlType>,
    pub statics: Vec<Column>,
    pub regulars: Vec<Column>,
}

/// Inputs that cannot belong to one table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LayoutError(pub String);

impl Layout {
    /// The layout of a table under Murmur3Partitioner. The schema's order of columns is the order on disk.
    pub fn of_table(schema: &TableSchema) -> Layout {
        let columns = |defs: &[ColumnDef]| {
            let column =
                |def: &ColumnDef| Column::new(def.name.clone().into_bytes(), def.cql_type.clone());
            defs.iter().map(column).collect()
        };
        let types =
            |defs: &[ColumnDef]| defs.iter().map(|def| def.cql_type.clone()).collect::<Vec<_>>();
        let key_type = match schema.partition_key.as_slice() {
            [single] => single.cql_type.clone(),
            several => CqlType::Composite(types(several)),
        };
        let clustering_types = types(&schema.clustering);
        Layout {
            partitioner: Partitioner::Murmur3,
            key_type,
            clusterings: Clusterings::new(&clustering_types),
            clustering_types,
            statics: columns(&schema.statics),
            regulars: columns(&schema.regulars),
        }
    }

    /// The layout of reversed reads: the order of each clustering column is flipped. Serialized clusterings do not change.
    #[must_use]
    pub fn reversed(&self) -> Layout {
        let flip = |cql_type: &CqlType| match cql_type {
            CqlType::Reversed(base) => (**base).clone(),
            other => CqlType::Reversed(Box::new(other.clone())),
        };
        let clustering_types: Vec<CqlType> = self.clustering_types.iter().map(flip).collect();
        Layout {
            clusterings: Clusterings::new(&clustering_types),
            clustering_types,
            ..self.clone()
        }
    }

    pub fn columns(&self, which: Statics) -> &[Column] {
        match which {
            Statics::Static => &self.statics,
            Statics::Regular => &self.regulars,
        }
    }

    /// The layout that holds the rows of all inputs (`SerializationHeader.make`), which are given oldest first. If a column's type
    /// differs between inputs, the later input's is taken, provided that both store values in the same framing.
    pub fn union<'a>(
        inputs: impl IntoIterator<Item = &'a Arc<Layout>>,
    ) -> Result<Arc<Layout>, LayoutError> {
        let mut inputs = inputs.into_iter();
        let Some(first) = inputs.next() else {
            return Err(LayoutError("no input to merge".into()));
        };
        let mut union = Layout::clone(first);
        for input in inputs {
            if input.as_ref() == &union {
                continue;
            }
            if input.partitioner != union.partitioner {
                return Err(LayoutError("inputs were written with different partitioners".into()));
            }
            check_same_clusterings(&union, input)?;
            union.key_type = input.key_type.clone();
            union.clustering_types = input.clustering_types.clone();
            union.clusterings = input.clusterings.clone();
            union.statics = union_columns(&union.statics, &input.statics)?;
            union.regulars = union_columns(&union.regulars, &input.regulars)?;
        }
        Ok(Arc::new(union))
    }
}

fn check_same_clusterings(a: &Layout, b: &Layout) -> Result<(), LayoutError> {
    let framing = |l: &Layout| -> Vec<(Option<u32>, bool)> {
        l.clustering_types
            .iter()
            .map(|t| (t.fixed_len(), matches!(t, CqlType::Reversed(_))))
            .collect()
    };
    if framing(a) == framing(b) {
        return Ok(());
    }
    Err(LayoutError("inputs have different clustering columns: not of one table".into()))
}

fn union_columns(a: &[Column], b: &[Column]) -> Result<Vec<Column>, LayoutError> {
    let mut by_name: BTreeMap<&[u8], &Column> = a.iter().map(|c| (c.name.as_slice(), c)).collect();
    for column in b {
        let Some(known) = by_name.insert(&column.name, column) else { continue };
        let name = String::from_utf8_lossy(&column.name);
        if known.is_complex() != column.is_complex() {
            return Err(LayoutError(format!(
                "column {name} is a multi-cell collection in one input and a single value in another"
            )));
        }
        if known.cql_type.fixed_len() != column.cql_type.fixed_len()
            || (known.shape == ColumnShape::Counter) != (column.shape == ColumnShape::Counter)
        {
            return Err(LayoutError(format!(
                "column {name} has types in two inputs whose values are stored differently"
            )));
        }
        if field_count(known) > field_count(column) {
            by_name.insert(&column.name, known);
        }
    }
    let mut columns: Vec<Column> = by_name.into_values().cloned().collect();
    columns.sort_by(Column::compare);
    Ok(columns)
}

/// Of the user types in a column, at any depth: they can only gain fields, so the definition with more of them is the newer one.
fn field_count(column: &Column) -> usize {
    fn fields(cql_type: &CqlType) -> usize {
        let own = if let CqlType::Udt(udt) = cql_type { udt.fields.len() } else { 0 };
        own + cql_type.children().into_iter().map(fields).sum::<usize>()
    }
    fields(&column.cql_type)
}

impl Layout {
    /// Order of two partitions.
    #[inline]
    pub fn compare_keys(&self, a: &PartitionKey, b: &PartitionKey) -> Ordering {
        match &self.partitioner {
            Partitioner::Murmur3 => a.token.cmp(&b.token).then_with(|| a.bytes.cmp(&b.bytes)),
            other => other.compare(&a.bytes, &b.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use halcyon_model::types::UserType;

    use super::*;

    /// Proves that of two definitions of a user type the one with more fields stays, whatever it is part of and whichever input has it.
    #[test]
    fn the_newer_user_type_stays() {
        let user = |fields: usize| {
            let field = |i: usize| (format!("f{i}").into_bytes(), CqlType::Int);
            let fields = (0..fields).map(field).collect();
            let (keyspace, name) = ("ks".into(), "u".into());
            CqlType::Udt(Box::new(UserType { keyspace, name, fields }))
        };
        let frozen = |fields| Box::new(CqlType::Frozen(Box::new(user(fields))));
        let column = |cql_type| vec![Column::new(b"c".to_vec(), cql_type)];
        type Of<'a> = &'a dyn Fn(usize) -> CqlType;
        let shapes: [Of<'_>; 6] = [
            &|n| user(n),
            &|n| CqlType::List(frozen(n)),
            &|n| CqlType::Frozen(Box::new(CqlType::Set(frozen(n)))),
            &|n| CqlType::Map(Box::new(CqlType::Int), frozen(n)),
            &|n| CqlType::Tuple(vec![CqlType::Int, *frozen(n)]),
            &|n| CqlType::Vector(frozen(n), 3),
        ];
        for shape in shapes {
            for (older, newer) in [(1, 2), (2, 1)] {
                let union = union_columns(&column(shape(older)), &column(shape(newer)));
                assert_eq!(union, Ok(column(shape(2))));
            }
        }
    }
}
