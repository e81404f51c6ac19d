"""Shapes of tables: many clusterings, many columns, dropped columns, quoted names, views, indexes."""

from ..table import Table, rounds


def tables():
    yield _many_clusterings()
    yield _many_columns()
    yield _dropped_columns()
    yield _only_keys()
    yield _quoted_names()
    yield _strings()
    yield _view()
    yield _index()


def _many_clusterings():
    names = [f"c{i:02}" for i in range(35)]
    columns = ", ".join(f"{name} {'text' if i % 3 == 1 else 'int'}" for i, name in enumerate(names))
    into = ", ".join(names)

    def values(seed):
        # Empty texts set header bits in both batches of 32.
        return ", ".join(
            ("''" if (i + seed) % 2 else f"'t{seed}'") if i % 3 == 1 else str((i * seed) % 5) for i in range(35)
        )

    by = ", ".join(f"{name} {'DESC' if i % 4 == 3 else 'ASC'}" for i, name in enumerate(names))
    return Table(
        name="clusterings_35",
        covers="35 clustering columns: two header batches; row and range deletions on long prefixes",
        columns=f"k int, {columns}, v int, PRIMARY KEY (k, {into})",
        options=f"CLUSTERING ORDER BY ({by})",
        rounds=rounds(
            [f"INSERT INTO $t (k, {into}, v) VALUES (1, {values(seed)}, {seed})" for seed in range(8)],
            ["DELETE FROM $t WHERE k = 1 AND c00 = 0 AND c01 = 't2'", "DELETE FROM $t WHERE k = 1 AND c00 = 0 AND c01 >= 't4'"],
        ),
        golden=True,
    )


def _many_columns():
    names = [f"v{i:02}" for i in range(75)]
    columns = ", ".join(f"{name} {'set<int>' if i % 25 == 24 else 'int'}" for i, name in enumerate(names))

    def insert(k, chosen):
        into = ", ".join(["k"] + [names[i] for i in chosen])
        values = ", ".join([str(k)] + ["{1, 2}" if i % 25 == 24 else str(i) for i in chosen])
        return f"INSERT INTO $t ({into}) VALUES ({values})"

    return Table(
        name="columns_75",
        covers="75 columns: rows with none, few, half, most and all of them (both column subset branches)",
        columns=f"k int PRIMARY KEY, {columns}",
        rounds=rounds(
            [
                insert(0, []),
                insert(1, [0]),
                insert(2, [74]),
                insert(3, [3, 24, 60]),
                insert(4, range(0, 75, 2)),
                insert(5, range(1, 75, 2)),
                insert(6, range(0, 36)),
                insert(7, range(0, 37)),
                insert(8, range(0, 38)),
                insert(9, [i for i in range(75) if i != 40]),
                insert(10, range(75)),
                insert(11, [i for i in range(75) if i not in (0, 24, 74)]),
            ],
            [insert(1, [5, 6, 7]), "DELETE v03, v24 FROM $t WHERE k = 3", insert(10, range(70, 75))],
        ),
        golden=True,
    )


def _dropped_columns():
    return Table(
        name="dropped_columns",
        covers="columns dropped, and dropped then added again: their old cells must vanish",
        columns="k int, c int, a int, b text, m map<int, int>, s int static, PRIMARY KEY (k, c)",
        rounds=rounds(
            [f"INSERT INTO $t (k, c, a, b, m, s) VALUES ({k}, 1, {k}, 'b', {{1: 1}}, 9)" for k in range(4)],
            [
                "ALTER TABLE $t DROP a",
                "ALTER TABLE $t DROP m",
                "ALTER TABLE $t DROP s",
                "INSERT INTO $t (k, c, b) VALUES (1, 2, 'after drop')",
            ],
            ["ALTER TABLE $t ADD a int", "INSERT INTO $t (k, c, a) VALUES (2, 1, 222) USING TIMESTAMP 4000000000000000"],
        ),
        golden=True,
    )


def _only_keys():
    return Table(
        name="only_keys",
        covers="table without regular columns",
        columns="k int, c int, PRIMARY KEY (k, c)",
        rounds=rounds(
            [f"INSERT INTO $t (k, c) VALUES ({i % 3}, {i})" for i in range(12)],
            ["DELETE FROM $t WHERE k = 1 AND c = 4", "INSERT INTO $t (k, c) VALUES (5, 5) USING TTL 315360000"],
        ),
        golden=True,
    )


def _quoted_names():
    return Table(
        name='"QuotedTable"',
        covers="case-sensitive names of table and columns, reserved words, names with blanks and quotes",
        columns='"Key" int, "select" text, "blank in ""name""" int, "Mixed" int, PRIMARY KEY ("Key", "select")',
        rounds=rounds(
            ['INSERT INTO $t ("Key", "select", "blank in ""name""", "Mixed") VALUES (1, \'a\', 2, 3)'],
            ['UPDATE $t SET "Mixed" = 4 WHERE "Key" = 1 AND "select" = \'a\''],
        ),
        golden=True,
    )


def _strings():
    return Table(
        name="strings",
        covers="strings that JSON must escape: quotes, control characters, non-BMP, long runs",
        columns="k text, c text, v text, PRIMARY KEY (k, c)",
        rounds=rounds(
            [
                ("INSERT INTO $t (k, c, v) VALUES (%s, %s, %s)", ("k" + text, text, text))
                for text in ["", '"', "\\", "\n\t\r\b\f", "\x00\x01\x1f\x7f", "é", "\u2028", "😀", "/</script>", "x" * 300]
            ]
        ),
        golden=True,
    )


def _view():
    return Table(
        name="view_base",
        covers="a materialized view and its base (view rows carry shadowable or plain deletions)",
        columns="k int, c int, v int, w text, PRIMARY KEY (k, c)",
        setup=[
            "CREATE MATERIALIZED VIEW view_by_v AS SELECT * FROM view_base WHERE v IS NOT NULL AND k IS NOT NULL"
            " AND c IS NOT NULL PRIMARY KEY (v, k, c)"
        ],
        derived=[("MATERIALIZED VIEW", "view_by_v")],
        rounds=rounds(
            [f"INSERT INTO $t (k, c, v, w) VALUES ({i % 3}, {i}, {i % 4}, 'w{i}')" for i in range(12)],
            ["UPDATE $t SET v = 9 WHERE k = 0 AND c = 0", "UPDATE $t SET w = 'other' WHERE k = 1 AND c = 1"],
            ["DELETE v FROM $t WHERE k = 2 AND c = 2", "DELETE FROM $t WHERE k = 0 AND c = 3", "UPDATE $t SET v = 0 WHERE k = 0 AND c = 0"],
        ),
        golden=True,
    )


def _index():
    return Table(
        name="indexed",
        covers="a legacy secondary index: its hidden table is ordered by LocalPartitioner",
        columns="k int, c int, v text, s set<int>, PRIMARY KEY (k, c)",
        setup=["CREATE INDEX indexed_by_v ON indexed (v)", "CREATE INDEX indexed_by_s ON indexed (s)"],
        derived=[("INDEX", "indexed_by_v"), ("INDEX", "indexed_by_s")],
        rounds=rounds(
            [f"INSERT INTO $t (k, c, v, s) VALUES ({i % 3}, {i}, 'v{i % 4}', {{{i % 2}, 5}})" for i in range(12)],
            ["UPDATE $t SET v = 'moved' WHERE k = 0 AND c = 0", "DELETE FROM $t WHERE k = 1 AND c = 1"],
            ["UPDATE $t SET s = s - {5} WHERE k = 2 AND c = 2"],
        ),
    )
