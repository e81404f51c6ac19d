//! Runs the checks of `halcyon_sstable::verify` on all SSTables that the paths name.
//!
//! A finding does not end the run: the user wants the whole list.

use std::path::PathBuf;

use halcyon_io::{AccessMode, Disk};
use halcyon_sstable::Component;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_sstable::verify::{Extent, Progress, Step, VerifyOptions, VerifyReport};

use crate::error::Error;
use crate::notices::Notices;
use crate::paths;
use crate::schema_source::{self, SchemaSource};

pub struct Request {
    pub paths: Vec<PathBuf>,
    /// Decode all rows and compare index, filter, summary and statistics with them.
    pub extended: bool,
    pub schema: SchemaSource,
}

/// What happens, in order.
pub enum Event<'a> {
    /// The bytes that will be read.
    Begin(u64),
    /// The bytes that have been read.
    Position(u64),
    Verified(&'a ListedSSTable, &'a VerifyReport),
}

/// How many SSTables are not sound, and how many of these could not be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub unsound: usize,
    pub unread: usize,
}

/// Verifies them one after the other.
pub async fn verify<E: From<Error>>(
    disk: &Disk,
    request: &Request,
    notices: &dyn Notices,
    on: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
) -> Result<Verdict, E> {
    let folders = paths::find(disk, &request.paths).await?;
    let passes = if request.extended { 2 } else { 1 };
    let mut total = 0;
    for listed in folders.iter().flat_map(|folder| &folder.sstables) {
        total += passes * stored_length(disk, listed).await;
    }
    on(Event::Begin(total))?;
    let mut verdict = Verdict::default();
    let mut before = 0;
    for folder in &folders {
        folder.warn_of_left_out(notices);
        let unreadable = folder.unreadable.iter().filter(|one| folder.left_out.contains(one));
        let unreadable = unreadable.count();
        verdict.unsound += unreadable;
        verdict.unread += unreadable;
        let schema = schema_source::of_folder(disk, &request.schema, folder, notices).await?;
        for listed in &folder.sstables {
            let options = VerifyOptions {
                extent: if request.extended { Extent::Rows } else { Extent::Digest },
                schema: schema.clone(),
                mode: AccessMode::Auto,
            };
            let length = stored_length(disk, listed).await;
            let mut told = Ok(());
            // Each step is one pass over Data.db.
            let mut tell = |progress: Progress| {
                let share = progress.done as f64 / progress.total.max(1) as f64;
                let pass = if progress.step == Step::Content { 1.0 } else { 0.0 };
                let position = before + ((pass + share) * length as f64) as u64;
                if told.is_ok() {
                    told = on(Event::Position(position));
                }
            };
            let descriptor = &listed.descriptor;
            let found =
                halcyon_sstable::verify::verify(disk, descriptor, &options, &mut tell).await;
            told?;
            verdict.unsound += usize::from(found.has_problems());
            verdict.unread += usize::from(found.unreadable);
            on(Event::Verified(listed, &found))?;
            before += passes * length;
            on(Event::Position(before))?;
        }
    }
    Ok(verdict)
}

async fn stored_length(disk: &Disk, listed: &ListedSSTable) -> u64 {
    let path = listed.descriptor.component_path(Component::Data);
    disk.stat(&path).await.map_or(0, |stat| stat.len)
}
