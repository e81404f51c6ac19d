//! What a directory lists, and what is known of a file.

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    pub name: String,
    pub is_dir: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    pub len: u64,
    /// Milliseconds since 1970.
    pub modified_ms: i64,
    pub is_dir: bool,
}
