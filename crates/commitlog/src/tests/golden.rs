//! The named bytes of small segments. `HALCYON_GOLDEN=write` rewrites the expectation, to be reviewed as a diff.

use std::fmt::Write;

use halcyon_io::{SimDisk, block_on};

use super::*;
use crate::compression::decompress;
use crate::format::{
    DecodedRecord, GROUP_HEADER, GroupHeader, RECORD_HEADER, SEGMENT_HEADER, SegmentHeader,
    file_name, record_at,
};

struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    text: String,
}

impl Lines<'_> {
    fn take(&mut self, len: usize, meaning: &str) {
        let bytes = &self.bytes[self.at..self.at + len];
        let hex = match bytes {
            long if long.len() > 64 && long.iter().all(|b| *b == long[0]) => {
                format!("{} × {:02x}", long.len(), long[0])
            }
            bytes => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        writeln!(self.text, "{:>6}  {hex}  {meaning}", self.at).expect("text");
        self.at += len;
    }

    fn fields(&mut self, fields: &[(usize, &str)]) {
        fields.iter().for_each(|(len, meaning)| self.take(*len, meaning));
    }
}

/// Names every byte of a segment up to the end of its last group.
fn describe(bytes: &[u8]) -> String {
    let header = SegmentHeader::decode(bytes).expect("a header");
    let mut lines = Lines { bytes, at: 0, text: String::new() };
    lines.fields(&[
        (8, "magic"),
        (4, "version"),
        (4, "CRC of both"),
        (8, "segment id"),
        (8, "salt"),
        (4, "shard"),
        (4, "bytes of a block"),
        (4, "bytes of the segment"),
        (4, "compression"),
        (4, "CRC of the header"),
        (header.first_group() - SEGMENT_HEADER, "padding"),
    ]);
    while let Some(group) = GroupHeader::at(bytes, &header, lines.at) {
        let start = lines.at;
        lines.fields(&[
            (4, "GROUP: CRC of its header"),
            (4, "stored bytes"),
            (4, "raw bytes"),
            (4, "records"),
            (4, "raw offset of the first record"),
            (8, "previous segment"),
            (4, "its end"),
            (8, "segment below which all is durable"),
            (4, "offset below which all is durable in it"),
            (4, "end of the group before"),
        ]);
        assert_eq!(lines.at - start, GROUP_HEADER);
        let stored = &bytes[lines.at..lines.at + group.stored as usize];
        if group.stored < group.raw {
            let raw = decompress(header.compression, stored, group.raw as usize, usize::MAX)
                .expect("sound");
            lines.take(stored.len(), &format!("compressed: {}", raw.escape_ascii()));
        } else {
            let mut from = 0;
            while from < stored.len() {
                let found =
                    record_at(&stored[from..], header.seed(), group.raw_offset + from as u32);
                let DecodedRecord::Record(body) = found else { panic!("a record") };
                lines.fields(&[(4, "length"), (4, "CRC of the length"), (4, "CRC of the body")]);
                lines.take(body.len(), &format!("body: {}", body.escape_ascii()));
                from += RECORD_HEADER + body.len();
            }
        }
        lines.take(lines.at.next_multiple_of(header.block as usize) - lines.at, "padding");
    }
    lines.text
}

fn segment(simulated: &SimDisk, id: u64) -> Vec<u8> {
    simulated.contents(&Path::new(DIRECTORY).join(file_name(2, id))).expect("a segment")
}

/// Proves that the format has not changed in any byte.
#[test]
fn golden_segments() {
    let mut text = String::new();
    for compression in [LogCompression::None, LogCompression::Lz4] {
        let (disk, simulated) = Disk::simulated(30);
        block_on(async {
            let options = Options { compression, ..options() };
            let log = CommitLog::open(disk.clone(), options, 2, 7).await.expect("opens");
            let first = log.append(b"first", &[TABLE]).expect("an append");
            let second = log.append(&[b'x'; 70], &[TABLE]).expect("an append");
            first.durable().await.expect("durable");
            second.durable().await.expect("durable");
            let third = log.append(b"", &[TABLE]).expect("an append");
            third.durable().await.expect("durable");
        });
        writeln!(text, "{compression:?}").expect("text");
        text += &describe(&segment(&simulated, 7));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/segments.txt");
    if std::env::var_os("HALCYON_GOLDEN").is_some_and(|word| word == "write") {
        std::fs::write(&path, &text).expect("the expectation is written");
    }
    assert_eq!(text, std::fs::read_to_string(&path).expect("the expectation"));
}
