//! Each guardrail, as a value. The order is that of Cassandra's `Guardrails`.

/// How a threshold's number is written in settings, and what it limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Of `int` in Cassandra.
    Count,
    /// Of `long` in Cassandra.
    LongCount,
    Bytes,
    Percent,
    /// Microseconds, from the request's time.
    Micros,
}

/// Guardrails that compare a number with two thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    Keyspaces,
    Tables,
    ColumnsPerTable,
    SecondaryIndexesPerTable,
    MaterializedViewsPerTable,
    PageSize,
    PartitionKeysInSelect,
    InSelectCartesianProduct,
    PartitionSize,
    PartitionTombstones,
    ColumnValueSize,
    CollectionSize,
    ItemsPerCollection,
    FieldsPerUdt,
    VectorDimensions,
    DataDiskUsage,
    MinimumReplicationFactor,
    MaximumReplicationFactor,
    MaximumTimestamp,
    MinimumTimestamp,
    SaiSstableIndexesPerQuery,
    SaiStringTermSize,
    SaiFrozenTermSize,
    SaiVectorTermSize,
}

pub struct ThresholdSpec {
    pub id: Threshold,
    /// Of the settings `…_warn_threshold` and `…_fail_threshold`.
    pub setting: &'static str,
    /// In messages.
    pub name: &'static str,
    pub reason: Option<&'static str>,
    pub unit: Unit,
    /// A smaller number violates it, not a larger one.
    pub is_minimum: bool,
    /// As in settings.
    pub warn_default: Option<&'static str>,
    pub fail_default: Option<&'static str>,
    /// `{what}`, `{value}`, `{threshold}`, `{level}` stand for what is checked.
    pub warning: &'static str,
    pub failure: &'static str,
}

const fn threshold(
    id: Threshold,
    name: &'static str,
    unit: Unit,
    warning: &'static str,
    failure: &'static str,
) -> ThresholdSpec {
    ThresholdSpec {
        id,
        setting: name,
        name,
        reason: None,
        unit,
        is_minimum: false,
        warn_default: None,
        fail_default: None,
        warning,
        failure,
    }
}

const fn same(id: Threshold, name: &'static str, unit: Unit, text: &'static str) -> ThresholdSpec {
    threshold(id, name, unit, text, text)
}

const fn because(spec: ThresholdSpec, reason: &'static str) -> ThresholdSpec {
    ThresholdSpec { reason: Some(reason), ..spec }
}

const fn term_size(
    id: Threshold,
    name: &'static str,
    warn: &'static str,
    fail: &'static str,
) -> ThresholdSpec {
    ThresholdSpec {
        warn_default: Some(warn),
        fail_default: Some(fail),
        ..same(id, name, Unit::Bytes, VALUE)
    }
}

const VALUE: &str =
    "Value of column '{what}' has size {value}, this exceeds the {level} threshold of {threshold}.";
const BELOW: &str = "The keyspace {what} has a replication factor of {value}, below the {level} threshold of {threshold}.";

pub(crate) const THRESHOLD_COUNT: usize = 24;

impl Threshold {
    /// In the order of the enum.
    pub const ALL: [ThresholdSpec; THRESHOLD_COUNT] = [
        threshold(
            Threshold::Keyspaces,
            "keyspaces",
            Unit::Count,
            "Creating keyspace {what}, current number of keyspaces {value} exceeds warning threshold of {threshold}.",
            "Cannot have more than {threshold} keyspaces, aborting the creation of keyspace {what}",
        ),
        threshold(
            Threshold::Tables,
            "tables",
            Unit::Count,
            "Creating table {what}, current number of tables {value} exceeds warning threshold of {threshold}.",
            "Cannot have more than {threshold} tables, aborting the creation of table {what}",
        ),
        threshold(
            Threshold::ColumnsPerTable,
            "columns_per_table",
            Unit::Count,
            "The table {what} has {value} columns, this exceeds the warning threshold of {threshold}.",
            "Tables cannot have more than {threshold} columns, but {value} provided for table {what}",
        ),
        threshold(
            Threshold::SecondaryIndexesPerTable,
            "secondary_indexes_per_table",
            Unit::Count,
            "Creating secondary index {what}, current number of indexes {value} exceeds warning threshold of {threshold}.",
            "Tables cannot have more than {threshold} secondary indexes, aborting the creation of secondary index {what}",
        ),
        threshold(
            Threshold::MaterializedViewsPerTable,
            "materialized_views_per_table",
            Unit::Count,
            "Creating materialized view {what}, current number of views {value} exceeds warning threshold of {threshold}.",
            "Tables cannot have more than {threshold} materialized views, aborting the creation of materialized view {what}",
        ),
        threshold(
            Threshold::PageSize,
            "page_size",
            Unit::Count,
            "Query for table {what} with page size {value} exceeds warning threshold of {threshold}.",
            "Aborting query for table {what}, page size {value} exceeds fail threshold of {threshold}.",
        ),
        threshold(
            Threshold::PartitionKeysInSelect,
            "partition_keys_in_select",
            Unit::Count,
            "Query with partition keys in IN clause on table {what}, with number of partition keys {value} exceeds warning threshold of {threshold}.",
            "Aborting query with partition keys in IN clause on table {what}, number of partition keys {value} exceeds fail threshold of {threshold}.",
        ),
        threshold(
            Threshold::InSelectCartesianProduct,
            "in_select_cartesian_product",
            Unit::Count,
            "The cartesian product of the IN restrictions on {what} produces {value} values, this exceeds warning threshold of {threshold}.",
            "Aborting query because the cartesian product of the IN restrictions on {what} produces {value} values, this exceeds fail threshold of {threshold}.",
        ),
        because(
            same(
                Threshold::PartitionSize,
                "partition_size",
                Unit::Bytes,
                "Partition {what} has size {value}, this exceeds the {level} threshold of {threshold}.",
            ),
            "Too large partitions can cause performance problems.",
        ),
        because(
            same(
                Threshold::PartitionTombstones,
                "partition_tombstones",
                Unit::LongCount,
                "Partition {what} has {value} tombstones, this exceeds the {level} threshold of {threshold}.",
            ),
            "Partitions with too many tombstones can cause performance problems.",
        ),
        same(Threshold::ColumnValueSize, "column_value_size", Unit::Bytes, VALUE),
        same(
            Threshold::CollectionSize,
            "collection_size",
            Unit::Bytes,
            "Detected collection {what} of size {value}, this exceeds the {level} threshold of {threshold}.",
        ),
        same(
            Threshold::ItemsPerCollection,
            "items_per_collection",
            Unit::Count,
            "Detected collection {what} with {value} items, this exceeds the {level} threshold of {threshold}.",
        ),
        threshold(
            Threshold::FieldsPerUdt,
            "fields_per_udt",
            Unit::Count,
            "The user type {what} has {value} columns, this exceeds the warning threshold of {threshold}.",
            "User types cannot have more than {threshold} columns, but {value} provided for user type {what}.",
        ),
        same(
            Threshold::VectorDimensions,
            "vector_dimensions",
            Unit::Count,
            "{what} has a vector of {value} dimensions, this exceeds the {level} threshold of {threshold}.",
        ),
        ThresholdSpec {
            setting: "data_disk_usage_percentage",
            ..threshold(
                Threshold::DataDiskUsage,
                "local_data_disk_usage",
                Unit::Percent,
                "Local data disk usage {value}({what}) exceeds warning threshold of {threshold}",
                "Local data disk usage {value}({what}) exceeds failure threshold of {threshold}, will stop accepting writes",
            )
        },
        ThresholdSpec {
            is_minimum: true,
            ..same(
                Threshold::MinimumReplicationFactor,
                "minimum_replication_factor",
                Unit::Count,
                BELOW,
            )
        },
        same(
            Threshold::MaximumReplicationFactor,
            "maximum_replication_factor",
            Unit::Count,
            "The keyspace {what} has a replication factor of {value}, above the {level} threshold of {threshold}.",
        ),
        because(
            same(
                Threshold::MaximumTimestamp,
                "maximum_timestamp",
                Unit::Micros,
                "The modification to table {what} has a timestamp {value} after the maximum allowable {level} threshold {threshold}",
            ),
            "Timestamps too far in the future can lead to data that can't be easily overwritten",
        ),
        because(
            ThresholdSpec {
                is_minimum: true,
                ..same(
                    Threshold::MinimumTimestamp,
                    "minimum_timestamp",
                    Unit::Micros,
                    "The modification to table {what} has a timestamp {value} before the minimum allowable {level} threshold {threshold}",
                )
            },
            "Timestamps too far in the past can cause writes can be unexpectedly lost",
        ),
        because(
            ThresholdSpec {
                warn_default: Some("32"),
                ..same(
                    Threshold::SaiSstableIndexesPerQuery,
                    "sai_sstable_indexes_per_query",
                    Unit::Count,
                    "The number of SSTable indexes queried on index {what} violated {level} threshold value {threshold} with value {value}",
                )
            },
            "High number of referenced indexes per query may negatively effect performance",
        ),
        term_size(Threshold::SaiStringTermSize, "sai_string_term_size", "1KiB", "8KiB"),
        term_size(Threshold::SaiFrozenTermSize, "sai_frozen_term_size", "1KiB", "8KiB"),
        term_size(Threshold::SaiVectorTermSize, "sai_vector_term_size", "16KiB", "32KiB"),
    ];

    pub fn spec(self) -> &'static ThresholdSpec {
        const SPECS: [ThresholdSpec; THRESHOLD_COUNT] = Threshold::ALL;
        static TABLE: [ThresholdSpec; THRESHOLD_COUNT] = SPECS;
        &TABLE[self as usize]
    }
}

/// Guardrails that allow a feature or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    SecondaryIndexes,
    UserTimestamps,
    GroupBy,
    AlterTable,
    DropTruncateTable,
    DropKeyspace,
    UncompressedTables,
    CompactTables,
    ZeroTtlOnTwcs,
    IntersectFilteringQuery,
    ReadBeforeWriteListOperations,
    AllowFiltering,
    SimpleStrategy,
    VectorType,
    NonPartitionRestrictedIndexQuery,
}

/// The default is always `true`.
pub struct FlagSpec {
    pub id: Flag,
    /// The setting that allows it.
    pub enabled: &'static str,
    /// The setting that warns of each use.
    pub warned: Option<&'static str>,
    /// In messages.
    pub name: &'static str,
    pub reason: Option<&'static str>,
    pub feature: &'static str,
}

const fn flag(
    id: Flag,
    enabled: &'static str,
    name: &'static str,
    feature: &'static str,
) -> FlagSpec {
    FlagSpec { id, enabled, warned: None, name, reason: None, feature }
}

pub(crate) const FLAG_COUNT: usize = 15;

impl Flag {
    /// In the order of the enum.
    pub const ALL: [FlagSpec; FLAG_COUNT] = [
        flag(
            Flag::SecondaryIndexes,
            "secondary_indexes_enabled",
            "secondary_indexes",
            "User creation of secondary indexes",
        ),
        flag(
            Flag::UserTimestamps,
            "user_timestamps_enabled",
            "user_timestamps",
            "User provided timestamps (USING TIMESTAMP)",
        ),
        flag(Flag::GroupBy, "group_by_enabled", "group_by", "GROUP BY functionality"),
        flag(
            Flag::AlterTable,
            "alter_table_enabled",
            "alter_table",
            "User access to ALTER TABLE statement for column mutation",
        ),
        flag(
            Flag::DropTruncateTable,
            "drop_truncate_table_enabled",
            "drop_truncate_table_enabled",
            "DROP and TRUNCATE TABLE functionality",
        ),
        flag(
            Flag::DropKeyspace,
            "drop_keyspace_enabled",
            "drop_keyspace_enabled",
            "DROP KEYSPACE functionality",
        ),
        flag(
            Flag::UncompressedTables,
            "uncompressed_tables_enabled",
            "uncompressed_tables_enabled",
            "Uncompressed table",
        ),
        flag(
            Flag::CompactTables,
            "compact_tables_enabled",
            "compact_tables",
            "Creation of new COMPACT STORAGE tables",
        ),
        FlagSpec {
            warned: Some("zero_ttl_on_twcs_warned"),
            reason: Some(
                "It is suspicious to use default_time_to_live set to 0 with such compaction strategy. Please keep in mind that \
                 data will not start to automatically expire after they are older than a respective compaction window unit of a \
                 certain size. Please set TTL for your INSERT or UPDATE statements if you expect data to be expired as table \
                 settings will not do it. ",
            ),
            ..flag(
                Flag::ZeroTtlOnTwcs,
                "zero_ttl_on_twcs_enabled",
                "zero_ttl_on_twcs",
                "0 default_time_to_live on a table with TimeWindowCompactionStrategy compaction strategy",
            )
        },
        FlagSpec {
            warned: Some("intersect_filtering_query_warned"),
            reason: Some(
                "Filtering queries involving an intersection on multiple mutable (i.e. non-key) columns over unrepaired data at \
                 read consistency levels that would require coordinator reconciliation may violate the guarantees of those \
                 consistency levels.",
            ),
            ..flag(
                Flag::IntersectFilteringQuery,
                "intersect_filtering_query_enabled",
                "intersect_filtering_query",
                "Filtering query with intersection on mutable columns at consistency level requiring coordinator reconciliation",
            )
        },
        flag(
            Flag::ReadBeforeWriteListOperations,
            "read_before_write_list_operations_enabled",
            "read_before_write_list_operations",
            "List operation requiring read before write",
        ),
        FlagSpec {
            reason: Some(
                "ALLOW FILTERING can potentially visit all the data in the table and have unpredictable performance.",
            ),
            ..flag(
                Flag::AllowFiltering,
                "allow_filtering_enabled",
                "allow_filtering",
                "Querying with ALLOW FILTERING",
            )
        },
        flag(Flag::SimpleStrategy, "simplestrategy_enabled", "simplestrategy", "SimpleStrategy"),
        flag(
            Flag::VectorType,
            "vector_type_enabled",
            "vector_type_enabled",
            "usage of the vector type",
        ),
        FlagSpec {
            reason: Some(
                "Executing a query on secondary indexes without partition key restriction might degrade performance",
            ),
            ..flag(
                Flag::NonPartitionRestrictedIndexQuery,
                "non_partition_restricted_index_query_enabled",
                "non_partition_restricted_index_query_enabled",
                "Non-partition key restricted query",
            )
        },
    ];

    pub fn spec(self) -> &'static FlagSpec {
        static TABLE: [FlagSpec; FLAG_COUNT] = Flag::ALL;
        &TABLE[self as usize]
    }
}

/// Guardrails that warn of words, ignore them, or refuse them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    TableProperties,
    ReadConsistencyLevels,
    WriteConsistencyLevels,
}

pub struct ValuesSpec {
    pub id: Values,
    pub name: &'static str,
    pub what: &'static str,
    pub warned: &'static str,
    pub ignored: Option<&'static str>,
    pub disallowed: &'static str,
}

pub(crate) const VALUES_COUNT: usize = 3;

impl Values {
    /// In the order of the enum.
    pub const ALL: [ValuesSpec; VALUES_COUNT] = [
        ValuesSpec {
            id: Values::TableProperties,
            name: "table_properties",
            what: "Table Properties",
            warned: "table_properties_warned",
            ignored: Some("table_properties_ignored"),
            disallowed: "table_properties_disallowed",
        },
        ValuesSpec {
            id: Values::ReadConsistencyLevels,
            name: "read_consistency_levels",
            what: "read consistency levels",
            warned: "read_consistency_levels_warned",
            ignored: None,
            disallowed: "read_consistency_levels_disallowed",
        },
        ValuesSpec {
            id: Values::WriteConsistencyLevels,
            name: "write_consistency_levels",
            what: "write consistency levels",
            warned: "write_consistency_levels_warned",
            ignored: None,
            disallowed: "write_consistency_levels_disallowed",
        },
    ];

    pub fn spec(self) -> &'static ValuesSpec {
        static TABLE: [ValuesSpec; VALUES_COUNT] = Values::ALL;
        &TABLE[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each guardrail finds its own entry, which is found by the number of the variant.
    #[test]
    fn entries_are_in_the_order_of_the_variants() {
        assert!(Threshold::ALL.iter().enumerate().all(|(at, spec)| spec.id as usize == at));
        assert!(Flag::ALL.iter().enumerate().all(|(at, spec)| spec.id as usize == at));
        assert!(Values::ALL.iter().enumerate().all(|(at, spec)| spec.id as usize == at));
        assert_eq!(Threshold::SaiVectorTermSize.spec().name, "sai_vector_term_size");
    }
}
