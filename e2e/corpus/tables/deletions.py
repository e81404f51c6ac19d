"""Tombstones of every kind: cell, row, range, partition, collection, static."""

from ..table import Table, rounds

COLUMNS = "k int, a int, b int, c int, v int, w text, PRIMARY KEY (k, a, b, c)"


def tables():
    yield _cells_rows_partitions()
    yield _statics()
    yield _no_clustering()
    for order in ("asc", "desc", "mixed"):
        yield _ranges(order)
    yield _boundary_chain("asc")
    yield _boundary_chain("desc")
    yield _purged_at_once()
    yield _purged_entirely()
    yield _purge_under_overlap("older", 1500)
    yield _purge_under_overlap("newer", 3000)


def _insert(k, a, b, c):
    return f"INSERT INTO $t (k, a, b, c, v, w) VALUES ({k}, {a}, {b}, {c}, {a * 100 + b * 10 + c}, 'w')"


def _grid(keys):
    return [_insert(k, a, b, c) for k in keys for a in range(3) for b in range(3) for c in range(3)]


def _cells_rows_partitions():
    return Table(
        name="deletions",
        covers="cell, row and partition tombstones, above, below and beside data; deletion before insertion",
        columns="k int, c int, v int, w text, PRIMARY KEY (k, c)",
        rounds=rounds(
            [f"INSERT INTO $t (k, c, v, w) VALUES ({k}, {c}, {c}, 'x') USING TIMESTAMP 1000" for k in range(5) for c in range(4)],
            [
                "DELETE v FROM $t USING TIMESTAMP 1001 WHERE k = 0 AND c = 0",
                "DELETE v, w FROM $t USING TIMESTAMP 999 WHERE k = 0 AND c = 1",
                "DELETE FROM $t USING TIMESTAMP 1000 WHERE k = 0 AND c = 2",
                "DELETE FROM $t USING TIMESTAMP 2000 WHERE k = 1",
                "DELETE FROM $t USING TIMESTAMP 999 WHERE k = 2",
                "DELETE FROM $t USING TIMESTAMP 1500 WHERE k = 3 AND c = 1",
                "DELETE FROM $t USING TIMESTAMP 1 WHERE k = 77",
                "DELETE FROM $t USING TIMESTAMP 1 WHERE k = 78 AND c = 1",
            ],
            [
                "INSERT INTO $t (k, c, v) VALUES (1, 1, 111) USING TIMESTAMP 2001",
                "INSERT INTO $t (k, c, v) VALUES (1, 2, 112) USING TIMESTAMP 1999",
                "INSERT INTO $t (k, c, v) VALUES (3, 1, 311) USING TIMESTAMP 1500",
                "UPDATE $t USING TIMESTAMP 3000 SET v = null WHERE k = 4 AND c = 3",
                "DELETE FROM $t USING TIMESTAMP 4000 WHERE k = 4 AND c = 2",
                "INSERT INTO $t (k, c, v, w) VALUES (4, 2, null, 'y') USING TIMESTAMP 4001",
            ],
        ),
        golden=True,
    )


def _statics():
    return Table(
        name="statics",
        covers="static columns: present, absent, alone, overwritten, deleted, with TTL, under a partition tombstone",
        columns="k int, c int, s int static, t text static, v int, PRIMARY KEY (k, c)",
        rounds=rounds(
            [
                "INSERT INTO $t (k, c, s, t, v) VALUES (1, 1, 10, 'one', 100)",
                "INSERT INTO $t (k, c, v) VALUES (2, 1, 200)",
                "INSERT INTO $t (k, s) VALUES (3, 30)",
                "INSERT INTO $t (k, s, t) VALUES (4, 40, 'four')",
                "UPDATE $t USING TTL 315360000 SET t = 'long lived' WHERE k = 5",
                "INSERT INTO $t (k, c, s, v) VALUES (6, 1, 60, 600)",
            ],
            [
                "UPDATE $t SET s = 11 WHERE k = 1",
                "DELETE t FROM $t WHERE k = 1",
                "DELETE s FROM $t WHERE k = 3",
                "DELETE FROM $t WHERE k = 6",
                "UPDATE $t SET t = '' WHERE k = 2",
            ],
            ["UPDATE $t SET s = 61 WHERE k = 6", "DELETE s, t FROM $t WHERE k = 4"],
        ),
        golden=True,
    )


def _no_clustering():
    return Table(
        name="no_clustering",
        covers="table without clustering: row deletion is partition deletion; overwritten cells; null inserts",
        columns="k text PRIMARY KEY, a int, b text",
        rounds=rounds(
            [f"INSERT INTO $t (k, a, b) VALUES ('key{i}', {i}, 'b{i}')" for i in range(20)],
            ["DELETE FROM $t WHERE k = 'key3'", "DELETE a FROM $t WHERE k = 'key4'"]
            + [f"UPDATE $t SET b = 'second' WHERE k = 'key{i}'" for i in range(5, 25)],
            ["INSERT INTO $t (k, a, b) VALUES ('key3', null, 'back')", "DELETE FROM $t WHERE k = 'key9'"],
        ),
        golden=True,
    )


def _ranges(order):
    directions = {"asc": ("ASC",) * 3, "desc": ("DESC",) * 3, "mixed": ("ASC", "DESC", "ASC")}[order]
    by = ", ".join(f"{name} {direction}" for name, direction in zip("abc", directions))
    deletes = [
        "k = 0 AND a = 1",
        "k = 0 AND a = 2 AND b = 1",
        "k = 1 AND a > 0",
        "k = 2 AND a >= 1 AND a < 2",
        "k = 3 AND a <= 1",
        "k = 4 AND a = 1 AND b > 0 AND b <= 2",
        "k = 5 AND a = 1 AND b = 1 AND c >= 1",
        "k = 6 AND a = 1 AND b = 1 AND c < 1",
        "k = 7 AND a < 1",
        "k = 7 AND a > 1",
        "k = 8 AND a > 5 AND a < 7",
        "k = 99 AND a > 1",
    ]
    if order != "mixed":
        # Multi-column relations must be of one direction.
        deletes += ["k = 9 AND (a, b) > (0, 1) AND (a, b) <= (2, 0)", "k = 10 AND (a, b, c) >= (0, 1, 2) AND (a) < (2)"]
    return Table(
        name=f"range_tombstones_{order}",
        covers=f"range tombstones with open, closed, inclusive and exclusive bounds of 1 to 3 components, {order} order",
        columns=COLUMNS,
        options=f"CLUSTERING ORDER BY ({by})",
        rounds=rounds(
            _grid(range(11)),
            [f"DELETE FROM $t WHERE {where}" for where in deletes],
            [_insert(0, 1, 1, 1), _insert(1, 2, 2, 2), _insert(4, 1, 1, 0), _insert(7, 0, 0, 0)],
        ),
        golden=True,
    )


def _boundary_chain(order):
    """Overlapping ranges with rising and falling timestamps become boundaries when flushed and merged."""
    first = [
        ("a >= 0 AND a < 10", 100),
        ("a >= 5 AND a < 15", 200),
        ("a > 8 AND a <= 12", 150),
        ("a >= 12 AND a <= 20", 300),
        ("a = 7", 250),
        ("a = 10 AND b >= 3 AND b < 6", 400),
        ("a = 10 AND b >= 6 AND b < 9", 401),
    ]
    second = [("a >= 3 AND a <= 14", 120), ("a > 14 AND a < 18", 350), ("a >= 18", 299), ("a = 10 AND b = 6", 401)]
    delete = "DELETE FROM $t USING TIMESTAMP {} WHERE k = 1 AND {}"
    rows = "INSERT INTO $t (k, a, b, v) VALUES (1, {}, {}, {}) USING TIMESTAMP {}"
    return Table(
        name=f"range_boundaries_{order}",
        covers=f"range tombstones that touch and overlap: boundary markers of every kind, {order} order",
        columns="k int, a int, b int, v int, PRIMARY KEY (k, a, b)",
        options=f"CLUSTERING ORDER BY (a {order.upper()}, b {order.upper()})",
        rounds=rounds(
            [delete.format(stamp, where) for where, stamp in first],
            [rows.format(a, b, a * 10 + b, 100 + 20 * a) for a in range(0, 22) for b in (0, 5, 6)],
            [delete.format(stamp, where) for where, stamp in second],
        ),
        golden=True,
    )


def _purged_at_once():
    return Table(
        name="purge",
        covers="gc_grace_seconds = 0: compaction purges tombstones of every kind and what they shadow",
        columns="k int, c int, s int static, v int, m map<int, int>, PRIMARY KEY (k, c)",
        options="gc_grace_seconds = 0",
        rounds=rounds(
            [f"INSERT INTO $t (k, c, s, v, m) VALUES ({k}, {c}, {k}, {c}, {{1: 1, 2: 2}})" for k in range(6) for c in range(5)],
            [
                "DELETE FROM $t WHERE k = 0",
                "DELETE FROM $t WHERE k = 1 AND c = 1",
                "DELETE v FROM $t WHERE k = 2 AND c = 2",
                "DELETE FROM $t WHERE k = 3 AND c > 1 AND c < 4",
                "DELETE m FROM $t WHERE k = 4 AND c = 0",
                "DELETE m[1] FROM $t WHERE k = 4 AND c = 1",
                "DELETE s FROM $t WHERE k = 5",
                "DELETE FROM $t WHERE k = 50",
                "DELETE v, m FROM $t WHERE k = 51 AND c = 1",
                "UPDATE $t USING TTL 1 SET v = 5 WHERE k = 5 AND c = 5",
                "INSERT INTO $t (k, c, v) VALUES (5, 6, 6) USING TTL 1",
                "INSERT INTO $t (k, c, v) VALUES (52, 6, 6) USING TTL 1",
            ],
            ["INSERT INTO $t (k, c, v) VALUES (0, 9, 9)", "INSERT INTO $t (k, c, v) VALUES (3, 2, 9)"],
        ),
        golden=True,
    )


def _purged_entirely():
    return Table(
        name="purge_everything",
        covers="gc_grace_seconds = 0 and nothing alive: compaction leaves no SSTable at all",
        columns="k int, c int, v int, PRIMARY KEY (k, c)",
        options="gc_grace_seconds = 0",
        rounds=rounds(
            [f"INSERT INTO $t (k, c, v) VALUES ({k}, 1, 1)" for k in range(4)],
            ["DELETE FROM $t WHERE k = 0", "DELETE FROM $t WHERE k = 1 AND c = 1", "DELETE FROM $t WHERE k = 2 AND c > 0"],
            ["DELETE v FROM $t WHERE k = 3 AND c = 1", "DELETE FROM $t WHERE k = 3 AND c = 1", "DELETE FROM $t WHERE k = 9"],
        ),
        golden=True,
    )


def _purge_under_overlap(age, stamp):
    """The third SSTable is not compacted: what it could still hold decides what may be purged."""
    return Table(
        name=f"purge_overlap_{age}",
        covers=f"gc_grace_seconds = 0, compaction of two SSTables while a third overlaps with {age} data (timestamp {stamp})",
        columns="k int, c int, s int static, v int, m map<int, int>, PRIMARY KEY (k, c)",
        options="gc_grace_seconds = 0",
        rounds=rounds(
            [
                f"INSERT INTO $t (k, c, s, v, m) VALUES ({k}, {c}, {k}, {c}, {{1: 1}}) USING TIMESTAMP {1000 + c}"
                for k in range(10)
                for c in range(4)
            ],
            [
                f"DELETE FROM $t USING TIMESTAMP 2000 WHERE {where}"
                for k in (0, 5)
                for where in (f"k = {k}", f"k = {k + 1} AND c = 1", f"k = {k + 2} AND c >= 1 AND c < 3")
            ]
            + [f"DELETE v, m FROM $t USING TIMESTAMP 2000 WHERE k = {k} AND c = 1" for k in (3, 8)]
            + [f"INSERT INTO $t (k, c, v) VALUES ({k}, 1, 7) USING TIMESTAMP 2000 AND TTL 1" for k in (4, 9)],
            [f"INSERT INTO $t (k, c, v) VALUES ({k}, 1, 99) USING TIMESTAMP {stamp}" for k in range(5)],
        ),
        compact_rounds=(0, 1),
        golden=True,
    )
