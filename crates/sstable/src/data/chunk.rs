//! One chunk of a compressed Data.db, from its stored bytes to its data.

use crate::format::compression_info::{CHUNK_CRC_LENGTH, Chunk};

impl Chunk {
    /// Checks `stored` (the payload and its CRC32) and fills `output`, which has room for exactly the chunk's data. The error describes
    /// the damage.
    pub(crate) fn open(
        &self,
        stored: &[u8],
        verify_checksum: bool,
        output: &mut [u8],
        decompress: impl FnOnce(&[u8], &mut [u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let (payload, rest) =
            stored.split_at_checked(self.payload_length as usize).unwrap_or((stored, &[]));
        let Some(crc) = rest.first_chunk::<{ CHUNK_CRC_LENGTH as usize }>() else {
            return Err("the file ends within it".into());
        };
        if verify_checksum {
            let (computed, stored) = (halcyon_codec::crc32(payload), u32::from_be_bytes(*crc));
            if computed != stored {
                return Err(format!("checksum is {computed:08x}, stored is {stored:08x}"));
            }
        }
        if !self.is_raw {
            return decompress(payload, output);
        }
        output.copy_from_slice(payload.get(..output.len()).ok_or("raw and too short")?);
        Ok(())
    }
}
