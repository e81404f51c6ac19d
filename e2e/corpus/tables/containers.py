"""Collections, user types, tuples and vectors: frozen, not frozen, nested; every way to change them."""

from ..table import Table, rounds


def tables():
    yield _lists()
    yield _sets()
    yield _maps()
    yield _frozen()
    yield _user_types()
    yield _user_type_with_added_field()
    yield _tuples()
    yield _vectors()
    yield _collection_keys()


def _lists():
    return Table(
        name="list_multicell",
        covers="non-frozen list: overwrite, append, prepend, set by index, element delete, column delete, empty",
        columns="k int PRIMARY KEY, l list<text>, n list<int>, v int",
        rounds=rounds(
            [
                "INSERT INTO $t (k, l, n, v) VALUES (1, ['a', 'b', 'c'], [1, 2], 1)",
                "INSERT INTO $t (k, l) VALUES (2, ['x', 'y', 'x'])",
                "INSERT INTO $t (k, l, v) VALUES (3, [], 3)",
                "UPDATE $t SET l = l + ['only appended'] WHERE k = 4",
                "INSERT INTO $t (k, l, n) VALUES (5, ['', 'é'], [-1])",
            ],
            [
                "UPDATE $t SET l = l + ['d'], n = [0] + n WHERE k = 1",
                "UPDATE $t SET l = ['front1', 'front2'] + l WHERE k = 1",
                "UPDATE $t SET l[1] = 'changed' WHERE k = 2",
                "UPDATE $t SET l = l - ['x'] WHERE k = 2",
                "DELETE l FROM $t WHERE k = 5",
            ],
            [
                "DELETE l[0] FROM $t WHERE k = 1",
                "UPDATE $t SET l = ['whole', 'new'] WHERE k = 2",
                "UPDATE $t SET l = l + ['after delete'] WHERE k = 5",
            ],
        ),
        golden=True,
    )


def _sets():
    return Table(
        name="set_multicell",
        covers="non-frozen set: add, remove, overwrite, delete, empty; static set",
        columns="k int, c int, s set<text>, u set<uuid>, ss set<int> static, PRIMARY KEY (k, c)",
        rounds=rounds(
            [
                "INSERT INTO $t (k, c, s, ss) VALUES (1, 1, {'b', 'a', ''}, {3, 1, 2})",
                "INSERT INTO $t (k, c, u) VALUES (1, 2, {f47ac10b-58cc-4372-a567-0e02b2c3d479, 00000000-0000-0000-0000-000000000001})",
                "INSERT INTO $t (k, c, s) VALUES (2, 1, {})",
                "UPDATE $t SET s = s + {'x'} WHERE k = 3 AND c = 1",
            ],
            [
                "UPDATE $t SET s = s + {'c'} WHERE k = 1 AND c = 1",
                "UPDATE $t SET s = s - {'a', 'not there'} WHERE k = 1 AND c = 1",
                "UPDATE $t SET ss = ss - {1} WHERE k = 1",
                "DELETE u FROM $t WHERE k = 1 AND c = 2",
            ],
            [
                "UPDATE $t SET s = {'fresh'} WHERE k = 3 AND c = 1",
                "DELETE s['b'] FROM $t WHERE k = 1 AND c = 1",
                "DELETE ss FROM $t WHERE k = 3",
                "UPDATE $t SET ss = ss + {9} WHERE k = 1",
            ],
        ),
        golden=True,
    )


def _maps():
    return Table(
        name="map_multicell",
        covers="non-frozen map: put, remove, overwrite, delete, empty, per-entry TTL, nested frozen values",
        columns="k int, c int, m map<text, int>, d map<int, frozen<list<text>>>, sm map<text, text> static, PRIMARY KEY (k, c)",
        rounds=rounds(
            [
                "INSERT INTO $t (k, c, m, d, sm) VALUES (1, 1, {'b': 2, 'a': 1, '': 0}, {1: ['x'], -1: []}, {'s': 't'})",
                "INSERT INTO $t (k, c, m) VALUES (1, 2, {})",
                "UPDATE $t SET m['k'] = 5, m['l'] = 6 WHERE k = 2 AND c = 1",
                "UPDATE $t USING TTL 315360000 SET m['ttl'] = 7 WHERE k = 2 AND c = 1",
            ],
            [
                "UPDATE $t SET m['a'] = 100 WHERE k = 1 AND c = 1",
                "DELETE m['b'] FROM $t WHERE k = 1 AND c = 1",
                "UPDATE $t SET m = m + {'z': 26, 'k': 55} WHERE k = 2 AND c = 1",
                "UPDATE $t SET m = m - {'l'} WHERE k = 2 AND c = 1",
                "UPDATE $t SET sm['s'] = null, sm['u'] = 'v' WHERE k = 1",
            ],
            [
                "DELETE m FROM $t WHERE k = 1 AND c = 1",
                "UPDATE $t SET m = {'whole': 1} WHERE k = 2 AND c = 1",
                "DELETE d FROM $t WHERE k = 1 AND c = 1",
            ],
        ),
        golden=True,
    )


def _frozen():
    return Table(
        name="frozen_collections",
        covers="frozen and nested frozen collections, in values and inside each other; empty ones",
        columns=(
            "k int PRIMARY KEY, l frozen<list<int>>, s frozen<set<text>>, m frozen<map<text, blob>>,"
            " n list<frozen<map<int, frozen<set<text>>>>>, e frozen<list<frozen<list<varint>>>>, b frozen<map<boolean, double>>"
        ),
        rounds=rounds(
            [
                "INSERT INTO $t (k, l, s, m, n, e, b) VALUES (1, [3, 1, 2], {'b', 'a'}, {'x': 0x00, '': 0x},"
                " [{1: {'a', 'b'}}, {}, {2: {}}], [[1, 2], [], [123456789012345678901]], {true: 1.5, false: -0.0})",
                "INSERT INTO $t (k, l, s, m, n, e) VALUES (2, [], {}, {}, [], [])",
                "INSERT INTO $t (k, l) VALUES (3, [1])",
            ],
            ["INSERT INTO $t (k, l) VALUES (1, [9])", "UPDATE $t SET l = null, e = null WHERE k = 3"],
        ),
        golden=True,
    )


def _user_types():
    return Table(
        name="user_types",
        covers="UDT frozen and not, nested, with null and missing fields, field update and delete, in collections",
        types=[
            'CREATE TYPE address (street text, "Zip Code" int, tags frozen<set<text>>)',
            "CREATE TYPE person (name text, home frozen<address>, born date)",
        ],
        columns=(
            "k int PRIMARY KEY, f frozen<address>, u address, p person,"
            " l list<frozen<address>>, m map<frozen<address>, frozen<person>>"
        ),
        rounds=rounds(
            [
                "INSERT INTO $t (k, f, u, p) VALUES (1, {street: 's', \"Zip Code\": 1, tags: {'a'}},"
                " {street: 't', \"Zip Code\": 2, tags: {}}, {name: 'n', home: {street: 'h'}, born: '2000-01-01'})",
                "INSERT INTO $t (k, f, u) VALUES (2, {street: null, \"Zip Code\": 7}, {\"Zip Code\": 8})",
                "INSERT INTO $t (k, l, m) VALUES (3, [{street: 'in list'}],"
                " {{street: 'key'}: {name: 'value', home: {\"Zip Code\": 5}}})",
                "UPDATE $t SET u.street = 'field only' WHERE k = 4",
            ],
            [
                "UPDATE $t SET u.\"Zip Code\" = 22, u.street = null WHERE k = 1",
                "DELETE u.tags FROM $t WHERE k = 1",
                "UPDATE $t SET u = {street: 'whole'} WHERE k = 2",
                "DELETE p FROM $t WHERE k = 1",
            ],
            ["DELETE u FROM $t WHERE k = 4", "UPDATE $t SET p.name = 'again' WHERE k = 1"],
        ),
        golden=True,
    )


def _user_type_with_added_field():
    return Table(
        name="user_type_added_field",
        covers="UDT values written before and after ALTER TYPE ADD",
        types=["CREATE TYPE growing (a int, b text)"],
        columns="k int PRIMARY KEY, f frozen<growing>, u growing",
        rounds=rounds(
            [
                "INSERT INTO $t (k, f, u) VALUES (1, {a: 1, b: 'x'}, {a: 1, b: 'x'})",
                "INSERT INTO $t (k, f, u) VALUES (2, {a: 2}, {b: 'y'})",
            ],
            [
                "ALTER TYPE growing ADD c bigint",
                "INSERT INTO $t (k, f, u) VALUES (3, {a: 3, b: 'z', c: 33}, {a: 3, c: 33})",
                "UPDATE $t SET u.c = 11 WHERE k = 1",
            ],
        ),
        golden=True,
    )


def _tuples():
    return Table(
        name="tuples",
        covers="tuples with nulls, nested, in key, clustering, collections",
        columns=(
            "k frozen<tuple<int, text>>, c frozen<tuple<text, frozen<tuple<int, int>>>>, v tuple<int, text, double>,"
            " n tuple<frozen<list<int>>, frozen<map<text, int>>>, l list<frozen<tuple<int, int>>>, PRIMARY KEY (k, c)"
        ),
        options="CLUSTERING ORDER BY (c DESC)",
        rounds=rounds(
            [
                "INSERT INTO $t (k, c, v, n, l) VALUES ((1, 'a'), ('x', (1, 2)), (1, 'b', 2.5), ([1, 2], {'m': 1}), [(1, 2), (3, 4)])",
                "INSERT INTO $t (k, c, v) VALUES ((1, 'a'), ('x', (1, 3)), (null, 'b', null))",
                "INSERT INTO $t (k, c, v) VALUES ((1, 'a'), ('', (-1, 0)), (1, '', null))",
                "INSERT INTO $t (k, c, v) VALUES ((2, ''), ('q', (5, 5)), (7, 'seven', 7.0))",
            ]
        ),
        golden=True,
    )


def _vectors():
    return Table(
        name="vectors",
        covers="vectors of fixed and of variable element size, as clustering too",
        columns=(
            "k int, c vector<int, 2>, f vector<float, 3>, s vector<smallint, 4>, t vector<text, 2>,"
            " d vector<double, 1>, n vector<frozen<list<int>>, 2>, w list<frozen<vector<float, 2>>>, PRIMARY KEY (k, c)"
        ),
        rounds=rounds(
            [
                "INSERT INTO $t (k, c, f, s, t, d, n, w) VALUES (1, [1, 2], [1.5, -2, NaN], [1, -1, 32767, -32768],"
                " ['a', ''], [0.1], [[1], []], [[1, 2], [3, 4]])",
                "INSERT INTO $t (k, c, f, s, t) VALUES (1, [-1, 5], [0, 0, 0], [0, 0, 0, 0], ['é', 'longer text'])",
                "INSERT INTO $t (k, c) VALUES (2, [2147483647, -2147483648])",
            ],
            ["UPDATE $t SET f = [9, 9, 9], t = null WHERE k = 1 AND c = [1, 2]"],
        ),
        golden=True,
    )


def _collection_keys():
    return Table(
        name="frozen_keys",
        covers="frozen collections and UDTs as partition key and clustering, descending too",
        types=["CREATE TYPE point (x int, y int)"],
        columns=(
            "k1 frozen<list<int>>, k2 frozen<point>, c1 frozen<set<int>>, c2 frozen<map<text, int>>,"
            " c3 frozen<point>, v int, PRIMARY KEY ((k1, k2), c1, c2, c3)"
        ),
        options="CLUSTERING ORDER BY (c1 ASC, c2 DESC, c3 DESC)",
        rounds=rounds(
            [
                "INSERT INTO $t (k1, k2, c1, c2, c3, v) VALUES ([1, 2], {x: 1, y: 2}, {3, 1}, {'a': 1}, {x: 0}, 1)",
                "INSERT INTO $t (k1, k2, c1, c2, c3, v) VALUES ([1, 2], {x: 1, y: 2}, {1}, {'a': 1, 'b': 2}, {x: 1, y: -1}, 2)",
                "INSERT INTO $t (k1, k2, c1, c2, c3, v) VALUES ([1, 2], {x: 1, y: 2}, {0}, {'z': 0}, {y: 3}, 3)",
                "INSERT INTO $t (k1, k2, c1, c2, c3, v) VALUES ([], {x: 1}, {-1, 5}, {'': 0}, {x: -1, y: 5}, 4)",
            ],
            ["DELETE FROM $t WHERE k1 = [1, 2] AND k2 = {x: 1, y: 2} AND c1 = {1}"],
        ),
        golden=True,
    )
