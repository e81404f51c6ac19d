//! Rows of a virtual table from values by column name.

use std::collections::BTreeMap;
use std::net::IpAddr;

use halcyon_io::clock::unix_micros;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::schema::ColumnKind;
use halcyon_model::token::join_key;
use halcyon_model::{Liveness, NO_DELETION_TIME, NO_TTL};
use halcyon_schema::catalog::Table;
use halcyon_stream::{Cell, Mutation, PartitionKey, RowBuf};

/// A value of a type that virtual tables have; `None` of an option is no cell.
pub(super) trait IntoValue {
    fn into_value(self) -> Option<Vec<u8>>;
}

impl IntoValue for &str {
    fn into_value(self) -> Option<Vec<u8>> {
        Some(self.as_bytes().to_vec())
    }
}

impl IntoValue for String {
    fn into_value(self) -> Option<Vec<u8>> {
        Some(self.into_bytes())
    }
}

impl IntoValue for bool {
    fn into_value(self) -> Option<Vec<u8>> {
        Some(vec![u8::from(self)])
    }
}

/// int
impl IntoValue for i32 {
    fn into_value(self) -> Option<Vec<u8>> {
        Some(self.to_be_bytes().to_vec())
    }
}

/// bigint
impl IntoValue for u64 {
    fn into_value(self) -> Option<Vec<u8>> {
        i64::try_from(self).unwrap_or(i64::MAX).into_value()
    }
}

impl IntoValue for i64 {
    fn into_value(self) -> Option<Vec<u8>> {
        Some(self.to_be_bytes().to_vec())
    }
}

/// double
impl IntoValue for f64 {
    fn into_value(self) -> Option<Vec<u8>> {
        Some(self.to_be_bytes().to_vec())
    }
}

/// timestamp: milliseconds since 1970
pub(super) struct Timestamp(pub(super) i64);

impl IntoValue for Timestamp {
    fn into_value(self) -> Option<Vec<u8>> {
        self.0.into_value()
    }
}

/// inet
impl IntoValue for IpAddr {
    fn into_value(self) -> Option<Vec<u8>> {
        Some(match self {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        })
    }
}

/// blob
impl IntoValue for Vec<u8> {
    fn into_value(self) -> Option<Vec<u8>> {
        Some(self)
    }
}

/// frozen<map<text, text>>
impl IntoValue for &[(String, String)] {
    fn into_value(self) -> Option<Vec<u8>> {
        let sorted: BTreeMap<_, _> = self.iter().map(|(key, value)| (key, value)).collect();
        let length = |length: usize| i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes();
        let mut out = length(sorted.len()).to_vec();
        for text in sorted.into_iter().flat_map(|(key, value)| [key, value]) {
            out.extend(length(text.len()));
            out.extend(text.as_bytes());
        }
        Some(out)
    }
}

impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> Option<Vec<u8>> {
        self?.into_value()
    }
}

/// Gathers a table's rows.
pub(super) struct Rows<'t> {
    table: &'t Table,
    now: i64,
    partitions: BTreeMap<Vec<u8>, Mutation>,
}

/// One row that is being filled.
pub(super) struct RowOf<'r, 't> {
    rows: &'r mut Rows<'t>,
    values: Vec<(&'static str, Vec<u8>)>,
}

impl<'t> Rows<'t> {
    pub(super) fn of(table: &'t Table) -> Rows<'t> {
        Rows { table, now: unix_micros(), partitions: BTreeMap::new() }
    }

    pub(super) fn row(&mut self) -> RowOf<'_, 't> {
        RowOf { rows: self, values: Vec::new() }
    }

    pub(super) fn finish(self) -> Vec<Mutation> {
        self.partitions.into_values().collect()
    }
}

impl RowOf<'_, '_> {
    pub(super) fn set(mut self, column: &'static str, value: impl IntoValue) -> Self {
        if let Some(value) = value.into_value() {
            self.values.push((column, value));
        }
        self
    }

    fn value(&self, name: &str) -> &[u8] {
        let found = self.values.iter().find(|(column, _)| *column == name);
        found.map_or(&[], |(_, value)| value)
    }

    /// Puts the row in.
    pub(super) fn done(self) {
        let Rows { table, now, .. } = *self.rows;
        let key: Vec<&[u8]> =
            table.columns(ColumnKind::PartitionKey).iter().map(|c| self.value(&c.name)).collect();
        // Names and addresses are far shorter than a key may be.
        let Some(key) = join_key(&key) else { return };
        let clustering: Vec<_> = table
            .columns(ColumnKind::Clustering)
            .iter()
            .map(|column| ClusteringValue::Bytes(self.value(&column.name)))
            .collect();
        let mut serialized = Vec::new();
        table.layout.clusterings.write(&clustering, &mut serialized);
        let mut row = RowBuf::new();
        row.parts.clustering = row.store(&serialized);
        row.parts.liveness =
            Liveness { timestamp: now, ttl: NO_TTL, local_expiration_time: NO_DELETION_TIME };
        for (index, column) in table.columns(ColumnKind::Regular).iter().enumerate() {
            let Some((_, value)) = self.values.iter().find(|(name, _)| *name == column.name) else {
                continue;
            };
            let value = row.store(value);
            row.parts.cells.push(Cell {
                column: index as u16,
                ttl: NO_TTL,
                timestamp: now,
                local_deletion_time: NO_DELETION_TIME,
                path: Default::default(),
                value,
            });
        }
        let mutation = self.rows.partitions.entry(key).or_insert_with_key(|key| {
            Mutation::new(table.id, table.layout.clone(), PartitionKey::of(key))
        });
        mutation.rows.push(row);
    }
}
