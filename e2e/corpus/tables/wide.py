"""Wide partitions: row index blocks, range tombstones across them, statics before them."""

import random

from ..table import Table, rounds


def tables():
    yield _wide("wide_asc", "ASC", "", groups=12, length=1500, golden=True)
    yield _wide("wide_desc", "DESC", "", groups=12, length=1500, golden=True)
    yield _wide("wide_many_blocks", "ASC", "", groups=90, length=380)
    yield _wide("wide_uncompressed", "ASC", " AND compression = {'enabled': 'false'}", groups=60, length=380)
    yield _wide(
        "wide_chunk_4", "DESC", " AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}", groups=60, length=380
    )
    yield _wide_static()
    yield _wide_text()


def _wide(name, order, options, groups, length, golden=False):
    """Partition 1 has 10 rows in each group; the second round writes the middle of it again."""
    dice = random.Random(name)

    def row(k, a, b):
        return f"INSERT INTO $t (k, a, b, v) VALUES ({k}, {a}, {b}, 'row {a} {b} {dice.choice('xyz') * length}')"

    third, last = groups // 3, groups - 1
    return Table(
        name=name,
        covers=f"partitions of several index blocks, {order}, with range tombstones inside, at the ends of and across blocks",
        columns="k int, a int, b int, v text, PRIMARY KEY (k, a, b)",
        options=f"CLUSTERING ORDER BY (a {order}, b {order}){options}",
        rounds=rounds(
            [row(1, a, b) for a in range(groups) for b in range(10)] + [row(2, a, 0) for a in range(10)] + [row(3, 0, 0)],
            [
                f"DELETE FROM $t WHERE k = 1 AND a > 2 AND a < {2 * third}",
                f"DELETE FROM $t WHERE k = 1 AND a = {last} AND b >= 2",
                "DELETE FROM $t WHERE k = 2",
                "DELETE FROM $t WHERE k = 3 AND a >= 0 AND a <= 100000",
            ]
            + [row(1, a, b) for a in range(third, 2 * third) for b in range(10)]
            + [row(3, a, 0) for a in range(1, 5 * third)],
            [f"DELETE FROM $t WHERE k = 1 AND a = {third + 1}", f"DELETE FROM $t WHERE k = 3 AND a > {third}", row(2, 5, 5)],
        ),
        golden=golden,
    )


def _wide_static():
    big = "s" * 3000
    return Table(
        name="wide_static",
        covers="wide partition with a static row, a partition deletion and one row larger than a block",
        columns="k text, c text, s text static, v text, PRIMARY KEY (k, c)",
        rounds=rounds(
            ["DELETE FROM $t USING TIMESTAMP 5 WHERE k = 'wide'", f"UPDATE $t SET s = '{big}' WHERE k = 'wide'"]
            + [f"INSERT INTO $t (k, c, v) VALUES ('wide', 'c{i:04}', '{'v' * 700}')" for i in range(160)]
            + [f"INSERT INTO $t (k, c, v) VALUES ('wide', 'c0100', '{'big' * 25000}')"],
            [f"INSERT INTO $t (k, c, v) VALUES ('wide', 'c{i:04}x', '{'w' * 400}')" for i in range(0, 160, 3)],
        ),
        golden=True,
    )


def _wide_text():
    return Table(
        name="wide_prefixes",
        covers="wide partition whose clusterings share long prefixes and end in blanks, zeros and nothing",
        columns="k int, a text, b blob, v text, PRIMARY KEY (k, a, b)",
        options="CLUSTERING ORDER BY (a ASC, b DESC)",
        rounds=rounds(
            [
                f"INSERT INTO $t (k, a, b, v) VALUES (1, '{'prefix ' * 9}{a}', 0x{b}, '{'v' * 500}')"
                for a in ["", "a", "a ", "aa", "b", "é", "zz"] + [f"n{i}" for i in range(30)]
                for b in ["", "00", "0000", "00ff", "ff", "ff00", "fe", "01"]
            ],
            [f"DELETE FROM $t WHERE k = 1 AND a >= '{'prefix ' * 9}a' AND a < '{'prefix ' * 9}n2'"],
        ),
    )
