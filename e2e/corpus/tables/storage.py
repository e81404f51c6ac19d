"""Compressors, chunk lengths, uncompressed files, filters, big values."""

import random

from ..table import Table, TrainDictionary, rounds

COMPRESSORS = ("LZ4", "Snappy", "Deflate", "Zstd", "Noop")
CHUNKS = (4, 16, 64)


def tables():
    for compressor in COMPRESSORS:
        for chunk in CHUNKS:
            yield _compressed(compressor, chunk)
    yield _stored(
        "ratio_limited",
        "min_compress_ratio 1.3: chunks that compress badly are stored raw, the last one perhaps padded",
        "compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4, 'min_compress_ratio': 1.3}",
    )
    yield _stored("uncompressed", "no compression: CRC.db", "compression = {'enabled': 'false'}")
    yield _stored(
        "no_bloom_filter", "bloom_filter_fp_chance 1.0: no Filter.db", "bloom_filter_fp_chance = 1.0", rows=60
    )
    yield _stored("small_bloom_filter", "bloom_filter_fp_chance 0.1", "bloom_filter_fp_chance = 0.1", rows=60)
    yield _dictionary()
    yield _many_partitions()
    yield _large_values()


def _compressed(compressor, chunk):
    return _stored(
        f"compressed_{compressor.lower()}_{chunk}",
        f"{compressor} with chunks of {chunk} KiB",
        f"compression = {{'class': '{compressor}Compressor', 'chunk_length_in_kb': {chunk}}}",
        golden=chunk == 4,
        rows=132 if chunk == 4 else 132 * chunk // 8,
    )


def _stored(name, covers, options, golden=True, rows=132):
    """About 30 KiB of rows, a third of them random, so that several chunks exist and some resist compression."""
    dice = random.Random(name)

    def row(i):
        noise = dice.randbytes(250).hex() if i % 3 == 0 else ""
        return f"INSERT INTO $t (k, c, v, b) VALUES ({i // 12}, {i}, 'value {i} {'abc' * 20}', 0x{noise})"

    half = rows // 2
    return Table(
        name=name,
        covers=covers,
        columns="k int, c int, v text, b blob, PRIMARY KEY (k, c)",
        options=options,
        rounds=rounds(
            [row(i) for i in range(0, half + half // 3)],
            [row(i) for i in range(half, rows)],
            [f"DELETE FROM $t WHERE k = {k}" for k in range(0, rows // 12, 7)],
        ),
        golden=golden,
    )


def _dictionary():
    table = _stored(
        "zstd_dictionary",
        "Zstd with a trained dictionary (in CompressionInfo.db) after the first flush, without one before",
        "compression = {'class': 'ZstdDictionaryCompressor', 'chunk_length_in_kb': 4}",
        golden=False,
        rows=1500,
    )
    table.rounds[1].insert(0, TrainDictionary())
    table.versions = ("pa", "ea")
    return table


def _many_partitions():
    return Table(
        name="many_partitions",
        covers="several thousand partitions: summary samples, filter, partition trie of several pages, HyperLogLog",
        columns="k uuid PRIMARY KEY, v int",
        rounds=[[_uuid_insert(number * 3000 + i) for i in range(4000)] for number in range(2)],
    )


def _uuid_insert(i):
    key = random.Random(i).randbytes(16).hex()
    dashed = "-".join((key[:8], key[8:12], key[12:16], key[16:20], key[20:]))
    return f"INSERT INTO $t (k, v) VALUES ({dashed}, {i})"


def _large_values():
    dice = random.Random(7)
    return Table(
        name="large_values",
        covers="values of 1 MiB, compressible and not; a partition key of 60,000 bytes",
        columns="k blob, c int, v blob, t text, PRIMARY KEY (k, c)",
        rounds=rounds(
            [
                ("INSERT INTO $t (k, c, v) VALUES (%s, 1, %s)", (b"\x01", dice.randbytes(1 << 20))),
                ("INSERT INTO $t (k, c, t) VALUES (%s, 2, %s)", (b"\x01", "0123456789abcdef" * (1 << 16))),
                ("INSERT INTO $t (k, c, t) VALUES (%s, 1, %s)", (dice.randbytes(60000), "long key")),
            ],
            [("INSERT INTO $t (k, c, v) VALUES (%s, 1, %s)", (b"\x01", dice.randbytes(1 << 20)))],
        ),
    )
