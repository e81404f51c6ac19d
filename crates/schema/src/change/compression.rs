//! `compression = { … }`: a compressor with its options (`CompressionParams`).

use std::collections::BTreeMap;

use super::table_options::configuration;
use halcyon_syntax::Result;

type Options = BTreeMap<String, String>;

const PACKAGE: &str = "org.apache.cassandra.io.compress.";

/// The options as they are kept.
pub(super) fn read(mut given: Options) -> Result<Options> {
    let off = || Options::from([("enabled".to_owned(), "false".to_owned())]);
    if given.is_empty() {
        return Ok(off());
    }
    let enabled = given.remove("enabled");
    if enabled.is_some_and(|text| text.eq_ignore_ascii_case("false")) {
        if !given.is_empty() {
            return Err(configuration(
                "If the 'enabled' option is set to false no other options must be specified",
            ));
        }
        return Ok(off());
    }
    let class = given
        .remove("class")
        .ok_or_else(|| configuration("Missing sub-option 'class' for the 'compression' option."))?;
    if class.is_empty() {
        return Err(configuration(
            "The 'class' option must not be empty. To disable compression use 'enabled' : false",
        ));
    }
    let full = if class.contains('.') { class } else { format!("{PACKAGE}{class}") };
    let chunk = given.remove("chunk_length_in_kb");
    let chunk = chunk.map_or(Ok(16), |text| {
        text.parse::<i32>().map_err(|_| configuration("Invalid value for chunk_length_in_kb"))
    })?;
    if chunk <= 0 {
        return Err(configuration("Invalid negative or null chunk_length_in_kb"));
    }
    if !chunk.cast_unsigned().is_power_of_two() {
        return Err(configuration("chunk_length_in_kb must be a power of 2"));
    }
    check_compressor(&full, &given)?;
    given.insert("class".to_owned(), full);
    given.insert("chunk_length_in_kb".to_owned(), chunk.to_string());
    Ok(given)
}

fn check_compressor(full: &str, options: &Options) -> Result<()> {
    let known: &[&str] = match full.strip_prefix(PACKAGE) {
        Some("LZ4Compressor") => &["lz4_compressor_type", "lz4_high_compressor_level"],
        Some("ZstdCompressor") => &["compression_level"],
        Some("SnappyCompressor" | "DeflateCompressor" | "NoopCompressor") => &[],
        _ => {
            return Err(configuration(format!("Could not create Compression for type {full}")));
        }
    };
    let is_known = |option: &str| {
        known.contains(&option) || matches!(option, "min_compress_ratio" | "max_compressed_length")
    };
    let unknown: Vec<&str> =
        options.keys().map(String::as_str).filter(|option| !is_known(option)).collect();
    if !unknown.is_empty() {
        return Err(configuration(format!("Unknown compression options {}", unknown.join(", "))));
    }
    if let Some(kind) = options.get("lz4_compressor_type")
        && !matches!(kind.as_str(), "high" | "fast")
    {
        return Err(configuration(format!(
            "Invalid compressor type '{kind}' specified for LZ4 parameter 'lz4_compressor_type'. Valid options are [high, fast]."
        )));
    }
    if let Some(level) = options.get("lz4_high_compressor_level")
        && !level.parse::<i32>().is_ok_and(|level| (1..=17).contains(&level))
    {
        return Err(configuration(format!(
            "Invalid value [{level}] for parameter 'lz4_high_compressor_level'. Value must be between 1 and 17."
        )));
    }
    if let Some(level) = options.get("compression_level") {
        let why = match level.parse::<i32>() {
            Ok(level) if (-131_072..=22).contains(&level) => return Ok(()),
            Ok(level) => format!("IllegalArgumentException compression_level={level} is invalid"),
            Err(_) => format!("NumberFormatException For input string: \"{level}\""),
        };
        return Err(configuration(format!(
            "ZstdCompressor.create() threw an error: java.lang.{why}"
        )));
    }
    Ok(())
}

pub(super) fn check(options: &Options) -> Result<()> {
    if let Some(ratio) = options.get("min_compress_ratio") {
        let fits = ratio.parse::<f64>().is_ok_and(|ratio| ratio == 0.0 || ratio >= 1.0);
        if !fits {
            return Err(configuration(
                "min_compress_ratio can either be 0 or greater than or equal to 1",
            ));
        }
    }
    Ok(())
}
