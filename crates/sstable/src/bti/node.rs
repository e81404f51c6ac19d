//! One trie node: the sixteen kinds, their sizes and their bytes, read.  (`trie_writer` chooses and writes them.)
//!
//! ```text
//!  0       PAYLOAD_ONLY     0p
//!  1       SINGLE, no p     1d tt                            d: distance, 4 bits
//!  2, 4    SINGLE_8, 16     kp tt dd…
//!  3       SINGLE, no p     3d dd tt                         12 bits
//!  5..9    SPARSE           kp count  tt × count  distance × count
//!  10..15  DENSE            kp first  span-1      distance × span      0: no child
//!
//!                  +----+----+----+----+----+----+----+----+----------+
//!  SPARSE_8, p=9   | 59 | 02 | 'a'| 'x'| 20 | 05 | hash 1 | int(2)    |      node at P: 'a' → P-0x20, 'x' → P-5
//!                  +----+----+----+----+----+----+----+----+----------+
//!                    kind count trans.   distances  payload
//! ```
//!
//! Distances are subtracted from the node's own position, so children are always before their parent: a walk
//! cannot loop.  Distances of 12 bits are packed two to three bytes.  A node, with its payload, is within one
//! 4096-byte page, so one page read gives the whole node.

use halcyon_model::{Cursor, DecodeError, DecodeResult};

/// No node crosses a multiple of this.
pub const PAGE: usize = 4096;

pub(crate) fn page_start(position: u64) -> u64 {
    position & !(PAGE as u64 - 1)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum NodeKind {
    PayloadOnly,
    SingleNoPayload4,
    Single8,
    SingleNoPayload12,
    Single16,
    Sparse8,
    Sparse12,
    Sparse16,
    Sparse24,
    Sparse40,
    Dense12,
    Dense16,
    Dense24,
    Dense32,
    Dense40,
    LongDense,
}

use NodeKind::*;

impl NodeKind {
    pub const ALL: [NodeKind; 16] = [
        PayloadOnly,
        SingleNoPayload4,
        Single8,
        SingleNoPayload12,
        Single16,
        Sparse8,
        Sparse12,
        Sparse16,
        Sparse24,
        Sparse40,
        Dense12,
        Dense16,
        Dense24,
        Dense32,
        Dense40,
        LongDense,
    ];

    pub fn from_first_byte(byte: u8) -> NodeKind {
        // The high nibble has 16 values, and so has the table.
        Self::ALL.get(usize::from(byte >> 4)).copied().unwrap_or(PayloadOnly)
    }

    pub fn is_dense(self) -> bool {
        self >= Dense12
    }

    pub fn is_sparse(self) -> bool {
        (Sparse8..=Sparse40).contains(&self)
    }

    pub fn can_have_payload(self) -> bool {
        !matches!(self, SingleNoPayload4 | SingleNoPayload12)
    }

    pub fn pointer_bits(self) -> usize {
        match self {
            PayloadOnly => 0,
            SingleNoPayload4 => 4,
            Single8 | Sparse8 => 8,
            SingleNoPayload12 | Sparse12 | Dense12 => 12,
            Single16 | Sparse16 | Dense16 => 16,
            Sparse24 | Dense24 => 24,
            Dense32 => 32,
            Sparse40 | Dense40 => 40,
            LongDense => 64,
        }
    }

    /// Bytes of a node without its payload. `pointers` is the number of children, or the span of a dense node.
    pub fn size(self, pointers: usize) -> usize {
        let distances = (pointers * self.pointer_bits()).div_ceil(8);
        match self {
            PayloadOnly => 1,
            SingleNoPayload4 => 2,
            Single8 | SingleNoPayload12 => 3,
            Single16 => 4,
            _ if self.is_dense() => 3 + distances,
            _ => 2 + pointers + distances,
        }
    }
}

/// A node as it is stored in its page.
#[derive(Debug, Clone, Copy)]
pub struct Node<'p> {
    kind: NodeKind,
    position: u64,
    /// From the node's first byte to the end of the page.
    bytes: &'p [u8],
    /// Children, or the span of a dense node.
    pointers: usize,
    /// Where the payload would be.
    size: usize,
}

impl<'p> Node<'p> {
    /// The node at `position`; `page` holds the bytes from `page_start(position)` on.
    pub fn read(page: &'p [u8], position: u64) -> DecodeResult<Node<'p>> {
        let at = (position - page_start(position)) as usize;
        let page = page.get(..PAGE).unwrap_or(page);
        let corrupt = |what: &str| DecodeError { offset: position, what: what.into() };
        let bytes = page.get(at..).unwrap_or_default();
        let &first = bytes.first().ok_or_else(|| corrupt("trie node beyond the end"))?;
        let kind = NodeKind::from_first_byte(first);
        let counted = |i: usize| bytes.get(i).copied().map(usize::from);
        let pointers = match kind {
            PayloadOnly => Some(0),
            _ if kind.is_sparse() => counted(1),
            _ if kind.is_dense() => counted(2).map(|last| last + 1),
            _ => Some(1),
        };
        let pointers = pointers.ok_or_else(|| corrupt("trie node crosses its page"))?;
        if kind.is_sparse() && pointers == 0 {
            return Err(corrupt("sparse trie node without children"));
        }
        let size = kind.size(pointers);
        if bytes.len() < size {
            return Err(corrupt("trie node crosses its page"));
        }
        let node = Node { kind, position, bytes, pointers, size };
        if kind == PayloadOnly && node.payload_bits() == 0 {
            return Err(corrupt("trie node with neither child nor payload"));
        }
        Ok(node)
    }

    pub fn kind(&self) -> NodeKind {
        self.kind
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// 0: the node carries none.
    pub fn payload_bits(&self) -> u8 {
        if self.kind.can_have_payload() { self.byte(0) & 0x0f } else { 0 }
    }

    /// A cursor over the payload, which ends where the page ends.
    pub fn payload(&self) -> Cursor<'p> {
        let rest = self.bytes.get(self.size..).unwrap_or_default();
        Cursor::at_offset(rest, self.position + self.size as u64)
    }

    /// Bytes without the payload.
    pub fn size(&self) -> usize {
        self.size
    }

    pub fn has_children(&self) -> bool {
        self.kind != PayloadOnly
    }

    fn byte(&self, i: usize) -> u8 {
        // `read` checked that the node is complete.
        self.bytes.get(i).copied().unwrap_or_default()
    }

    /// The child behind a transition.
    pub fn child(&self, transition: u8) -> DecodeResult<Option<u64>> {
        let index = match self.kind {
            PayloadOnly => None,
            _ if self.kind.is_sparse() => self.transitions().iter().position(|&t| t == transition),
            _ if self.kind.is_dense() => transition.checked_sub(self.byte(1)).map(usize::from),
            _ => (self.transition(0) == transition).then_some(0),
        };
        match index {
            Some(index) if index < self.pointers => self.target(index),
            _ => Ok(None),
        }
    }

    /// The child with the smallest transition above `after` (of all, if `None`).
    pub fn first_child(&self, after: Option<u8>) -> DecodeResult<Option<(u8, u64)>> {
        // Dense transitions are consecutive: those up to `after` are skipped.
        let start = match after {
            Some(after) if self.kind.is_dense() => {
                (usize::from(after) + 1).saturating_sub(usize::from(self.byte(1)))
            }
            _ => 0,
        };
        for index in start..self.pointers {
            let transition = self.transition(index);
            if after.is_none_or(|after| transition > after)
                && let Some(child) = self.target(index)?
            {
                return Ok(Some((transition, child)));
            }
        }
        Ok(None)
    }

    /// The child with the largest transition below `before` (of all, if `None`).
    pub fn last_child(&self, before: Option<u8>) -> DecodeResult<Option<(u8, u64)>> {
        let end = match before {
            Some(before) if self.kind.is_dense() => {
                usize::from(before.saturating_sub(self.byte(1))).min(self.pointers)
            }
            _ => self.pointers,
        };
        for index in (0..end).rev() {
            let transition = self.transition(index);
            if before.is_none_or(|before| transition < before)
                && let Some(child) = self.target(index)?
            {
                return Ok(Some((transition, child)));
            }
        }
        Ok(None)
    }

    fn transitions(&self) -> &'p [u8] {
        self.bytes.get(2..2 + self.pointers).unwrap_or_default()
    }

    fn transition(&self, index: usize) -> u8 {
        match self.kind {
            SingleNoPayload12 => self.byte(2),
            _ if self.kind.is_sparse() => self.byte(2 + index),
            // A span that would run past 255 has no such transitions; `target` refuses them.
            _ if self.kind.is_dense() => self.byte(1).saturating_add(index as u8),
            _ => self.byte(1),
        }
    }

    fn target(&self, index: usize) -> DecodeResult<Option<u64>> {
        let distance = self.distance(index);
        if distance == 0 && self.kind.is_dense() {
            return Ok(None);
        }
        let corrupt = |what| DecodeError { offset: self.position, what };
        if self.kind.is_dense() && usize::from(self.byte(1)) + index > 255 {
            return Err(corrupt("dense trie node with a transition above 255".into()));
        }
        match self.position.checked_sub(distance) {
            Some(child) if distance > 0 => Ok(Some(child)),
            _ => Err(corrupt(format!("trie node with a child at distance {distance}"))),
        }
    }

    fn distance(&self, index: usize) -> u64 {
        let start = match self.kind {
            SingleNoPayload4 => return u64::from(self.byte(0) & 0x0f),
            SingleNoPayload12 => {
                return u64::from(self.byte(0) & 0x0f) << 8 | u64::from(self.byte(1));
            }
            _ if self.kind.is_sparse() => 2 + self.pointers,
            _ if self.kind.is_dense() => 3,
            _ => 2,
        };
        if self.kind.pointer_bits() == 12 {
            let at = start + index * 3 / 2;
            let word = u64::from(self.byte(at)) << 8 | u64::from(self.byte(at + 1));
            return if index.is_multiple_of(2) { word >> 4 } else { word & 0xfff };
        }
        let width = self.kind.pointer_bits() / 8;
        (0..width).fold(0, |value, i| value << 8 | u64::from(self.byte(start + index * width + i)))
    }
}
