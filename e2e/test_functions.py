"""
User-defined functions in Java, on Cassandra and on `halcyon serve`: values of every type in and out, calls in every place of a
statement, what a body may not do. And what bodies must not do to the node: loop, use all memory, end their JVM.
"""

import os
import re
import signal
import threading

import pytest

from native import Client, Refused
from patience import PATIENCE_SECONDS, until
from server import Server
from test_select_differential import answer

VALUES = {
    "ascii": "'a'", "bigint": "5", "blob": "0x0102", "boolean": "true", "date": "'2020-02-03'", "decimal": "1.25", "double": "2.5",
    "duration": "1mo2d3s", "float": "1.5", "inet": "'1.2.3.4'", "int": "7", "smallint": "3", "text": "'x''y'", "time": "'10:11:12.5'",
    "timestamp": "'2020-01-01T00:00:00Z'", "tinyint": "1", "uuid": "50554d6e-29bb-41e5-b345-feff819cdc9f",
    "varint": "123456789012345678901", "list<int>": "[1,2]", "set<text>": "{'b','a'}", "map<text, int>": "{'b':1,'a':2}",
    "tuple<int, text>": "(1,'z')", "u": "{a:1,b:'q'}", "vector<float, 2>": "[1.5, 2.5]", "vector<text, 2>": "['a','bb']",
}
UDT = 'UDTValue v = udfContext.newReturnUDTValue(); v.setInt("a", a); v.setString("b", "w"); return v;'
TUPLE = 'TupleValue v = udfContext.newReturnTupleValue(); v.setInt(0, a); v.setString(1, "w"); return v;'
SWITCH = 'switch (a) { case 1: return "a"; case 101: return "hit"; default: return "d" + a; }'


def function(name, arguments, returns, body, on_null="CALLED"):
    return f"CREATE OR REPLACE FUNCTION x.{name} ({arguments}) {on_null} ON NULL INPUT RETURNS {returns} LANGUAGE java AS $${body}$$"


def begin():
    yield "DROP KEYSPACE IF EXISTS x"
    yield "CREATE KEYSPACE x WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    yield "CREATE TYPE x.u (a int, b text)"
    yield "CREATE TABLE x.t (k int, c int, v int, PRIMARY KEY (k, c))"
    for k in range(2):
        for c in range(3):
            yield f"INSERT INTO x.t (k, c, v) VALUES ({k}, {c}, {k * 10 + c})"
    yield "INSERT INTO x.t (k, c) VALUES (1, 9)"
    yield "INSERT INTO x.t (k, c, v) VALUES (7, 3, 101)"
    yield function("plus", "a int, b int", "int", "return a == null || b == null ? null : a + b;")


def of_types():
    for i, (of, value) in enumerate(VALUES.items()):
        yield f"CREATE TABLE x.y{i} (k int PRIMARY KEY, v {of})"
        yield f"INSERT INTO x.y{i} (k, v) VALUES (1, {value})"
        yield f"INSERT INTO x.y{i} (k) VALUES (2)"
        yield function(f"same{i}", f"a {of}", of, "return a;")
        yield f"SELECT x.same{i}(v), v FROM x.y{i}"
        yield function(f"text{i}", f"a {of}", "text", "return String.valueOf(a);")
        yield f"SELECT x.text{i}(v) FROM x.y{i}"
        yield function(f"strict{i}", f"a {of}", of, "return a;", "RETURNS NULL")
        yield f"SELECT x.strict{i}(v) FROM x.y{i}"


def of_places():
    yield "SELECT plus(v, c) FROM x.t"
    yield "SELECT x.plus(v, 1) AS z, plus(plus(v, 1), 2) FROM x.t WHERE k = 1"
    yield "SELECT plus(max(v), 1) FROM x.t"
    yield "SELECT k, plus(max(v), k), sum(plus(v, 1)) FROM x.t GROUP BY k"
    yield "SELECT k, c, plus(max(v), k) FROM x.t GROUP BY k, c"
    yield "SELECT plus(max(v), 1) FROM x.t WHERE k = 5"
    yield "INSERT INTO x.t (k, c, v) VALUES (8, x.plus(1, 2), x.plus(3, 4))"
    yield "UPDATE x.t SET v = x.plus(100, 1) WHERE k = 8 AND c = x.plus(1, 2)"
    yield "SELECT * FROM x.t WHERE k = x.plus(4, 4)"
    yield "SELECT JSON plus(v, 1) FROM x.t WHERE k = 7"
    yield "SELECT plus(v, 'a') FROM x.t"
    yield "SELECT plus(v) FROM x.t"


def of_bodies():
    for name, returns, body in [
        ("thrown", "int", 'throw new RuntimeException("x" + a);'),
        ("udt", "u", UDT),
        ("tuple", "tuple<int, text>", TUPLE),
        ("switched", "text", SWITCH),
        ("clock", "int", "return (int) (System.currentTimeMillis() / 1000000000000L);"),
    ]:
        yield function(name, "a int", returns, body)
        yield f"SELECT x.{name}(v) FROM x.t WHERE k = 7"
    yield function("locked", "a int", "int", "synchronized (this) { return a; }")
    yield function("field", "a int", "int", "return a; } static int z = 1; { ")
    yield function("loads", "a int", "int", 'try { Class.forName("java.io.File"); } catch (Exception e) {} return a;')
    yield function("two", "a int", "int", "return a; } public void other() {")
    yield function("waits", "a int", "int", "try { this.wait(); } catch (Exception e) {} return a;")
    yield "DROP FUNCTION x.plus"
    yield "SELECT plus(v, 1) FROM x.t"


def aggregate(name, arguments, of, state, more=""):
    return f"CREATE OR REPLACE AGGREGATE x.{name} ({arguments}) SFUNC {of} STYPE {state} {more}"


AVERAGE = "if (a != null) { s.setInt(0, s.getInt(0) + 1); s.setLong(1, s.getLong(1) + a); } return s;"
COUNTS = "s = s == null ? new TreeMap<String, Integer>() : new TreeMap<String, Integer>(s); String n = String.valueOf(a); " + (
    "s.put(n, s.containsKey(n) ? (Integer) s.get(n) + 1 : 1); return s;"
)
COLLECT = "if (s == null) s = new ArrayList<Integer>(); if (a != null) s.add(a * b); return s;"


def of_aggregates():
    yield from begin()
    yield "INSERT INTO x.t (k, c, v) VALUES (8, 3, 104)"
    yield function("add", "s int, a int", "int", "return s + a;", "RETURNS NULL")
    yield function("either", "s int, a int", "int", "return a == null ? s : s == null ? a : Integer.valueOf(s * 31 + a);")
    yield function("inc", "s int", "int", "return s + 1;")
    yield function("avg_state", "s tuple<int, bigint>, a int", "tuple<int, bigint>", AVERAGE)
    yield function("avg_end", "s tuple<int, bigint>", "double", "return s.getInt(0) == 0 ? null : (double) s.getLong(1) / s.getInt(0);")
    yield function("counts", "s map<text, int>, a int", "map<text, int>", COUNTS)
    yield function("collect", "s list<int>, a int, b int", "list<int>", COLLECT)
    yield function("joined", "s text, a text", "text", "return s + a;", "RETURNS NULL")
    yield function("length", "s text", "int", "return s.length();", "RETURNS NULL")
    yield function("field", "s u, a int", "u", 's.setInt("a", s.getInt("a") + (a == null ? 0 : a)); return s;')
    yield function("gone", "s int, a int", "int", "return a != null && a == 11 ? null : s == null ? Integer.valueOf(-1) : s;")
    yield function("breaks", "s int, a int", "int", 'if (a != null && a == 11) throw new RuntimeException("at " + a); return a;')
    yield aggregate("total", "int", "add", "int", "INITCOND 5")
    yield aggregate("total", "text", "joined", "text", "INITCOND ''")
    yield aggregate("hashed", "int", "either", "int")
    yield aggregate("rows", "", "inc", "int", "INITCOND 0")
    yield aggregate("average", "int", "avg_state", "tuple<int, bigint>", "FINALFUNC avg_end INITCOND (0, 0)")
    yield aggregate("histogram", "int", "counts", "map<text, int>")
    yield aggregate("products", "int, int", "collect", "list<int>")
    yield aggregate("letters", "text", "joined", "text", "FINALFUNC length INITCOND 'abc'")
    yield aggregate("udts", "int", "field", "u", "INITCOND {a: 1, b: 'it'}")
    yield aggregate("nulls", "int", "gone", "int")
    yield aggregate("failing", "int", "breaks", "int")
    calls = [
        "total(v)", "hashed(v)", "rows()", "average(v)", "histogram(v)", "products(v, c)", "products(v, 2)", "letters(cast(v AS text))",
        "total(cast(c AS text))", "udts(v)", "nulls(v)", "failing(v)", "x.average(c)", "plus(average(v), 1)", "plus(total(v), k)",
        "total(plus(v, c))", "count(*), total(v), max(v), rows()", "average(v) AS a", "total(total(v))", "sum(total(v))",
        "total(sum(v))", "total(v, v)", "total()", "average('a')", "total(k), udts(v).a", "nothing(v)", "total(1)", "total((int) 1)",
    ]
    for where in ["", " WHERE k = 1", " WHERE k = 5", " WHERE k IN (0, 1) AND c > 1"]:
        for call in calls:
            yield f"SELECT {call} FROM x.t{where}"
    for call in calls[:8]:
        yield f"SELECT k, {call} FROM x.t GROUP BY k"
        yield f"SELECT k, c, {call} FROM x.t GROUP BY k, c LIMIT 4"
        yield f"SELECT JSON {call} FROM x.t"
    yield "SELECT * FROM x.t WHERE k = x.total(1)"
    yield "INSERT INTO x.t (k, c, v) VALUES (9, 9, x.total(1))"
    yield "DROP FUNCTION x.add"
    yield "DROP AGGREGATE x.total"
    yield "DROP AGGREGATE x.total(int)"
    yield "SELECT total(v) FROM x.t"
    yield "DROP FUNCTION x.add"
    yield "DROP AGGREGATE x.total"
    yield "SELECT total(v) FROM x.t"


def of_masks():
    yield function("hide", "a int", "int", "return -1;")
    yield function("hide2", "a int, b int", "int", "return b;")
    yield function("other", "a int", "text", 'return "x";')
    yield "CREATE TABLE x.m (k int, c int, v int MASKED WITH x.hide(), w int MASKED WITH hide2(5), PRIMARY KEY (k, c))"
    yield "INSERT INTO x.m (k, c, v, w) VALUES (1, 2, 3, 4)"
    yield "SELECT * FROM x.m"
    yield "ALTER TABLE x.m ALTER v MASKED WITH x.hide2()"
    yield "ALTER TABLE x.m ALTER v MASKED WITH x.hide(1)"
    yield "ALTER TABLE x.m ALTER v MASKED WITH x.other()"
    yield "ALTER TABLE x.m ALTER v MASKED WITH y.hide()"
    yield "DROP FUNCTION x.hide"
    yield "DROP FUNCTION x.hide2(int, int)"
    yield "CREATE MATERIALIZED VIEW x.mv AS SELECT k, c, v FROM x.m WHERE c IS NOT NULL AND k IS NOT NULL PRIMARY KEY (c, k)"
    yield "CREATE MATERIALIZED VIEW x.mw AS SELECT * FROM x.m WHERE c IS NOT NULL AND k IS NOT NULL PRIMARY KEY (c, k)"
    masks = "SELECT table_name, column_name, function_keyspace, function_name, function_argument_values FROM system_schema.column_masks"
    yield f"{masks} WHERE keyspace_name = 'x'"
    yield "ALTER TABLE x.m ADD z int MASKED WITH DEFAULT"
    yield "ALTER TABLE x.m ALTER w DROP MASKED"
    yield "ALTER TABLE x.m ALTER v MASKED WITH mask_replace(0)"
    yield "ALTER TABLE x.m RENAME c TO d"
    yield f"{masks} WHERE keyspace_name = 'x'"
    yield "DROP FUNCTION x.hide"
    yield "DROP FUNCTION x.hide2"
    yield "DESCRIBE TABLE x.m"


# Values without bytes, and with fewer parts than their type has.
EMPTIES = [b"", b"\0\0\0\4\0\0\0\7", b"\xff\xff\xff\xff", None, bytes(8), bytes(4) + b"\xff\xff\xff\xff"]
GETTERS = {
    "bigint": "getLong(%)",
    "blob": "getBytes(%)",
    "boolean": "getBool(%)",
    "date": "getDate(%)",
    "decimal": "getDecimal(%)",
    "double": "getDouble(%)",
    "float": "getFloat(%)",
    "inet": "getInet(%)",
    "smallint": "getShort(%)",
    "text": "getString(%)",
    "time": "getTime(%)",
    "timestamp": "getTimestamp(%)",
    "tinyint": "getByte(%)",
    "uuid": "getUUID(%)",
    "varint": "getVarint(%)",
    "list<int>": "getList(%, Integer.class)",
    "set<int>": "getSet(%, Integer.class)",
    "map<int, int>": "getMap(%, Integer.class, Integer.class)",
    "tuple<int>": "getTupleValue(%)",
}
PARTS = """return a == null ? "null" : a.isNull(0) + " " + a.isNull(1) + " " + a.getInt(0) + " " + a.getString(1);"""
FIELDS = """return a == null ? "null" : a.isNull("a") + " " + a.isNull("b") + " " + a.getInt("a") + " " + a.getString("b");"""


def of_empty_tuples():
    """Statements and their values."""
    yield "CREATE TABLE x.e (k int PRIMARY KEY, t tuple<int, text>, u frozen<u>)", ()
    for k, value in enumerate(EMPTIES):
        for column in "tu":
            yield f"INSERT INTO x.e (k, {column}) VALUES ({k}, ?)", (value,)
    for more in ("CALLED", "RETURNS NULL"):
        yield function("parts", "a tuple<int, text>", "text", PARTS, more), ()
        yield function("fields", "a u", "text", FIELDS, more), ()
        yield "SELECT k, parts(t), fields(u), t, u FROM x.e", ()
    yield function("same_tuple", "a tuple<int, text>", "tuple<int, text>", "return a;"), ()
    yield function("same_type", "a u", "u", "return a;"), ()
    yield function("new_tuple", "a int", "tuple<int, text>", "return udfContext.newReturnTupleValue();"), ()
    yield function("new_type", "a int", "u", "return udfContext.newReturnUDTValue();"), ()
    yield function("size", "a list<tuple<int, text>>", "int", "return a.get(0).isNull(0) ? -1 : a.get(0).getInt(0);"), ()
    yield "SELECT k, same_tuple(t), same_type(u), new_tuple(k), new_type(k), parts(new_tuple(k)), fields(new_type(k)) FROM x.e", ()
    yield "SELECT size([t]) FROM x.e WHERE k = 0", ()
    yield "SELECT size([t]) FROM x.e WHERE k = 1", ()
    yield function("counted", "s tuple<int, text>, a int", "tuple<int, text>", "s.setInt(0, s.getInt(0) + a); return s;", "RETURNS NULL"), ()
    yield aggregate("counts_of", "int", "counted", "tuple<int, text>", "INITCOND (null, null)"), ()
    yield aggregate("counts_of_none", "int", "counted", "tuple<int, text>"), ()
    yield "SELECT counts_of(k), counts_of_none(k) FROM x.e", ()
    wide = f"tuple<{', '.join(GETTERS)}>"
    yield f"CREATE TABLE x.w (k int PRIMARY KEY, t {wide})", ()
    for k, part in enumerate((bytes(4), b"\xff\xff\xff\xff")):
        yield f"INSERT INTO x.w (k, t) VALUES ({k}, ?)", (part * len(GETTERS),)
    parts = [f'a.isNull({n}) + " " + a.getObject({n}) + " " + a.{getter.replace("%", str(n))}' for n, getter in enumerate(GETTERS.values())]
    shown = ' + ";" + '.join(parts)
    yield function("wide", f"a {wide}", "text", f"return {shown};"), ()
    yield function("same_wide", f"a {wide}", wide, "return a;"), ()
    yield function("set_wide", f"a {wide}", wide, "a.setLong(0, 7L); a.setToNull(1); return a;"), ()
    yield function("equal", f"a {wide}", "boolean", "return a.equals(a) && a.getTupleValue(18) == a.getTupleValue(18);"), ()
    yield "SELECT k, wide(t), same_wide(t), set_wide(t), equal(t) FROM x.w", ()


def of_names_of_natives():
    """User-defined functions that stand beside native ones."""
    yield "CREATE TABLE x.n (k int PRIMARY KEY, v int, w text, b bigint)"
    yield "INSERT INTO x.n (k, v, w, b) VALUES (1, -5, 'q', 8)"
    yield "INSERT INTO x.n (k, v, w, b) VALUES (2, 6, 'r', -9)"
    for name, arguments, returns, body in [
        ("abs", "a int", "int", "return 1000 + a;"),
        ("abs", "a text", "text", 'return "user " + a;'),
        ("round", "a bigint", "bigint", "return 2000 + a;"),
        ("now", "", "int", "return 1;"),
        ("uuid", "a int", "int", "return a;"),
        ("tojson", "a int", "text", 'return "json";'),
        ("max", "a int", "int", "return 3000 + a;"),
        ("count", "a int", "int", "return 4000 + a;"),
        ("mask_null", "a int", "int", "return 5000 + a;"),
        ("token", "a int", "int", "return 6000 + a;"),
        ("writetime", "a int", "int", "return 7000 + a;"),
        ("intasblob", "a int", "blob", "return null;"),
        ("minus", "s int, a int", "int", "return s - a;"),
    ]:
        yield function(f'"{name}"' if name in ("token", "writetime", "count") else name, arguments, returns, body)
    yield aggregate("sum", "int", "minus", "int", "INITCOND 0")
    yield aggregate("min", "int", "minus", "int", "INITCOND 0")
    for call in [
        "abs(v)", "abs(w)", "abs(b)", "abs(k)", "abs(null)", "abs(1)", "abs('x')", "abs((int) 1)", "round(b)", "round(v)", "uuid(k)", "tojson(v)",
        "tojson(w)", "max(v)", "max(w)", "count(v)", "mask_null(v)", "token(k)", '"token"(k)', '"writetime"(v)', "intasblob(v)", "sum(v)", "sum(b)",
        "min(v)", "min(w)", "abs(abs(v))", "abs(sum(v))", "sum(abs(v))",
    ]:  # fmt: skip
        for keyspace in ("", "x.", "system."):
            yield f"SELECT {keyspace}{call} FROM x.n"
    yield "SELECT now(), x.now() FROM x.n"
    for call in ["abs(1)", "x.abs(1)", "system.abs(-1)", "round(1)", "x.round(1)", "now()", "x.now()"]:
        yield f"SELECT v FROM x.n WHERE k = {call}"
        yield f"INSERT INTO x.n (k, v) VALUES (9, {call})"
        yield f"UPDATE x.n SET v = {call} WHERE k = 9"
    yield "SELECT * FROM x.n WHERE k = 9"
    for name in ["abs", "abs(int)", "abs(text)", "round", "sum", "max", "system.abs"]:
        yield f"DROP FUNCTION {'' if '.' in name else 'x.'}{name}"
    yield "DROP AGGREGATE x.sum"
    yield "SELECT abs(v), sum(v), max(v) FROM x.n"


def of_groups_of_static_rows():
    """Groups of partitions that have only a static row, whose values are the arguments of a function."""
    yield function("same", "a int", "int", "return a;")
    for storage in ("", " WITH COMPACT STORAGE"):
        table = "x.gc" if storage else "x.gs"
        columns = "k int, j int, s int, PRIMARY KEY ((k, j))" if storage else "k int, j int, c int, s int static, PRIMARY KEY ((k, j), c)"
        yield f"CREATE TABLE {table} ({columns}){storage}"
        for j in range(4):
            yield f"UPDATE {table} SET s = {j} WHERE k = 1 AND j = {j}"
        for selected in ("count(1), min(same(s))", "count(1), min(s)", "same(s)", "same(max(s))", "sum(same(s))"):
            yield f"SELECT k, j, {selected} FROM {table} GROUP BY k, j"
            yield f"SELECT k, j, {selected} FROM {table} WHERE s > 0 GROUP BY k, j LIMIT 2 ALLOW FILTERING"
    yield "SELECT k, j, c, max(same(s)) FROM x.gs GROUP BY k, j, c"


def of_overloads():
    """Which overload takes a literal, and what is refused before one is chosen."""
    yield "CREATE TYPE x.o (a int)"
    yield "CREATE TABLE x.ov (k int PRIMARY KEY, l list<int>, fl frozen<list<int>>, s set<int>, m map<int, int>, fm frozen<map<int, int>>, t tuple<int, int>, o x.o, fo frozen<x.o>)"
    yield "INSERT INTO x.ov (k, l, fl, s, m, fm, t, o, fo) VALUES (1, [1], [1], {1}, {1: 2}, {1: 2}, (1, 2), {a: 1}, {a: 1})"
    kinds = {
        "list": ("list<int>", "list<bigint>"), "set": ("set<int>", "set<bigint>"), "map": ("map<int, int>", "map<bigint, int>"),
        "tuple": ("tuple<int, int>", "tuple<bigint, int>"), "o": ("x.o", "bigint"), "number": ("int", "bigint"),
    }  # fmt: skip
    for name, taken in kinds.items():
        for one in taken:
            yield function(f"of_{name}", f"a {one}", one, "return a;")
    yield function("max", "a set<int>", "set<int>", "return a;")
    values = [
        "null", "1", "3000000000", "(bigint) 1", "'a'", "{1}", "{}", "{1: 2}", "{k: 1}", "{nope: 1}", "{a: 1}", "(1, 2)", "(x.o) {a: 1}",
        "(set<int>) {1}", "(frozen<set<int>>) {1}", "of_number(1)", "blobasblob(0x)", "{1: nope}", "(nope.u) {a: 1}",
    ]  # fmt: skip
    for name in (*kinds, "max"):
        call = name if name == "max" else f"of_{name}"
        for value in values:
            yield f"SELECT {call}({value}) FROM x.ov"
            for column in ("k", "s", "m", "fm", "t", "o", "fo"):
                yield f"INSERT INTO x.ov ({'k, ' if column != 'k' else ''}{column}) VALUES ({'2, ' if column != 'k' else ''}{call}({value}))"
        for column in ("k", "l", "fl", "s", "m", "fm", "t", "o", "fo"):
            yield f"SELECT {call}({column}) FROM x.ov WHERE k = 1"
    yield "SELECT * FROM x.ov"


def of_receivers():
    """Cells where something frozen is wanted, names of overloads in refusals, and what an overload is chosen before."""
    yield "CREATE TABLE x.rc (p frozen<list<int>> PRIMARY KEY, u uuid, v int, b blob, l list<int>, fl frozen<list<int>>)"
    yield "INSERT INTO x.rc (p, u, v, l, fl) VALUES ([1], ffffffff-ffff-4fff-bfff-ffffffffffff, 1, [1], [1])"
    yield function("kept", "a list<int>", "list<int>", "return a;")
    yield function("todate", "a list<int>", "list<int>", "return a;")
    yield function("min", "a uuid", "uuid", "return a;")
    yield function("abs", "a blob", "blob", "return a;")
    yield function("ceil", "a int", "int", "return null;")
    yield function("fits", "a vector<int, 1>", "int", "return 1;")
    for value in ("kept([1])", "kept(kept([1]))", "(list<int>) [1]", "(frozen<list<int>>) [1]", "l", "fl", "kept(l)", "kept(fl)", "todate(fl)"):
        yield f"SELECT token({value}) FROM x.rc"
        yield f"SELECT {value}, [{value}], ({value}, 1) FROM x.rc"
        if "l" not in value.replace("list", ""):
            yield f"SELECT v FROM x.rc WHERE token(p) = token({value})"
            yield f"SELECT v FROM x.rc WHERE p = {value}"
            yield f"SELECT v FROM x.rc WHERE fl = {value} ALLOW FILTERING"
            yield f"INSERT INTO x.rc (p, l, fl) VALUES ({value}, {value}, {value})"
    # The first is a timeuuid as well, of which the native function makes a type that stands for no uuid.
    for value in ("00000000-0000-1000-8000-000000000001", "ffffffff-ffff-4fff-bfff-ffffffffffff"):
        yield f"INSERT INTO x.rc (p, u) VALUES ([2], min({value}))"
        yield f"SELECT v FROM x.rc WHERE u = min({value}) ALLOW FILTERING"
    # A constant in hex is a tinyint first, of which Cassandra reads one byte.
    for value in ("0x0102", "0x", "0xff", "1", "-1"):
        yield f"INSERT INTO x.rc (p, b) VALUES ([3], abs({value}))"
    for value in ("(map<int, int>) {ceil(1): 'x'}", "{ceil(1): 1}", "(ceil(1), 1)", "map_keys({ceil(1): 1})", "[fits([])]", "fits([1, 2])", "fits([1])"):
        yield f"SELECT {value} FROM x.rc"
    for value in ("[]", "[1, 2]", "[1]"):
        yield f"INSERT INTO x.rc (p, v) VALUES ([4], fits({value}))"
    yield function("fits", "a list<int>", "int", "return 2;")
    for value in ("[]", "[1, 2]", "[1]"):
        yield f"INSERT INTO x.rc (p, v) VALUES ([5], fits({value}))"
    yield "SELECT * FROM x.rc"
    for arguments in ("frozen<nope>", "int, frozen<nope>", "list<nope>", "frozen<nope>, int"):
        for name in ("fits", "kept", "other"):
            yield f"CREATE AGGREGATE x.{name} ({arguments}) SFUNC no STYPE nope2"


@pytest.fixture(scope="module")
def with_functions(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("functions")
    config = folder / "cassandra.yaml"
    config.write_text("user_defined_functions_enabled: true\nmaterialized_views_enabled: true\ndynamic_data_masking_enabled: true\n", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), folder, "--config", config)
    server.start()
    yield server
    server.close()


def punctual(answered):
    """Without the warning that a call has taken long, which depends on what else the machine does, and the order of signatures, which are in a hash set there."""
    kept = [part for part in answered if not (isinstance(part, str) and "ran longer than" in part)]
    return [part.split("signatures")[0] if isinstance(part, str) else part for part in kept]


@pytest.mark.timeout(600)
def test_answers_are_cassandras(nodes, with_functions):
    clients = [Client(nodes.get("5.0.9").facts["native_port"]), Client(with_functions.port)]
    different = []
    for part in (begin, of_types, of_places, of_bodies, of_aggregates, of_masks, of_names_of_natives, of_groups_of_static_rows, of_overloads, of_receivers, of_empty_tuples):
        for asked in part():
            text, values = (asked, ()) if isinstance(asked, str) else asked
            # A map where no overload takes one makes Cassandra fail.
            expected, found = (punctual(answer(client, text, None, values)) for client in clients)
            fails = str(expected[0]).startswith("0000 java.lang.ClassCastException") and str(found[0]).startswith("2200 ")
            if expected != found and not fails:
                different.append(f"{text}\n  C {expected}\n  H {found}")
    assert not different, f"{len(different)} differ\n" + "\n".join(different)


def test_aggregates_over_many_rows(with_functions):
    """Of more rows than one message takes, page by page; slow ones are given up at the time of a read, while others run."""
    client = Client(with_functions.port)
    for text in begin():
        client.query(text)
    client.query(function("fold", "s bigint, a int", "bigint", "return a == null ? s : Long.valueOf(s * 31 + a);"))
    client.query(function("slow", "s bigint, a int", "bigint", "long end = System.nanoTime() + 20000000L; while (System.nanoTime() < end); return s;"))
    client.query(aggregate("folded", "int", "fold", "bigint", "INITCOND 7"))
    client.query(aggregate("slowly", "int", "slow", "bigint", "INITCOND 7"))
    expected = {}
    for k in (20, 21):
        for start in range(0, 2500, 100):
            rows = "".join(f"INSERT INTO x.t (k, c, v) VALUES ({k}, {c}, {k * c});" for c in range(start, start + 100))
            client.query(f"BEGIN UNLOGGED BATCH {rows} APPLY BATCH")
        state = 7
        for c in range(2500):
            state = state * 31 + k * c
        expected[k] = state.to_bytes(4000, "big", signed=True)[-8:]
    for k, state in expected.items():
        assert client.query(f"SELECT folded(v) FROM x.t WHERE k = {k}")[1] == [(state,)]
    paged, state = [], None
    for _ in range(4):
        _, rows, state = client.query("SELECT folded(v) FROM x.t WHERE k IN (20, 21) GROUP BY k", 1, state)
        paged += rows
        if state is None:
            break
    assert paged == [(state,) for state in expected.values()]
    served = []
    other = threading.Thread(target=lambda: served.append(Client(with_functions.port).query("SELECT v FROM x.t WHERE k = 7 AND c = 3")))
    other.start()
    # On a host that gives the process no core for a second, one call of many takes too long first.
    assert re.search("timed out|ran longer than 1500ms", refused(client, "SELECT slowly(v) FROM x.t WHERE k = 20"))
    other.join(timeout=PATIENCE_SECONDS)
    assert served
    # A busy host may take longer than a read to start the JVM again that the slow calls have cost.
    until(lambda: folded(client) == [(expected[20],)], "functions to answer again")
    client.close()


def folded(client):
    """`None` while the JVM of the functions begins."""
    try:
        return client.query("SELECT folded(v) FROM x.t WHERE k = 20")[1]
    except Refused as error:
        assert "timed out" in str(error)


def refused(client, text):
    with pytest.raises(Refused) as error:
        client.query(text)
    return str(error.value)


def test_slow_calls_are_told(nodes, with_functions):
    body = "long end = System.nanoTime() + 700000000L; while (System.nanoTime() < end) {} return a;"
    warnings = []
    for port in (nodes.get("5.0.9").facts["native_port"], with_functions.port):
        client = Client(port)
        for text in [*begin(), function("slow", "a int", "int", body)]:
            client.query(text)
        for text in [
            "SELECT x.slow(v) FROM x.t WHERE k = 7 AND c = 3",
            "SELECT x.plus(v, 1) FROM x.t WHERE k = 7",
            "SELECT v FROM x.t WHERE k = x.slow(7)",
            "INSERT INTO x.t (k, c, v) VALUES (9, 9, x.slow(1))",
            "BEGIN BATCH INSERT INTO x.t (k, c, v) VALUES (9, 1, x.slow(1)); INSERT INTO x.t (k, c, v) VALUES (9, 2, 2) APPLY BATCH",
        ]:
            client.query(text)
            warnings.append((text, client.warnings))
        client.close()
    assert warnings[: len(warnings) // 2] == warnings[len(warnings) // 2 :]
    assert warnings[0][1] == ["User defined function x.slow : (int) -> int ran longer than 500ms"]


def test_bodies_stay_in_their_sandbox(with_functions):
    client = Client(with_functions.port)
    for text in begin():
        client.query(text)
    for body, why in [
        ("new Thread(); return a;", "use of java.lang.Thread"),
        ('try { new java.io.FileInputStream("/etc/passwd"); } catch (Exception e) {} return a;', "use of java.io.FileInputStream"),
        ("System.exit(1); return a;", "call to java.lang.System.exit()"),
        ("Runtime.getRuntime().halt(1); return a;", "use of java.lang.Runtime"),
        ('return Integer.getInteger("x");', "call to java.lang.Integer.getInteger()"),
        ('return int.class.getMethods().length;', "call to java.lang.Class.getMethods()"),
        ('return "a".getClass().getClassLoader().hashCode();', "use of java.lang.ClassLoader"),
        ('try { return new Formatter("/tmp/x").hashCode(); } catch (Exception e) { return 1; }', "use of java.util.Formatter"),
        ("java.util.function.Supplier<Integer> s = () -> a; return s.get();", "use of java.util.function.Supplier"),
        ("SimpleTimeZone.setDefault(null); return a;", "call to java.util.SimpleTimeZone.setDefault()"),
        ("ListResourceBundle.clearCache(); return a;", "call to java.util.ListResourceBundle.clearCache()"),
        ("return b;", "Line 1: cannot find symbol"),
        (f"return {'(' * 20_000}a{')' * 20_000};", "The compiler gave up: the source is nested too deeply, or too large"),
    ]:
        assert why in refused(client, function("bad", "a int", "int", body))
    client.close()


def test_bodies_end_their_jvm_and_not_the_node(with_functions):
    client = Client(with_functions.port)
    for text in begin():
        client.query(text)
    client.query(function("loop", "a int", "int", "while (true) { if (a == -5) break; } return a;"))
    client.query(function("eats", "a int", "int", "List<int[]> l = new ArrayList<>(); while (true) l.add(new int[1000000]);"))
    plus = "SELECT x.plus(v, 1) FROM x.t WHERE k = 7"
    expected = answer(client, plus, None)
    late = "java.util.concurrent.TimeoutException: User defined function x.loop : (int) -> int ran longer than 1500ms"
    for call, why in [("loop", late), ("eats", "java.lang.OutOfMemoryError")]:
        assert why in refused(client, f"SELECT x.{call}(v) FROM x.t WHERE k = 7")
        assert answer(client, plus, None) == expected
    children = f"/proc/{with_functions.pid}/task"
    found = {pid for task in os.listdir(children) for pid in open(f"{children}/{task}/children", encoding="ascii").read().split()}
    assert len(found) == 1
    os.kill(int(found.pop()), signal.SIGKILL)
    wrong = []

    def call_often():
        own = Client(with_functions.port)
        wrong.extend(found for found in (answer(own, plus, None) for _ in range(50)) if found != expected)
        own.close()

    threads = [threading.Thread(target=call_often) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    client.close()
