//! LZ4 blocks of our own encoder, read by the decoder of another library.

use halcyon_codec::{Algorithm, Compressor, Decompressor, Effort, Method};

/// The first byte says how often the others are repeated, so that a block can be longer than what it is made of.
pub fn block(bytes: &[u8]) {
    let Some((times, part)) = bytes.split_first() else { return };
    let input = part.repeat(1 + usize::from(*times) % 64);
    for effort in [Effort::Literals, Effort::Fast, Effort::Default] {
        let mut compressor = Compressor::new(Method::Lz4 { effort }).expect("LZ4");
        let mut block = vec![0; compressor.bound(input.len())];
        let length = compressor.compress(&input, &mut block).expect("room for the largest block");
        // Read from a buffer of its own length, so that a read past its end is seen.
        let block = block[..length].to_vec();
        let mut output = vec![0; input.len()];
        let mut decompressor = Decompressor::new(Algorithm::Lz4).expect("LZ4");
        decompressor.decompress(&block, &mut output).expect("a sound block");
        assert!(output == input, "{effort:?}");
    }
    // The same bytes as a block from outside.
    let mut output = vec![0; 4096];
    let mut decompressor = Decompressor::new(Algorithm::Lz4).expect("LZ4");
    let _ = decompressor.decompress(part, &mut output);
}
