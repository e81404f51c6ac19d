//! The arguments that say how outputs are written.

use std::str::FromStr;

use clap::ValueEnum;
use halcyon_model::options::{Compressed, Compression, Entries, MapOption};
use halcyon_model::units;
use halcyon_sstable::{Format, Version};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatArg {
    Big,
    Bti,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum VersionArg {
    Nb,
    Oa,
    Pa,
    Da,
    Ea,
}

impl FormatArg {
    pub(super) fn format(self) -> Format {
        match self {
            FormatArg::Big => Format::Big,
            FormatArg::Bti => Format::Bti,
        }
    }
}

impl VersionArg {
    pub(super) fn version(self) -> Version {
        match self {
            VersionArg::Nb => Version::NB,
            VersionArg::Oa => Version::OA,
            VersionArg::Pa => Version::PA,
            VersionArg::Da => Version::DA,
            VersionArg::Ea => Version::EA,
        }
    }
}

/// `LZ4Compressor,chunk_length_in_kb=4`, or `none`, as a table's `compression` map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CompressionArg(pub(super) Option<Compression>);

impl FromStr for CompressionArg {
    type Err = String;

    fn from_str(text: &str) -> Result<CompressionArg, String> {
        let mut parts = text.split(',');
        let class = parts.next().unwrap_or_default().trim();
        if class.is_empty() {
            return Err("a compressor expected, such as LZ4Compressor, or none".to_owned());
        }
        if class.eq_ignore_ascii_case("none") {
            return Ok(CompressionArg(None));
        }
        let mut entries = Entries::from([("class".to_owned(), class.to_owned())]);
        for part in parts {
            let pair = part.split_once('=').filter(|(name, _)| !name.trim().is_empty());
            let (name, value) =
                pair.ok_or_else(|| format!("option=value expected, found {part:?}"))?;
            let (name, value) = match (name.trim(), value.trim()) {
                ("chunk_length", size) => ("chunk_length_in_kb", in_kib(size)?),
                (name, value) => (name, value.to_owned()),
            };
            entries.insert(name.to_owned(), value);
        }
        let option = MapOption::<Compressed>::checked(entries).map_err(|e| e.to_string())?;
        Ok(CompressionArg(option.value().0.clone()))
    }
}

fn in_kib(size: &str) -> Result<String, String> {
    let bytes = units::arguments::size(size)?;
    let kib = bytes.checked_div(1024).filter(|_| bytes.is_multiple_of(1024));
    Ok(kib.map_or_else(|| units::bytes(bytes), |kib| kib.to_string()))
}

#[cfg(test)]
mod tests {
    use halcyon_model::options::CompressorKind;

    use super::*;

    fn compression(text: &str) -> Result<Option<Compression>, String> {
        text.parse::<CompressionArg>().map(|found| found.0)
    }

    #[test]
    fn compression_is_spelled_as_in_tables() {
        let lz4 = compression("LZ4Compressor").expect("known").expect("compressed");
        assert_eq!((lz4.kind, lz4.chunk_length), (CompressorKind::Lz4, 16384));
        let zstd = compression("ZstdCompressor,compression_level=6, chunk_length_in_kb=4");
        let zstd = zstd.expect("known").expect("compressed");
        assert_eq!((zstd.kind, zstd.chunk_length), (CompressorKind::Zstd { level: 6 }, 4096));
        assert_eq!(compression("none"), Ok(None));
        for bad in [
            "",
            "Nonsense",
            "LZ4Compressor,x",
            "LZ4Compressor,chunk_length_in_kb=3",
            "LZ4Compressor,chunk_length=1GiB",
        ] {
            assert!(compression(bad).is_err(), "{bad}");
        }
    }
}
