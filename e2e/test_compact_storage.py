"""
Tables with COMPACT STORAGE, on Cassandra and on `halcyon serve`: made, written, read, conditional, altered, described; every answer is the same.

Left out are materialized views, and what Cassandra answers with a Java exception: dropping the only value of a dense table.
"""

import re

import pytest

from native import Client
from record_sessions import told
from server import Server

KEYSPACE = "compact_storage"
STATEMENTS = r"""
CREATE TABLE s (k int PRIMARY KEY, b int, a text) WITH COMPACT STORAGE
CREATE TABLE d (k int, c int, v text, PRIMARY KEY (k, c)) WITH COMPACT STORAGE
CREATE TABLE d0 (k int, c int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE
CREATE TABLE d2 (k int, c int, e text, v text, PRIMARY KEY (k, c, e)) WITH COMPACT STORAGE AND CLUSTERING ORDER BY (c DESC, e ASC)
CREATE TABLE sc (k int PRIMARY KEY, a counter, b counter) WITH COMPACT STORAGE
CREATE TABLE dc (k int, c int, n counter, PRIMARY KEY (k, c)) WITH COMPACT STORAGE
CREATE TABLE names (k int PRIMARY KEY, column1 int, value text) WITH COMPACT STORAGE
CREATE TABLE dn (value int, c int, PRIMARY KEY (value, c)) WITH COMPACT STORAGE
CREATE TABLE plain (k int PRIMARY KEY, v int)
CREATE TABLE e1 (k int PRIMARY KEY) WITH COMPACT STORAGE
CREATE TABLE e2 (k int, c int, a int, b int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE
CREATE TABLE e3 (k int, c int, a int static, PRIMARY KEY (k, c)) WITH COMPACT STORAGE
CREATE TABLE e4 (k int PRIMARY KEY, a list<int>) WITH COMPACT STORAGE
CREATE TABLE e5 (k int PRIMARY KEY, a frozen<list<int>>) WITH COMPACT STORAGE
CREATE TABLE e6 (k int PRIMARY KEY, a int static) WITH COMPACT STORAGE
CREATE TABLE e7 (k int PRIMARY KEY, a int, b counter) WITH COMPACT STORAGE
CREATE TABLE e8 (k int PRIMARY KEY, a counter) WITH COMPACT STORAGE AND default_time_to_live = 5
CREATE TABLE IF NOT EXISTS s (k int PRIMARY KEY, b int) WITH COMPACT STORAGE
SELECT table_name, flags FROM system_schema.tables WHERE keyspace_name = 'compact_storage'
SELECT table_name, column_name, clustering_order, kind, position, type FROM system_schema.columns WHERE keyspace_name = 'compact_storage'
DESCRIBE TABLE s
DESCRIBE TABLE d
DESCRIBE TABLE d0
DESCRIBE TABLE d0 WITH INTERNALS
DESCRIBE TABLE d2
DESCRIBE TABLE sc
DESCRIBE TABLE names
INSERT INTO s (k, b, a) VALUES (1, 2, 'x')
INSERT INTO s (k, b) VALUES (2, 3)
INSERT INTO s (k) VALUES (3)
INSERT INTO s (k, column1) VALUES (3, 'x')
INSERT INTO s (k, value) VALUES (3, 0x00)
UPDATE s SET a = 'y', b = null WHERE k = 4
UPDATE s SET a = 'z' WHERE k = 1 AND column1 = 'x'
SELECT * FROM s
SELECT a FROM s WHERE k = 1
SELECT column1 FROM s
SELECT * FROM s WHERE column1 = 'x' ALLOW FILTERING
SELECT k, b FROM s WHERE b = 3 ALLOW FILTERING
SELECT DISTINCT k FROM s
SELECT count(*) FROM s
SELECT JSON * FROM s
SELECT k, writetime(a), ttl(a) FROM s WHERE k = 9
SELECT * FROM s WHERE k IN (1, 2, 3)
SELECT * FROM s LIMIT 1
SELECT * FROM s PER PARTITION LIMIT 1
SELECT * FROM s WHERE k = 1 ORDER BY column1 DESC
DELETE a FROM s WHERE k = 1
SELECT * FROM s
DELETE FROM s WHERE k = 2
DELETE FROM s WHERE k = 1 IF EXISTS
SELECT * FROM s
INSERT INTO s (k, a) VALUES (7, 'x') IF NOT EXISTS
INSERT INTO s (k, a) VALUES (7, 'x') IF NOT EXISTS
UPDATE s SET a = 'q' WHERE k = 7 IF a = 'x'
UPDATE s SET a = 'q' WHERE k = 7 IF EXISTS
SELECT * FROM s
INSERT INTO d (k, c, v) VALUES (1, 1, 'a')
INSERT INTO d (k, c, v) VALUES (1, 2, 'b')
INSERT INTO d (k, c, v) VALUES (1, 3, null)
INSERT INTO d (k, c) VALUES (1, 4)
INSERT INTO d (k, v) VALUES (1, 'x')
UPDATE d SET v = 'u' WHERE k = 2 AND c = 1
UPDATE d SET v = null WHERE k = 1 AND c = 1
SELECT * FROM d
SELECT c FROM d WHERE k = 1 AND c > 0 ORDER BY c DESC
SELECT * FROM d WHERE v = 'b' ALLOW FILTERING
SELECT DISTINCT k FROM d
DELETE v FROM d WHERE k = 1 AND c = 2
DELETE FROM d WHERE k = 2 AND c = 1
DELETE FROM d WHERE k = 1 AND c > 0
SELECT * FROM d
INSERT INTO d (k, c, v) VALUES (1, 1, 'a') IF NOT EXISTS
INSERT INTO d (k, c, v) VALUES (1, 1, 'a') IF NOT EXISTS
UPDATE d SET v = 'w' WHERE k = 1 AND c = 1 IF v = 'a'
INSERT INTO d0 (k, c) VALUES (1, 1)
INSERT INTO d0 (k, c) VALUES (1, 2) USING TTL 1000
SELECT * FROM d0
SELECT value FROM d0
INSERT INTO d0 (k, c, value) VALUES (1, 1, 0x)
UPDATE d0 SET value = 0x WHERE k = 1 AND c = 1
DELETE FROM d0 WHERE k = 1 AND c = 1
SELECT * FROM d0
SELECT count(*) FROM d0
INSERT INTO d2 (k, c, e, v) VALUES (1, 1, 'a', 'v')
INSERT INTO d2 (k, c, e, v) VALUES (1, 2, 'b', 'w')
INSERT INTO d2 (k, c, v) VALUES (1, 3, 'half')
INSERT INTO d2 (k, v) VALUES (1, 'none')
SELECT * FROM d2
SELECT * FROM d2 WHERE k = 1 AND c = 3
SELECT * FROM d2 WHERE k = 1 AND (c, e) > (1, 'a')
DELETE FROM d2 WHERE k = 1 AND c = 2
SELECT * FROM d2
UPDATE sc SET a = a + 1, b = b - 2 WHERE k = 1
UPDATE sc SET a = a + 1 WHERE k = 2
SELECT * FROM sc
DELETE a FROM sc WHERE k = 1
SELECT * FROM sc
UPDATE dc SET n = n + 5 WHERE k = 1 AND c = 1
SELECT * FROM dc
INSERT INTO names (k, column1, value) VALUES (1, 2, 'v')
SELECT * FROM names
INSERT INTO dn (value, c) VALUES (1, 2)
SELECT * FROM dn
INSERT INTO e5 (k, a) VALUES (1, [1,2])
SELECT * FROM e5
BEGIN BATCH INSERT INTO s (k, a) VALUES (11, 'x'); INSERT INTO d (k, c, v) VALUES (11, 1, 'x'); APPLY BATCH
SELECT * FROM s WHERE k = 11
ALTER TABLE s ADD z int
ALTER TABLE s ADD a text
ALTER TABLE s ADD IF NOT EXISTS a text
ALTER TABLE s ADD st int static
ALTER TABLE s RENAME k TO kk
SELECT kk FROM s
ALTER TABLE s RENAME column1 TO cc
ALTER TABLE s RENAME kk TO column1
ALTER TABLE s RENAME kk TO value
ALTER TABLE s RENAME a TO aa
ALTER TABLE d RENAME c TO cc
SELECT cc FROM d
ALTER TABLE s DROP nope
ALTER TABLE s DROP column1
ALTER TABLE s WITH comment = 'x'
ALTER TABLE s DROP COMPACT STORAGE
ALTER TABLE plain DROP COMPACT STORAGE
CREATE INDEX ON s (a)
CREATE INDEX ON d (v)
TRUNCATE s
SELECT * FROM s
SELECT keyspace_name, table_name, column_name, kind, type FROM system_schema.dropped_columns WHERE keyspace_name = 'compact_storage'
UPDATE d SET v = 'part' WHERE k = 3
INSERT INTO d2 (k, e, v) VALUES (2, 'x', 'gap')
UPDATE d2 SET v = 'part' WHERE k = 3 AND c = 1
SELECT * FROM d2 WHERE k = 3
CREATE TABLE txt (k int, c text, v int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE
INSERT INTO txt (k, c, v) VALUES (1, '', 1)
INSERT INTO txt (k, c, v) VALUES (1, null, 1)
ALTER TABLE d2 DROP nope
ALTER TABLE s DROP b
ALTER TABLE s DROP IF EXISTS b
SELECT * FROM s
DESCRIBE TABLE s
DROP TABLE d0
DROP TABLE s
CREATE TABLE last (k int PRIMARY KEY, a int) WITH COMPACT STORAGE
INSERT INTO last (k, a) VALUES (1, 2)
ALTER TABLE last DROP a
SELECT * FROM last
SELECT a FROM last
SELECT column1 FROM last
INSERT INTO last (k) VALUES (2)
UPDATE last SET a = 1 WHERE k = 2
UPDATE last SET value = 0x01 WHERE k = 2
DELETE FROM last WHERE k = 1
SELECT * FROM last
SELECT table_name, flags FROM system_schema.tables WHERE keyspace_name = 'compact_storage'
SELECT table_name, column_name, kind, type FROM system_schema.columns WHERE keyspace_name = 'compact_storage'
DESCRIBE TABLE last
DESCRIBE TABLE last WITH INTERNALS
ALTER TABLE last RENAME column1 TO cc
CREATE INDEX ON last (value)
ALTER TABLE last ADD b text
INSERT INTO last (k, b) VALUES (3, 'x')
SELECT * FROM last
ALTER TABLE last DROP b
ALTER TABLE last ADD a int
SELECT * FROM last
DESCRIBE TABLE last
""".strip().splitlines()
# What CQL did not show is shown.
AFTER_DROP = r"""
ALTER TABLE plain DROP COMPACT STORAGE
ALTER TABLE st DROP COMPACT STORAGE
ALTER TABLE dense DROP COMPACT STORAGE
ALTER TABLE empty DROP COMPACT STORAGE
ALTER TABLE last DROP COMPACT STORAGE
SELECT * FROM last
INSERT INTO last (k, column1, value) VALUES (1, 'c', 0x01)
SELECT * FROM last
DESCRIBE TABLE last
SELECT * FROM st
SELECT * FROM dense
SELECT * FROM empty
INSERT INTO st (k, column1, value, a) VALUES (1, 'c', 0x01, 'y')
INSERT INTO st (k, a) VALUES (2, 'z')
SELECT * FROM st
INSERT INTO dense (k, c) VALUES (1, 9)
SELECT * FROM dense
SELECT table_name, flags FROM system_schema.tables WHERE keyspace_name = 'compact_storage'
SELECT table_name, column_name, kind, type FROM system_schema.columns WHERE keyspace_name = 'compact_storage'
DESCRIBE TABLE st
DESCRIBE TABLE dense
ALTER TABLE dense ADD more int
SELECT * FROM dense
""".strip().splitlines()
BEFORE_DROP = r"""
CREATE TABLE last (k int PRIMARY KEY, a int) WITH COMPACT STORAGE
INSERT INTO last (k, a) VALUES (1, 2)
ALTER TABLE last DROP a
CREATE TABLE plain (k int PRIMARY KEY)
CREATE TABLE st (k int PRIMARY KEY, a text, b int) WITH COMPACT STORAGE
CREATE TABLE dense (k int, c int, v text, PRIMARY KEY (k, c)) WITH COMPACT STORAGE
CREATE TABLE empty (k int, c int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE
INSERT INTO st (k, a, b) VALUES (1, 'x', 2)
INSERT INTO dense (k, c, v) VALUES (1, 1, 'v')
INSERT INTO empty (k, c) VALUES (1, 1)
""".strip().splitlines()


def comparable(answer):
    """The id of a table and the times of changes are its node's own; DESCRIBE's columns come as bytes."""
    answer = re.sub(r"ID = [0-9a-f-]{36}", "ID = X", answer)
    answer = re.sub(r"(?<=54494d455354414d5020)(3[0-9])+", "TIME", answer)
    return re.sub(r"49443d[0-9a-f]+|4944203d20(3[0-9]|2d|6[1-6]){36}", "ID", answer)


def differences(clients, statements):
    different = []
    for text in statements:
        expected, found = (comparable(told(client, text)) for client in clients)
        if expected != found:
            different.append(f"{text}\n  C {expected}\n  H {found}")
    return different


def connect(port):
    client = Client(port)
    client.query(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
    client.query(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    client.query(f"USE {KEYSPACE}")
    return client


@pytest.mark.parametrize("release", ["5.0.9"])
def test_tables_with_compact_storage_behave_as_in_cassandra(nodes, served, release):
    clients = [connect(nodes.get(release).facts["native_port"]), connect(served.port)]
    different = differences(clients, STATEMENTS)
    for client in clients:
        client.close()
    assert not different, f"{len(different)} of {len(STATEMENTS)} differ\n" + "\n".join(different)


def test_the_value_of_rows_stays(served):
    """Cassandra fails half-way."""
    client = connect(served.port)
    for text in BEFORE_DROP:
        client.query(text)
    for text in ("ALTER TABLE dense DROP v", "ALTER TABLE empty DROP value"):
        assert "a table with COMPACT STORAGE and clustering columns must keep one" in told(client, text), text
    client.close()


def test_compact_storage_is_dropped(request, tmp_path):
    """Allowed by its setting; the tables are the same after a restart, from SSTables."""
    config = tmp_path / "cassandra.yaml"
    config.write_text("drop_compact_storage_enabled: true\n", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), tmp_path, "--config", config)
    try:
        server.start()
        client = connect(server.port)
        for text in BEFORE_DROP:
            assert told(client, text) == "ok", text
        answers = [told(client, text) for text in AFTER_DROP]
        assert answers[0].endswith("Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE")
        assert not [answer for answer in answers[1:] if answer.startswith("!")], answers
        reads = [text for text in AFTER_DROP if text.startswith("SELECT")]
        before = [told(client, text) for text in reads]
        client.close()
        assert server.stop() == 0
        server.start()
        client = Client(server.port)
        client.query(f"USE {KEYSPACE}")
        assert [told(client, text) for text in reads] == before
        client.close()
    finally:
        server.close()
