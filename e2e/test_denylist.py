"""The partition denylist: what is refused, with which words, beside Cassandra."""

import subprocess

import pytest
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from oracle import opened
from patience import PATIENCE_SECONDS, TIMEOUTS, until
from server import Server

REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
ENABLED = ["partition_denylist_enabled: true", "denylist_consistency_level: ONE", "denylist_max_keys_per_table: 3"]
SCHEMA = [
    f"CREATE KEYSPACE ks WITH replication = {REPLICATION}",
    "CREATE TABLE ks.t (k int PRIMARY KEY, v int, w list<int>)",
    "CREATE TABLE ks.u (a int, b text, c int, v int, PRIMARY KEY ((a, b), c))",
    "CREATE TABLE ks.n (k int PRIMARY KEY, n counter)",
    "CREATE TABLE ks.free (k int PRIMARY KEY, v int)",
    "CREATE TABLE ks.many (k int PRIMARY KEY, v int)",
    "CREATE INDEX ON ks.t (v)",
    # Tables that are not asked for before are listed when they are.
    "INSERT INTO system_distributed.partition_denylist (ks_name, table_name, key) VALUES ('ks', 't', 0x00000001)",
    "INSERT INTO system_distributed.partition_denylist (ks_name, table_name, key) VALUES ('ks', 't', 0x00000009)",
    "INSERT INTO system_distributed.partition_denylist (ks_name, table_name, key) VALUES ('ks', 'u', 0x0004000000010000017800)",
    "INSERT INTO system_distributed.partition_denylist (ks_name, table_name, key) VALUES ('ks', 'n', 0x00000001)",
    "INSERT INTO system_distributed.partition_denylist (ks_name, table_name, key) VALUES ('system_distributed', 'parent_repair_history', 0x00)",
    *(
        f"INSERT INTO system_distributed.partition_denylist (ks_name, table_name, key) VALUES ('ks', 'many', 0x{k:08x})" for k in range(5)
    ),
]
STATEMENTS = [
    "INSERT INTO ks.t (k, v) VALUES (1, 1)",
    "INSERT INTO ks.t (k, v) VALUES (2, 1)",
    "UPDATE ks.t SET v = 2 WHERE k = 1",
    "UPDATE ks.t SET v = 2 WHERE k IN (2, 9)",
    "UPDATE ks.t SET w[0] = 2 WHERE k = 9",
    "DELETE FROM ks.t WHERE k = 1",
    "INSERT INTO ks.t (k, v) VALUES (1, 1) IF NOT EXISTS",
    "INSERT INTO ks.t (k, v) VALUES (3, 1) IF NOT EXISTS",
    "UPDATE ks.t SET v = 2 WHERE k = 1 IF v = 1",
    "DELETE FROM ks.t WHERE k = 1 IF EXISTS",
    "SELECT * FROM ks.t WHERE k = 1",
    "SELECT * FROM ks.t WHERE k = 2",
    "SELECT k FROM ks.t WHERE k IN (2, 9, 3)",
    "SELECT k FROM ks.t WHERE k IN (2, 3)",
    "SELECT * FROM ks.t",
    "SELECT count(*) FROM ks.t",
    "SELECT * FROM ks.t LIMIT 1",
    "SELECT * FROM ks.t WHERE v = 1",
    "SELECT * FROM ks.t WHERE v = 1 AND k = 1",
    "SELECT * FROM ks.t WHERE token(k) > -4069959284402364209",
    "SELECT * FROM ks.t WHERE token(k) >= -4069959284402364209",
    "SELECT * FROM ks.t WHERE token(k) < -4069959284402364209",
    "SELECT * FROM ks.t WHERE token(k) <= -4069959284402364209",
    "SELECT * FROM ks.t WHERE token(k) >= -4069959284402364209 AND token(k) <= -4069959284402364209",
    "SELECT * FROM ks.t WHERE token(k) > 0 AND token(k) < 10",
    "SELECT * FROM ks.t WHERE token(k) > 10 AND token(k) < 0",
    "SELECT * FROM ks.t WHERE token(k) = token(1)",
    "SELECT * FROM ks.t WHERE k = 1 ALLOW FILTERING",
    "SELECT * FROM ks.free",
    "INSERT INTO ks.free (k) VALUES (1)",
    "SELECT * FROM ks.u WHERE a = 1 AND b = 'x'",
    "SELECT * FROM ks.u WHERE a = 1 AND b = 'y'",
    "INSERT INTO ks.u (a, b, c) VALUES (1, 'x', 1)",
    "UPDATE ks.n SET n = n + 1 WHERE k = 1",
    "UPDATE ks.n SET n = n + 1 WHERE k = 2",
    "BEGIN BATCH INSERT INTO ks.t (k) VALUES (2); INSERT INTO ks.t (k) VALUES (1); APPLY BATCH",
    "BEGIN BATCH INSERT INTO ks.free (k) VALUES (2); INSERT INTO ks.t (k) VALUES (2); APPLY BATCH",
    "BEGIN UNLOGGED BATCH INSERT INTO ks.free (k) VALUES (2); INSERT INTO ks.t (k) VALUES (1); APPLY BATCH",
    "BEGIN BATCH INSERT INTO ks.t (k) VALUES (1) IF NOT EXISTS; UPDATE ks.t SET v = 1 WHERE k = 1; APPLY BATCH",
    "TRUNCATE ks.t",
    "SELECT * FROM system_distributed.parent_repair_history",
    "INSERT INTO ks.many (k) VALUES (0)",
    "INSERT INTO ks.many (k) VALUES (2)",
    "INSERT INTO ks.many (k) VALUES (4)",
]


def answer(session, statement):
    try:
        return sorted(map(str, session.execute(statement)))
    except Exception as error:  # Each error of the driver is one of the server's here.
        return f"{type(error).__name__}: {error}"


def talk(session):
    for statement in SCHEMA:
        session.execute(statement)
    answers = [(statement, answer(session, statement)) for statement in STATEMENTS]
    for text, values in [("SELECT v FROM ks.t WHERE k = ?", (1,)), ("INSERT INTO ks.t (k, v) VALUES (?, 1)", (9,)), ("SELECT v FROM ks.t WHERE k = ?", (2,))]:
        answers.append((text, answer(session, session.prepare(text).bind(values))))
    for kind in [BatchType.LOGGED, BatchType.UNLOGGED]:
        batch = BatchStatement(kind)
        batch.add(SimpleStatement("INSERT INTO ks.free (k) VALUES (7)"))
        batch.add(session.prepare("INSERT INTO ks.t (k) VALUES (?)"), (1,))
        answers.append((str(kind), answer(session, batch)))
    return answers


def node(request, folder, *settings):
    config = folder / "cassandra.yaml"
    config.write_text(TIMEOUTS + "".join(f"{line}\n" for line in settings), encoding="utf-8")
    return Server(request.config.getoption("--halcyon"), folder, "--config", config)


def tool(request, server, *words):
    command = [request.config.getoption("--halcyon"), "nodetool", "-p", str(server.port), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.timeout(600)
def test_refusals_are_cassandras(cassandra_options, request, tmp_path):
    """Proves that each kind of read and write of a denied partition is refused with Cassandra's error and words, and that others are not."""
    ours = tmp_path / "ours"
    ours.mkdir()
    server = node(request, ours, *ENABLED)
    try:
        found = talk(server.start().connect(schema_metadata_enabled=False))
        assert server.stop() == 0
    finally:
        server.close()
    with opened.cassandra(cassandra_options, tmp_path / "theirs", "oa", *ENABLED) as (session, _):
        expected = talk(session)
    different = [(ours, theirs) for ours, theirs in zip(found, expected) if ours != theirs]
    assert not different, "\n".join(f"- {theirs}\n+ {ours}" for ours, theirs in different)
    assert sum("denylisted" in str(answer) for _, answer in found) > 20


@pytest.mark.parametrize("kind", ["writes", "reads", "range_reads"])
def test_each_kind_can_be_left_out(request, tmp_path, kind):
    """Proves that one kind of request can be permitted while the others are refused."""
    server = node(request, tmp_path, *ENABLED, f"denylist_{kind}_enabled: false")
    try:
        session = server.start().connect()
        for statement in SCHEMA:
            session.execute(statement)
        refused = {
            "writes": ["INSERT INTO ks.t (k, v) VALUES (1, 1)", "DELETE FROM ks.t WHERE k = 1 IF EXISTS"],
            "reads": ["SELECT * FROM ks.t WHERE k = 1"],
            "range_reads": ["SELECT * FROM ks.t"],
        }
        for of, statements in refused.items():
            for statement in statements:
                assert ("denylisted" in answer(session, statement)) == (of != kind), statement
    finally:
        server.close()


def test_lists_are_loaded_by_command_and_by_time(request, tmp_path):
    """Proves that a key is denied after a load by nodetool, permitted after the refresh, and that a restart denies it before clients."""
    add = "INSERT INTO system_distributed.partition_denylist (ks_name, table_name, key) VALUES ('ks', 't', 0x00000001)"
    server = node(request, tmp_path, *ENABLED)
    try:
        session = server.start().connect()
        session.execute(SCHEMA[0])
        session.execute(SCHEMA[1])
        read = "SELECT * FROM ks.t WHERE k = 1"
        assert answer(session, read) == []
        session.execute(add)
        # The list is not old yet.
        assert answer(session, read) == []
        assert tool(request, server, "loadpartitiondenylist") == (0, "", "")
        assert "Unable to read denylisted partition" in answer(session, read)
        (row,) = session.execute("SELECT * FROM halcyon_views.partition_denylist")
        assert (row.keys, row.reads_rejected, row.load_successes) == (1, 1, 2)
        server.kill()
        session = node_again(request, server, tmp_path).connect()
        assert "Unable to read denylisted partition" in answer(session, read)
        session.execute("TRUNCATE system_distributed.partition_denylist")
        until(lambda: answer(session, read) == [], "the list is not refreshed")
    finally:
        server.close()


def node_again(request, server, folder):
    """The same node, whose lists are soon old."""
    node(request, folder, *ENABLED, "denylist_refresh: 1s")
    return server.start()


def test_a_node_without_replicas_tells(request, tmp_path):
    """Proves that lists that cannot be loaded are named with the cure, and that the node serves and tries again."""
    server = node(request, tmp_path, "partition_denylist_enabled: true", "denylist_initial_load_retry: 1s")
    try:
        session = server.start().connect()
        until(lambda: next(iter(session.execute("SELECT * FROM halcyon_views.partition_denylist"))).load_attempts > 1, "no second attempt")
        assert "NO PARTITION IS DENIED" in server.said() and "denylist_consistency_level" in server.said()
        assert tool(request, server, "loadpartitiondenylist")[0] == 2
    finally:
        server.close()


def test_without_a_denylist_nothing_is_denied(request, tmp_path):
    """Proves that the rows alone deny nothing, and that the command says what to set."""
    server = node(request, tmp_path)
    try:
        session = server.start().connect()
        for statement in SCHEMA:
            session.execute(statement)
        assert answer(session, "INSERT INTO ks.t (k, v) VALUES (1, 1)") == []
        status, _, said = tool(request, server, "loadpartitiondenylist")
        assert status == 2 and "partition_denylist_enabled" in said
    finally:
        server.close()
