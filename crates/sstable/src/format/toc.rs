//! TOC.txt: one component name per line, sorted, itself included.
//!
//! The list also names custom components (`SAI+…`, `SI_…`) that this program does not read, so it is kept as strings.

use futures_util::future::LocalBoxFuture;
use halcyon_io::{Disk, Purpose};
use halcyon_model::{Cursor, DecodeError, DecodeResult};

use super::replace::replace;
use crate::{Component, Descriptor, Error, Result};

/// No list is longer.
const TOC_MAX: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Toc {
    /// Component names, as in file names after the format.
    pub names: Vec<String>,
}

impl Toc {
    pub fn new(names: impl IntoIterator<Item = String>) -> Toc {
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        Toc { names }
    }

    pub fn contains(&self, name: impl std::fmt::Display) -> bool {
        let name = name.to_string();
        self.names.contains(&name)
    }

    /// Blank lines and carriage returns are tolerated.
    pub fn decode(cursor: &mut Cursor<'_>) -> DecodeResult<Toc> {
        let mut names = Vec::new();
        while cursor.remaining() > 0 {
            let offset = cursor.offset();
            let rest = cursor.rest();
            let length = rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |at| at + 1);
            let line = std::str::from_utf8(cursor.take(length)?)
                .map_err(|_| DecodeError { offset, what: "line is not UTF-8".into() })?;
            let name = line.trim();
            if name.contains('/') || name.contains('\0') {
                return Err(DecodeError {
                    offset,
                    what: format!("not a component name: {name:?}"),
                });
            }
            cursor.note(|| format!("component {name}"));
            if !name.is_empty() {
                names.push(name.to_string());
            }
        }
        Ok(Toc { names })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        for name in &self.names {
            out.extend_from_slice(name.as_bytes());
            out.push(b'\n');
        }
    }
}

/// Adds foreign components to the list of an SSTable.
pub fn add<'a>(
    disk: &'a Disk,
    descriptor: &'a Descriptor,
    names: &'a [String],
) -> LocalBoxFuture<'a, Result<()>> {
    Box::pin(async move {
        change(disk, descriptor, |toc| Toc::new(toc.names.into_iter().chain(names.iter().cloned())))
            .await
    })
}

/// Takes a foreign component off the list of an SSTable.
pub fn remove<'a>(
    disk: &'a Disk,
    descriptor: &'a Descriptor,
    name: &'a str,
) -> LocalBoxFuture<'a, Result<()>> {
    Box::pin(async move {
        change(disk, descriptor, |toc| Toc::new(toc.names.into_iter().filter(|n| n != name))).await
    })
}

async fn change(disk: &Disk, descriptor: &Descriptor, edit: impl FnOnce(Toc) -> Toc) -> Result<()> {
    let path = descriptor.component_path(Component::Toc);
    let bytes = match disk.read(&path, TOC_MAX).await {
        Ok(bytes) => bytes,
        // Cassandra lists the directory then.
        Err(e) if e.is_not_found() => return Ok(()),
        Err(e) => return Err(e.into()),
    };
    let toc = Toc::decode(&mut Cursor::new(&bytes));
    let toc = toc.map_err(|e| Error::corrupt(&path, Component::Toc, e))?;
    let mut out = Vec::new();
    edit(toc).encode(&mut out);
    if out == bytes {
        return Ok(());
    }
    replace(disk, descriptor, Component::Toc, &out, Purpose::Flush).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_round_trip_sorted() {
        let toc = Toc::new(["TOC.txt", "Data.db", "SAI+aa+ColumnComplete.db"].map(String::from));
        let mut bytes = Vec::new();
        toc.encode(&mut bytes);
        assert_eq!(bytes, b"Data.db\nSAI+aa+ColumnComplete.db\nTOC.txt\n");
        assert_eq!(Toc::decode(&mut Cursor::new(&bytes)), Ok(toc));
        let lax = Toc::decode(&mut Cursor::new(b"Data.db\r\n\nTOC.txt")).expect("tolerated");
        assert!(lax.contains("TOC.txt") && lax.contains(Component::Data));
        assert!(Toc::decode(&mut Cursor::new(b"../x\n")).is_err());
    }
}
