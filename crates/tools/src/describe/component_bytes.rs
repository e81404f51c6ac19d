//! A component's bytes, with a meaning for each run of them.

use halcyon_model::bytes::Note;
use halcyon_sstable::Component;
use halcyon_sstable::format::listing::ListedSSTable;

use crate::error::Error;

/// Bytes of a component that is described; chosen: ten times as many would take gigabytes of memory with their notes.
pub(super) const MAX_SHOWN: u64 = 256 << 20;

/// A component's bytes.
pub struct ComponentBytes {
    pub component: Component,
    pub bytes: Vec<u8>,
    /// Bytes of the file, where `bytes` are uncompressed.
    pub stored: Option<u64>,
    /// Runs of bytes, in order.
    pub notes: Vec<Note>,
    /// Why the notes end early.
    pub error: Option<Error>,
}

pub(super) fn too_large(listed: &ListedSSTable, component: Component) -> Error {
    let path = listed.descriptor.component_path(component);
    Error::unreadable(&path, "too large to be shown byte by byte; name a smaller component")
}
