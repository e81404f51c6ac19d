//! Reads a file of the full query log, from any bytes: at most one record is in memory, and its length is bounded.
//!
//! A file that its node did not end has a last record that is not whole. The reader then says how many bytes are left, and ends.

use std::io::{self, ErrorKind, Read};

use crate::record::{FRAME, HEADER, RECORD_MAX, Record, checksum};

/// Why a file cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    #[error("not a full query log of Halcyon: it does not begin with HFQL")]
    NotALog,
    #[error("version {0} of the full query log, which this Halcyon does not know: use a newer one")]
    Version(u16),
    #[error("damaged at byte {at}: {what}")]
    Damaged { at: u64, what: &'static str },
}

pub struct Reader<R> {
    from: R,
    /// Bytes that were read.
    at: u64,
    /// Bytes behind the last whole record, once it is known that there are some.
    left: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    pub fn new(mut from: R) -> Result<Reader<R>, Error> {
        let mut header = [0; HEADER.len()];
        let read = fill(&mut from, &mut header)?;
        let [a, b, c, d, high, low, rest @ ..] = header;
        let [m, n, o, p, ..] = HEADER;
        if read < header.len() || [a, b, c, d] != [m, n, o, p] {
            return Err(Error::NotALog);
        }
        let version = u16::from_be_bytes([high, low]);
        if version != 1 {
            return Err(Error::Version(version));
        }
        if rest != [0, 0] {
            return Err(Error::Damaged { at: 6, what: "the header is not zero where it must be" });
        }
        Ok(Reader { from, at: HEADER.len() as u64, left: 0 })
    }

    /// The next record; `None` at the end.
    pub fn next_record(&mut self) -> Result<Option<Record>, Error> {
        let at = self.at;
        let damaged = |what| Error::Damaged { at, what };
        let mut frame = [0; FRAME];
        let read = fill(&mut self.from, &mut frame)?;
        if read < FRAME {
            self.left += read as u64;
            return Ok(None);
        }
        let [a, b, c, d, e, f, g, h] = frame;
        let (length, sum) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
        if length > RECORD_MAX {
            return Err(damaged("a record that is longer than any"));
        }
        let mut body = Vec::new();
        // A damaged length reserves no memory: the body grows with the bytes that are read.
        let read = (&mut self.from).take(u64::from(length)).read_to_end(&mut body)?;
        if read < length as usize {
            self.left += (FRAME + read) as u64;
            return Ok(None);
        }
        if checksum(length, &body) != sum {
            return Err(damaged("the checksum of a record is wrong"));
        }
        self.at += (FRAME + body.len()) as u64;
        Record::decode(&body).map(Some).map_err(|malformed| damaged(malformed.0))
    }

    /// Bytes of a record that was not written whole, at the end.
    pub fn left(&self) -> u64 {
        self.left
    }
}

/// As many bytes as there are.
fn fill(from: &mut impl Read, mut to: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while !to.is_empty() {
        match from.read(to) {
            Ok(0) => break,
            Ok(read) => {
                filled += read;
                to = to.get_mut(read..).unwrap_or_default();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::samples;

    fn read(bytes: &[u8]) -> Result<(Vec<Record>, u64), Error> {
        let mut reader = Reader::new(bytes)?;
        let mut records = Vec::new();
        while let Some(record) = reader.next_record()? {
            records.push(record);
        }
        Ok((records, reader.left()))
    }

    /// Proves that a file is read to its end, that a torn tail is reported, and that each changed byte of a record is found.
    #[test]
    fn files_are_read_to_their_end() {
        let framed: Vec<Vec<u8>> = samples().iter().map(|of| of.framed().unwrap()).collect();
        let whole = [&HEADER[..], &framed.concat()].concat();
        assert_eq!(read(&whole).unwrap(), (samples(), 0));
        let first = HEADER.len() + framed[0].len();
        for end in HEADER.len()..whole.len() {
            let (records, left) = read(&whole[..end]).unwrap();
            let (count, start) = if end < first { (0, HEADER.len()) } else { (1, first) };
            assert_eq!((records.len(), left), (count, (end - start) as u64));
        }
        for at in HEADER.len()..first {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            let read = read(&changed);
            // A longer length than the file has is a torn tail.
            assert!(read.is_err() || read.is_ok_and(|(records, _)| records.is_empty()), "{at}");
        }
    }

    /// Proves that other files and other versions are named.
    #[test]
    fn other_files_are_refused() {
        assert!(matches!(read(b"HFQL"), Err(Error::NotALog)));
        assert!(matches!(read(b"SQLITE format"), Err(Error::NotALog)));
        assert!(matches!(read(b"HFQL\0\x02\0\0"), Err(Error::Version(2))));
        assert!(matches!(read(b"HFQL\0\x01\0\x01"), Err(Error::Damaged { .. })));
    }
}
