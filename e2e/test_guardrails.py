"""
Guardrails on Cassandra and on `halcyon serve`, each with the same settings: statements at and beyond each threshold, and each feature that is off.
Answers, codes, texts and warnings are the same, for texts, prepared statements and batches.

In Cassandra guardrails hold for clients that log in as ordinary roles, in Halcyon for clients of a node without logins, too.
"""

import re
import struct
import subprocess
from pathlib import Path

import pytest

from native import Client, Refused
from oracle import opened
from patience import PATIENCE_SECONDS, TIMEOUTS, until
from server import Server, flush_statement

AUTH_RESPONSE, BATCH = 0x0F, 0x0D
ONE, QUORUM, ALL, LOCAL_QUORUM, SERIAL, LOCAL_SERIAL, LOCAL_ONE = 1, 4, 5, 6, 8, 9, 10
ROLE = "ordinary"
KEYSPACE = "WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}"


class Asking(Client):
    """`role`: what it logs in as; its password is its name."""

    def __init__(self, port, role=None):
        super().__init__(port)
        if role:
            token = f"\0{role}\0{role}".encode()
            self._call(AUTH_RESPONSE, struct.pack(">i", len(token)) + token)

    def batch(self, kind, entries, consistency=ONE, serial=None):
        """Texts, or prepared statements, with their values."""
        body = struct.pack(">BH", kind, len(entries))
        for entry, values in entries:
            if isinstance(entry, str):
                body += struct.pack(">Bi", 0, len(entry.encode())) + entry.encode()
            else:
                body += struct.pack(">BH", 1, len(entry.id)) + entry.id
            body += struct.pack(">H", len(values)) + b"".join(struct.pack(">i", len(value)) + value for value in values)
        body += struct.pack(">HB", consistency, 0x10 if serial else 0) + (struct.pack(">H", serial) if serial else b"")
        self._call(BATCH, body)


def visible(text):
    """Without times and ports."""
    return re.sub(r"/127\.0\.0\.1:\d+", "/127.0.0.1", re.sub(r"\d{15,}", "TIME", text))


def said(client, ask):
    """An answer without rows, and its warnings."""
    try:
        found = ask()
        answer = "ok" if found is None else f"{len(found[1])} rows"
    except Refused as refused:
        answer = str(refused)
    return visible(answer), [visible(warning) for warning in client.warnings]


def both_forms(client, text, **options):
    """A text as it is, and prepared. What changes the schema is asked once."""
    answers = [said(client, lambda: client.query(text, **options))]
    if not re.match("CREATE|ALTER|DROP|TRUNCATE|USE", text):
        prepared = []
        answers.append(said(client, lambda: prepared.append(client.prepare(text))))
        if prepared:
            answers.append(said(client, lambda: client.execute(prepared[0], **options)))
    return answers


class Step:
    def __init__(self, text, values=(), **options):
        self.text, self.options = text, options
        self.values = values

    def ask(self, client):
        if isinstance(self.text, list):
            texts = [(text, ()) for text in self.text]
            answers = [said(client, lambda: client.batch(0, texts, **self.options))]
            joined = "BEGIN BATCH " + "; ".join(self.text) + "; APPLY BATCH"
            return answers + both_forms(client, joined, **self.options)
        if self.values:
            return self.with_values(client)
        return both_forms(client, self.text, **self.options)

    def with_values(self, client):
        options = {**self.options, "values": self.values}
        answers = [said(client, lambda: client.query(self.text, **options))]
        prepared = []
        answers.append(said(client, lambda: prepared.append(client.prepare(self.text))))
        if prepared:
            answers.append(said(client, lambda: client.execute(prepared[0], **options)))
        return answers


def steps(*given):
    return [step if isinstance(step, Step) else Step(step) for step in given]


def of_sizes(kind, sizes):
    return [kind.format(size) for size in sizes]


def text_of(size):
    return "'" + "x" * size + "'"


def thresholds():
    yield from steps(
        f"CREATE KEYSPACE k1 {KEYSPACE}",
        f"CREATE KEYSPACE k2 {KEYSPACE}",
        f"CREATE KEYSPACE k3 {KEYSPACE}",
        f"CREATE KEYSPACE IF NOT EXISTS k3 {KEYSPACE}",
        f"CREATE KEYSPACE k4 {KEYSPACE}",
        f"CREATE KEYSPACE IF NOT EXISTS k1 {KEYSPACE}",
        "DROP KEYSPACE k3",
    )
    for factor in range(1, 5):
        replication = f"{{'class': 'SimpleStrategy', 'replication_factor': {factor}}}"
        yield Step(f"ALTER KEYSPACE k2 WITH replication = {replication}")
        yield Step(f"ALTER KEYSPACE k2 WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': {factor}}}")
    yield Step("ALTER KEYSPACE k2 WITH replication = {'class': 'SimpleStrategy'}")
    yield Step(f"ALTER KEYSPACE k2 {KEYSPACE}")
    for count in range(2, 8):
        columns = "".join(f", c{i} int" for i in range(count - 1))
        yield Step(f"CREATE TABLE k1.columns{count} (k int PRIMARY KEY{columns})")
        yield Step(f"DROP TABLE IF EXISTS k1.columns{count}")
    yield from steps(
        "CREATE TABLE k1.wide (k int PRIMARY KEY)",
        *[f"ALTER TABLE k1.wide ADD c{i} int" for i in range(6)],
        "ALTER TABLE k1.wide ADD (x int, y int, z int)",
        "DROP TABLE k1.wide",
    )
    yield from steps(*[f"CREATE TABLE k2.table{i} (k int PRIMARY KEY)" for i in range(6)], *[f"DROP TABLE IF EXISTS k2.table{i}" for i in range(6)])
    for count in range(1, 6):
        fields = ", ".join(f"f{i} int" for i in range(count))
        yield Step(f"CREATE TYPE k1.type{count} ({fields})")
    yield from steps(*[f"ALTER TYPE k1.type1 ADD g{i} int" for i in range(5)])
    for size in range(1, 6):
        yield Step(f"CREATE TABLE k1.vectors (k int PRIMARY KEY, v vector<float, {size}>, w frozen<vector<int, {size}>>)")
        yield Step("DROP TABLE IF EXISTS k1.vectors")
        yield Step(f"CREATE TYPE k1.vectors{size} (v vector<float, {size}>)")
    yield from steps(
        "CREATE TABLE k1.vectors (k int PRIMARY KEY)",
        *[f"ALTER TABLE k1.vectors ADD v{size} vector<float, {size}>" for size in range(1, 6)],
        "DROP TABLE k1.vectors",
        "CREATE TABLE k1.indexed (k int PRIMARY KEY, a int, b int, c int)",
        "CREATE INDEX a ON k1.indexed (a)",
        "CREATE INDEX ON k1.indexed (b)",
        "CREATE INDEX c ON k1.indexed (c)",
        "CREATE INDEX ON k1.indexed (c)",
        "CREATE MATERIALIZED VIEW k1.view1 AS SELECT * FROM k1.indexed WHERE k IS NOT NULL AND a IS NOT NULL PRIMARY KEY (a, k)",
        "CREATE MATERIALIZED VIEW k1.view2 AS SELECT * FROM k1.indexed WHERE k IS NOT NULL AND b IS NOT NULL PRIMARY KEY (b, k)",
        "CREATE MATERIALIZED VIEW k1.view3 AS SELECT * FROM k1.indexed WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k)",
        "DROP MATERIALIZED VIEW k1.view1",
        "DROP MATERIALIZED VIEW IF EXISTS k1.view2",
        "DROP TABLE k1.indexed",
        "CREATE TABLE k1.t (k int, l int, c int, d int, v text, PRIMARY KEY ((k, l), c, d))",
    )
    yield from selects()
    yield from writes()


def selects():
    for size in (2, 3, 4, 5, 6, 100):
        for text in ("SELECT * FROM k1.t", "SELECT * FROM k1.t LIMIT 3", "SELECT count(*) FROM k1.t", "SELECT k, count(*) FROM k1.t GROUP BY k, l"):
            yield Step(text, page_size=size)
    lists = ["(1)", "(1, 2)", "(1, 1)", "(1, 2, 3)", "(1, 2, 3, 4)", "(1, 2, 3, 4, 5)", "()"]
    for some in lists:
        yield Step(f"SELECT * FROM k1.t WHERE k = 1 AND l IN {some}")
        for others in lists[:4]:
            yield Step(f"SELECT * FROM k1.t WHERE k IN {some} AND l IN {others}")
            yield Step(f"SELECT * FROM k1.t WHERE k = 1 AND l = 1 AND c IN {some} AND d IN {others}")
        yield Step(f"SELECT * FROM k1.t WHERE k = 1 AND l = 1 AND c IN {some}")
        yield Step(f"SELECT * FROM k1.t WHERE k = 1 AND l = 1 AND c IN {some} AND d > 2")
        yield Step(f"SELECT * FROM k1.t WHERE k IN {some} AND l IN {some} AND c IN {some} AND d = 1")
        yield Step(f"UPDATE k1.t SET v = 'a' WHERE k = 1 AND l IN {some} AND c = 1 AND d IN {some}")
        yield Step(f"DELETE FROM k1.t WHERE k IN {some} AND l = 1 AND c IN {some}")
        yield Step(f"DELETE FROM k1.t WHERE k IN {some} AND l = 1 AND c IN {some} AND d > 1")
    yield Step("SELECT * FROM k1.t WHERE k = 1 AND l = 1 AND (c, d) IN ((1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (1, 7))")


def writes():
    yield from steps(
        "CREATE TYPE k1.pair (a text, b text)",
        "CREATE TABLE k1.w (k int, c int, v text, s text static, l list<text>, m map<text, text>, e set<text>, f frozen<list<text>>, u pair, "
        "p frozen<pair>, n int, PRIMARY KEY (k, c))",
    )
    for size in (9, 10, 11, 15, 16, 17, 20, 21, 30, 31, 40):
        value = text_of(size)
        yield Step(f"INSERT INTO k1.w (k, c, v) VALUES (1, 1, {value})")
        yield Step("INSERT INTO k1.w (k, c, v) VALUES (1, 1, ?)", values=(b"x" * size,))
        yield Step(f"INSERT INTO k1.w (k, c, v, s) VALUES (1, 1, {value}, {value})")
        yield Step(f"INSERT INTO k1.w JSON '{{\"k\": 1, \"c\": 1, \"v\": \"{'x' * size}\"}}'")
        yield Step(f"UPDATE k1.w SET v = {value} WHERE k = 1 AND c IN (1, 2)")
        yield Step(f"UPDATE k1.w SET s = {value} WHERE k = 1")
        yield Step(f"UPDATE k1.w SET m[{value}] = 'a' WHERE k = 1 AND c = 1")
        yield Step(f"UPDATE k1.w SET m['a'] = {value} WHERE k = 1 AND c = 1")
        yield Step(f"DELETE m[{value}] FROM k1.w WHERE k = 1 AND c = 1")
        yield Step(f"DELETE e[{value}] FROM k1.w WHERE k = 1 AND c = 1")
        yield Step(f"UPDATE k1.w SET e = e - {{{value}}} WHERE k = 1 AND c = 1")
        yield Step(f"UPDATE k1.w SET l = [{value}] + l WHERE k = 1 AND c = 1")
        yield Step(f"UPDATE k1.w SET l = l + [{value}] WHERE k = 1 AND c = 1")
        yield Step(f"UPDATE k1.w SET l = ['a'] WHERE k = 1 AND c = 1")
        yield Step(f"UPDATE k1.w SET l[0] = {value} WHERE k = 1 AND c = 1")
        yield Step(f"UPDATE k1.w SET u = {{a: {value}, b: 'b'}}, p = {{a: {value}, b: 'b'}} WHERE k = 1 AND c = 1")
        yield Step(f"UPDATE k1.w SET u.b = {value} WHERE k = 1 AND c = 1")
        yield Step(f"UPDATE k1.w SET f = [{value}] WHERE k = 1 AND c = 1")
        yield Step(f"UPDATE k1.w SET v = {value} WHERE k = 1 AND c = 1 IF n = 7")
        yield Step(f"UPDATE k1.w SET v = {value} WHERE k = 1 AND c = 1 IF n = null")
        yield Step(f"INSERT INTO k1.w (k, c, v) VALUES (9, {size}, {value}) IF NOT EXISTS")
        yield Step([f"INSERT INTO k1.w (k, c, v) VALUES (1, 1, {value})", f"UPDATE k1.w SET s = {value} WHERE k = 2", "DELETE FROM k1.w WHERE k = 1"])
        yield Step([f"UPDATE k1.w SET v = {value} WHERE k = 1 AND c = 1 IF n = null", f"UPDATE k1.w SET s = {value} WHERE k = 1"])
    for count in range(0, 6):
        items = [f"'{i}'" for i in range(count)]
        listed, mapped = ", ".join(items), ", ".join(f"{item}: 'v'" for item in items)
        for change in (f"l = [{listed}]", f"l = l + [{listed}]", f"l = [{listed}] + l", f"e = {{{listed}}}", f"e = e + {{{listed}}}", f"m = {{{mapped}}}",
                       f"m = m + {{{mapped}}}", f"m = m - {{{listed}}}", f"f = [{listed}]", f"l = l - [{listed}]"):
            yield Step(f"UPDATE k1.w SET {change} WHERE k = 1 AND c = 1")
        yield Step(f"INSERT INTO k1.w (k, c, l, m, e, f) VALUES (1, 1, [{listed}], {{{mapped}}}, {{{listed}}}, [{listed}])")
    for at in ("1", "-62135596800000000", "253402300799000000", "1700000000000000"):
        yield Step(f"INSERT INTO k1.w (k, c) VALUES (1, 1) USING TIMESTAMP {at}")
        yield Step(f"UPDATE k1.w USING TIMESTAMP {at} SET v = 'a' WHERE k = 1 AND c = 1")
        yield Step(f"DELETE FROM k1.w USING TIMESTAMP {at} WHERE k = 1")
        yield Step([f"INSERT INTO k1.w (k, c) VALUES (1, 1) USING TIMESTAMP {at}"])


THRESHOLDS = [
    "keyspaces_warn_threshold: 2", "keyspaces_fail_threshold: 3", "tables_warn_threshold: 3", "tables_fail_threshold: 4",
    "columns_per_table_warn_threshold: 4", "columns_per_table_fail_threshold: 11", "secondary_indexes_per_table_warn_threshold: 1",
    "secondary_indexes_per_table_fail_threshold: 2", "materialized_views_per_table_warn_threshold: 1", "materialized_views_per_table_fail_threshold: 2",
    "fields_per_udt_warn_threshold: 2", "fields_per_udt_fail_threshold: 3", "vector_dimensions_warn_threshold: 2", "vector_dimensions_fail_threshold: 3",
    "minimum_replication_factor_warn_threshold: 2", "minimum_replication_factor_fail_threshold: 1", "maximum_replication_factor_warn_threshold: 2",
    "maximum_replication_factor_fail_threshold: 3", "page_size_warn_threshold: 3", "page_size_fail_threshold: 5",
    "partition_keys_in_select_warn_threshold: 2", "partition_keys_in_select_fail_threshold: 4", "in_select_cartesian_product_warn_threshold: 4",
    "in_select_cartesian_product_fail_threshold: 6", "column_value_size_warn_threshold: 16B", "column_value_size_fail_threshold: 30B",
    "collection_size_warn_threshold: 60B", "collection_size_fail_threshold: 120B", "items_per_collection_warn_threshold: 2",
    "items_per_collection_fail_threshold: 4", "maximum_timestamp_warn_threshold: 1d", "maximum_timestamp_fail_threshold: 36500d",
    "minimum_timestamp_warn_threshold: 1d", "minimum_timestamp_fail_threshold: 36500d",
]


def features():
    compaction = "compaction = {'class': 'TimeWindowCompactionStrategy'}"
    simple = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    full = "WITH replication = {'class': 'org.apache.cassandra.locator.SimpleStrategy', 'replication_factor': 1}"
    yield from steps(
        f"CREATE KEYSPACE k1 {KEYSPACE}",
        f"CREATE KEYSPACE k2 {simple}",
        f"CREATE KEYSPACE k1 {simple}",
        f"CREATE KEYSPACE k3 {full}",
        f"ALTER KEYSPACE k1 {simple}",
        f"ALTER KEYSPACE none {simple}",
        f"ALTER KEYSPACE IF EXISTS none {simple}",
        "CREATE TABLE k1.t (k int, c int, v int, w int, l list<int>, PRIMARY KEY (k, c))",
        "CREATE TABLE k1.c (k int PRIMARY KEY, v int) WITH COMPACT STORAGE",
        "CREATE TABLE k1.u (k int PRIMARY KEY, v int) WITH compression = {'enabled': 'false'}",
        "CREATE TABLE k1.n (k int PRIMARY KEY, v vector<float, 2>)",
        "CREATE TYPE k1.n (v vector<float, 2>)",
        "CREATE TYPE k1.m (v int)",
        "ALTER TYPE k1.m ADD v2 vector<float, 2>",
        f"CREATE TABLE k1.z (k int PRIMARY KEY) WITH {compaction}",
        f"CREATE TABLE k1.y (k int PRIMARY KEY) WITH {compaction} AND default_time_to_live = 7",
        f"ALTER TABLE k1.t WITH {compaction}",
        "ALTER TABLE k1.t WITH compression = {'enabled': 'false'}",
        "ALTER TABLE k1.t ADD x int",
        "ALTER TABLE k1.none ADD x int",
        "ALTER TABLE k1.t ADD x vector<float, 2>",
        "ALTER TABLE k1.t DROP w",
        "ALTER TABLE k1.t RENAME c TO d",
        "ALTER TABLE k1.t WITH comment = 'a'",
        "DROP TABLE k1.t",
        "DROP TABLE k1.none",
        "DROP TABLE IF EXISTS k1.none",
        "TRUNCATE k1.t",
        "TRUNCATE k1.none",
        "DROP KEYSPACE k1",
        "DROP KEYSPACE IF EXISTS none",
        "CREATE INDEX ON k1.t (v)",
        "INSERT INTO k1.t (k, c, v, w) VALUES (1, 1, 1, 1)",
        "INSERT INTO k1.t (k, c, v) VALUES (1, 1, 1) USING TIMESTAMP 7",
        "INSERT INTO k1.t (k, c, v) VALUES (1, 1, 1) USING TTL 7",
        "UPDATE k1.t USING TIMESTAMP 7 SET v = 1 WHERE k = 1 AND c = 1",
        "DELETE FROM k1.t USING TIMESTAMP 7 WHERE k = 1",
        ["INSERT INTO k1.t (k, c, v) VALUES (1, 1, 1)", "INSERT INTO k1.t (k, c, v) VALUES (1, 1, 1) USING TIMESTAMP 7"],
        "BEGIN BATCH USING TIMESTAMP 7 INSERT INTO k1.t (k, c, v) VALUES (1, 1, 1); APPLY BATCH",
        "UPDATE k1.t SET l = l + [1] WHERE k = 1 AND c = 1",
        "UPDATE k1.t SET l[0] = 1 WHERE k = 1 AND c = 1",
        "UPDATE k1.t SET l = l - [1] WHERE k = 1 AND c = 1",
        "DELETE l[0] FROM k1.t WHERE k = 1 AND c = 1",
        "UPDATE k1.t SET l[0] = 1 WHERE k = 1 AND c = 1 IF v = 7",
        "UPDATE k1.t SET l[0] = 1 WHERE k = 1 AND c = 1 IF v = 1",
        ["UPDATE k1.t SET v = 2 WHERE k = 1 AND c = 1", "UPDATE k1.t SET l[0] = 1 WHERE k = 1 AND c = 1"],
        "SELECT k, count(*) FROM k1.t GROUP BY k",
        "SELECT k, count(*) FROM k1.t GROUP BY v",
        "SELECT * FROM k1.t WHERE w = 1",
        "SELECT * FROM k1.t WHERE w = 1 ALLOW FILTERING",
        "SELECT * FROM k1.t WHERE k = 1 AND w = 1 ALLOW FILTERING",
        "SELECT * FROM k1.t WHERE k = 1 ALLOW FILTERING",
        "SELECT * FROM system.local WHERE cluster_name = 'x' ALLOW FILTERING",
        "SELECT * FROM system_views.settings WHERE value = 'x' ALLOW FILTERING",
        "SELECT * FROM k1.t WHERE v = 1",
        "SELECT * FROM k1.t WHERE k = 1 AND v = 1",
        "SELECT * FROM k1.t WHERE token(k) > 1 AND v = 1",
        "SELECT * FROM k1.t WHERE k IN (1, 2) AND v = 1",
        "USE k1",
    )
    for level in (ONE, QUORUM, ALL, LOCAL_QUORUM, SERIAL, LOCAL_SERIAL, LOCAL_ONE):
        yield Step("SELECT * FROM k1.t WHERE k = 1", consistency=level)
        yield Step("SELECT * FROM k1.t WHERE none = 1", consistency=level)
        for serial in (None, SERIAL, LOCAL_SERIAL):
            yield Step("INSERT INTO k1.t (k, c) VALUES (1, 1)", consistency=level, serial=serial)
            yield Step("INSERT INTO k1.t (k, c) VALUES (1, 1) IF NOT EXISTS", consistency=level, serial=serial)
            yield Step(["INSERT INTO k1.t (k, c) VALUES (1, 1)"], consistency=level, serial=serial)


FEATURES = [
    "user_timestamps_enabled: false", "group_by_enabled: false", "alter_table_enabled: false", "drop_truncate_table_enabled: false",
    "drop_keyspace_enabled: false", "uncompressed_tables_enabled: false", "compact_tables_enabled: false", "zero_ttl_on_twcs_enabled: false",
    "read_before_write_list_operations_enabled: false", "allow_filtering_enabled: false", "simplestrategy_enabled: false", "vector_type_enabled: false",
    "non_partition_restricted_index_query_enabled: false", "read_consistency_levels_warned: [LOCAL_QUORUM, ALL]",
    "read_consistency_levels_disallowed: [QUORUM, SERIAL, ALL]", "write_consistency_levels_warned: [LOCAL_QUORUM, ONE, LOCAL_SERIAL]",
    "write_consistency_levels_disallowed: [QUORUM, ALL]",
]


def words():
    # Where an option is ignored that is not the last of several, Cassandra fails with a ConcurrentModificationException.
    compaction = "compaction = {'class': 'TimeWindowCompactionStrategy'}"
    yield from steps(
        f"CREATE KEYSPACE k1 {KEYSPACE}",
        "CREATE KEYSPACE k3 WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
        "CREATE TABLE k1.t (k int PRIMARY KEY, v int, w int) WITH comment = 'c'",
        "CREATE TABLE k1.u (k int PRIMARY KEY) WITH gc_grace_seconds = 7 AND comment = 'c'",
        "CREATE TABLE k1.v (k int PRIMARY KEY) WITH crc_check_chance = 0.5",
        "CREATE TABLE IF NOT EXISTS k1.t (k int PRIMARY KEY) WITH memtable_flush_period_in_ms = 7",
        f"CREATE TABLE k1.x (k int PRIMARY KEY) WITH {compaction}",
        f"CREATE TABLE k1.y (k int PRIMARY KEY) WITH {compaction} AND default_time_to_live = 7",
        f"ALTER TABLE k1.t WITH {compaction}",
        "ALTER TABLE k1.t WITH cdc = false",
        "ALTER TABLE k1.t WITH comment = 'd'",
        "ALTER TABLE k1.t WITH speculative_retry = '1ms'",
        "ALTER TABLE k1.t WITH nonsense = 1",
        "CREATE MATERIALIZED VIEW k1.m AS SELECT * FROM k1.t WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k) WITH comment = 'c'",
        "ALTER MATERIALIZED VIEW k1.m WITH cdc = false",
        "ALTER MATERIALIZED VIEW k1.m WITH comment = 'c'",
        "CREATE INDEX ON k1.t (v)",
        "CREATE INDEX ON k1.none (v)",
        "CREATE TABLE k3.t (k int, c int, s int static, v int, w int, PRIMARY KEY (k, c))",
    )
    for level in (ONE, LOCAL_ONE, QUORUM, LOCAL_QUORUM):
        for where in ("v = 1 AND w = 1", "v = 1", "v > 1 AND v < 7", "v > 1 AND w < 7", "k = 1 AND v = 1 AND w = 1", "s = 1 AND c = 1", "c = 1 AND v = 1"):
            yield Step(f"SELECT * FROM k3.t WHERE {where} ALLOW FILTERING", consistency=level)
            yield Step(f"SELECT * FROM k1.t WHERE {where} ALLOW FILTERING", consistency=level)
    yield from sizes()


def sizes():
    """Reads around the thresholds of their size."""
    yield Step("CREATE TABLE k1.sized (k int, c int, v text, PRIMARY KEY (k, c))")
    yield from steps(*[
        f"INSERT INTO k1.sized (k, c, v) VALUES ({k}, {c}, {text_of(size)})" for k, size in enumerate((8, 500, 1500)) for c in range(4)
    ])
    for where in ("", " WHERE k = 0", " WHERE k = 1", " WHERE k = 2", " WHERE k IN (0, 1)", " WHERE k IN (2, 1, 0)", " WHERE k = 2 LIMIT 1",
                  " WHERE k = 2 LIMIT 3", " WHERE k = 1 LIMIT 2", " WHERE token(k) > -4000000000000000000", " WHERE token(k) <= 5",
                  " WHERE token(k) >= -4000000000000000000 AND token(k) < 0"):
        yield Step(f"SELECT * FROM k1.sized{where}")
        yield Step(f"SELECT * FROM k1.sized{where}", consistency=QUORUM, page_size=5)
        yield Step(f"SELECT v, v AS w FROM k1.sized{where}")
    yield from steps(
        "SELECT k FROM k1.sized", "SELECT count(*) FROM k1.sized", "SELECT max(v) FROM k1.sized", "SELECT JSON v FROM k1.sized WHERE k = 1 LIMIT 2",
        "SELECT v FROM k1.sized WHERE k = 1 GROUP BY c", "SELECT v FROM k1.sized WHERE k = 2 GROUP BY c", "SELECT k, max(v) FROM k1.sized GROUP BY k",
    )


WORDS = [
    "read_thresholds_enabled: true", "coordinator_read_size_warn_threshold: 1KiB", "coordinator_read_size_fail_threshold: 4KiB",
    "table_properties_warned: [gc_grace_seconds, comment, caching]", "table_properties_ignored: [CDC, comment, bloom_filter_fp_chance]",
    "table_properties_disallowed: [crc_check_chance, speculative_retry, memtable_flush_period_in_ms]", "secondary_indexes_enabled: false",
    "intersect_filtering_query_warned: true", "zero_ttl_on_twcs_warned: true",
]


def served(request, folder, settings):
    folder.mkdir()
    config = folder / "cassandra.yaml"
    config.write_text(f"storage_compatibility_mode: NONE\nmaterialized_views_enabled: true\n{TIMEOUTS}" + "\n".join(settings) + "\n", encoding="utf-8")
    return Server(request.config.getoption("--halcyon"), folder, "--config", config).start()


def logged_in(port):
    """A client of an ordinary role, which the superuser makes."""

    found = []

    def superuser():
        try:
            found.append(Asking(port, "cassandra"))
        except (Refused, EOFError, OSError):
            return False
        return True

    # A refusal is cached for two seconds, and each question makes that longer.
    until(superuser, "the superuser is not made", pause=4)
    client = found[0]
    client.query(f"CREATE ROLE IF NOT EXISTS {ROLE} WITH LOGIN = true AND PASSWORD = '{ROLE}'")
    client.close()
    return Asking(port, ROLE)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "settings, asked", [(THRESHOLDS, thresholds), (FEATURES, features), (WORDS, words)], ids=["thresholds", "features", "words"]
)
def test_guardrails_are_cassandras(request, cassandra_options, tmp_path, settings, asked):
    """Each statement is answered as Cassandra answers an ordinary role: with the same code and text, and the same warnings."""
    logins = ["authenticator: PasswordAuthenticator", "role_manager: CassandraRoleManager"]
    facts = opened.start(cassandra_options, tmp_path / "node", "oa", *settings, *logins)
    server = served(request, tmp_path / "served", settings)
    try:
        clients = [logged_in(facts["native_port"]), Asking(server.port)]
        different, count = [], 0
        for step in asked():
            expected, found = (step.ask(client) for client in clients)
            count += len(expected)
            if expected != found:
                different.append(f"{step.text} {step.options}\n  C {expected}\n  H {found}")
        for client in clients:
            client.close()
        assert not different, f"{len(different)} of {count} differ\n" + "\n".join(different[:40])
    finally:
        server.close()
        opened.stop(cassandra_options, tmp_path / "node")


WRONG = [
    ["tables_warn_threshold: 5", "tables_fail_threshold: 4"],
    ["page_size_warn_threshold: 0"],
    ["keyspaces_fail_threshold: -5"],
    ["collection_size_warn_threshold: 2KiB", "collection_size_fail_threshold: 1KiB"],
    ["column_value_size_fail_threshold: 0B"],
    ["minimum_replication_factor_warn_threshold: 1", "minimum_replication_factor_fail_threshold: 2", "default_keyspace_rf: 3"],
    ["minimum_replication_factor_fail_threshold: 2"],
    ["maximum_replication_factor_fail_threshold: 2", "default_keyspace_rf: 3"],
    ["maximum_timestamp_warn_threshold: 2s", "maximum_timestamp_fail_threshold: 1s"],
    ["minimum_timestamp_warn_threshold: 2s", "minimum_timestamp_fail_threshold: 1s"],
    ["table_properties_warned: [comment, nonsense]"],
    ["items_per_collection_warn_threshold: 3", "items_per_collection_fail_threshold: 2"],
    ["vector_dimensions_warn_threshold: 0"],
]


def refusal_of_cassandra(options, folder, settings):
    """What the start of a node with these settings says. It ends before the node has a port."""
    folder.mkdir()
    release = options.oracle / opened.RELEASE
    stock = (release / "tool-conf/cassandra.yaml").read_text(encoding="utf-8")
    config = folder / "cassandra.yaml"
    config.write_text(stock.replace(str(release / "tool-data"), str(folder / "data")) + "\n".join(settings) + "\n", encoding="utf-8")
    properties = [f"-Dcassandra.config=file://{config}", f"-Dcassandra.storagedir={folder / 'data'}", "-Dcassandra-foreground=yes"]
    command = [release / "java", *properties, "org.apache.cassandra.service.CassandraDaemon"]
    said = subprocess.run(command, timeout=PATIENCE_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
    return re.search(r"encountered during startup: (.*)", said).group(1)


@pytest.mark.parametrize("settings", WRONG, ids=lambda settings: settings[0].split(":")[0])
def test_wrong_settings_are_refused_in_cassandras_words(request, cassandra_options, tmp_path, settings):
    """Values that contradict each other, and values of no meaning, end the start with Cassandra's text."""
    text = refusal_of_cassandra(cassandra_options, tmp_path / "tool", settings)
    config = tmp_path / "cassandra.yaml"
    config.write_text("\n".join(settings) + "\n", encoding="utf-8")
    command = [request.config.getoption("--halcyon"), "serve", "--data-dir", tmp_path / "data", "--config", config]
    done = subprocess.run(command, timeout=PATIENCE_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode != 0 and text in done.stdout, f"C {text}\nH {done.stdout}"


WRITTEN = [
    "partition_size_warn_threshold: 200B", "partition_size_fail_threshold: 1KiB", "partition_tombstones_warn_threshold: 3",
    "partition_tombstones_fail_threshold: 6", "collection_size_warn_threshold: 100B", "collection_size_fail_threshold: 1KiB",
    "items_per_collection_warn_threshold: 3", "items_per_collection_fail_threshold: 5",
]


def written():
    """Statements, in groups that are flushed."""
    first = [
        f"CREATE KEYSPACE large {KEYSPACE}",
        "CREATE TABLE large.sizes (k int, l text, c int, v text, PRIMARY KEY ((k, l), c))",
        "CREATE TABLE large.tombstones (k int PRIMARY KEY, a int, b int, c int, d int, e int, f int, g int)",
        "CREATE TABLE large.collections (k int, c text, s set<text> static, m map<text, text>, f frozen<list<int>>, PRIMARY KEY (k, c))",
    ]
    for key, count in ((1, 1), (2, 3), (3, 12)):
        first += [f"INSERT INTO large.sizes (k, l, c, v) VALUES ({key}, 'it''s', {row}, '{'v' * 90}') USING TIMESTAMP 7" for row in range(count)]
    columns = "abcdefg"
    for count in range(1, 8):
        first.append(f"DELETE {', '.join(columns[:count])} FROM large.tombstones WHERE k = {count}")
    for count in range(2, 6):
        items = ", ".join(f"'{i}'" for i in range(count))
        entries = ", ".join(f"'{i}': 'v'" for i in range(count))
        first.append(f"UPDATE large.collections USING TIMESTAMP 7 SET m = m + {{{entries}}} WHERE k = 1 AND c = 'a{count}'")
        first.append(f"UPDATE large.collections USING TIMESTAMP 7 SET s = s + {{{items}}} WHERE k = {count}")
    second = ["UPDATE large.collections USING TIMESTAMP 7 SET m = m + {'x': 'v', 'y': 'v'} WHERE k = 1 AND c = 'a5'",
              "UPDATE large.collections USING TIMESTAMP 7 SET s = s + {'x', 'y', 'z'} WHERE k = 5"]
    return first, second


def logged(path):
    """What guardrails say of the tables, without the names of files and times. How often SSTables are compacted is not compared."""
    lines = re.findall(r"(ERROR|WARN) .*? - (Guardrail .*)", path.read_text(encoding="utf-8", errors="replace"))
    return sorted({(level, re.sub(r"on sstable \S+", "on sstable FILE", text)) for level, text in lines if "large." in text})


@pytest.mark.timeout(600)
def test_large_partitions_are_logged_as_in_cassandra(request, cassandra_options, tmp_path):
    """Partitions, tombstones and collections beyond thresholds are logged when they are flushed and when they are compacted, with Cassandra's
    level and text; nothing is refused. Clients are superusers, whose statements no guardrail holds for in Cassandra."""
    facts = opened.start(cassandra_options, tmp_path / "node", "oa", *WRITTEN)
    server = served(request, tmp_path / "served", WRITTEN)
    try:
        clients = [Asking(facts["native_port"]), Asking(server.port)]
        for group in written():
            for text in group:
                for client in clients:
                    said(client, lambda client=client, text=text: client.query(text))
            opened.nodetool(cassandra_options, facts, "flush", "large")
            clients[1].query(flush_statement("large"))
        opened.nodetool(cassandra_options, facts, "compact", "large")
        for table in ("sizes", "tombstones", "collections"):
            clients[1].query(f"INSERT INTO halcyon_views.major_compactions (keyspace_name, table_name, argument) VALUES ('large', '{table}', '')")
        expected = logged(Path(facts["log"]))
        assert len(expected) > 15, expected
        until(lambda: logged(server.folder / "server.log") == expected, lambda: difference(expected, logged(server.folder / "server.log")))
        for client in clients:
            client.close()
    finally:
        server.close()
        opened.stop(cassandra_options, tmp_path / "node")


def difference(expected, found):
    lacks = "\n".join(str(line) for line in expected if line not in found)
    more = "\n".join(str(line) for line in found if line not in expected)
    return f"{len(expected)} and {len(found)} lines\nlacks\n{lacks}\nhas\n{more}"


CALLS = [
    "getguardrailsconfig",
    "getguardrailsconfig --expand",
    "getguardrailsconfig -c flags",
    "getguardrailsconfig tables_threshold",
    "getguardrailsconfig tables_warn_threshold",
    "getguardrailsconfig nonsense",
    "getguardrailsconfig -c flags tables_threshold",
    "setguardrailsconfig",
    "setguardrailsconfig nonsense 1",
    "setguardrailsconfig tables_threshold 200 100",
    "setguardrailsconfig tables_threshold 200",
    "setguardrailsconfig tables_threshold 100 200",
    "setguardrailsconfig tables_threshold 0 -1",
    "setguardrailsconfig tables_threshold x 1",
    "setguardrailsconfig column_value_size_threshold 20MiB 10MiB",
    "setguardrailsconfig collection_size_threshold null 10MiB",
    "setguardrailsconfig group_by_enabled false",
    "setguardrailsconfig group_by_enabled no",
    "setguardrailsconfig zero_ttl_on_twcs_warned false",
    "setguardrailsconfig table_properties_warned comment,cdc",
    "setguardrailsconfig read_consistency_levels_disallowed ANY ONE",
    "setguardrailsconfig table_properties_disallowed nonsense",
    "setguardrailsconfig minimum_replication_factor_threshold 2 3",
    "getguardrailsconfig",
    "setguardrailsconfig table_properties_warned null",
    "setguardrailsconfig tables_threshold -1 -1",
    "setguardrailsconfig read_consistency_levels_disallowed []",
    "setguardrailsconfig column_value_size_threshold null null",
    "getguardrailsconfig",
]


def told(command):
    done = subprocess.run(command, timeout=PATIENCE_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, [line.rstrip() for line in done.stdout.splitlines()], done.stderr.splitlines()[:1]


@pytest.mark.timeout(600)
def test_nodetool_shows_and_changes_guardrails(request, cassandra_options, tmp_path):
    """`getguardrailsconfig` and `setguardrailsconfig` print and refuse as Cassandra's do; a change holds for the next request."""
    facts = opened.start(cassandra_options, tmp_path / "node", "oa")
    server = served(request, tmp_path / "served", [])
    try:
        different = []
        for line in CALLS:
            cassandra = [cassandra_options.oracle / opened.RELEASE / "java", "org.apache.cassandra.tools.NodeTool", "-p", str(facts["jmx_port"])]
            halcyon = [request.config.getoption("--halcyon"), "nodetool", "-p", str(server.port)]
            expected, found = (told([*command, *line.split()]) for command in (cassandra, halcyon))
            if expected != found:
                different.append(f"{line}\n  C {expected}\n  H {found}")
        client = Asking(server.port)
        refused = said(client, lambda: client.query("SELECT count(*) FROM system.local GROUP BY key"))
        client.close()
        assert "2200 Guardrail group_by violated" in refused[0]
        assert not different, "\n".join(different)
    finally:
        server.close()
        opened.stop(cassandra_options, tmp_path / "node")


def test_large_reads_and_full_disks_are_refused(request, tmp_path):
    """Proves the words about local reads and SSTables of indexes, which count differently in Cassandra, and that a full disk refuses writes until there is room."""
    settings = [
        "read_thresholds_enabled: true", "local_read_size_warn_threshold: 2KiB", "local_read_size_fail_threshold: 4KiB",
        "sai_sstable_indexes_per_query_warn_threshold: 1", "sai_sstable_indexes_per_query_fail_threshold: 2", "disk_usage_monitor_interval: 20ms", "shards: 1",
    ]
    server = served(request, tmp_path / "served", settings)
    try:
        client = Asking(server.port)
        query = client.query
        for statement in (
            f"CREATE KEYSPACE ks {KEYSPACE}", "CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))", "CREATE INDEX i ON ks.t (v) USING 'sai'",
            *[f"INSERT INTO ks.t (k, c, v) VALUES ({k}, {c}, {text_of(600 * k)})" for k in range(3) for c in range(4)],
        ):
            query(statement)
        loaded = "1 nodes loaded over N bytes and {} SELECT * FROM ks.t WHERE k = {} ALLOW FILTERING (see local_read_size_{}_threshold)"
        warned, aborted = loaded.format("issued local read size warnings for query", 1, "warn"), loaded.format("aborted the query", 2, "fail")

        def asked(statement):
            answer, warnings = said(client, lambda: query(statement))
            return [re.sub(r"token=-?TIME", "token=T", re.sub(r"over \d+", "over N", text)) for text in (answer, *warnings)]

        assert asked("SELECT v FROM ks.t WHERE k = 0") == ["4 rows"]
        assert asked("SELECT * FROM ks.t WHERE k = 1") == ["4 rows", f"{warned} with token=T"]
        failure = f"1300 Operation failed - {aborted}: READ_SIZE from /127.0.0.1"
        assert asked("SELECT * FROM ks.t WHERE k = 2") == [failure, f"{aborted} with token=T"]
        assert asked("SELECT * FROM ks.t WHERE k IN (1, 2)") == [failure, f"{warned} with token=T", f"{aborted} with token=T"]
        found = []
        for flushed in range(4):
            found.append(asked("SELECT k FROM ks.t WHERE v = 'x'"))
            query(f"INSERT INTO ks.t (k, c, v) VALUES (9, {flushed}, 'x')")
            query(flush_statement("ks", "t"))
        searched = "query SELECT * FROM ks.t WHERE v = 'x' ALLOW FILTERING (see sai_sstable_indexes_per_query_{}_threshold)"
        ring = " with token range: (-TIME, -TIME]"
        warned = "1 nodes referenced more than allowed number of indexes without restrictions on partition key, maximum on a node being 2 indexes, and issued warnings for " + searched.format("warn")
        aborted = "1 nodes referenced 3 SSTable indexes for a query without restrictions on partition key and aborted the " + searched.format("fail")
        failure = f"1300 Operation failed - {aborted}: READ_TOO_MANY_INDEXES from /127.0.0.1"
        assert found == [["0 rows"], ["1 rows"], ["2 rows", warned + ring], [failure, aborted + ring]]

        def configured(*words):
            done = subprocess.run(
                [request.config.getoption("--halcyon"), "nodetool", "-p", str(server.port), "setguardrailsconfig", *words],
                timeout=PATIENCE_SECONDS, capture_output=True, text=True, check=False,
            )
            assert done.returncode == 0, done

        def write():
            return said(client, lambda: query("INSERT INTO ks.t (k, c, v) VALUES (7, 7, 'y')"))

        guardrail = "Guardrail replica_disk_usage violated: "
        full = (f"2200 {guardrail}Write request failed because disk usage exceeds failure threshold",) + (
            [f"{guardrail}Write request failed because disk usage exceeds failure threshold"],)
        configured("data_disk_usage_max_disk_size", "1KiB")
        configured("data_disk_usage_percentage_threshold", "90", "50")
        until(lambda: write() == full, "a full disk does not refuse writes")
        # Settings can still be changed.
        configured("data_disk_usage_percentage_threshold", "null", "50")
        until(lambda: write() == ("ok", [f"{guardrail}Replica disk usage exceeds warning threshold"]), "a disk that fills is not warned of")
        configured("data_disk_usage_max_disk_size", "null")
        until(lambda: write() == ("ok", []), "an empty disk is not noticed")
    finally:
        server.close()


@pytest.mark.timeout(300)
def test_row_indexes_are_measured_as_in_cassandra(request, cassandra_options, tmp_path):
    """Proves that a read of a partition with a large row index is warned of or given up with Cassandra's words and numbers."""
    settings = [
        "read_thresholds_enabled: true", "row_index_read_size_warn_threshold: 1KiB", "row_index_read_size_fail_threshold: 4KiB",
        "column_index_size: 1KiB", "key_cache_size: 0MiB",
    ]
    facts = opened.start(cassandra_options, tmp_path / "node", "oa", *settings)
    server = served(request, tmp_path / "served", settings)
    found = []
    try:
        for port in (facts["native_port"], server.port):
            client = Asking(port)
            query = client.query
            query(f"CREATE KEYSPACE ks {KEYSPACE}")
            query("CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))")
            for k, rows in enumerate([1, 20, 100]):
                for c in range(rows):
                    query(f"INSERT INTO ks.t (k, c, v) VALUES ({k}, {c}, {text_of(600)})")
            if port == server.port:
                query(flush_statement("ks", "t"))
            else:
                opened.nodetool(cassandra_options, facts, "flush", "ks")
            answers = []
            for where in ["k = 0", "k = 1", "k = 1 AND c = 7", "k = 2 AND c > 90", "k = 1 AND c = 7 ORDER BY c DESC"]:
                answer, warnings = said(client, lambda where=where: query(f"SELECT c FROM ks.t WHERE {where}"))
                # Cassandra's command has the clusterings, too.
                answers.append([re.sub(r"(WHERE k = \d) .*?ALLOW", r"\1 ALLOW", text) for text in (answer, *warnings)])
            found.append(answers)
            client.close()
    finally:
        server.close()
        opened.stop(cassandra_options, tmp_path / "node")
    assert found[0] == found[1]
