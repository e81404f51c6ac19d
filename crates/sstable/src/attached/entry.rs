//! The bytes of an entry.
//!
//! ```text
//!  u8 flags: 1 the term of the entry before, 2 its partition key, 4 a row (not a partition)
//!  [uvint length, term] [uvint length, partition key] [uvint length, serialized clustering]
//! ```

use std::sync::Arc;

use halcyon_model::bytes::Put;
use halcyon_model::token::murmur3_token;
use halcyon_model::{Clusterings, Cursor, DecodeResult};
use halcyon_stream::PrimaryKey;

use super::Entry;

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

/// Entries one behind the other. Only what is asked for is decoded: tokens and the order of clusterings cost more than the bytes.
pub(super) struct Entries<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    clusterings: &'c Clusterings,
    term: Option<&'a [u8]>,
    key: Option<&'a [u8]>,
    /// Of the key, once it was asked for.
    token: Option<i64>,
    /// The key, once a place was asked for.
    shared: Option<Arc<[u8]>>,
    /// Of the row that the last entry is for, and where it lies.
    clustering: Option<(&'a [u8], u64)>,
}

impl<'c, 'a> Entries<'c, 'a> {
    pub(super) fn new(cursor: &'c mut Cursor<'a>, clusterings: &'c Clusterings) -> Self {
        let (token, shared) = (None, None);
        Entries { cursor, clusterings, term: None, key: None, token, shared, clustering: None }
    }

    /// The term of the next entry; `None` at the end.
    pub(super) fn next_term(&mut self) -> DecodeResult<Option<&'a [u8]>> {
        if self.cursor.remaining() == 0 {
            return Ok(None);
        }
        let flags = self.cursor.u8()?;
        if flags & SAME_TERM == 0 {
            self.term = Some(self.cursor.vbytes()?);
        }
        if flags & SAME_KEY == 0 {
            self.key = Some(self.cursor.vbytes()?);
            (self.token, self.shared) = (None, None);
        }
        let offset = self.cursor.offset();
        self.clustering =
            if flags & ROW != 0 { Some((self.cursor.vbytes()?, offset)) } else { None };
        match (self.term, self.key) {
            (Some(term), Some(_)) => Ok(Some(term)),
            _ => Err(self.cursor.error("the entry before it is missing")),
        }
    }

    /// The token of the entry whose term came last.
    pub(super) fn token(&mut self) -> i64 {
        *self.token.get_or_insert_with(|| murmur3_token(self.key.unwrap_or_default()).0)
    }

    /// The place of the entry whose term came last.
    pub(super) fn primary_key(&mut self) -> DecodeResult<PrimaryKey> {
        let token = self.token();
        let key = self.shared.get_or_insert_with(|| Arc::from(self.key.unwrap_or_default()));
        let key = key.clone();
        let Some((clustering, offset)) = self.clustering else {
            return Ok(PrimaryKey::row(token, key, &[], &Clusterings::new(&[])));
        };
        let mut serialized = Cursor::at_offset(clustering, offset);
        self.clusterings.read(&mut serialized, self.clusterings.len())?;
        if serialized.remaining() > 0 {
            return Err(serialized.error("the clustering has more bytes than values"));
        }
        Ok(PrimaryKey::row(token, key, clustering, self.clusterings))
    }

    /// The next entry, whole.
    pub(super) fn next(&mut self) -> DecodeResult<Option<Entry>> {
        let Some(term) = self.next_term()? else { return Ok(None) };
        Ok(Some(Entry { term: term.into(), place: self.primary_key()? }))
    }
}
