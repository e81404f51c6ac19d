//! `compression = { … }`: a compressor with its options (`CompressionParams`).

use super::map_option::{Entries, SubOptions};
use super::{OptionError, defaults, hash_order};
use crate::value::{double_to_string, parse_double};

const PACKAGE: &str = "org.apache.cassandra.io.compress.";

/// No stored chunk can be this long: all are compressed, whatever that gives.
pub const NO_MAX_COMPRESSED_LENGTH: u32 = i32::MAX as u32;

/// Longer chunks are neither written nor read. Cassandra takes tables of up to 1 GiB a chunk, and cannot allocate its buffers.
pub const MAX_CHUNK_LENGTH: u32 = 1 << 27;

const ZSTD_DEFAULT_LEVEL: i32 = 3;

/// How chunks are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compression {
    pub kind: CompressorKind,
    /// Bytes.
    pub chunk_length: u32,
    /// A chunk that is not shorter than this when compressed is stored as it is (`min_compress_ratio`).
    pub max_compressed_length: u32,
    /// The compressor's own options as given, for CompressionInfo.db.
    pub parameters: Vec<(String, String)>,
}

/// Which compressor, with the options that change what it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressorKind {
    /// `lz4_compressor_type` and `lz4_high_compressor_level` say how long Cassandra searches for matches, not what a block
    /// is made of. We have the fast search only.
    Lz4,
    Snappy,
    Deflate,
    Zstd {
        level: i32,
    },
    Noop,
}

impl CompressorKind {
    /// By class name, with or without its package, as SSTables have it. A dictionary compressor writes plain zstd here.
    pub fn from_class(class: &str, parameters: &Entries) -> Result<CompressorKind, String> {
        let simple = class.rsplit('.').next().unwrap_or(class);
        Ok(match simple {
            "LZ4Compressor" => CompressorKind::Lz4,
            "SnappyCompressor" => CompressorKind::Snappy,
            "DeflateCompressor" => CompressorKind::Deflate,
            "ZstdCompressor" | "ZstdDictionaryCompressor" => {
                CompressorKind::Zstd { level: zstd_level(parameters)? }
            }
            "NoopCompressor" => CompressorKind::Noop,
            _ => {
                return Err(format!(
                    "compressor {class} is not known; known are LZ4Compressor, SnappyCompressor, \
                     DeflateCompressor, ZstdCompressor, ZstdDictionaryCompressor, NoopCompressor"
                ));
            }
        })
    }

    pub fn class(self) -> &'static str {
        match self {
            CompressorKind::Lz4 => "LZ4Compressor",
            CompressorKind::Snappy => "SnappyCompressor",
            CompressorKind::Deflate => "DeflateCompressor",
            CompressorKind::Zstd { .. } => "ZstdCompressor",
            CompressorKind::Noop => "NoopCompressor",
        }
    }

    fn supported(self) -> &'static [&'static str] {
        match self {
            CompressorKind::Lz4 => &["lz4_compressor_type", "lz4_high_compressor_level"],
            CompressorKind::Zstd { .. } => &["compression_level"],
            CompressorKind::Snappy | CompressorKind::Deflate | CompressorKind::Noop => &[],
        }
    }
}

fn zstd_level(parameters: &Entries) -> Result<i32, String> {
    let Some(text) = parameters.get("compression_level") else { return Ok(ZSTD_DEFAULT_LEVEL) };
    let why = match text.parse::<i32>() {
        Ok(level) if (-131_072..=22).contains(&level) => return Ok(level),
        Ok(level) => format!("IllegalArgumentException compression_level={level} is invalid"),
        Err(_) => format!("NumberFormatException For input string: \"{text}\""),
    };
    Err(format!("ZstdCompressor.create() threw an error: java.lang.{why}"))
}

fn check_lz4(parameters: &Entries) -> Result<(), String> {
    if let Some(kind) = parameters.get("lz4_compressor_type")
        && !matches!(kind.as_str(), "high" | "fast")
    {
        return Err(format!(
            "Invalid compressor type '{kind}' specified for LZ4 parameter 'lz4_compressor_type'. Valid options are [high, fast]."
        ));
    }
    if let Some(level) = parameters.get("lz4_high_compressor_level")
        && !level.parse::<i32>().is_ok_and(|level| (1..=17).contains(&level))
    {
        return Err(format!(
            "Invalid value [{level}] for parameter 'lz4_high_compressor_level'. Value must be between 1 and 17."
        ));
    }
    Ok(())
}

impl Compression {
    /// As an SSTable was written.
    pub fn of_file(
        class: &str,
        parameters: &[(String, String)],
        chunk_length: u32,
        max_compressed_length: u32,
    ) -> Result<Compression, String> {
        let kind = CompressorKind::from_class(class, &parameters.iter().cloned().collect())?;
        let parameters = parameters.to_vec();
        Ok(Compression { kind, chunk_length, max_compressed_length, parameters })
    }

    /// The same with other chunks; stored as they are beyond the same share of them.
    pub fn with_chunk_length(mut self, bytes: u64) -> Result<Compression, OptionError> {
        let length = u32::try_from(bytes).ok().filter(|length| {
            length.is_power_of_two() && (1024..=MAX_CHUNK_LENGTH).contains(length)
        });
        let length = length.ok_or_else(|| {
            OptionError::Configuration(format!(
                "a chunk length of {bytes} bytes: a power of two from 1 KiB to {} MiB expected",
                MAX_CHUNK_LENGTH >> 20
            ))
        })?;
        if self.max_compressed_length <= self.chunk_length {
            let ratio = f64::from(self.chunk_length) / f64::from(self.max_compressed_length);
            self.max_compressed_length = max_compressed_length(length, ratio).unsigned_abs();
        }
        self.chunk_length = length;
        Ok(self)
    }

    /// Chunks of a length, without options.
    pub fn new(kind: CompressorKind, chunk_length: u32) -> Compression {
        let parameters = match kind {
            CompressorKind::Zstd { level } if level != ZSTD_DEFAULT_LEVEL => {
                vec![("compression_level".to_owned(), level.to_string())]
            }
            _ => Vec::new(),
        };
        let max_compressed_length = NO_MAX_COMPRESSED_LENGTH;
        Compression { kind, chunk_length, max_compressed_length, parameters }
    }
}

impl Default for Compression {
    fn default() -> Compression {
        Compression::new(CompressorKind::Lz4, defaults::CHUNK_LENGTH)
    }
}

/// `CompressionParams.calcMaxCompressedLength`: Java rounds up, and converts what is too large to the nearest int.
pub fn max_compressed_length(chunk_length: u32, min_compress_ratio: f64) -> i32 {
    (f64::from(chunk_length) / min_compress_ratio).min(f64::from(i32::MAX)).ceil() as i32
}

/// `Some`: compressed; `None`: not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compressed(pub Option<Compression>);

impl Default for Compressed {
    fn default() -> Compressed {
        Compressed(Some(Compression::default()))
    }
}

impl SubOptions for Compressed {
    fn defaults() -> Entries {
        let class = format!("{PACKAGE}{}", CompressorKind::Lz4.class());
        let kib = (defaults::CHUNK_LENGTH >> 10).to_string();
        [("class".to_owned(), class), ("chunk_length_in_kb".to_owned(), kib)].into()
    }

    /// Cassandra reads and validates compression in one step, before it looks at the rest of a statement.
    fn normalize(given: Entries) -> Result<Entries, OptionError> {
        let off = || Entries::from([("enabled".to_owned(), "false".to_owned())]);
        let mut parameters = given.clone();
        let enabled = parameters.remove("enabled").map(|text| text.eq_ignore_ascii_case("true"));
        if given.is_empty() || enabled == Some(false) {
            if !parameters.is_empty() {
                return Err(OptionError::configuration(
                    "If the 'enabled' option is set to false no other options must be specified",
                ));
            }
            return Ok(off());
        }
        let class = full_class(parameters.remove("class"))?;
        let chunk = parameters.remove("chunk_length_in_kb").map_or(Ok(16), |text| kib(&text))?;
        let ratio = parameters.remove("min_compress_ratio");
        let ratio = ratio.map_or(Ok(0.0), |text| {
            let what = || format!("For input string: \"{text}\"");
            parse_double(&text).ok_or_else(|| OptionError::Configuration(what()))
        })?;
        check_compressor(&class, &parameters, given.len())?;
        check_chunks(chunk, ratio)?;
        let mut entries = parameters;
        entries.insert("class".to_owned(), class);
        entries.insert("chunk_length_in_kb".to_owned(), chunk.to_string());
        if ratio != 0.0 {
            entries.insert("min_compress_ratio".to_owned(), double_to_string(ratio));
        }
        Ok(entries)
    }

    fn parse(entries: &Entries) -> Result<Compressed, OptionError> {
        let mut parameters = entries.clone();
        let Some(class) = parameters.remove("class") else { return Ok(Compressed(None)) };
        let chunk = parameters.remove("chunk_length_in_kb").map_or(Ok(16), |text| kib(&text))?;
        let ratio = parameters.remove("min_compress_ratio").and_then(|text| parse_double(&text));
        let kind =
            CompressorKind::from_class(&class, &parameters).map_err(OptionError::Configuration)?;
        let chunk_length = chunk.unsigned_abs().saturating_mul(1024);
        let longest = MAX_CHUNK_LENGTH >> 10;
        if chunk_length > MAX_CHUNK_LENGTH {
            return Err(OptionError::Configuration(format!(
                "chunk_length_in_kb must be less than or equal to {longest} (got {chunk})"
            )));
        }
        let most = max_compressed_length(chunk_length, ratio.unwrap_or(0.0));
        let mut names: Vec<&str> = parameters.keys().map(String::as_str).collect();
        hash_order(&mut names, entries.len());
        let pair = |name: &str| Some((name.to_owned(), parameters.get(name)?.clone()));
        Ok(Compressed(Some(Compression {
            kind,
            chunk_length,
            max_compressed_length: most.unsigned_abs(),
            parameters: names.into_iter().filter_map(pair).collect(),
        })))
    }
}

fn full_class(given: Option<String>) -> Result<String, OptionError> {
    let class = given.ok_or_else(|| {
        OptionError::configuration("Missing sub-option 'class' for the 'compression' option.")
    })?;
    if class.is_empty() {
        return Err(OptionError::configuration(
            "The 'class' option must not be empty. To disable compression use 'enabled' : false",
        ));
    }
    Ok(if class.contains('.') { class } else { format!("{PACKAGE}{class}") })
}

fn kib(text: &str) -> Result<i32, OptionError> {
    let chunk: i32 = text
        .parse()
        .map_err(|_| OptionError::configuration("Invalid value for chunk_length_in_kb"))?;
    if chunk > i32::MAX / 1024 {
        let what = format!("Value of chunk_length_in_kb is too large ({chunk})");
        return Err(OptionError::Configuration(what));
    }
    Ok(chunk)
}

fn check_compressor(class: &str, parameters: &Entries, given: usize) -> Result<(), OptionError> {
    let simple = class.strip_prefix(PACKAGE).filter(|name| *name != "ZstdDictionaryCompressor");
    let known = simple.map(|name| CompressorKind::from_class(name, &Entries::new()));
    let Some(Ok(kind)) = known else {
        let what = format!("Could not create Compression for type {class}");
        return Err(OptionError::Configuration(what));
    };
    if kind == CompressorKind::Lz4 {
        check_lz4(parameters).map_err(OptionError::Configuration)?;
    }
    CompressorKind::from_class(class, parameters).map_err(OptionError::Configuration)?;
    let mut unknown: Vec<&str> = parameters.keys().map(String::as_str).collect();
    unknown.retain(|name| !kind.supported().contains(name));
    hash_order(&mut unknown, given);
    match unknown.first() {
        None => Ok(()),
        Some(first) => {
            Err(OptionError::Configuration(format!("Unknown compression options {first}")))
        }
    }
}

fn check_chunks(chunk: i32, ratio: f64) -> Result<(), OptionError> {
    let chunk_length = match u32::try_from(chunk) {
        Ok(chunk @ 1..) => chunk.saturating_mul(1024),
        _ => return Err(OptionError::configuration("Invalid negative or null chunk_length_in_kb")),
    };
    if !chunk_length.is_power_of_two() {
        return Err(OptionError::configuration("chunk_length_in_kb must be a power of 2"));
    }
    match max_compressed_length(chunk_length, ratio) {
        ..0 => Err(OptionError::configuration("Invalid negative min_compress_ratio")),
        most if most.unsigned_abs() > chunk_length && most < i32::MAX => {
            Err(OptionError::configuration(
                "min_compress_ratio can either be 0 or greater than or equal to 1",
            ))
        }
        _ => Ok(()),
    }
}
