//! Columns and bind markers, as metadata describes them.

use std::sync::Arc;

use halcyon_model::request::ColumnSpec;

/// Columns of a result set; shared by all its pages.
pub type ResultColumns = Arc<[ColumnSpec]>;

/// The bind markers of a statement, in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    pub specs: Vec<ColumnSpec>,
    /// For each partition key column the marker that gives its value; empty if not all are markers.
    pub partition_key: Vec<u16>,
    /// By marker, the name of what receives it, whatever name the user gave the marker.
    pub receivers: Vec<String>,
}

impl Variables {
    /// Notes what receives a marker. A name that the user gave it replaces the receiver's.
    pub fn note(&mut self, index: u16, name: Option<&str>, receiver: &ColumnSpec) {
        let at = usize::from(index);
        if self.specs.len() <= at {
            self.specs.resize_with(at + 1, ColumnSpec::default);
            self.receivers.resize_with(at + 1, String::new);
        }
        if let Some(spec) = self.specs.get_mut(at) {
            *spec = ColumnSpec { cql_type: receiver.cql_type.base().clone(), ..receiver.clone() };
            if let Some(name) = name {
                name.clone_into(&mut spec.name);
            }
        }
        if let Some(noted) = self.receivers.get_mut(at) {
            receiver.name.clone_into(noted);
        }
    }

    /// Finds the markers that give the partition key columns, the last one where there are several.
    pub fn find_partition_key<'k>(&mut self, columns: impl IntoIterator<Item = &'k str>) {
        let marker = |column: &str| {
            let at = self.receivers.iter().rposition(|receiver| receiver == column)?;
            u16::try_from(at).ok()
        };
        let found: Option<Vec<u16>> = columns.into_iter().map(marker).collect();
        self.partition_key = found.unwrap_or_default();
    }
}
