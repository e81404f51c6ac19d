//! Walks a trie in the order of its keys.
//!
//! ```text
//!   stack                    the path to the current entry
//!   (root)    taken 'a'      its key is the string of transitions taken: "ab"
//!   (   )     taken 'b'
//!   (pay)     taken -        top: the node that carries the current payload
//! ```
//!
//! 1. A node's own payload comes before its children, and children come in the order of their transitions.
//! 2. A descent follows positions; the next entry is found from the nearest node on the stack with a further child.
//! 3. Children are stored strictly before their parents, a node without child has a payload, and the depth is bounded, so
//!    each step ends, whatever the bytes are.  Branches that share nodes could still make the number of entries
//!    explode: a walk over a whole trie stops at the number of keys that the footer states.
//!
//! The cursor keeps the page that it read last, so a walk through neighbouring nodes reads each page once.

use halcyon_model::{DecodeError, DecodeResult};

use super::node::{Node, PAGE, page_start};
use super::payload::Payload;
use crate::row_index::{IndexSource, OrCorrupt};

/// Longer than any byte-comparable key: keys have 64 KiB, and encoding at most doubles them.
const MAX_DEPTH: usize = 1 << 18;

/// Reads nodes, a page at a time.
pub(crate) struct Nodes<'s, S: IndexSource> {
    source: &'s S,
    page: Option<(u64, S::Bytes)>,
}

impl<'s, S: IndexSource> Nodes<'s, S> {
    pub(crate) fn new(source: &'s S) -> Self {
        Self { source, page: None }
    }

    pub(crate) async fn read(&mut self, position: u64) -> Result<Node<'_>, S::Error> {
        let start = page_start(position);
        if self.page.as_ref().is_none_or(|(at, _)| *at != start) {
            self.page = Some((start, self.source.read(start, PAGE).await?));
        }
        let page = self.page.as_ref().map_or(&[][..], |(_, bytes)| bytes.as_ref());
        Node::read(page, position).or_corrupt(self.source)
    }
}

#[derive(Debug)]
struct Step {
    position: u64,
    taken: Option<u8>,
}

pub struct TrieCursor<'s, S: IndexSource, P> {
    nodes: Nodes<'s, S>,
    root: u64,
    stack: Vec<Step>,
    current: Option<P>,
}

/// The walk's next step after a node.
struct Visit<P> {
    payload: Option<P>,
    child: Option<(u8, u64)>,
}

fn visit<P: Payload>(
    node: &Node<'_>,
    child: impl FnOnce(&Node<'_>) -> DecodeResult<Option<(u8, u64)>>,
) -> DecodeResult<Visit<P>> {
    let payload = match node.payload_bits() {
        0 => None,
        bits => Some(P::read(bits, &mut node.payload())?),
    };
    let child = child(node)?;
    if payload.is_none() && !node.has_children() {
        return Err(DecodeError { offset: node.position(), what: "empty trie node".into() });
    }
    Ok(Visit { payload, child })
}

impl<'s, S: IndexSource, P: Payload> TrieCursor<'s, S, P> {
    /// A cursor without a position yet.
    pub fn new(source: &'s S, root: u64) -> Self {
        Self { nodes: Nodes::new(source), root, stack: Vec::new(), current: None }
    }

    /// The payload at the cursor.
    pub fn current(&self) -> Option<P> {
        self.current
    }

    /// Appends the key at the cursor.
    pub fn key(&self, out: &mut Vec<u8>) {
        out.extend(self.stack.iter().filter_map(|step| step.taken));
    }

    pub async fn first(&mut self) -> Result<Option<P>, S::Error> {
        self.clear();
        self.descend_to_first(self.root).await
    }

    pub async fn last(&mut self) -> Result<Option<P>, S::Error> {
        self.clear();
        self.descend_to_last(self.root).await
    }

    /// Goes to the next entry; nowhere, and `None`, after the last.
    pub async fn next(&mut self) -> Result<Option<P>, S::Error> {
        self.current = None;
        while let Some(top) = self.stack.last_mut() {
            let node = self.nodes.read(top.position).await?;
            let child = node.first_child(top.taken).or_corrupt(self.nodes.source)?;
            if let Some((transition, child)) = child {
                top.taken = Some(transition);
                return self.descend_to_first(child).await;
            }
            self.stack.pop();
        }
        Ok(None)
    }

    /// Goes to the entry before; nowhere, and `None`, before the first.
    pub async fn previous(&mut self) -> Result<Option<P>, S::Error> {
        self.current = None;
        // The payload of the top node is the current entry: the entries before it belong to its ancestors.
        self.stack.pop();
        self.climb_back().await
    }

    /// From a path whose top has a transition taken: the last entry before that branch.
    async fn climb_back(&mut self) -> Result<Option<P>, S::Error> {
        while let Some(top) = self.stack.last_mut() {
            let node = self.nodes.read(top.position).await?;
            let before = top.taken;
            let seen: Visit<P> =
                visit(&node, |node| node.last_child(before)).or_corrupt(self.nodes.source)?;
            if let Some((transition, child)) = seen.child {
                top.taken = Some(transition);
                return self.descend_to_last(child).await;
            }
            top.taken = None;
            if seen.payload.is_some() {
                self.current = seen.payload;
                return Ok(seen.payload);
            }
            self.stack.pop();
        }
        Ok(None)
    }

    /// Goes to the greatest entry that is not above `key`. A prefix of `key` is below it.
    pub async fn seek_floor(&mut self, key: &[u8]) -> Result<Option<P>, S::Error> {
        let stopped = self.follow(key).await?;
        if stopped.payload.is_some() && stopped.next_byte.is_none() {
            self.current = stopped.payload;
            return Ok(stopped.payload);
        }
        // Everything below the last node with a transition smaller than the key's next byte; a path that ended
        // exactly at a node without payload has only greater entries below it.
        match (stopped.next_byte, self.stack.last_mut()) {
            (Some(byte), Some(top)) => top.taken = Some(byte),
            _ => {
                self.stack.pop();
            }
        }
        self.climb_back().await
    }

    /// Goes to the first entry that can be `key` or above it: the one whose trie key is a prefix of `key`, if
    /// there is one, else the smallest entry not below `key`.  Keys of Partitions.db are cut, so only the whole key
    /// stored with the partition decides whether it is below or above.
    pub async fn seek_candidate(&mut self, key: &[u8]) -> Result<Option<P>, S::Error> {
        let stopped = self.follow(key).await?;
        if stopped.payload.is_some() {
            self.current = stopped.payload;
            return Ok(stopped.payload);
        }
        match (stopped.next_byte, self.stack.last_mut()) {
            (Some(byte), Some(top)) => {
                top.taken = Some(byte);
                self.next().await
            }
            (_, Some(_)) => {
                let position = self.stack.pop().map_or(self.root, |step| step.position);
                self.descend_to_first(position).await
            }
            _ => Ok(None),
        }
    }

    /// Follows `key` as far as it leads. The top of the stack is the last node reached.
    async fn follow(&mut self, key: &[u8]) -> Result<Stopped<P>, S::Error> {
        self.clear();
        let mut position = self.root;
        let mut rest = key.iter().copied();
        loop {
            let next_byte = rest.next();
            let node = self.nodes.read(position).await?;
            let seen: Visit<P> = visit(&node, |node| match next_byte {
                Some(byte) => Ok(node.child(byte)?.map(|child| (byte, child))),
                None => Ok(None),
            })
            .or_corrupt(self.nodes.source)?;
            let taken = seen.child.map(|(transition, _)| transition);
            self.push(Step { position, taken })?;
            match seen.child {
                Some((_, child)) => position = child,
                None => return Ok(Stopped { payload: seen.payload, next_byte }),
            }
        }
    }

    async fn descend_to_first(&mut self, mut position: u64) -> Result<Option<P>, S::Error> {
        loop {
            let node = self.nodes.read(position).await?;
            let seen: Visit<P> =
                visit(&node, |node| node.first_child(None)).or_corrupt(self.nodes.source)?;
            if seen.payload.is_some() {
                self.push(Step { position, taken: None })?;
                self.current = seen.payload;
                return Ok(seen.payload);
            }
            position = self.enter(position, seen.child)?;
        }
    }

    async fn descend_to_last(&mut self, mut position: u64) -> Result<Option<P>, S::Error> {
        loop {
            let node = self.nodes.read(position).await?;
            let seen: Visit<P> =
                visit(&node, |node| node.last_child(None)).or_corrupt(self.nodes.source)?;
            if seen.child.is_none() && seen.payload.is_some() {
                self.push(Step { position, taken: None })?;
                self.current = seen.payload;
                return Ok(seen.payload);
            }
            position = self.enter(position, seen.child)?;
        }
    }

    fn enter(&mut self, position: u64, child: Option<(u8, u64)>) -> Result<u64, S::Error> {
        let Some((transition, child)) = child else {
            let what = "trie node with neither child nor payload".into();
            return Err(self.nodes.source.corrupt(DecodeError { offset: position, what }));
        };
        self.push(Step { position, taken: Some(transition) })?;
        Ok(child)
    }

    fn push(&mut self, step: Step) -> Result<(), S::Error> {
        if self.stack.len() >= MAX_DEPTH {
            let what = format!("trie deeper than {MAX_DEPTH}");
            return Err(self.nodes.source.corrupt(DecodeError { offset: step.position, what }));
        }
        self.stack.push(step);
        Ok(())
    }

    fn clear(&mut self) {
        self.stack.clear();
        self.current = None;
    }
}

struct Stopped<P> {
    /// Of the node where the key led no further.
    payload: Option<P>,
    /// The byte without a child; `None` if the key ended at the node.
    next_byte: Option<u8>,
}
