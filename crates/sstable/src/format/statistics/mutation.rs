//! Changes of the two things in Statistics.db that change during an SSTable's life: its level and its repair state.
//!
//! The new bytes differ from the old ones in those fields, in offsets and in checksums; everything else, even what
//! this program does not understand, is copied.

use halcyon_model::bytes::Put;
use halcyon_model::{Cursor, DecodeError, DecodeResult};

use super::{Kind, decode_with_fields, encode_contents, stats};
use crate::format::version::Version;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mutation {
    pub level: Option<i32>,
    pub repair: Option<RepairState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairState {
    /// ms; 0: unrepaired.
    pub repaired_at: i64,
    /// A UUID.
    pub pending_repair: Option<[u8; 16]>,
    pub is_transient: bool,
}

/// A changed copy of a Statistics.db.
pub fn mutate(file: &[u8], version: Version, mutation: Mutation) -> DecodeResult<Vec<u8>> {
    let mut cursor = Cursor::new(file);
    let (_, contents, fields) = decode_with_fields(&mut cursor, version)?;
    let get = |range: std::ops::Range<usize>| file.get(range).unwrap_or_default();
    let mut stats = Vec::new();
    if let Some((_, range)) = contents.iter().find(|(kind, _)| *kind == Kind::Stats) {
        let old = get(range.clone());
        let part = |from: usize, to: usize| old.get(from..to).unwrap_or_default();
        stats.put(part(0, fields.level_at));
        match mutation.level {
            Some(level) => stats.put_i32(level),
            None => stats.put(part(fields.level_at, fields.level_at + 4)),
        }
        match mutation.repair {
            Some(repair) => {
                if repair.pending_repair.is_some() && !version.has_pending_repair() {
                    return Err(DecodeError {
                        offset: 0,
                        what: format!("version {version} cannot say that a repair is pending"),
                    });
                }
                stats.put_i64(repair.repaired_at);
                stats.put(part(fields.level_at + 12, fields.repair_at));
                let pending = repair.pending_repair;
                stats::encode_repair(pending, repair.is_transient, version, &mut stats);
            }
            None => stats.put(part(fields.level_at + 4, fields.repair_end)),
        }
        stats.put(part(fields.repair_end, old.len()));
    }
    let components: Vec<(Kind, &[u8])> = contents
        .iter()
        .map(|(kind, range)| match kind {
            Kind::Stats => (*kind, &stats[..]),
            _ => (*kind, get(range.clone())),
        })
        .collect();
    let mut out = Vec::with_capacity(file.len() + 16);
    encode_contents(&components, version, &mut out);
    Ok(out)
}
