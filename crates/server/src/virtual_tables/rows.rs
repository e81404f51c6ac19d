//! Rows of a virtual table, from columns by name and values in their order:
//!
//! ```text
//!  let mut rows = rows.with(["name", "value"]);      names are looked up once, and none may be wrong
//!  rows.push([name.into(), value.into()]);           as many values as names, of the columns' types
//! ```
//!
//! A filler that names an unknown column, leaves out a column of the primary key or gives a value of another type is a bug; the read
//! fails with it, even if there are no rows. A test reads every table.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use halcyon_io::clock::unix_micros;
use halcyon_io::give_way;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::schema::{ColumnDef, ColumnKind};
use halcyon_model::token::join_key;
use halcyon_model::{Liveness, NO_DELETION_TIME, NO_TTL};
use halcyon_query::{Error, Result};
use halcyon_schema::catalog::Table;
use halcyon_stream::{Cell, Mutation, PartitionKey, RowBuf};

/// A row, in the units of [`give_way`]: some 2 µs.
const ROW: usize = 1 << 10;

/// A Rust type that stands for a CQL type.
pub(super) trait CqlValue {
    /// As DESCRIBE names it.
    const TYPE: &'static str;

    fn serialize(self) -> Vec<u8>;
}

/// A value with its type; null where an option was `None`.
pub(super) struct Value {
    cql_type: &'static str,
    bytes: Option<Vec<u8>>,
}

impl<T: CqlValue> From<T> for Value {
    fn from(value: T) -> Value {
        Value { cql_type: T::TYPE, bytes: Some(value.serialize()) }
    }
}

impl<T: CqlValue> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        Value { cql_type: T::TYPE, bytes: value.map(T::serialize) }
    }
}

/// Milliseconds since 1970.
pub(super) struct Timestamp(pub(super) i64);

pub(super) struct TimeUuid(pub(super) [u8; 16]);

impl CqlValue for &str {
    const TYPE: &'static str = "text";

    fn serialize(self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
}

impl CqlValue for String {
    const TYPE: &'static str = "text";

    fn serialize(self) -> Vec<u8> {
        self.into_bytes()
    }
}

impl CqlValue for bool {
    const TYPE: &'static str = "boolean";

    fn serialize(self) -> Vec<u8> {
        vec![u8::from(self)]
    }
}

impl CqlValue for i32 {
    const TYPE: &'static str = "int";

    fn serialize(self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }
}

impl CqlValue for i64 {
    const TYPE: &'static str = "bigint";

    fn serialize(self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }
}

impl CqlValue for u64 {
    const TYPE: &'static str = "bigint";

    fn serialize(self) -> Vec<u8> {
        i64::try_from(self).unwrap_or(i64::MAX).serialize()
    }
}

impl CqlValue for f64 {
    const TYPE: &'static str = "double";

    fn serialize(self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }
}

impl CqlValue for Timestamp {
    const TYPE: &'static str = "timestamp";

    fn serialize(self) -> Vec<u8> {
        self.0.serialize()
    }
}

impl CqlValue for TimeUuid {
    const TYPE: &'static str = "timeuuid";

    fn serialize(self) -> Vec<u8> {
        self.0.to_vec()
    }
}

impl CqlValue for IpAddr {
    const TYPE: &'static str = "inet";

    fn serialize(self) -> Vec<u8> {
        match self {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }
    }
}

impl CqlValue for Vec<u8> {
    const TYPE: &'static str = "blob";

    fn serialize(self) -> Vec<u8> {
        self
    }
}

impl CqlValue for &[u64] {
    const TYPE: &'static str = "frozen<list<bigint>>";

    fn serialize(self) -> Vec<u8> {
        let length = |length: usize| i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes();
        let mut out = length(self.len()).to_vec();
        for number in self {
            let number = number.serialize();
            out.extend(length(number.len()));
            out.extend(number);
        }
        out
    }
}

impl CqlValue for &[(String, String)] {
    const TYPE: &'static str = "frozen<map<text, text>>";

    fn serialize(self) -> Vec<u8> {
        let sorted: BTreeMap<_, _> = self.iter().map(|(key, value)| (key, value)).collect();
        let length = |length: usize| i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes();
        let mut out = length(sorted.len()).to_vec();
        for text in sorted.into_iter().flat_map(|(key, value)| [key, value]) {
            out.extend(length(text.len()));
            out.extend(text.as_bytes());
        }
        out
    }
}

/// As the columns `…_us` show it.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Collects a table's rows.
pub(super) struct Rows<'t> {
    table: &'t Table,
    now: i64,
    partitions: BTreeMap<Vec<u8>, Mutation>,
    /// The first mistake of the filler.
    mistake: Option<String>,
}

/// Takes rows that have values for `N` columns.
pub(super) struct Inserted<'r, 't, const N: usize> {
    rows: &'r mut Rows<'t>,
    columns: Columns,
}

/// Where the values of a row go: indexes into the values.
#[derive(Default)]
struct Columns {
    /// The type of each value.
    types: Vec<String>,
    partition_key: Vec<usize>,
    clustering: Vec<usize>,
    /// In the order of the table's regular columns, with the index of the column.
    regulars: Vec<(u16, usize)>,
}

impl Columns {
    fn resolve(table: &Table, names: &[&str]) -> std::result::Result<Columns, String> {
        let mut columns = Columns::default();
        for name in names {
            let found = table.find_column(name).and_then(|at| table.column(at));
            let column = found.ok_or_else(|| format!("there is no column {name}"))?;
            columns.types.push(column.cql_type.cql_name());
        }
        let at = |column: &ColumnDef| names.iter().position(|name| *name == column.name);
        let keys = [
            (ColumnKind::PartitionKey, &mut columns.partition_key),
            (ColumnKind::Clustering, &mut columns.clustering),
        ];
        for (kind, positions) in keys {
            for column in table.columns(kind) {
                let missing = || format!("{} of the primary key is not given", column.name);
                positions.push(at(column).ok_or_else(missing)?);
            }
        }
        let regulars = (0u16..).zip(table.columns(ColumnKind::Regular));
        columns.regulars = regulars.filter_map(|(i, column)| Some((i, at(column)?))).collect();
        Ok(columns)
    }
}

impl<'t> Rows<'t> {
    pub(super) fn of(table: &'t Table) -> Rows<'t> {
        Rows { table, now: unix_micros(), partitions: BTreeMap::new(), mistake: None }
    }

    /// What follows are rows with values for these columns.
    pub(super) fn with<const N: usize>(&mut self, names: [&str; N]) -> Inserted<'_, 't, N> {
        let columns = Columns::resolve(self.table, &names).unwrap_or_else(|mistake| {
            self.mistake.get_or_insert(mistake);
            Columns::default()
        });
        Inserted { rows: self, columns }
    }

    /// The rows cannot be computed: the read fails.
    pub(super) fn fail(&mut self, why: String) {
        self.mistake.get_or_insert(why);
    }

    pub(super) fn finish(self) -> Result<Vec<Mutation>> {
        match self.mistake {
            None => Ok(self.partitions.into_values().collect()),
            Some(mistake) => {
                Err(Error::Server(format!("virtual table {}: {mistake}", self.table.full_name())))
            }
        }
    }

    fn insert(&mut self, columns: &Columns, values: &[Value]) -> std::result::Result<(), String> {
        for (value, expected) in values.iter().zip(&columns.types) {
            if value.cql_type != expected {
                return Err(format!("a value of type {} for one of {expected}", value.cql_type));
            }
        }
        let Rows { table, now, .. } = *self;
        let key_part = |at: &usize| {
            let part = values.get(*at).and_then(|value| value.bytes.as_deref());
            part.ok_or_else(|| "null in the primary key".to_owned())
        };
        let key: Vec<&[u8]> =
            columns.partition_key.iter().map(key_part).collect::<std::result::Result<_, _>>()?;
        let key = join_key(&key).ok_or("a partition key longer than 65,535 bytes")?;
        let mut clustering = Vec::with_capacity(columns.clustering.len());
        for at in &columns.clustering {
            clustering.push(ClusteringValue::Bytes(key_part(at)?));
        }
        let mut serialized = Vec::new();
        table.layout.clusterings.write(&clustering, &mut serialized);
        let mut row = RowBuf::new();
        row.parts.clustering = row.store(&serialized);
        row.parts.liveness =
            Liveness { timestamp: now, ttl: NO_TTL, local_expiration_time: NO_DELETION_TIME };
        for (column, at) in &columns.regulars {
            let Some(value) = values.get(*at).and_then(|value| value.bytes.as_deref()) else {
                continue;
            };
            let value = row.store(value);
            row.parts.cells.push(Cell {
                column: *column,
                ttl: NO_TTL,
                timestamp: now,
                local_deletion_time: NO_DELETION_TIME,
                path: Default::default(),
                value,
            });
        }
        let mutation = self.partitions.entry(key).or_insert_with_key(|key| {
            Mutation::new(table.id, table.layout.clone(), PartitionKey::of(key))
        });
        mutation.rows.push(row);
        give_way(ROW);
        Ok(())
    }
}

impl<const N: usize> Inserted<'_, '_, N> {
    pub(super) fn push(&mut self, values: [Value; N]) {
        if self.rows.mistake.is_none()
            && let Err(mistake) = self.rows.insert(&self.columns, &values)
        {
            self.rows.mistake = Some(mistake);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halcyon_schema::virtual_keyspace;

    fn with_table(fill: impl Fn(&mut Rows<'_>)) -> Result<Vec<Mutation>> {
        let cql = "CREATE TABLE v.t (a text, b int, c bigint, PRIMARY KEY (a, b)) WITH ID = 310632c8-5cca-37bd-bf9f-9b73c4ffc4cb";
        let keyspace = virtual_keyspace(cql).expect("a keyspace");
        let table = keyspace.tables.get("t").expect("a table");
        let mut rows = Rows::of(table);
        fill(&mut rows);
        rows.finish()
    }

    fn mistake(fill: impl Fn(&mut Rows<'_>)) -> String {
        with_table(fill).expect_err("a mistake").to_string()
    }

    /// Proves that rows of one partition come together, whatever the order of the columns.
    #[test]
    fn rows_are_collected_by_partition() {
        let found = with_table(|rows| {
            let mut rows = rows.with(["c", "a", "b"]);
            rows.push([1u64.into(), "x".into(), 1.into()]);
            rows.push([None::<u64>.into(), "x".into(), 2.into()]);
            rows.push([3u64.into(), "y".into(), 1.into()]);
        });
        let cells = |mutation: &Mutation| -> Vec<usize> {
            mutation.rows.iter().map(|row| row.parts.cells.len()).collect()
        };
        let counts: Vec<_> = found.expect("rows").iter().map(cells).collect();
        assert_eq!(counts, [vec![1, 0], vec![1]]);
    }

    /// Proves that a wrong name, a missing key column, a null in the key and a wrong type fail the read; the first two without rows.
    #[test]
    fn mistakes_are_not_lost() {
        let unknown = mistake(|rows| drop(rows.with(["a", "b", "d"])));
        assert_eq!(unknown, "virtual table v.t: there is no column d");
        let missing = mistake(|rows| drop(rows.with(["a", "c"])));
        assert_eq!(missing, "virtual table v.t: b of the primary key is not given");
        let null = mistake(|rows| rows.with(["a", "b"]).push(["x".into(), None::<i32>.into()]));
        assert_eq!(null, "virtual table v.t: null in the primary key");
        let other = mistake(|rows| rows.with(["a", "b"]).push(["x".into(), 1u64.into()]));
        assert_eq!(other, "virtual table v.t: a value of type bigint for one of int");
    }
}
