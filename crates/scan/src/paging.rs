//! Paging states: where a page ended, in Cassandra's own form (`PagingState.modernSerialize`), so that drivers that
//! look into it see what they expect.
//!
//! ```text
//! uvint length, partition key     empty: nothing was read yet
//! uvint length, row mark          the clustering of the last row, every value of it framed by its length; empty: the
//!                                 partition is done
//! uvint rows left of the LIMIT, uvint rows left in the partition
//! ```
//!
//! A state is self-contained: it survives a reconnect and a restart. It comes back from the client, so it is checked.

use halcyon_model::bytes::Put;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::{Clusterings, CqlType, Cursor, DecodeResult};
use halcyon_stream::Layout;

use halcyon_cql::plan::select::NO_LIMIT;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagingState {
    pub key: Vec<u8>,
    /// Serialized as the table's layout has it.
    pub clustering: Option<Vec<u8>>,
    pub remaining: u32,
    pub remaining_in_partition: u32,
}

fn limit(value: u64) -> Option<u32> {
    u32::try_from(value).ok().filter(|value| *value <= NO_LIMIT)
}

/// Clusterings in which no value has a fixed length.
fn framed(layout: &Layout) -> Clusterings {
    Clusterings::new(&vec![CqlType::Blob; layout.clusterings.len()])
}

fn reframe(from: &Clusterings, to: &Clusterings, serialized: &[u8]) -> Vec<u8> {
    let values: Vec<ClusteringValue<'_>> = from.values(serialized, from.len()).collect();
    let mut out = Vec::new();
    to.write(&values, &mut out);
    out
}

impl PagingState {
    pub fn encode(&self, layout: &Layout) -> Vec<u8> {
        let mark = self
            .clustering
            .as_ref()
            .map(|clustering| reframe(&layout.clusterings, &framed(layout), clustering));
        let mut out = Vec::new();
        out.put_vbytes(&self.key);
        out.put_vbytes(&mark.unwrap_or_default());
        out.put_uvint(u64::from(self.remaining));
        out.put_uvint(u64::from(self.remaining_in_partition));
        out
    }

    /// `None`: it is of another table, or damaged.
    pub fn decode(bytes: &[u8], layout: &Layout) -> Option<PagingState> {
        PagingState::parse(bytes, layout).ok().flatten()
    }

    fn parse(bytes: &[u8], layout: &Layout) -> DecodeResult<Option<PagingState>> {
        let mut cursor = Cursor::new(bytes);
        let key = cursor.vbytes()?.to_vec();
        let mark = cursor.vbytes()?;
        let (remaining, in_partition) = (limit(cursor.uvint()?), limit(cursor.uvint()?));
        let (Some(remaining), Some(remaining_in_partition)) = (remaining, in_partition) else {
            return Ok(None);
        };
        if cursor.remaining() > 0 || key.len() > usize::from(u16::MAX) {
            return Ok(None);
        }
        let clustering = if mark.is_empty() {
            None
        } else {
            let framed = framed(layout);
            let mut inside = Cursor::new(mark);
            framed.read(&mut inside, framed.len())?;
            let mut fits = framed.values(mark, framed.len()).zip(&layout.clustering_types);
            let valid = |(value, cql_type): (ClusteringValue<'_>, &CqlType)| match value {
                ClusteringValue::Null => true,
                ClusteringValue::Bytes(bytes) => cql_type.base().validate(bytes).is_ok(),
            };
            if inside.remaining() > 0 || !fits.all(valid) {
                return Ok(None);
            }
            Some(reframe(&framed, &layout.clusterings, mark))
        };
        Ok(Some(PagingState { key, clustering, remaining, remaining_in_partition }))
    }
}

#[cfg(test)]
mod tests {
    use halcyon_model::schema::{ColumnDef, TableSchema};

    use super::*;

    fn layout(clustering: Vec<CqlType>) -> Layout {
        let column = |(index, cql_type)| ColumnDef { name: format!("c{index}"), cql_type };
        Layout::of_table(&TableSchema {
            keyspace: "k".into(),
            name: "t".into(),
            id: None,
            partition_key: vec![column((9, CqlType::Int))],
            clustering: clustering.into_iter().enumerate().map(column).collect(),
            statics: vec![],
            regulars: vec![],
            dropped: vec![],
            options: Default::default(),
            strict_liveness: false,
        })
    }

    /// Proves that a state comes back as it was, and that damaged ones are refused, none accepted for another table.
    #[test]
    fn states_survive_and_are_checked() {
        let layout = layout(vec![CqlType::Int, CqlType::Text]);
        let mut clustering = Vec::new();
        let values = [ClusteringValue::Bytes(&[0, 0, 0, 7]), ClusteringValue::Bytes(b"x")];
        layout.clusterings.write(&values, &mut clustering);
        for clustering in [Some(clustering), None] {
            let state = PagingState {
                key: vec![0, 0, 0, 1],
                clustering,
                remaining: NO_LIMIT,
                remaining_in_partition: 5,
            };
            let bytes = state.encode(&layout);
            assert_eq!(PagingState::decode(&bytes, &layout).expect("decodes"), state);
            for len in 0..bytes.len() {
                assert!(PagingState::decode(&bytes[..len], &layout).is_none(), "{len}");
            }
        }
        let bad_int = [1, 9, 4, 0, 2, 0, 7, 1, b'x', 1, 1];
        assert!(PagingState::decode(&bad_int, &layout).is_none());
        assert!(PagingState::decode(&[0xff; 40], &layout).is_none());
    }
}
