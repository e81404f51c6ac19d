use super::*;
use crate::format::testing::{check_bytes, hex, survives_corruption};

fn golden() -> Vec<u8> {
    let mut bytes = hex("000d");
    bytes.extend_from_slice(b"LZ4Compressor");
    bytes.extend(hex("00000000 00004000 7fffffff 00000000000001cc 00000001 0000000000000000"));
    bytes
}

fn sample(chunks: u64, version: Version) -> CompressionInfo {
    let mut offsets = ChunkOffsets::default();
    for i in 0..chunks {
        offsets.push(i * 3155).expect("ascending");
    }
    CompressionInfo {
        compressor: "ZstdDictionaryCompressor".into(),
        options: vec![("compression_level".into(), "3".into())],
        chunk_length: 4096,
        max_compressed_length: if version.has_max_compressed_length() {
            3151
        } else {
            NO_MAX_COMPRESSED_LENGTH
        },
        data_length: chunks * 4096 - 96,
        compressed_length: chunks * 3155 - 50,
        offsets,
        dictionary: version.has_compression_dictionary().then(|| CompressionDictionary {
            kind: 0,
            id: -9,
            bytes: b"dictionary".to_vec(),
        }),
    }
}

/// The worked example of the format notes.
#[test]
fn golden_bytes() {
    let info = check_bytes(&golden(), |c| CompressionInfo::decode(c, Version::NB, 300));
    assert_eq!((info.compressor.as_str(), info.chunk_length), ("LZ4Compressor", 16384));
    let chunk =
        Chunk { offset: 0, payload_length: 296, position: 0, data_length: 460, is_raw: false };
    assert_eq!(info.chunk(0), Some(chunk));
    assert_eq!(info.chunk(1), None);
    let mut out = Vec::new();
    info.encode(Version::NB, &mut out);
    assert_eq!(out, golden());
}

#[test]
fn every_version_round_trips() {
    for version in Version::ALL {
        let info = sample(100, version);
        let mut bytes = Vec::new();
        info.encode(version, &mut bytes);
        let length = info.compressed_length;
        assert_eq!(check_bytes(&bytes, |c| CompressionInfo::decode(c, version, length)), info);
        for i in 0..100 {
            let chunk = info.chunk(i).expect("chunk");
            assert_eq!(chunk.offset, i as u64 * 3155);
            assert_eq!(info.chunk_index(chunk.position + u64::from(chunk.data_length) - 1), i);
            assert_eq!(chunk.is_raw, version.has_max_compressed_length() && i < 99);
        }
        assert_eq!(info.chunk(99).map(|c| (c.data_length, c.payload_length)), Some((4000, 3101)));
    }
}

#[test]
fn corruption_is_survived() {
    for version in [Version::MA, Version::NB, Version::PA] {
        let info = sample(40, version);
        let mut bytes = Vec::new();
        info.encode(version, &mut bytes);
        survives_corruption(&bytes, |c| {
            CompressionInfo::decode(c, version, info.compressed_length)
        });
    }
    // A count that the file cannot hold allocates nothing.
    let mut bytes = golden();
    let at = bytes.len() - 20;
    bytes[at..at + 12].copy_from_slice(&hex("00000fffffffc000 3fffffff"));
    let error =
        CompressionInfo::decode(&mut Cursor::new(&bytes), Version::NB, u64::MAX).unwrap_err();
    assert!(error.what.contains("do not fit"), "{error}");
}
