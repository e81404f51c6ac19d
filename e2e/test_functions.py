"""
User-defined functions in Java, on Cassandra and on `halcyon serve`: values of every type in and out, calls in every place of a
statement, what a body may not do. And what bodies must not do to the node: loop, use all memory, end their JVM.
"""

import os
import signal
import threading

import pytest

from native import Client, Refused
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


@pytest.fixture(scope="module")
def with_functions(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("functions")
    config = folder / "cassandra.yaml"
    config.write_text("user_defined_functions_enabled: true\n", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), folder, "--config", config)
    server.start()
    yield server
    server.close()


def test_answers_are_cassandras(nodes, with_functions):
    clients = [Client(nodes.get("5.0.9").facts["native_port"]), Client(with_functions.port)]
    different = []
    for part in (begin, of_types, of_places, of_bodies):
        for text in part():
            expected, found = (answer(client, text, None) for client in clients)
            if expected != found:
                different.append(f"{text}\n  C {expected}\n  H {found}")
    assert not different, f"{len(different)} differ\n" + "\n".join(different)


def refused(client, text):
    with pytest.raises(Refused) as error:
        client.query(text)
    return str(error.value)


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
        ("return b;", "Line 1: cannot find symbol"),
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
