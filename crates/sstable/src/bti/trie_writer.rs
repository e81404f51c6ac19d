//! Writes a trie from sorted keys, page by page, in memory that does not grow with the number of keys.
//!
//! ```text
//!   keys  abc, abd, ax ──►            (root)            stack: the path of the last key, open
//!                                     │ a
//!                                    ( )                complete: its children are known, none can be added
//!                                   b╱ ╲x
//!                                  ( )  (p)             written: only its file position is kept
//!                                c╱ ╲d
//!                              (p)   (p)
//! ```
//!
//! 1. `add` compares the new key with the path on the stack.  Nodes below the point where they part can get no
//!    more children: they are completed, deepest first, and become children of the node above.
//! 2. A completed node whose branch (itself and everything unwritten below it) fits a page is only measured.  Else
//!    its children's branches are *laid out*: the largest that fits the rest of the current page is written,
//!    again and again; when none fits, the page is padded and the largest starts the next one.  What was
//!    written collapses to a position, so a branch in memory is always smaller than a page.
//! 3. Sizes depend on distances, and these on where a branch will be written.  Branches with children already
//!    written elsewhere are measured again when their position is known.
//! 4. The root is written last.
//!
//! Order, ties and the moments of measuring are those of Cassandra's `IncrementalTrieWriterPageAware`, so that equal
//! keys and payloads give equal bytes; readers need only "children first" and "no node crosses a page".

use super::node::PAGE;
use super::node_writer::Node;
use super::output::Output;
use super::payload::Payload;
use crate::{Error, Result};

#[derive(Debug)]
pub(crate) struct TrieWriter<P> {
    /// The path of the last key, root first.
    stack: Vec<Node<P>>,
}

impl<P: Payload> TrieWriter<P> {
    pub(crate) fn new() -> Self {
        Self { stack: vec![Node::new(0)] }
    }

    /// Adds a key, which must be greater than the last one.
    pub(crate) fn add(&mut self, key: &[u8], payload: P, out: &mut Output<'_>) -> Result<()> {
        let path = self.stack.iter().skip(1).map(|node| node.transition);
        let shared = path.zip(key).take_while(|(on_path, byte)| on_path == *byte).count();
        let parted = self.stack.get(shared + 1).map(|node| node.transition);
        let ascending = match (parted, key.get(shared)) {
            (None, None) => self.stack.last().is_some_and(|node| node.payload.is_none()),
            (Some(before), Some(&byte)) => before < byte,
            (None, Some(_)) => true,
            (Some(_), None) => false,
        };
        if !ascending {
            return Err(Error::Invalid("keys of a trie index are not in ascending order".into()));
        }
        self.complete_below(shared + 1, out);
        self.stack.extend(key.iter().skip(shared).map(|&byte| Node::new(byte)));
        if let Some(last) = self.stack.last_mut() {
            last.payload = Some(payload);
        }
        Ok(())
    }

    /// Completes the nodes of the path beyond its first `kept`.
    fn complete_below(&mut self, kept: usize, out: &mut Output<'_>) {
        while self.stack.len() > kept
            && let Some(mut node) = self.stack.pop()
        {
            complete(&mut node, out);
            if let Some(parent) = self.stack.last_mut() {
                parent.children.push(node);
            }
        }
    }

    /// Writes the remaining nodes and returns the root's position. The trie is empty again.
    pub(crate) fn complete(&mut self, out: &mut Output<'_>) -> Result<u64> {
        self.complete_below(1, out);
        let mut root = self.stack.pop().unwrap_or(Node::new(0));
        self.reset();
        if root.children.is_empty() && root.payload.is_none() {
            return Err(Error::Invalid("a trie index without keys cannot be written".into()));
        }
        complete(&mut root, out);
        if root.measure_again(*out.position) > out.left_in_page() {
            write_root(&mut root, out);
        }
        Ok(root.write(out))
    }

    /// Forgets keys of which nothing can have been written yet (a single one, say).
    pub(crate) fn reset(&mut self) {
        self.stack.clear();
        self.stack.push(Node::new(0));
    }
}

/// The children of `node` are all known: measures it, and writes branches if it has become too large for a page.
fn complete<P: Payload>(node: &mut Node<P>, out: &mut Output<'_>) {
    node.branch_size = node.children.iter().map(Node::total_size).sum();
    let size = node.size_at(*out.position);
    if size + node.branch_size >= PAGE {
        return lay_out_children(node, out);
    }
    node.size = size;
    node.far_children = node.children.iter().any(|child| child.position.is_some());
    node.far_in_branch = node
        .children
        .iter()
        .any(|child| child.position.is_none() && (child.far_children || child.far_in_branch));
}

/// Writes the branches of all children, filling pages with the largest that fits; of equals the last, which may be closest to its own
/// children.
fn lay_out_children<P: Payload>(node: &mut Node<P>, out: &mut Output<'_>) {
    let unwritten = |(at, child): (usize, &Node<P>)| {
        child.position.is_none().then_some((child.total_size(), at))
    };
    let mut waiting: Vec<_> = node.children.iter().enumerate().filter_map(unwritten).collect();
    waiting.sort_unstable();
    while let Some(&(largest, _)) = waiting.last() {
        let left = out.left_in_page();
        let fitting = waiting.partition_point(|(size, _)| *size <= left);
        if fitting == 0 {
            debug_assert!(left < PAGE || largest > PAGE);
            if left < PAGE {
                out.pad_to_page();
            }
        }
        let (_, at) = waiting.remove(fitting.checked_sub(1).unwrap_or(waiting.len() - 1));
        let Some(child) = node.children.get_mut(at) else { continue };
        write_branch(child, out);
        if let Some(again) = unwritten((at, child)) {
            waiting.insert(waiting.partition_point(|other| *other < again), again);
        }
    }
    node.branch_size = 0;
    node.far_children = true;
    node.far_in_branch = false;
    node.size = node.size_at(*out.position);
}

/// Writes a branch, unless it turns out too large for the rest of the page now that its position is known: then it
/// has its new size, and waits for another turn.
fn write_branch<P: Payload>(child: &mut Node<P>, out: &mut Output<'_>) {
    if child.far_children || child.far_in_branch {
        let left = out.left_in_page();
        if child.measure_again(*out.position) > left {
            if left == PAGE {
                // Too large for any page: its own children go first.
                lay_out_children(child, out);
            }
            return;
        }
    }
    let position = child.write(out);
    child.collapse(position);
}

/// Finds room for a root that does not fit the rest of the page.
fn write_root<P: Payload>(root: &mut Node<P>, out: &mut Output<'_>) {
    if root.total_size() <= PAGE {
        out.pad_to_page();
        if root.measure_again(*out.position) <= PAGE {
            return;
        }
    }
    lay_out_children(root, out);
    if root.size > out.left_in_page() {
        out.pad_to_page();
        root.measure_again(*out.position);
    }
}
