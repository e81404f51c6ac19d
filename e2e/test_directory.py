"""One data directory handed over: Cassandra 5.0.9 writes it and drains, Halcyon serves and changes it and drains, Cassandra opens it again."""

import json
import re
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random

import pytest
from cassandra import InvalidRequest, ReadFailure

from oracle import opened
from patience import PATIENCE_SECONDS, until
from server import Server

SCHEMA = (
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TYPE ks.address (street text, number int)",
    "CREATE TABLE ks.wide (k int, c int, s text static, v text, m map<text, int>, a frozen<address>, l list<int>, "
    "PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)",
    "CREATE TABLE ks.counted (k int PRIMARY KEY, n counter)",
    "CREATE TABLE ks.gone (k int PRIMARY KEY, v int)",
    "CREATE TABLE ks.altered (k int PRIMARY KEY, v int, w text)",
    "CREATE TABLE ks.sparse (k int PRIMARY KEY, a int, b text) WITH COMPACT STORAGE",
    "CREATE TABLE ks.dense (k int, c int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE",
    "CREATE TABLE ks.viewed (k int, c int, v int, w int, PRIMARY KEY (k, c))",
    "CREATE MATERIALIZED VIEW ks.by_v AS SELECT * FROM ks.viewed "
    "WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c)",
    "CREATE MATERIALIZED VIEW ks.by_c AS SELECT * FROM ks.viewed WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k)",
)
OF_VIEWS = (
    "INSERT INTO ks.viewed (k, c, v, w) VALUES (1, 1, 1, 1)",
    "INSERT INTO ks.viewed (k, c, v, w) VALUES (2, 1, 1, 2)",
    # A row that is there by its cells alone.
    "UPDATE ks.viewed SET v = 3, w = 3 WHERE k = 3 AND c = 3",
    # Leaves what it was under, cells and all, behind.
    "UPDATE ks.viewed SET v = 7 WHERE k = 1 AND c = 1",
    "DELETE FROM ks.viewed WHERE k = 2",
)
QUESTIONS = (
    "SELECT JSON * FROM ks.wide",
    "SELECT JSON k, c, writetime(v), ttl(v) FROM ks.wide WHERE k IN (0, 1, 2, 5) AND c > 0",
    "SELECT JSON * FROM ks.wide WHERE k = 4 ORDER BY c ASC",
    "SELECT JSON * FROM ks.counted",
    "SELECT JSON * FROM ks.altered",
    "SELECT JSON * FROM ks.sparse",
    "SELECT JSON * FROM ks.dense",
    "SELECT JSON * FROM ks.by_v",
    "SELECT JSON * FROM ks.by_c",
    "SELECT JSON table_name, flags, comment FROM system_schema.tables WHERE keyspace_name = 'ks'",
    "SELECT JSON * FROM system_schema.keyspaces",
    "SELECT JSON keyspace_name, table_name, column_name, kind, position, type, clustering_order FROM system_schema.columns "
    "WHERE keyspace_name = 'ks'",
    "SELECT JSON keyspace_name, table_name, id, compaction, compression, caching, comment FROM system_schema.tables WHERE keyspace_name = 'ks'",
    "SELECT JSON * FROM system_schema.types",
    "SELECT JSON * FROM system_schema.dropped_columns",
    "SELECT JSON host_id, tokens, cluster_name FROM system.local",
)


def write(session, first, last):
    """The same kinds of change for each writer."""
    for k in range(first, last):
        for c in range(5):
            session.execute(
                "INSERT INTO ks.wide (k, c, s, v, m, a, l) VALUES (%s, %s, %s, %s, %s, {street: 'st', number: %s}, %s)",
                (k, c, f"s{k}", f"v{c}", {"x": c}, c, [c, k]),
            )
        session.execute("UPDATE ks.counted SET n = n + %s WHERE k = %s", (k, k % 7))
        session.execute("INSERT INTO ks.altered (k, v) VALUES (%s, %s)", (k, k))
        session.execute("INSERT INTO ks.sparse (k, a) VALUES (%s, %s)", (k, k))
        session.execute("INSERT INTO ks.dense (k, c) VALUES (%s, %s)", (k % 3, k))
    session.execute("DELETE a FROM ks.sparse WHERE k = %s", (first,))
    session.execute("DELETE FROM ks.dense WHERE k = 1 AND c = %s", (first + 1,))
    session.execute("DELETE FROM ks.wide WHERE k = %s", (first + 3,))
    session.execute("DELETE FROM ks.wide WHERE k = %s AND c > 1 AND c < 4", (first + 4,))
    session.execute("DELETE v FROM ks.wide WHERE k = %s AND c = 1", (first + 5,))
    session.execute("UPDATE ks.wide USING TTL 100000 SET v = 'expires' WHERE k = %s AND c = 0", (first + 5,))
    session.execute("UPDATE ks.wide SET m['y'] = 1, l = l + [9] WHERE k = %s AND c = 2", (first + 5,))


def write_before_1970(session, form):
    """Deletions at timestamps below zero; in 5.0 only a node that writes nb can read what it stores of them."""
    for k in range(50, 53):
        for c in range(5):
            session.execute("INSERT INTO ks.wide (k, c, v) VALUES (%s, %s, %s) USING TIMESTAMP %s", (k, c, f"v{c}", c - 3))
    session.execute("DELETE FROM ks.wide USING TIMESTAMP -2 WHERE k = 50")
    session.execute("DELETE FROM ks.wide USING TIMESTAMP -1 WHERE k = 51 AND c > 0 AND c < 4")
    session.execute("DELETE FROM ks.wide USING TIMESTAMP -3 WHERE k = 52 AND c = 0")
    with pytest.raises(InvalidRequest, match="2038-01-19T03:14:06") if form == "stock" else nullcontext():
        session.execute("INSERT INTO ks.wide (k, c, v) VALUES (53, 1, 'far') USING TTL 630720000")


def answers(session):
    """Remaining seconds of a TTL differ between askers, that there are some does not."""
    said = {}
    for question in QUESTIONS:
        rows = [json.loads(row[0]) for row in session.execute(question)]
        for row in rows:
            if row.get("ttl(v)") is not None:
                row["ttl(v)"] = True
        said[question] = rows
    return said


def cassandra(options, folder, form):
    return opened.cassandra(
        options, folder, form, "key_cache_size: 2MiB", "key_cache_save_period: 1s", "materialized_views_enabled: true"
    )


@contextmanager
def halcyon(request, folder, facts):
    """Our server on Cassandra's directory, with Cassandra's own configuration; drained at the end."""
    server = Server(request.config.getoption("--halcyon"), folder, "--config", facts["config"])
    server.data = facts["storage_dir"]
    try:
        yield server.start().connect(), server
        assert server.stop() == 0, server.said()
    finally:
        server.close()


def wait_for_saved_key_cache(facts, form):
    saved = Path(facts["storage_dir"]) / "saved_caches" / "KeyCache-g.db"
    # BTI has no key cache.
    if form != "da":
        until(saved.exists, "no saved key cache")


def versions(storage_dir):
    """The SSTable versions that are in the tables' folders."""
    files = Path(storage_dir).glob("data/*/*/*-Data.db")
    return {file.name.split("-")[0] for file in files}


@pytest.mark.rotates
@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", ["stock", "oa", "da"])
def test_a_directory_is_handed_over_and_back(request, cassandra_options, tmp_path, form):
    """With one configuration for both programs, that of a stock Cassandra first: it names no version."""
    options = cassandra_options
    node, ours = tmp_path / "node", tmp_path / "ours"
    ours.mkdir()
    with cassandra(options, node, form) as (session, facts):
        for statement in SCHEMA:
            session.execute(statement)
        write(session, 0, 20)
        for statement in OF_VIEWS:
            session.execute(statement)
        session.execute("DROP TABLE ks.gone")
        session.execute("ALTER TABLE ks.altered DROP w")
        session.execute("ALTER TABLE ks.altered ADD x bigint")
        by_cassandra = answers(session)
        wait_for_saved_key_cache(facts, form)
    with halcyon(request, ours, facts) as (session, server):
        taken_over = answers(session)
        for question in QUESTIONS:
            assert taken_over[question] == by_cassandra[question], question
        write(session, 20, 40)
        session.execute("ALTER TABLE ks.altered ADD y set<int>")
        session.execute("ALTER TABLE ks.dense WITH comment = 'dense'")
        session.execute("INSERT INTO ks.altered (k, y) VALUES (100, {3, 1})")
        session.execute("CREATE TABLE ks.ours (k int PRIMARY KEY, v vector<float, 2>)")
        session.execute("INSERT INTO ks.ours (k, v) VALUES (1, [1.5, 2])")
        write_before_1970(session, form)
        by_halcyon = answers(session)
        ours_row = session.execute("SELECT JSON * FROM ks.ours").one()[0]
        # Its own tables at least are in it.
        assert form == "da" or re.search(r"KeyCache: [1-9][0-9]* saved entries looked up", server.said()), server.said()
    # What is deleted before 1970 can be stored in nb alone.
    assert versions(server.data) == {"nb"} | ({form} - {"stock"})
    with cassandra(options, node, form) as (session, _):
        taken_back = answers(session)
        for question in QUESTIONS:
            assert taken_back[question] == by_halcyon[question], question
        assert session.execute("SELECT JSON * FROM ks.ours").one()[0] == ours_row


VIEWED = [
    "CREATE KEYSPACE mv WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE mv.t (k int, c int, v int, w int, x text, m map<text, int>, PRIMARY KEY (k, c))",
    "CREATE MATERIALIZED VIEW mv.by_v AS SELECT * FROM mv.t WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c)",
    "CREATE MATERIALIZED VIEW mv.by_c AS SELECT k, c, w FROM mv.t WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k)",
    "CREATE MATERIALIZED VIEW mv.small AS SELECT v, k, c, x FROM mv.t WHERE v IS NOT NULL AND k IS NOT NULL AND c > 1 AND c < 5 "
    "PRIMARY KEY ((k, v), c) WITH CLUSTERING ORDER BY (c DESC)",
]


def write_viewed(session, seed):
    """Rows that come, move, lose their cells and go, of those that the other program wrote too."""
    random = Random(seed)
    for _ in range(300):
        k, c, v = random.randrange(6), random.randrange(6), random.choice([None, *range(15)])
        where = f"WHERE k = {k} AND c = {c}"
        at = f"USING TIMESTAMP {1_000_000 * seed + random.randrange(1_000_000)}"
        session.execute(random.choice([
            f"INSERT INTO mv.t (k, c, v, w, x) VALUES ({k}, {c}, {v or 1}, {k}, 'x{c}') {at}",
            f"UPDATE mv.t {at} SET v = {'null' if v is None else v} {where}",
            f"UPDATE mv.t {at} SET w = {c}, m['{k}'] = {c} {where}",
            f"UPDATE mv.t {at} SET v = 5, x = null {where}",
            f"DELETE m FROM mv.t {at} {where}",
            f"DELETE FROM mv.t {at} {where}",
            f"DELETE FROM mv.t {at} WHERE k = {k} AND c > 3",
        ]))


def check_view(session, name, columns, has):
    expected = [row for row in session.execute(f"SELECT {columns} FROM mv.t") if has(row)]
    assert sorted(map(str, session.execute(f"SELECT {columns} FROM mv.{name}"))) == sorted(map(str, expected)), name


def views_are_their_base(session):
    check_view(session, "by_v", "v, k, c, w, x, m, writetime(w), writetime(x)", lambda row: row.v is not None)
    check_view(session, "by_c", "c, k, w, writetime(w)", lambda row: True)
    check_view(session, "small", "k, v, c, x, writetime(x)", lambda row: row.v is not None and 1 < row.c < 5)


@pytest.mark.rotates
@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", ["stock", "da"])
def test_views_are_handed_over_and_back(request, cassandra_options, tmp_path, form):
    """Each program continues with the other's views: moved entries end, whichever program has made them."""
    node, ours = tmp_path / "node", tmp_path / "ours"
    ours.mkdir()
    with cassandra(cassandra_options, node, form) as (session, facts):
        for statement in VIEWED:
            session.execute(statement)
        write_viewed(session, 1)
        views_are_their_base(session)
    for seed in (2, 4):
        with halcyon(request, ours, facts) as (session, _):
            views_are_their_base(session)
            write_viewed(session, seed)
            views_are_their_base(session)
        with cassandra(cassandra_options, node, form) as (session, _):
            views_are_their_base(session)
            write_viewed(session, seed + 1)
            views_are_their_base(session)
            built = session.execute("SELECT view_name FROM system.built_views WHERE keyspace_name = 'mv'")
            assert sorted(row.view_name for row in built) == ["by_c", "by_v", "small"]


OF_INDEXES = [
    "CREATE KEYSPACE ix WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE ix.t (k int, c int, s int static, v int, w text, m map<text, int>, PRIMARY KEY (k, c))",
    "CREATE INDEX own ON ix.t (v)",
    "CREATE INDEX statics ON ix.t (s)",
    "CREATE INDEX of_keys ON ix.t (keys(m))",
    "CREATE INDEX attached ON ix.t (w) USING 'sai'",
]
ASKED_OF_INDEXES = [f"SELECT JSON * FROM ix.t WHERE {what}" for what in (
    "v = 3", "v = 103", "s = 2", "s = 22", "m CONTAINS KEY 'x'", "m CONTAINS KEY 'y'", "w = 'w1'", "w = 'w101'", "v = 3 AND w = 'w3' ALLOW FILTERING",
)]


def write_indexed(session, first, last):
    for k in range(first, last):
        for c in range(20):
            offset = 0 if first == 0 else 100
            session.execute(
                "INSERT INTO ix.t (k, c, s, v, w, m) VALUES (%s, %s, %s, %s, %s, {%s: 1})",
                (k, c, k, c % 5 + offset, f"w{c % 4 + offset}", "x" if c % 2 else "y"),
            )
    session.execute("DELETE FROM ix.t WHERE k = %s", (first + 1,))
    session.execute("DELETE v FROM ix.t WHERE k = %s AND c = 3", (first + 2,))
    session.execute("UPDATE ix.t SET v = 3, w = 'w1' WHERE k = %s AND c = 0", (first + 2,))


OF_A_LATER_INDEX = "SELECT JSON * FROM ix.t WHERE c = 3"


def answered_by_indexes(session, questions=ASKED_OF_INDEXES, cure=lambda: None):
    """When all indexes are there: both programs build those that they do not find. `cure` runs after each refusal."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return {question: sorted(row[0] for row in session.execute(question)) for question in questions}
        except ReadFailure as refused:
            assert time.monotonic() < end, f"the indexes are not built: {refused}"
            cure()
            time.sleep(0.2)


def rebuild_after_race(options, facts):
    """A start of Cassandra that builds a storage-attached index can fail before the table has metrics (docs/internals/cassandra-facts.md)."""

    def cure():
        if '"this.cfstore.metric" is null' in Path(facts["log"]).read_text():
            opened.nodetool(options, facts, "rebuild_index", "ix", "t", "attached")

    return cure


@pytest.mark.rotates
@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", ["stock", "da"])
def test_indexes_are_handed_over_and_back(request, cassandra_options, tmp_path, form):
    """An index answers what its rows say, whichever program wrote them or made it."""
    node, ours = tmp_path / "node", tmp_path / "ours"
    ours.mkdir()
    with cassandra(cassandra_options, node, form) as (session, facts):
        for statement in OF_INDEXES:
            session.execute(statement)
        write_indexed(session, 0, 10)
        by_cassandra = answered_by_indexes(session)
    assert all(by_cassandra[question] for question in ASKED_OF_INDEXES if "103" not in question and "w101" not in question and "22" not in question)
    with halcyon(request, ours, facts) as (session, _):
        assert answered_by_indexes(session) == by_cassandra
        write_indexed(session, 20, 30)
        session.execute("CREATE INDEX later ON ix.t (c)")
        by_halcyon = answered_by_indexes(session)
        assert all(by_halcyon.values())
        later = answered_by_indexes(session, [OF_A_LATER_INDEX])
    with cassandra(cassandra_options, node, form) as (session, facts):
        assert answered_by_indexes(session, cure=rebuild_after_race(cassandra_options, facts)) == by_halcyon
        assert answered_by_indexes(session, [OF_A_LATER_INDEX]) == later
