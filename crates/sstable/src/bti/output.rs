//! The component that a trie is written to.

use super::node::PAGE;

/// The end of a component: the bytes that the caller has not drained yet, and the offset of the next byte.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    pub(crate) bytes: &'a mut Vec<u8>,
    pub(crate) position: &'a mut u64,
}

impl Output<'_> {
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.bytes.len();
        write(self.bytes);
        *self.position += (self.bytes.len() - before) as u64;
    }

    pub(super) fn left_in_page(&self) -> usize {
        PAGE - (*self.position % PAGE as u64) as usize
    }

    pub(super) fn pad_to_page(&mut self) {
        let left = self.left_in_page();
        if left < PAGE {
            self.append(|bytes| bytes.resize(bytes.len() + left, 0));
        }
    }
}
