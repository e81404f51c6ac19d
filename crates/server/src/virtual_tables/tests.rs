//! The list of virtual tables.

use std::collections::BTreeSet;

use halcyon_schema::catalog::TableKind;

use super::{all, registry};

/// Proves that each definition makes one table, under a name and an id of its own, and that each keyspace is virtual.
#[test]
fn definitions_are_understood() {
    let registry = registry().expect("understood");
    let counts: Vec<_> =
        registry.keyspaces.iter().map(|k| (k.name.as_str(), k.tables.len())).collect();
    let expected = [
        ("halcyon_views", 25),
        ("system_metrics", 50),
        ("system_views", 44),
        ("system_virtual_schema", 3),
    ];
    assert_eq!(counts, expected);
    assert_eq!(registry.tables.len(), all().count());
    let mut names = BTreeSet::new();
    for keyspace in &registry.keyspaces {
        assert!(keyspace.is_virtual);
        for table in keyspace.tables.values() {
            assert_eq!(table.kind, TableKind::Virtual);
            assert_ne!(table.id, [0; 16], "{}", table.full_name());
            assert_eq!(table.schema.keyspace, keyspace.name);
            names.insert(table.full_name());
        }
    }
    assert_eq!(names.len(), registry.tables.len());
}
