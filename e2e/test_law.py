"""
The law: what the node accepts can be flushed, survives a kill and a drain, and Cassandra opens and reads it.

    the differential corpus ─► Halcyon ─ kill −9 ─► Halcyon ─ drain ─► Cassandra ─ drain ─► Halcyon ─ kill −9 ─► Halcyon

After each arrow every table is read whole, with timestamps, and every keyspace is described: always the same.
"""

import difflib
import time

import pytest

import accepted
from native import Client, Refused
from oracle import opened
from server import Server

FORMS = {
    "stock": "",
    "oa": "storage_compatibility_mode: NONE\n",
    "da": "storage_compatibility_mode: NONE\nsstable:\n  selected_format: bti\nuuid_sstable_identifiers_enabled: true\n",
}
# Small, so that everything is flushed again and again while it is written. The name and the tokens are those of the oracle.
SETTINGS = (
    "cluster_name: oracle\nnum_tokens: 1\ncommitlog_sync: periodic\ncommitlog_sync_period: 10s\ncommitlog_segment_size: 1MiB\n"
    "memtable_heap_space: 2MiB\nauto_snapshot: false\n"
)
LEAST_ACCEPTED = 5000
PAGE_ROWS = 500


def rows_of(client, text):
    """All pages, the columns first; or the refusal."""
    rows, state = [], None
    try:
        while True:
            columns, page, state = client.query(text, PAGE_ROWS, state)
            rows += page
            if not state:
                return [columns, *rows]
    except Refused as refused:
        return [f"refused: {refused}"]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def texts(client, text):
    return [tuple(value.decode() for value in row) for row in rows_of(client, text)[1:]]


def reading(client, keyspace, table):
    """A SELECT of everything that a table stores, and the places of times to live: they fall while one looks."""
    columns = texts(
        client,
        f"SELECT column_name, kind, type FROM system_schema.columns WHERE keyspace_name = '{keyspace}' AND table_name = '{table}'",
    )
    stamped = [quoted(name) for name, kind, type_ in columns if kind in ("regular", "static") and type_ not in ("counter", "empty")]
    # A star cannot have company.
    names = [quoted(name) for name, _, type_ in columns if type_ != "empty"]
    selected = names + [f"writetime({name})" for name in stamped] + [f"ttl({name})" for name in stamped]
    first = len(names) + len(stamped)
    return f"SELECT {', '.join(selected)} FROM {quoted(keyspace)}.{quoted(table)}", first


def contents(port):
    """What a node says of everything that is not its own."""
    client = Client(port)
    said = {}
    for (keyspace,) in texts(client, "SELECT keyspace_name FROM system_schema.keyspaces"):
        if keyspace.startswith("system"):
            continue
        said[f"DESCRIBE {keyspace}"] = rows_of(client, f"DESCRIBE KEYSPACE {quoted(keyspace)} WITH INTERNALS")
        for (table,) in texts(client, f"SELECT table_name FROM system_schema.tables WHERE keyspace_name = '{keyspace}'"):
            text, first = reading(client, keyspace, table)
            rows = rows_of(client, text)
            said[text] = rows[:1] + [row[:first] + tuple(ttl is not None for ttl in row[first:]) for row in rows[1:]]
    client.close()
    return said


def lines(rows):
    return [line for row in rows for line in str(row).split("\\n")]


def assert_same(before, after, who):
    assert before.keys() == after.keys(), f"{who}: {before.keys() ^ after.keys()}"
    different = [question for question in before if before[question] != after[question]]
    shown = []
    for question in different[:10]:
        shown.append(question)
        shown += [line[:500] for line in difflib.ndiff(lines(before[question]), lines(after[question])) if line[0] in "+-"][:12]
    assert not different, f"{who}: {len(different)} of {len(before)} differ\n" + "\n".join(shown)


@pytest.mark.rotates
@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_accepted_is_kept(cassandra_options, tmp_path, form):
    options = cassandra_options
    node, ours = tmp_path / "node", tmp_path / "ours"
    ours.mkdir()
    config = ours / "cassandra.yaml"
    config.write_text(SETTINGS + FORMS[form], encoding="utf-8")
    server = Server(options.halcyon, ours, "--config", config)
    server.data = node / "data"
    try:
        server.start()
        written = accepted.write_all(server.port)
        assert written > LEAST_ACCEPTED
        time.sleep(accepted.LONGEST_WAIT_SECONDS)
        first = contents(server.port)
        server.kill()
        assert_same(first, contents(server.start().port), "after a kill")
        assert server.stop() == 0, server.said()
        with opened.cassandra(options, node, form) as (_, facts):
            assert_same(first, contents(facts["native_port"]), "Cassandra")
        log = (node / "node.log").read_text(encoding="utf-8", errors="replace")
        assert not [line for line in log.splitlines() if line.startswith("ERROR")], log
        assert_same(first, contents(server.start().port), "after Cassandra")
        server.kill()
        assert_same(first, contents(server.start().port), "after Cassandra and a kill")
        assert server.stop() == 0, server.said()
    finally:
        server.close()
