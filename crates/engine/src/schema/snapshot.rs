//! Snapshots: hard links to a table's files in `snapshots/<name>/`.

use std::sync::Arc;

use halcyon_io::Purpose;
use halcyon_sstable::attached::index_of_component;

use crate::Result;
use crate::engine::Engine;
use crate::store::{Store, create_directories};

impl Engine {
    /// One that no snapshot has yet: the clock may have been set back.
    async fn snapshot_name(&self, store: &Store, why: &str) -> Result<String> {
        let mut millis = self.disk.clock().unix_micros() / 1000;
        loop {
            let name = format!("{why}-{millis}-{}", store.table().schema.name);
            let mut taken = false;
            for directory in &store.directories {
                taken |= self.disk.exists(&directory.join("snapshots").join(&name)).await?;
            }
            if !taken {
                return Ok(name);
            }
            millis += 1;
        }
    }

    /// Takes a snapshot of a table before it is dropped or truncated: `<why>-<ms>-<table>`.
    pub(crate) async fn snapshot(&self, store: &Arc<Store>, why: &str) -> Result<()> {
        let version = store.version.load_full();
        if version.is_empty() {
            return Ok(());
        }
        let tag = self.snapshot_name(store, why).await?;
        for directory in &store.directories {
            let folder = directory.join("snapshots").join(&tag);
            let mut files = Vec::new();
            for live in version.sstables() {
                let descriptor = live.descriptor();
                if descriptor.directory != *directory {
                    continue;
                }
                if files.is_empty() {
                    create_directories(&self.disk, std::slice::from_ref(&folder)).await?;
                }
                let listed = live.sstable().listed();
                let known = listed.components.iter().map(|c| c.file_suffix().to_owned());
                let is_index = |name: &str| index_of_component(name).is_some();
                let extra = listed.extra.iter().filter(|name| !is_index(name)).cloned();
                for component in known.chain(extra).chain(live.index_files()) {
                    let path = descriptor.path_of(&component);
                    let name = descriptor.file_prefix() + &component;
                    match self.disk.hard_link(&path, &folder.join(name)).await {
                        // Of an index that is just dropped or built again.
                        Err(e) if e.is_not_found() && is_index(&component) => {}
                        linked => linked?,
                    }
                }
                files.push(format!(
                    "\"{}\"",
                    descriptor.file_name(halcyon_sstable::Component::Data)
                ));
            }
            if !files.is_empty() {
                let manifest = format!("{{\"files\":[{}]}}", files.join(","));
                let path = folder.join("manifest.json");
                self.disk.write_new(&path, manifest.as_bytes(), Purpose::Flush).await?;
                self.disk.sync_dir(&folder).await?;
            }
        }
        Ok(())
    }
}
