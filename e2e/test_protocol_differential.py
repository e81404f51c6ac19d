"""What the native protocol has beside statements is as in Cassandra: `now_in_seconds`, and which prepared statements are forgotten."""

import pytest

from differential.pair import REPLICATION
from differential.servers import HALCYON
from native import Client, Refused
from server import Server

# Signed, as they are written here; both servers read an unsigned number.
SECONDS = [0, 1, 1_700_000_000, 2_147_483_646, 2_147_483_647, -2_147_483_648, -2_147_483_647, -1000, -100, -6, -5, -4, -3, -2, -1]
WRITES = [
    "INSERT INTO spoken.t (k, v) VALUES ({}, 1) USING TTL 100",
    "INSERT INTO spoken.t (k, v) VALUES ({}, 1)",
    "UPDATE spoken.t USING TTL 3 SET v = 2 WHERE k = {}",
    "UPDATE spoken.t USING TTL 1000 SET v = 2 WHERE k = {} IF v = null",
    "DELETE FROM spoken.t WHERE k = {}",
    "DELETE v FROM spoken.t WHERE k = {}",
]

SCHEMA = [
    "CREATE TYPE spoken.p (a int, b int)",
    "CREATE TYPE spoken.unused (a int)",
    "CREATE TABLE spoken.t (k int, c int, v int, w text, u p, fu frozen<p>, PRIMARY KEY (k, c))",
    "CREATE TABLE spoken.o (k int PRIMARY KEY, v int, w text)",
    "CREATE MATERIALIZED VIEW spoken.m AS SELECT * FROM spoken.o WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)",
    "CREATE FUNCTION spoken.f (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'",
    "CREATE FUNCTION spoken.g (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'",
    "CREATE FUNCTION spoken.s (a int, b int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return a + b;'",
    "CREATE AGGREGATE spoken.sums (int) SFUNC s STYPE int INITCOND 0",
]
STATEMENTS = [
    "SELECT * FROM spoken.t",
    "SELECT v FROM spoken.t WHERE k = 1",
    "SELECT v FROM spoken.o WHERE k = 1",
    "SELECT * FROM spoken.m",
    "INSERT INTO spoken.t (k, c, v) VALUES (1, 2, 3)",
    "INSERT INTO spoken.t (k, c, v) VALUES (1, 2, 3) IF NOT EXISTS",
    "UPDATE spoken.o SET v = 1 WHERE k = 1",
    "DELETE FROM spoken.o WHERE k = 1",
    "BEGIN BATCH INSERT INTO spoken.o (k, v) VALUES (1, 1); INSERT INTO spoken.t (k, c) VALUES (1, 1); APPLY BATCH",
    "BEGIN BATCH INSERT INTO spoken.o (k, v) VALUES (1, spoken.f(1)); APPLY BATCH",
    "SELECT spoken.f(v) FROM spoken.o",
    "SELECT spoken.g(v) FROM spoken.o",
    "SELECT spoken.sums(v) FROM spoken.o",
    "SELECT v FROM spoken.o WHERE k = spoken.f(1)",
    "UPDATE spoken.o SET v = spoken.g(1) WHERE k = 1",
    "TRUNCATE spoken.o",
    "DROP TABLE IF EXISTS spoken.nothing",
    "SELECT key FROM system.local",
]
_FUNCTION = "RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS"
CHANGES = [
    "ALTER TABLE spoken.t WITH comment = 'x'",
    "ALTER TABLE spoken.t WITH comment = 'x'",
    "ALTER TABLE spoken.t WITH compaction = {'class': 'LeveledCompactionStrategy'}",
    "ALTER TABLE spoken.t WITH caching = {'keys': 'NONE'}",
    "ALTER TABLE spoken.t WITH gc_grace_seconds = 5",
    "ALTER TABLE spoken.t WITH gc_grace_seconds = 5",
    "ALTER TABLE spoken.t WITH default_time_to_live = 500",
    "ALTER TABLE spoken.t ADD x int",
    "ALTER TABLE spoken.t ADD IF NOT EXISTS x int",
    "ALTER TABLE spoken.t DROP w",
    "ALTER TABLE spoken.t RENAME c TO d",
    "ALTER TABLE spoken.t RENAME d TO c",
    "ALTER TABLE spoken.t ALTER v MASKED WITH DEFAULT",
    "ALTER TABLE spoken.t ALTER v MASKED WITH DEFAULT",
    "ALTER TABLE spoken.t ALTER v DROP MASKED",
    "ALTER TABLE spoken.o ADD y int",
    "ALTER TABLE spoken.o WITH comment = 'y'",
    "CREATE INDEX i ON spoken.t (v)",
    "CREATE INDEX IF NOT EXISTS i ON spoken.t (v)",
    "CREATE INDEX a ON spoken.t (x) USING 'sai'",
    "DROP INDEX spoken.i",
    "DROP INDEX spoken.a",
    "ALTER TYPE spoken.unused ADD b int",
    "ALTER TYPE spoken.p ADD c int",
    "ALTER TYPE spoken.p RENAME a TO z",
    "CREATE TYPE spoken.another (a int)",
    "DROP TYPE spoken.another",
    "CREATE TABLE spoken.another (k int PRIMARY KEY)",
    "DROP TABLE spoken.another",
    "CREATE MATERIALIZED VIEW spoken.n AS SELECT k FROM spoken.t WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c)",
    "ALTER MATERIALIZED VIEW spoken.m WITH comment = 'x'",
    "ALTER MATERIALIZED VIEW spoken.m WITH gc_grace_seconds = 77",
    "DROP MATERIALIZED VIEW spoken.n",
    f"CREATE FUNCTION spoken.h (a int) {_FUNCTION} 'return a;'",
    f"CREATE FUNCTION spoken.f (a text) {_FUNCTION} 'return 1;'",
    f"CREATE FUNCTION spoken.f (a text, b text) {_FUNCTION} 'return 1;'",
    "DROP FUNCTION spoken.f (text, text)",
    "DROP FUNCTION spoken.f (text)",
    f"CREATE OR REPLACE FUNCTION spoken.f (a int) {_FUNCTION} 'return a;'",
    f"CREATE OR REPLACE FUNCTION spoken.f (a int) {_FUNCTION} 'return a + 1;'",
    f"CREATE OR REPLACE FUNCTION spoken.s (a int, b int) {_FUNCTION} 'return a - b;'",
    f"CREATE FUNCTION spoken.s (a int, b text) {_FUNCTION} 'return a;'",
    "CREATE AGGREGATE spoken.sums (text) SFUNC s STYPE int INITCOND 0",
    "CREATE OR REPLACE AGGREGATE spoken.sums (text) SFUNC s STYPE int INITCOND 1",
    "DROP AGGREGATE spoken.sums (text)",
    "DROP FUNCTION spoken.h",
    f"ALTER KEYSPACE spoken WITH {REPLICATION} AND durable_writes = false",
    "TRUNCATE spoken.t",
    "DROP MATERIALIZED VIEW spoken.m",
    "DROP TABLE spoken.t",
    "DROP FUNCTION spoken.g",
    "DROP KEYSPACE spoken",
]


@pytest.fixture(scope="module")
def ports(nodes, request, tmp_path_factory):
    """Of Cassandra and of Halcyon."""
    folder = tmp_path_factory.mktemp("protocol")
    config = folder / "cassandra.yaml"
    config.write_text(HALCYON, encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), folder, "--config", config).start()
    yield nodes.get("5.0.9").facts["native_port"], server.port
    server.close()


@pytest.fixture
def clients(ports):
    """Each with an empty keyspace."""
    made = [Client(port) for port in ports]
    for client in made:
        client.query("DROP KEYSPACE IF EXISTS spoken")
        client.query(f"CREATE KEYSPACE spoken WITH {REPLICATION}")
    yield made
    for client in made:
        client.query("DROP KEYSPACE IF EXISTS spoken")
        client.close()


def _answer(client, text, **options):
    try:
        result = client.query(text, **options)
        return "ok" if result is None else result[1]
    except Refused as refused:
        return str(refused)


def test_seconds_of_the_client(ports, clients):
    """A write at some seconds, read at others."""
    for client in clients:
        client.query("CREATE TABLE spoken.t (k int PRIMARY KEY, v int)")
    speakers = [Client(port, version=5) for port in ports]
    different, k = [], 0
    for write in WRITES:
        # There Cassandra writes an empty value: the tombstone of a column is one that never was.
        for written in [seconds for seconds in SECONDS if seconds != -1 or not write.startswith("DELETE v")]:
            k += 1
            reads = sorted({written, 0, 99, 2_147_483_647, -3, -1})
            steps = [(write.format(k), written)] + [(f"SELECT v, ttl(v) FROM spoken.t WHERE k = {k}", now) for now in reads]
            cassandra, halcyon = ([_answer(client, text, now=now) for text, now in steps] for client in speakers)
            different += [f"{write} at {written}, then at {now}: {one} {other}" for (_, now), one, other in zip(steps, cassandra, halcyon) if one != other]
    for client in speakers:
        client.close()
    assert not different, "\n".join(different)


class _Prepared:
    """Statements of one server, prepared again before each change of its schema."""

    def __init__(self, client):
        self._client = client

    def forgotten(self, change):
        """What the change is answered, and of each statement that can be prepared, what is of it then."""
        prepared = {}
        for text in STATEMENTS:
            try:
                prepared[text] = self._client.prepare(text)
            except Refused:
                pass
        said = _answer(self._client, change)
        kept = {row[0] for row in self._client.query("SELECT prepared_id FROM system.prepared_statements")[1]}
        return said, {text: (self._is_known(one), one.id in kept) for text, one in prepared.items()}

    def _is_known(self, prepared):
        try:
            self._client.execute(prepared)
        except Refused as refused:
            return not str(refused).startswith("2500")
        return True


@pytest.mark.timeout(300)
def test_changes_of_the_schema_forget_prepared_statements(clients):
    for client in clients:
        for text in SCHEMA:
            client.query(text)
    pair = [_Prepared(client) for client in clients]
    different = []
    for change in CHANGES:
        cassandra, halcyon = (one.forgotten(change) for one in pair)
        if cassandra[0] != halcyon[0]:
            different.append(f"{change}\n  C {cassandra[0]}\n  H {halcyon[0]}")
        for text in sorted({*cassandra[1], *halcyon[1]}):
            one, other = cassandra[1].get(text), halcyon[1].get(text)
            if one != other:
                different.append(f"{change}: {text}: {one} {other}")
    assert not different, "\n".join(different)
