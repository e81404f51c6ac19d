//! The names of a simulated disk: which are live, which are durable, and the changes in between.

use std::{
    collections::BTreeMap,
    io,
    path::{Component, Path, PathBuf},
};

use super::state::State;
use crate::disk::entry::{DirEntry, FileStat};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Dir,
    File(u64),
}

#[derive(Debug, Clone)]
enum Change {
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
    live: BTreeMap<PathBuf, Node>,
    durable: BTreeMap<PathBuf, Node>,
    journal: Vec<Change>,
}

/// Absolute, without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
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

fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

impl Names {
    pub(super) fn root() -> Names {
        let root = BTreeMap::from([(PathBuf::from("/"), Node::Dir)]);
        Names { live: root.clone(), durable: root, journal: Vec::new() }
    }

    fn change(&mut self, change: Change) {
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

    fn dir_at(&self, dir: &Path) -> io::Result<()> {
        match self.live.get(dir) {
            Some(Node::Dir) => Ok(()),
            Some(Node::File(_)) => Err(errno(libc::ENOTDIR)),
            None => Err(errno(libc::ENOENT)),
        }
    }

    /// Checks that a new name may be made there.
    fn may_add(&self, path: &Path) -> io::Result<()> {
        if self.live.contains_key(path) {
            return Err(errno(libc::EEXIST));
        }
        self.dir_at(path.parent().unwrap_or(Path::new("/")))
    }

    fn has_children(&self, dir: &Path) -> bool {
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

    fn sync(&mut self, dir: &Path) {
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

impl State {
    pub(super) fn file_at(&self, path: &Path) -> io::Result<u64> {
        self.names.file_at(path)
    }

    pub(super) fn file_names(&self) -> Vec<PathBuf> {
        let is_file =
            |(name, node): (&PathBuf, &Node)| matches!(node, Node::File(_)).then(|| name.clone());
        self.names.live.iter().filter_map(is_file).collect()
    }

    pub(super) fn create_file(&mut self, path: &Path, now_ms: i64) -> io::Result<u64> {
        let path = normal(path);
        self.names.may_add(&path)?;
        let id = self.add_file(now_ms);
        self.names.change(Change::Add(path, Node::File(id)));
        Ok(id)
    }

    pub(super) fn create_dir_all(&mut self, dir: &Path) -> io::Result<()> {
        let dir = normal(dir);
        let mut missing: Vec<&Path> = Vec::new();
        for ancestor in dir.ancestors() {
            match self.names.live.get(ancestor) {
                Some(Node::Dir) => break,
                Some(Node::File(_)) => return Err(errno(libc::ENOTDIR)),
                None => missing.push(ancestor),
            }
        }
        for ancestor in missing.into_iter().rev() {
            self.names.change(Change::Add(ancestor.to_path_buf(), Node::Dir));
        }
        Ok(())
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let dir = normal(dir);
        self.names.dir_at(&dir)?;
        let entry = |(name, node): (&PathBuf, &Node)| {
            let text = name.file_name()?.to_str()?.to_owned();
            (name.parent() == Some(&dir))
                .then_some(DirEntry { name: text, is_dir: *node == Node::Dir })
        };
        let mut entries: Vec<DirEntry> = self.names.live.iter().filter_map(entry).collect();
        entries.sort();
        Ok(entries)
    }

    pub(super) fn stat(&self, path: &Path) -> io::Result<FileStat> {
        match self.names.live.get(&normal(path)) {
            None => Err(errno(libc::ENOENT)),
            Some(Node::Dir) => Ok(FileStat { len: 0, modified_ms: 0, is_dir: true }),
            Some(Node::File(id)) => {
                let (len, modified_ms) = self.stat_of(*id)?;
                Ok(FileStat { len, modified_ms, is_dir: false })
            }
        }
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        match self.names.live.get(&path).copied() {
            None => Err(errno(libc::ENOENT)),
            Some(Node::Dir) if self.names.has_children(&path) => Err(errno(libc::ENOTEMPTY)),
            Some(node) => {
                self.names.change(Change::Remove(path));
                if let Node::File(id) = node {
                    self.forget_unnamed(id);
                }
                Ok(())
            }
        }
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (normal(from), normal(to));
        let Some(moved) = self.names.live.get(&from).copied() else {
            return Err(errno(libc::ENOENT));
        };
        self.names.dir_at(to.parent().unwrap_or(Path::new("/")))?;
        if to != from && to.starts_with(&from) {
            return Err(errno(libc::EINVAL));
        }
        match (moved, self.names.live.get(&to)) {
            _ if from == to => return Ok(()),
            (Node::File(_), Some(Node::Dir)) => return Err(errno(libc::EISDIR)),
            (Node::Dir, Some(Node::File(_))) => return Err(errno(libc::ENOTDIR)),
            (Node::Dir, Some(Node::Dir)) if self.names.has_children(&to) => {
                return Err(errno(libc::ENOTEMPTY));
            }
            _ => {}
        }
        self.names.change(Change::Rename(from, to));
        Ok(())
    }

    pub(super) fn hard_link(&mut self, original: &Path, link: &Path) -> io::Result<()> {
        let id = self.names.file_at(original)?;
        let link = normal(link);
        self.names.may_add(&link)?;
        self.names.change(Change::Add(link, Node::File(id)));
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        let dir = normal(dir);
        self.names.dir_at(&dir)?;
        self.names.sync(&dir);
        Ok(())
    }
}
