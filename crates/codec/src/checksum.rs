//! CRC32 (IEEE, as `java.util.zip.CRC32`) and CRC-32C (Castagnoli), by hardware instructions where there are any.

pub use crc32c::{crc32c, crc32c_append};
/// A CRC32 in parts; `combine` joins the checksums of neighbouring parts.
pub use crc32fast::Hasher as Crc32;

pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
