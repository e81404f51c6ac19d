//! The programs that `cargo x bench` runs: they make the data of experiments and look at it.
//!
//! ```text
//! measure generate DIRECTORY --bytes N --sstables N --compression lz4-4 [--shape wide] [--version da]   the inputs
//! measure inspect  DIRECTORY                                               what statistics say of SSTables
//! ```
//! Each prints one line of JSON.

mod generate;
mod inspect;
mod parts;
mod payload;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use halcyon_io::{AccessMode, Disk, DiskOptions, block_on};
use halcyon_model::options::{Compression, CompressorKind};
use halcyon_sstable::format::listing;
use halcyon_sstable::{OpenOptions, SSTable, Version};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "measure generate|inspect DIRECTORY [--name value]…";

/// `--name value` pairs after the verb and its directory.
struct Words {
    directory: PathBuf,
    values: BTreeMap<String, String>,
}

impl Words {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Words> {
        let directory = PathBuf::from(words.next().ok_or(USAGE)?);
        let mut values = BTreeMap::new();
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name} lacks its value"))?;
            values.insert(name.trim_start_matches('-').to_owned(), value);
        }
        Ok(Words { directory, values })
    }

    fn text(&self, name: &str) -> Result<&str> {
        Ok(self.values.get(name).ok_or_else(|| format!("--{name} is missing"))?)
    }

    fn number(&self, name: &str, otherwise: u64) -> Result<u64> {
        match self.values.get(name) {
            Some(text) => text
                .trim_end_matches('B')
                .parse()
                .map_err(|e| format!("--{name} {text}: {e}").into()),
            None => Ok(otherwise),
        }
    }

    fn size(&self, name: &str, otherwise: usize) -> Result<usize> {
        Ok(usize::try_from(self.number(name, otherwise as u64)?)?)
    }

    fn access(&self) -> Result<AccessMode> {
        Ok(self.values.get("access").map_or(Ok(AccessMode::Direct), |mode| mode.parse())?)
    }

    /// Of the SSTables that are made.
    fn version(&self) -> Result<Version> {
        Ok(self.values.get("version").map_or(Ok(Version::OA), |version| version.parse())?)
    }

    /// `lz4-16`: the compressor and the KiB of a chunk.
    fn compression(&self) -> Result<Compression> {
        let text = self.text("compression")?;
        let (name, kib) = text.split_once('-').ok_or("lz4-4, lz4-16 or zstd-16 expected")?;
        let kind = match name {
            "lz4" => CompressorKind::Lz4,
            "zstd" => CompressorKind::Zstd { level: 3 },
            _ => return Err(format!("{name}: lz4 or zstd expected").into()),
        };
        let chunk_length = kib.parse::<u32>()? << 10;
        Ok(Compression::new(kind, chunk_length))
    }
}

/// The SSTables of a folder, in the order of their names.
async fn open_all(disk: &Disk, directory: &Path) -> Result<Vec<Arc<SSTable>>> {
    let entries = disk.list(directory).await?;
    let listing = listing::group(directory, entries.iter().map(|entry| &entry.name));
    let mut opened = Vec::new();
    for listed in &listing.sstables {
        opened.push(Arc::new(SSTable::open_listed(disk, listed, OpenOptions::default()).await?));
    }
    Ok(opened)
}

fn run() -> Result<String> {
    let mut words = std::env::args().skip(1);
    let verb = words.next().ok_or(USAGE)?;
    let words = Words::parse(words)?;
    let buffer_budget = words.size("buffer-budget", DiskOptions::default().buffer_budget)?;
    let disk = Disk::real(DiskOptions { buffer_budget, ..DiskOptions::default() });
    block_on(async {
        match verb.as_str() {
            "generate" => generate::run(&disk, &words).await,
            "inspect" => inspect::run(&disk, &words).await,
            _ => Err(USAGE.into()),
        }
    })
}

fn main() -> ExitCode {
    match run() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("measure: {error}");
            ExitCode::FAILURE
        }
    }
}
