//! Messages whose bodies are not decompressed yet.

use crate::{Compression, Envelope, Opcode, ProtocolError, ReplyTo, compressed};

/// A message whose body is complete, but may be compressed: its holder decides when the body fits into its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// With the body as it was sent.
    pub(crate) envelope: Envelope,
    /// How the body is compressed, and the length that it states, which is no more than a body may have.
    pub(crate) compressed: Option<(Compression, usize)>,
}

/// What the header of a message tells: enough to count the message before it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outline {
    pub opcode: Opcode,
    /// Bytes that are held once the body is complete, and while it is opened.
    pub bytes: usize,
    /// Bytes of the body when it is open.
    pub body_len: usize,
}

impl Packed {
    pub fn outline(&self) -> Outline {
        Outline { opcode: self.opcode(), bytes: self.bytes(), body_len: self.body_len() }
    }

    pub fn reply_to(&self) -> ReplyTo {
        self.envelope.reply_to()
    }

    pub fn opcode(&self) -> Opcode {
        self.envelope.opcode
    }

    /// Bytes of the body when it is open.
    pub fn body_len(&self) -> usize {
        self.compressed.map_or(self.envelope.body.len(), |(_, len)| len)
    }

    /// Bytes that are held now, and while the body is opened.
    pub fn bytes(&self) -> usize {
        self.envelope.body.len() + self.compressed.map_or(0, |(_, len)| len)
    }

    pub fn is_compressed(&self) -> bool {
        self.compressed.is_some()
    }

    /// Decompresses the body.
    pub fn open(self) -> Result<Envelope, ProtocolError> {
        let Packed { mut envelope, compressed } = self;
        if let Some((compression, len)) = compressed {
            let plain = compressed::decompress(&envelope.body, compression, len);
            envelope.body = plain.map_err(|e| ProtocolError::envelope(envelope.reply_to(), e.0))?;
        }
        Ok(envelope)
    }
}
