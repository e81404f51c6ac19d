//! Files of the full query log.

use halcyon_binlog::reader::Reader;
use halcyon_binlog::record::{FRAME, Record};

/// Reads a file, and its bytes as one record: what is read is written the same.
pub fn file(bytes: &[u8]) {
    if let Some(body) = bytes.get(FRAME..)
        && let Ok(record) = Record::decode(body)
    {
        let framed = record.framed().expect("a record that was read fits");
        assert_eq!(Record::decode(framed.get(FRAME..).unwrap_or_default()), Ok(record));
    }
    let Ok(mut reader) = Reader::new(bytes) else { return };
    while let Ok(Some(_)) = reader.next_record() {}
}
