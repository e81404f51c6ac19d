"""
User-defined functions in WebAssembly, which Cassandra does not have: values of every type in and out, aggregates, limits, a restart,
and a node without any JVM.
"""

import threading

import pytest

from native import Client
from patience import PATIENCE_SECONDS
from server import Server
from test_functions import VALUES, aggregate, refused

COMMON = r'(memory (export "memory") 1) (global (export "_scylla_abi") i32 (i32.const 16)) (data (i32.const 16) "\01\00\00\00")'
SAME = '(func (export "{name}") (param {passed}) (result {passed}) (local.get 0))'
NUMBERS = {"bigint": "i64", "boolean": "i32", "double": "f64", "float": "f32", "int": "i32", "smallint": "i32", "tinyint": "i32"}
ADD = '(func (export "{name}") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))'
TURNS = '(func (export "{name}") (param i32) (result i32) (loop (br 0)) (unreachable))'
GROWS = '(func (export "{name}") (param i32) (result i32) (loop (br_if 0 (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0)))) (memory.size))'
# 72 KB of machine code, in text more.
LARGE = '(func (export "{name}") (param i32) (result i32) local.get 0 ' + "i32.const 1 i32.add " * 24000 + ")"
LATE = "java.util.concurrent.TimeoutException: User defined function x.turns : (int) -> int ran longer than 1500ms"


def function(name, arguments, returns, body, on_null="RETURNS NULL"):
    body = body.replace("{name}", name)
    return f"CREATE FUNCTION x.{name} ({arguments}) {on_null} ON NULL INPUT RETURNS {returns} LANGUAGE wasm AS $$(module {COMMON} {body})$$"


@pytest.fixture
def without_java(request, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    config = tmp_path / "cassandra.yaml"
    config.write_text("user_defined_functions_enabled: true\n", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), tmp_path, "--config", config)
    server.start()
    yield server
    server.close()


def test_functions_need_no_jvm(without_java):
    client = Client(without_java.port)
    client.query("CREATE KEYSPACE x WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    client.query("CREATE TYPE x.u (a int, b text)")
    reads = []
    for i, (of, value) in enumerate(VALUES.items()):
        client.query(f"CREATE TABLE x.y{i} (k int PRIMARY KEY, v {of})")
        client.query(f"INSERT INTO x.y{i} (k, v) VALUES (1, {value})")
        client.query(f"INSERT INTO x.y{i} (k) VALUES (2)")
        client.query(function(f"strict{i}", f"a {of}", of, SAME.format(name=f"strict{i}", passed=NUMBERS.get(of, "i64"))))
        client.query(function(f"same{i}", f"a {of}", of, SAME.format(name=f"same{i}", passed="i64"), "CALLED"))
        reads.append(f"SELECT v, x.strict{i}(v), x.same{i}(v) FROM x.y{i}")
    client.query(function("plus", "a int, b int", "int", ADD))
    client.query(function("turns", "a int", "int", TURNS))
    client.query(function("grows", "a int", "int", GROWS))
    client.query(function("large", "a int", "int", LARGE))
    client.query(aggregate("total", "int", "plus", "int", "INITCOND 0"))
    client.query("CREATE TABLE x.t (k int, c int, v int, PRIMARY KEY (k, c))")
    for c in range(2500):
        client.query(f"INSERT INTO x.t (k, c, v) VALUES (1, {c}, {c})")
    client.query("INSERT INTO x.t (k, c) VALUES (1, 9999)")

    def check(client):
        for read in reads:
            rows = client.query(read)[1]
            assert sorted(row[0] is None for row in rows) == [False, True]
            assert all(row == (row[0],) * 3 for row in rows), read
        assert client.query("SELECT x.large(c) FROM x.t WHERE k = 1 AND c = 5")[1] == [((24005).to_bytes(4, "big"),)]
        assert client.query("SELECT x.total(v) FROM x.t WHERE k = 1")[1] == [((2499 * 1250).to_bytes(4, "big"),)]
        assert client.query("SELECT x.plus(v, 1) FROM x.t WHERE k = 1 AND c = x.plus(3, 4)")[1] == [((8).to_bytes(4, "big"),)]

    check(client)
    assert "User-defined functions need a JDK" in refused(client, "CREATE FUNCTION x.j (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'")
    served = []
    other = threading.Thread(target=lambda: check(Client(without_java.port)) or served.append(True))
    other.start()
    assert LATE in refused(client, "SELECT x.turns(v) FROM x.t WHERE k = 1 AND c = 3")
    other.join(timeout=PATIENCE_SECONDS)
    assert served
    assert client.query("SELECT x.grows(v) FROM x.t WHERE k = 1 AND c = 3")[1] == [((497).to_bytes(4, "big"),)]
    without_java.kill()
    without_java.start()
    client = Client(without_java.port)
    check(client)
    described = client.query("DESCRIBE FUNCTION x.plus")[1][0][3].decode()
    client.query("DROP AGGREGATE x.total")
    client.query("DROP FUNCTION x.plus")
    client.query(described)
    assert "LANGUAGE wasm" in described


def test_what_cannot_be_called_is_refused(without_java):
    client = Client(without_java.port)
    client.query("CREATE KEYSPACE x WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    for body, why in [
        ("(func", "expected `)`"),
        ('(func (export "g"))', 'exports no function "f"'),
        ('(func (export "f") (param i64) (result i32) (i32.const 0))', '"f" is (i64) -> i32, should be (i32) -> i32'),
        ("(start $s) (func $s (loop (br 0)))", "fuel"),
    ]:
        assert why in refused(client, function("f", "a int", "int", body)), body
    assert "2200" in refused(client, "CREATE FUNCTION x.f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return a'")
    assert client.query("SELECT function_name FROM system_schema.functions WHERE keyspace_name = 'x'")[1] == []
