//! Frames: what a message is carried in, in both directions.
//!
//! ```text
//! u32 length of what follows (9 … 16 MiB) | u8 kind | u64 task | body
//! ```

use std::io::{self, ErrorKind, Read};

use halcyon_model::bytes::Put;

/// Bytes of a frame behind its length.
pub const LONGEST: usize = 16 << 20;
const HEADER: usize = 9;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    /// 0: none.
    pub task: u64,
    pub body: Vec<u8>,
}

fn invalid(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

impl Frame {
    /// The next frame; `None` at the end of the stream.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Frame>> {
        let mut length = [0; 4];
        if !fill(from, &mut length)? {
            return Ok(None);
        }
        let length = u32::from_be_bytes(length) as usize;
        if !(HEADER..=LONGEST).contains(&length) {
            return Err(invalid(format!(
                "a frame of {length} bytes: {HEADER} to {LONGEST} expected"
            )));
        }
        let mut kind = [0; 1];
        let mut task = [0; 8];
        from.read_exact(&mut kind)?;
        from.read_exact(&mut task)?;
        // Grows with what arrives: a length alone allocates nothing.
        let mut body = Vec::new();
        let wanted = length - HEADER;
        from.take(wanted as u64).read_to_end(&mut body)?;
        if body.len() < wanted {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let [kind] = kind;
        Ok(Some(Frame { kind, task: u64::from_be_bytes(task), body }))
    }

    /// Fails if the body is longer than a frame.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let length = HEADER + self.body.len();
        if length > LONGEST {
            return Err(invalid(format!("a message of {length} bytes is longer than a frame")));
        }
        let mut bytes = Vec::with_capacity(4 + length);
        bytes.put_u32(length as u32);
        bytes.put_u8(self.kind);
        bytes.put(&self.task.to_be_bytes());
        bytes.put(&self.body);
        Ok(bytes)
    }
}

/// Fills the buffer; false if the stream ends before its first byte.
fn fill(from: &mut impl Read, buffer: &mut [u8; 4]) -> io::Result<bool> {
    let mut first = [0; 1];
    loop {
        match from.read(&mut first) {
            Ok(0) => return Ok(false),
            Ok(_) => break,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let [head, rest @ ..] = buffer;
    [*head] = first;
    from.read_exact(rest)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that frames come back, and that a stream may end between two, not in one.
    #[test]
    fn frames_are_read_as_they_were_written() {
        let frames = [
            Frame { kind: 1, task: 0, body: Vec::new() },
            Frame { kind: 0x82, task: u64::MAX, body: vec![7; 70_000] },
        ];
        let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.encode().unwrap()).collect();
        let mut from = &bytes[..];
        for frame in &frames {
            assert_eq!(Frame::read(&mut from).unwrap().as_ref(), Some(frame));
        }
        assert_eq!(Frame::read(&mut from).unwrap(), None);
        for cut in [1, 4, 12, 14, 60_000] {
            let mut from = &bytes[..cut];
            let read =
                (0..3).map(|_| Frame::read(&mut from)).find(|read| !matches!(read, Ok(Some(_))));
            let ends = cut == 13;
            assert_eq!(matches!(read, Some(Ok(None))), ends, "{cut}");
        }
    }

    #[test]
    fn lengths_are_bounded() {
        for length in [0u32, 8, LONGEST as u32 + 1, u32::MAX] {
            let bytes = [&length.to_be_bytes()[..], &[0; 64]].concat();
            assert_eq!(Frame::read(&mut &bytes[..]).unwrap_err().kind(), ErrorKind::InvalidData);
        }
        let long = Frame { kind: 0, task: 0, body: vec![0; LONGEST] };
        assert!(long.encode().is_err());
    }
}
