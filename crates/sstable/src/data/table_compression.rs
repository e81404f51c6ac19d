//! The `compression` option of a table.

use std::collections::BTreeMap;

use crate::CompressorKind;
use crate::components::compression_info::{MAX_CHUNK_LENGTH, max_compressed_length};
use crate::data::chunk_write::Compression;

const DEFAULT_CHUNK_LENGTH: u32 = 16 << 10;

impl Compression {
    /// What Cassandra compresses with where nothing is said.
    pub fn default_of_tables() -> Compression {
        Compression {
            kind: CompressorKind::Lz4,
            chunk_length: DEFAULT_CHUNK_LENGTH,
            max_compressed_length: max_compressed_length(DEFAULT_CHUNK_LENGTH, 0.0),
        }
    }

    /// From the map as `system_schema` has it; `None`: uncompressed.
    pub fn of_table(map: &BTreeMap<String, String>) -> Result<Option<Compression>, String> {
        let mut options = map.clone();
        let class = options.remove("class").or_else(|| options.remove("sstable_compression"));
        let enabled = options.remove("enabled").is_none_or(|e| !e.eq_ignore_ascii_case("false"));
        let Some(class) = class.filter(|class| enabled && !class.is_empty()) else {
            return Ok(None);
        };
        let kind = CompressorKind::from_class(&class, &options)?;
        let in_kb = ["chunk_length_in_kb", "chunk_length_kb"];
        let chunk_length = match in_kb.iter().find_map(|name| options.get(*name)) {
            None => DEFAULT_CHUNK_LENGTH,
            Some(text) => {
                let length = text.parse::<u32>().ok().and_then(|kb| kb.checked_mul(1024));
                let sound = |n: &u32| n.is_power_of_two() && *n <= MAX_CHUNK_LENGTH;
                length.filter(sound).ok_or_else(|| {
                    let most = MAX_CHUNK_LENGTH >> 10;
                    format!("chunk_length_in_kb = {text}: a power of two from 1 to {most} expected")
                })?
            }
        };
        let ratio = match options.get("min_compress_ratio") {
            None => 0.0,
            Some(text) => text
                .parse::<f64>()
                .ok()
                .filter(|ratio| *ratio == 0.0 || (*ratio >= 1.0 && ratio.is_finite()))
                .ok_or_else(|| {
                    format!("min_compress_ratio = {text}: 0 or a number from 1 expected")
                })?,
        };
        let max_compressed_length = max_compressed_length(chunk_length, ratio);
        Ok(Some(Compression { kind, chunk_length, max_compressed_length }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_may_have_its_compression_turned_off() {
        let of = |pairs: &[(&str, &str)]| {
            let map = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            Compression::of_table(&map).expect("sound")
        };
        assert_eq!(of(&[("enabled", "false")]), None);
        assert_eq!(of(&[("class", "LZ4Compressor"), ("enabled", "false")]), None);
        assert_eq!(of(&[("class", "")]), None);
        let limited = of(&[
            ("class", "a.b.LZ4Compressor"),
            ("min_compress_ratio", "1.3"),
            ("chunk_length_in_kb", "4"),
        ]);
        assert_eq!(limited.expect("compressed").max_compressed_length, 3151);
    }
}
