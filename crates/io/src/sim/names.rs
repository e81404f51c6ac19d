//! The names of a simulated disk: which are live, which are durable, and the changes in between.

use std::{
    collections::BTreeMap,
    io,
    path::{Component, Path, PathBuf},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Dir,
    File(u64),
}

#[derive(Debug, Clone)]
pub(super) enum Change {
    Add(PathBuf, Node),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

impl Change {
    /// The directory whose sync makes the change durable; for a rename across directories the
    /// target's.
    fn dir(&self) -> Option<&Path> {
        match self {
            Change::Add(path, _) | Change::Remove(path) | Change::Rename(_, path) => path.parent(),
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, Node>) {
        match self {
            Change::Add(path, node) => {
                names.insert(path.clone(), *node);
            }
            Change::Remove(path) => {
                names.remove(path);
            }
            Change::Rename(from, to) => {
                let moved: Vec<PathBuf> =
                    names.keys().filter(|name| name.starts_with(from)).cloned().collect();
                for name in moved {
                    let Some(node) = names.remove(&name) else { continue };
                    let target = match name.strip_prefix(from) {
                        Ok(rest) if !rest.as_os_str().is_empty() => to.join(rest),
                        _ => to.clone(),
                    };
                    names.insert(target, node);
                }
            }
        }
    }
}

#[derive(Clone)]
pub(super) struct Names {
    pub(super) live: BTreeMap<PathBuf, Node>,
    durable: BTreeMap<PathBuf, Node>,
    journal: Vec<Change>,
}

/// Absolute, without `.` and `..`.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            _ => {}
        }
    }
    normal
}

pub(super) fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

impl Names {
    pub(super) fn root() -> Names {
        let root = BTreeMap::from([(PathBuf::from("/"), Node::Dir)]);
        Names { live: root.clone(), durable: root, journal: Vec::new() }
    }

    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.journal.push(change);
    }

    pub(super) fn file_at(&self, path: &Path) -> io::Result<u64> {
        match self.live.get(&normal(path)) {
            Some(Node::File(id)) => Ok(*id),
            Some(Node::Dir) => Err(errno(libc::EISDIR)),
            None => Err(errno(libc::ENOENT)),
        }
    }

    pub(super) fn dir_at(&self, dir: &Path) -> io::Result<()> {
        match self.live.get(dir) {
            Some(Node::Dir) => Ok(()),
            Some(Node::File(_)) => Err(errno(libc::ENOTDIR)),
            None => Err(errno(libc::ENOENT)),
        }
    }

    /// Checks that a new name may be made there.
    pub(super) fn may_add(&self, path: &Path) -> io::Result<()> {
        if self.live.contains_key(path) {
            return Err(errno(libc::EEXIST));
        }
        self.dir_at(path.parent().unwrap_or(Path::new("/")))
    }

    pub(super) fn has_children(&self, dir: &Path) -> bool {
        self.live.keys().any(|name| name != dir && name.starts_with(dir))
    }

    pub(super) fn live_mention(&self, id: u64) -> bool {
        self.live.values().any(|node| *node == Node::File(id))
    }

    /// Whether the file has a name now, or could have one after a crash.
    pub(super) fn mention(&self, id: u64) -> bool {
        let is = |node: &Node| *node == Node::File(id);
        self.live.values().any(is)
            || self.durable.values().any(is)
            || self.journal.iter().any(|change| matches!(change, Change::Add(_, node) if is(node)))
    }

    pub(super) fn unsynced_count(&self) -> usize {
        self.journal.len()
    }

    pub(super) fn sync(&mut self, dir: &Path) {
        let mut unsynced = Vec::new();
        for change in std::mem::take(&mut self.journal) {
            if change.dir() == Some(dir) {
                change.apply(&mut self.durable);
            } else {
                unsynced.push(change);
            }
        }
        self.journal = unsynced;
    }

    /// The first `kept` unsynced changes become durable, the others are lost, and so is everything
    /// in a directory that has no durable name.
    pub(super) fn crash(&mut self, kept: usize) {
        for change in self.journal.drain(..).take(kept) {
            change.apply(&mut self.durable);
        }
        let durable = self.durable.clone();
        let reachable = |name: &PathBuf| {
            name.ancestors().skip(1).all(|dir| durable.get(dir) == Some(&Node::Dir))
        };
        self.durable.retain(|name, _| reachable(name));
        self.live = self.durable.clone();
    }
}
