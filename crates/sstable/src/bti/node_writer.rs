//! One trie node on its way to the file: which of the sixteen kinds it takes, how large it is, its bytes.
//!
//! The kind is the one with the narrowest distances that reach the farthest child:
//!
//! ```text
//!  bits ≥           4   8   12  16  24  32  40  64
//!  one child        1   2   3   4   12  13  14  15     with a payload: 2 for 1, 4 for 3
//!  more: sparse     5   5   6   7   8   9   9   15
//!        dense      10  10  10  11  12  13  14  15     unless sparse is strictly smaller
//! ```

use super::node::NodeKind::{self, *};
use super::output::Output;
use super::payload::Payload;

const REACH: [u32; 8] = [4, 8, 12, 16, 24, 32, 40, 64];
const SINGLE: [NodeKind; 8] =
    [SingleNoPayload4, Single8, SingleNoPayload12, Single16, Dense24, Dense32, Dense40, LongDense];
const SPARSE: [NodeKind; 8] =
    [Sparse8, Sparse8, Sparse12, Sparse16, Sparse24, Sparse40, Sparse40, LongDense];
const DENSE: [NodeKind; 8] =
    [Dense12, Dense12, Dense12, Dense16, Dense24, Dense32, Dense40, LongDense];

#[derive(Debug)]
pub(crate) struct Node<P> {
    /// The byte that leads here from the parent.
    pub(crate) transition: u8,
    pub(crate) payload: Option<P>,
    pub(crate) children: Vec<Node<P>>,
    /// Where it was written. Such a node has given up its children and its payload.
    pub(crate) position: Option<u64>,
    /// Bytes of everything unwritten below this node, and of the node itself.
    pub(crate) branch_size: usize,
    pub(crate) size: usize,
    /// Some child is written already (or that is not known yet).
    pub(crate) far_children: bool,
    /// Some unwritten descendant has a child that is written already.
    pub(crate) far_in_branch: bool,
}

impl<P: Payload> Node<P> {
    pub(crate) fn new(transition: u8) -> Self {
        Self {
            transition,
            payload: None,
            children: Vec::new(),
            position: None,
            branch_size: 0,
            size: 0,
            far_children: true,
            far_in_branch: false,
        }
    }

    pub(crate) fn total_size(&self) -> usize {
        self.branch_size + self.size
    }

    /// Bytes of this node, payload included, if it were written at `position`.
    pub(crate) fn size_at(&self, position: u64) -> usize {
        let kind = self.kind_at(position);
        kind.size(self.pointers(kind)) + self.payload.map_or(0, |payload| payload.size())
    }

    /// Measures a branch whose first byte goes to `start`, where that can have changed; returns its size.
    pub(crate) fn measure_again(&mut self, start: u64) -> usize {
        if self.far_in_branch {
            let mut size = 0;
            for child in &mut self.children {
                size += child.measure_again(start + size as u64);
            }
            self.branch_size = size;
        }
        if self.far_children || self.far_in_branch {
            self.size = self.size_at(start + self.branch_size as u64);
        }
        self.total_size()
    }

    /// Writes the unwritten branch below this node, then the node; returns the node's position.
    pub(crate) fn write(&mut self, out: &mut Output<'_>) -> u64 {
        for child in &mut self.children {
            if child.position.is_none() {
                child.position = Some(child.write(out));
            }
        }
        let position = *out.position;
        out.append(|bytes| self.encode(position, bytes));
        debug_assert_eq!(*out.position, position + self.size as u64, "measured as written");
        position
    }

    /// Keeps the position only.
    pub(crate) fn collapse(&mut self, position: u64) {
        *self =
            Self { position: Some(position), far_children: false, ..Self::new(self.transition) };
    }

    /// Distance to the farthest child if this node is written at `position`.
    fn farthest(&self, position: u64) -> u64 {
        let near = |child: &Node<P>| (self.branch_size - child.branch_size) as u64;
        if !self.far_children {
            return self.children.first().map_or(0, near);
        }
        let first_unwritten = self.children.iter().find(|child| child.position.is_none());
        self.children
            .iter()
            .filter_map(|child| Some(position - child.position?))
            .chain(first_unwritten.map(near))
            .max()
            .unwrap_or(0)
    }

    fn kind_at(&self, position: u64) -> NodeKind {
        if self.children.is_empty() {
            return PayloadOnly;
        }
        let bits = 64 - self.farthest(position).leading_zeros();
        let class = REACH.iter().position(|&reach| bits <= reach).unwrap_or(REACH.len() - 1);
        let pick = |kinds: &[NodeKind; 8], class| kinds.get(class).copied().unwrap_or(LongDense);
        if self.children.len() == 1 {
            let kind = pick(&SINGLE, class);
            let refused = self.payload.is_some() && !kind.can_have_payload();
            return if refused { pick(&SINGLE, class + 1) } else { kind };
        }
        let (sparse, dense) = (pick(&SPARSE, class), pick(&DENSE, class));
        let size = |kind: NodeKind| kind.size(self.pointers(kind));
        if size(sparse) < size(dense) { sparse } else { dense }
    }

    /// Distances in a node of this kind: children, or the span of their transitions.
    fn pointers(&self, kind: NodeKind) -> usize {
        match (kind.is_dense(), self.children.first(), self.children.last()) {
            (true, Some(first), Some(last)) => {
                usize::from(last.transition) - usize::from(first.transition) + 1
            }
            _ => self.children.len(),
        }
    }

    fn encode(&self, position: u64, out: &mut Vec<u8>) {
        let kind = self.kind_at(position);
        let payload_bits = self.payload.map_or(0, |payload| payload.bits());
        let distance = |child: &Node<P>| position - child.position.unwrap_or(position);
        let only = self.children.first().map_or(0, distance);
        let first = self.children.first().map_or(0, |child| child.transition);
        let tag = (kind as u8) << 4;
        match kind {
            PayloadOnly => out.push(tag | payload_bits),
            SingleNoPayload4 => out.extend([tag | only as u8, first]),
            SingleNoPayload12 => out.extend([tag | (only >> 8) as u8, only as u8, first]),
            Single8 => out.extend([tag | payload_bits, first, only as u8]),
            Single16 => {
                out.extend([tag | payload_bits, first, (only >> 8) as u8, only as u8]);
            }
            _ if kind.is_dense() => {
                let span = self.pointers(kind);
                out.extend([tag | payload_bits, first, (span - 1) as u8]);
                let mut distances = vec![0; span];
                for child in &self.children {
                    let at = usize::from(child.transition - first);
                    if let Some(slot) = distances.get_mut(at) {
                        *slot = distance(child);
                    }
                }
                put_distances(kind, distances.into_iter(), out);
            }
            _ => {
                out.extend([tag | payload_bits, self.children.len() as u8]);
                out.extend(self.children.iter().map(|child| child.transition));
                put_distances(kind, self.children.iter().map(distance), out);
            }
        }
        if let Some(payload) = self.payload {
            payload.write(out);
        }
    }
}

fn put_distances(kind: NodeKind, mut distances: impl Iterator<Item = u64>, out: &mut Vec<u8>) {
    if kind.pointer_bits() == 12 {
        // Two distances in three bytes; the last half byte of an odd number is zero.
        while let Some(even) = distances.next() {
            let Some(odd) = distances.next() else {
                out.extend([(even >> 4) as u8, (even << 4) as u8]);
                return;
            };
            out.extend([(even >> 4) as u8, (even << 4 | odd >> 8) as u8, odd as u8]);
        }
        return;
    }
    let width = kind.pointer_bits() / 8;
    for distance in distances {
        let bytes = distance.to_be_bytes();
        out.extend_from_slice(bytes.get(bytes.len() - width..).unwrap_or(&bytes));
    }
}
