"""Every native type as partition key, clustering (both orders) and value."""

import itertools

from ..table import Table, rounds

# Per type: literals in no particular order, extremes included.
LITERALS = {
    "ascii": ["'a'", "''", "'~ Z'", "'abc'"],
    "bigint": ["0", "-1", "9223372036854775807", "-9223372036854775808"],
    "blob": ["0x", "0x00", "0xff00", "0x80"],
    "boolean": ["true", "false"],
    "date": ["'1970-01-01'", "'2024-02-29'", "'0001-01-01'", "'-5877641-06-23'"],
    "decimal": ["0", "-1.50", "1E+10", "12345678901234567890.123456789"],
    "double": ["0.0", "-0.0", "NaN", "-1.7976931348623157E308", "4.9E-324", "Infinity"],
    "float": ["0.0", "-1.5", "NaN", "3.4028235E38", "-Infinity"],
    "inet": ["'127.0.0.1'", "'255.0.0.1'", "'::1'", "'2001:db8::ff00:42:8329'"],
    "int": ["0", "-1", "2147483647", "-2147483648"],
    "smallint": ["0", "-1", "32767", "-32768"],
    "text": ["'é'", "''", "'日本語'", "'a\"b\\c\n'", "'😀'"],
    "time": ["'00:00:00'", "'23:59:59.999999999'", "'08:12:54.123'"],
    "timestamp": ["0", "-1", "'2024-02-29T12:34:56.789Z'", "253402300799999"],
    "timeuuid": [
        "50554d6e-29bb-11e5-b345-feff819cdc9f",
        "00000000-0000-1000-8080-808080808080",
        "ffffffff-ffff-1fff-bf7f-7f7f7f7f7f7f",
    ],
    "tinyint": ["0", "-1", "127", "-128"],
    "uuid": [
        "00000000-0000-0000-0000-000000000000",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "50554d6e-29bb-11e5-b345-feff819cdc9f",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ],
    "varint": ["0", "-1", "128", "-129", "123456789012345678901234567890", "-99999999999999999999"],
}

# A duration can be neither key nor clustering.
VALUE_ONLY = {"duration": ["0s", "1y2mo3d4h5m6s7ms8us9ns", "-1d", "P1Y2M3DT4H5M6S"]}

# Types whose empty value Cassandra accepts, though no literal denotes it. Not boolean: Cassandra stores
# an empty one, but then SELECT JSON and sstabledump die on it.
EMPTY_BY_CAST = ["bigint", "double", "float", "inet", "int", "timestamp", "timeuuid", "uuid", "varint"]

GOLDEN_SINGLES = {"decimal", "text", "timeuuid", "varint"}


def tables():
    yield from _partition_keys()
    yield from _clusterings()
    yield _values()
    yield _empty_values()


def _partition_keys():
    for name, literals in LITERALS.items():
        # A partition key of one component must not be empty.
        keys = [literal for literal in literals if literal not in ("''", "0x")]
        yield Table(
            name=f"key_{name}",
            covers=f"partition key of type {name}",
            columns=f"k {name} PRIMARY KEY, v int",
            rounds=rounds([f"INSERT INTO $t (k, v) VALUES ({key}, {i})" for i, key in enumerate(keys)]),
        )
    names = list(LITERALS)
    columns = ", ".join(f"k_{name} {name}" for name in names)
    key = ", ".join(f"k_{name}" for name in names)
    inserts = []
    for i in range(6):
        values = ", ".join(LITERALS[name][i % len(LITERALS[name])] for name in names)
        inserts.append(f"INSERT INTO $t ({key}, v) VALUES ({values}, {i})")
    yield Table(
        name="key_composite",
        covers="composite partition key of every native type, with empty components",
        columns=f"{columns}, v int, PRIMARY KEY (({key}))",
        rounds=rounds(inserts),
        golden=True,
    )


def _clusterings():
    for name, literals in LITERALS.items():
        pairs = itertools.product(literals, literals)
        yield Table(
            name=f"clustering_{name}",
            covers=f"clustering of type {name}, ascending and descending",
            columns=f"k int, a {name}, b {name}, v int, PRIMARY KEY (k, a, b)",
            options="CLUSTERING ORDER BY (a ASC, b DESC)",
            rounds=rounds(
                [f"INSERT INTO $t (k, a, b, v) VALUES (1, {a}, {b}, {i})" for i, (a, b) in enumerate(pairs)]
            ),
            golden=name in GOLDEN_SINGLES,
        )
    for order in ("asc", "desc", "mixed"):
        yield _clustering_of_all(order)


def _clustering_of_all(order):
    names = list(LITERALS)
    directions = {"asc": ["ASC"], "desc": ["DESC"], "mixed": ["ASC", "DESC"]}[order]
    by = ", ".join(f"c_{name} {directions[i % len(directions)]}" for i, name in enumerate(names))
    columns = ", ".join(f"c_{name} {name}" for name in names)
    clustering = ", ".join(f"c_{name}" for name in names)
    inserts = []
    for i in range(12):
        values = ", ".join(LITERALS[name][(i // 2 + i % 2 * j) % len(LITERALS[name])] for j, name in enumerate(names))
        inserts.append(f"INSERT INTO $t (k, {clustering}, v) VALUES ({i % 2}, {values}, {i})")
    return Table(
        name=f"clusterings_all_{order}",
        covers=f"clusterings of every native type in one table, {order}",
        columns=f"k int, {columns}, v int, PRIMARY KEY (k, {clustering})",
        options=f"CLUSTERING ORDER BY ({by})",
        rounds=rounds(inserts),
        golden=order == "mixed",
    )


def _values():
    literals = LITERALS | VALUE_ONLY
    names = list(literals)
    columns = ", ".join(f"v_{name} {name}" for name in names)
    inserts = []
    for i in range(7):
        chosen = [name for j, name in enumerate(names) if i < 6 or j % 3 == 0]
        into = ", ".join(f"v_{name}" for name in chosen)
        values = ", ".join(literals[name][i % len(literals[name])] for name in chosen)
        inserts.append(f"INSERT INTO $t (k, {into}) VALUES ({i}, {values})")
    inserts.append("INSERT INTO $t (k) VALUES (100)")
    inserts.append("UPDATE $t SET v_int = 7 WHERE k = 101")
    return Table(
        name="value_all_types",
        covers="values of every native type; missing cells; a row of nothing but its key; an UPDATE without row marker",
        columns=f"k int PRIMARY KEY, {columns}",
        rounds=rounds(inserts),
        golden=True,
    )


def _empty_values():
    columns = ", ".join(f"v_{name} {name}" for name in EMPTY_BY_CAST)
    into = ", ".join(f"v_{name}" for name in EMPTY_BY_CAST)
    empties = ", ".join(f"blob_as_{name}(0x)" for name in EMPTY_BY_CAST)
    return Table(
        name="value_empty",
        covers="empty values, also of types that no empty literal denotes; empty clusterings",
        columns=f"k int, c1 text, c2 blob, c3 int, {columns}, t text, a ascii, b blob, PRIMARY KEY (k, c1, c2, c3)",
        options="CLUSTERING ORDER BY (c1 ASC, c2 DESC, c3 ASC)",
        rounds=rounds(
            [
                f"INSERT INTO $t (k, c1, c2, c3, {into}, t, a, b) VALUES (1, '', 0x, 0, {empties}, '', '', 0x)",
                f"INSERT INTO $t (k, c1, c2, c3, {into}) VALUES (1, '', 0x, blob_as_int(0x), {empties})",
                "INSERT INTO $t (k, c1, c2, c3, t) VALUES (1, '', 0x00, 5, 'x')",
                "INSERT INTO $t (k, c1, c2, c3, t) VALUES (1, 'a', 0x, -5, '')",
                "INSERT INTO $t (k, c1, c2, c3, t) VALUES (1, 'a', 0xff, -5, '')",
            ],
            [
                "DELETE FROM $t WHERE k = 1 AND c1 = '' AND c2 = 0x00",
                "DELETE FROM $t WHERE k = 1 AND c1 > '' AND c1 < 'a'",
                "DELETE FROM $t WHERE k = 1 AND c1 = 'a' AND c2 <= 0x",
                "INSERT INTO $t (k, c1, c2, c3, t) VALUES (2, '', 0x, 0, '')",
            ],
            ["DELETE FROM $t WHERE k = 2 AND c1 = ''"],
        ),
        golden=True,
    )
