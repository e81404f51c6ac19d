//! The bytes of an entry.
//!
//! ```text
//!  u8 flags: 1 the term of the entry before, 2 its partition key, 4 a row (not a partition)
//!  [uvint length, term] [uvint length, partition key] [uvint length, serialized clustering]
//! ```

use std::sync::Arc;

use halcyon_model::bytes::Put;
use halcyon_model::{Clusterings, Cursor, DecodeResult};
use halcyon_stream::PartitionKey;

use super::{Entry, Place};

const SAME_TERM: u8 = 1;
const SAME_KEY: u8 = 2;
const ROW: u8 = 4;

pub(super) fn encode_entry(entry: &Entry, before: Option<&Entry>, out: &mut Vec<u8>) {
    let same_term = before.is_some_and(|before| before.term == entry.term);
    let same_key = before.is_some_and(|before| before.place.key == entry.place.key);
    let mut flags = 0;
    for (flag, is_set) in
        [(SAME_TERM, same_term), (SAME_KEY, same_key), (ROW, entry.place.is_row())]
    {
        flags |= if is_set { flag } else { 0 };
    }
    out.put_u8(flags);
    let mut part = |bytes: &[u8]| {
        out.put_uvint(bytes.len() as u64);
        out.put(bytes);
    };
    if !same_term {
        part(&entry.term);
    }
    if !same_key {
        part(&entry.place.key);
    }
    if entry.place.is_row() {
        part(&entry.place.clustering);
    }
}

pub(super) fn decode_entry(
    cursor: &mut Cursor<'_>,
    before: Option<&Entry>,
    clusterings: &Clusterings,
) -> DecodeResult<Entry> {
    let flags = cursor.u8()?;
    let no_entry = |cursor: &Cursor<'_>| cursor.error("the entry before it is missing");
    let term = match (flags & SAME_TERM != 0, before) {
        (false, _) => cursor.vbytes()?.into(),
        (true, Some(before)) => before.term.clone(),
        (true, None) => return Err(no_entry(cursor)),
    };
    let (token, key) = match (flags & SAME_KEY != 0, before) {
        (false, _) => {
            let key = PartitionKey::of(cursor.vbytes()?);
            (key.token, Arc::from(key.bytes))
        }
        (true, Some(before)) => (before.place.token, before.place.key.clone()),
        (true, None) => return Err(no_entry(cursor)),
    };
    let place = if flags & ROW != 0 {
        let offset = cursor.offset();
        let clustering = cursor.vbytes()?;
        let mut serialized = Cursor::at_offset(clustering, offset);
        clusterings.read(&mut serialized, clusterings.len())?;
        if serialized.remaining() > 0 {
            return Err(serialized.error("the clustering has more bytes than values"));
        }
        Place::row(token, key, clustering, clusterings)
    } else {
        Place::row(token, key, &[], &Clusterings::new(&[]))
    };
    Ok(Entry { term, place })
}
