//! The operations of a simulated disk that name files: create, list, rename and the like.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    names::{Change, Node, errno, normal},
    state::State,
};
use crate::disk::entry::{DirEntry, FileStat};

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
