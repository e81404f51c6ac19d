"""Drivers that others wrote, unchanged, against `halcyon serve`: they connect, discover the schema, prepare, page, batch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cassandra.query import BatchStatement, SimpleStatement

from patience import PATIENCE_SECONDS, until
from stores import PASSWORD
from test_tls import material, of_stores, serving

# A fixture.
assert material

DRIVERS = Path(__file__).resolve().parent / "drivers"
BUILD_SECONDS = 600


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, **options)
    said = done.stdout + done.stderr
    assert done.returncode == 0 and "FAILED" not in said, said
    return done.stdout


def build(command, folder, **options):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=BUILD_SECONDS, **options)
    assert done.returncode == 0, done.stdout + done.stderr


def built(name):
    """Marks tests of a program that is built first: one process builds it."""

    def mark(test):
        return pytest.mark.xdist_group(name)(pytest.mark.timeout(BUILD_SECONDS + PATIENCE_SECONDS)(test))

    return mark


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="session")
def go_program(programs):
    build(["go", "build", "-o", programs / "go", "."], DRIVERS / "go")
    return programs / "go"


@pytest.fixture(scope="session")
def java_classes(programs):
    libraries = programs / "lib"
    build(["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={libraries}"], DRIVERS / "java")
    main = DRIVERS / "java/src/main/java/Main.java"
    build(["javac", "-d", programs / "classes", "-cp", f"{libraries}/*", main], programs)
    return f"{programs / 'classes'}:{libraries}/*"


@pytest.fixture(scope="session")
def rust_program(request):
    """Beside the binary, where the next run finds what cargo has built."""
    target = request.config.getoption("--halcyon").absolute().parent / "drivers"
    build(["cargo", "build", "-q"], DRIVERS / "rust", env={**os.environ, "CARGO_TARGET_DIR": str(target)})
    return target / "debug/drivers"


@pytest.fixture(scope="session")
def node_program(programs):
    folder = shutil.copytree(DRIVERS / "node", programs / "node")
    build(["npm", "ci", "--no-audit", "--no-fund"], folder)
    return folder / "main.js"


@pytest.fixture(scope="session")
def scylla_python(programs):
    """scylla-driver is a module named `cassandra` too, so it lives in an environment of its own."""
    folder = programs / "scylla"
    build([sys.executable, "-m", "venv", folder], programs)
    build([folder / "bin/pip", "install", "-q", "scylla-driver==3.29.12"], programs)
    return folder / "bin/python"


@built("go")
@pytest.mark.rotates
@pytest.mark.parametrize("version", ["3", "4"])
@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_gocql(served, go_program, version, compression):
    assert "ok not applied" in run([go_program, "127.0.0.1", str(served.port), version, compression])


@built("java")
@pytest.mark.rotates
@pytest.mark.parametrize("version", ["V3", "V4", "V5"])
@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_java_driver(served, java_classes, version, compression):
    command = ["java", "-cp", java_classes, "Main", "127.0.0.1", str(served.port), version, compression]
    assert "ok trace can be read" in run(command)


@built("go")
def test_gocql_over_tls(request, tmp_path, material, go_program):
    """Proves that gocql, with a certificate of its own, verifies the node by chain and host, and does over TLS what it does without."""
    with serving(request, tmp_path, of_stores(material, require_client_auth="true")) as server:
        client = material.clients["trusted"]
        said = run([go_program, "localhost", str(server.port), "4", "none", material.ca, client])
        assert "ok not applied" in said
        assert "presents the certificate of CN=client" in server.said()


@built("java")
def test_java_driver_over_tls(request, tmp_path, material, java_classes):
    """Proves that the Java driver, with stores of keytool, verifies the node by chain and host, and does over TLS what it does without."""
    engine = {
        "class": "DefaultSslEngineFactory",
        "truststore-path": material.trust_jks,
        "truststore-password": PASSWORD,
        "keystore-path": material.jks,
        "keystore-password": PASSWORD,
    }
    properties = [f"-Ddatastax-java-driver.advanced.ssl-engine-factory.{name}={value}" for name, value in engine.items()]
    with serving(request, tmp_path, of_stores(material, require_client_auth="true")) as server:
        command = ["java", *properties, "-cp", java_classes, "Main", "127.0.0.1", str(server.port), "V5", "lz4"]
        assert "ok trace can be read" in run(command)


@built("rust")
@pytest.mark.rotates
@pytest.mark.parametrize("compression", ["none", "lz4", "snappy"])
def test_rust_scylla(served, rust_program, compression):
    assert "ok error" in run([rust_program, f"127.0.0.1:{served.port}", compression])


@built("node")
@pytest.mark.rotates
@pytest.mark.parametrize("version", ["3", "4"])
def test_node_driver(served, node_program, version):
    assert "ok error" in run(["node", node_program, "127.0.0.1", str(served.port), version])


@built("node")
def test_node_driver_logs_in_over_tls(request, tmp_path, material, node_program):
    """Proves that the Node.js driver verifies the node by chain and host, shows a certificate, gives a password, and does what it does without."""
    settings = ["authenticator: PasswordAuthenticator", "authorizer: CassandraAuthorizer", of_stores(material, require_client_auth="true")]
    with serving(request, tmp_path, *settings) as server:
        until(lambda: "Created default superuser role" in server.said(), "the node has not made its superuser")
        login = ["--login", "cassandra", "cassandra", "--tls", material.ca, material.clients["trusted"]]
        said = run(["node", node_program, "localhost", str(server.port), "4", *map(str, login)])
        assert "ok error" in said and "presents the certificate of CN=client" in server.said()
        login[2] = "wrong"
        refused = subprocess.run(["node", node_program, "localhost", str(server.port), "4", *map(str, login)], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert "Provided username cassandra and/or password are incorrect" in refused.stdout, refused.stdout


@built("scylla")
def test_scylla_driver_of_python(request, served, scylla_python):
    if request.config.getoption("--served-port"):
        pytest.skip("Cassandra has no shards")
    assert "ok shard aware" in run([scylla_python, DRIVERS / "scylla.py", "127.0.0.1", str(served.port)])


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("compression", [False, "lz4", "snappy"])
def test_cassandra_driver_of_python(served, version, compression):
    if version == 5 and compression == "snappy":
        pytest.skip("protocol 5 has no Snappy")
    session = served.connect(version, compression=compression)
    session.execute("DROP KEYSPACE IF EXISTS py_driver")
    session.execute("CREATE KEYSPACE py_driver WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.set_keyspace("py_driver")
    session.execute("CREATE TYPE address (street text, number int)")
    session.execute("CREATE TABLE t (k int, c int, s text static, v text, a frozen<address>, l list<int>, PRIMARY KEY (k, c))")
    table = session.cluster.metadata.keyspaces["py_driver"].tables["t"]
    assert list(table.columns) == ["k", "c", "a", "l", "s", "v"]
    assert "PRIMARY KEY (k, c)" in table.as_cql_query()
    insert = session.prepare("INSERT INTO t (k, c, v, l) VALUES (?, ?, ?, ?)")
    for c in range(300):
        session.execute_async(insert, (1, c, f"v{c}", [c, c]))
    session.execute(insert, (1, 300, "v300", [300, 300]))
    select = session.prepare("SELECT c, v, l FROM t WHERE k = ?")
    select.fetch_size = 37
    # The last write may overtake others: wait until all are there.
    rows = session.execute(select, (1,))
    assert [(row.c, row.v, row.l) for row in rows][-1] == (300, "v300", [300, 300])
    page = session.execute(SimpleStatement("SELECT c FROM t WHERE k = 1", fetch_size=10))
    state, first = page.paging_state, page.current_rows
    other = served.connect(version, compression=compression)
    rest = other.execute(SimpleStatement("SELECT c FROM py_driver.t WHERE k = 1", fetch_size=10), paging_state=state)
    assert [row.c for row in first] == list(range(10)) and rest.one().c == 10
    batch = BatchStatement()
    for c in range(10):
        batch.add(insert, (2, c, "batch", None))
    session.execute(batch)
    assert session.execute("SELECT count(*) FROM t WHERE k = 2").one()[0] == 10
    result = session.execute("INSERT INTO t (k, c, v) VALUES (2, 0, 'x') IF NOT EXISTS")
    assert not result.was_applied and result.one().v == "batch"
    trace = session.execute("SELECT * FROM t WHERE k = 2", trace=True).get_query_trace()
    assert trace.request_type and trace.events


def test_cqlsh(served, tmp_path):
    """cqlsh reads the schema, describes it, pages and copies."""
    cqlsh = Path(sys.executable).parent / "cqlsh"

    def shell(text):
        return run([cqlsh, "127.0.0.1", str(served.port), "-e", text, "--no-color"], env={**os.environ, "HOME": str(tmp_path)})

    shell("CREATE KEYSPACE IF NOT EXISTS shell WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};"
          "CREATE TABLE IF NOT EXISTS shell.t (k int PRIMARY KEY, v text, m map<text, int>)")
    shell("INSERT INTO shell.t (k, v, m) VALUES (1, 'one', {'a': 1}); INSERT INTO shell.t (k, v) VALUES (2, 'two')")
    assert "(2 rows)" in shell("SELECT * FROM shell.t")
    assert "CREATE TABLE shell.t (" in shell("DESCRIBE TABLE shell.t")
    assert "CREATE KEYSPACE shell" in shell("DESCRIBE KEYSPACE shell")
    assert "system_schema" in shell("DESCRIBE KEYSPACES")
    assert "Connected to" in shell("SHOW HOST")
    copied = tmp_path / "t.csv"
    shell(f"COPY shell.t (k, v) TO '{copied}'")
    assert sorted(copied.read_text().split()) == ["1,one", "2,two"]
    shell(f"TRUNCATE shell.t; COPY shell.t (k, v) FROM '{copied}'")
    assert "(2 rows)" in shell("SELECT * FROM shell.t")
