"""What goes wrong beside and inside of a Cassandra that hands its compactions over, costs no data and no node."""

import os
import random
import signal
from pathlib import Path

import pytest

import plugin
from oracle import opened
from oracle.desks import DeskError
from plugin import COMPACTIONS, KEYSPACE, Running, Shim, Slow, until

# The strictest policy: a damaged file that its reader finds takes the node offline.
POLICY = "disk_failure_policy: stop_paranoid"


class Killed(Exception):
    pass


def create(node, *tables):
    node.create_keyspace()
    for table in tables:
        node.execute(f"CREATE TABLE {table} (k int PRIMARY KEY, v blob) WITH compaction = {plugin.STRATEGIES['stcs']}")
        node.jmx.disable_autocompaction(KEYSPACE, table)


def write(node, table, sstables=2, partitions=30):
    """What cannot be compressed: 100 KB a partition."""
    chance = random.Random(table)
    insert = node.session.prepare(f"INSERT INTO {table} (k, v) VALUES (?, ?)")
    for first in range(sstables):
        for k in range(first, first + partitions):
            node.execute(insert, (k, chance.randbytes(100_000)))
        node.jmx.flush(KEYSPACE, table)


def rows(session, table):
    return sorted((row.k, hash(row.v)) for row in session.execute(f"SELECT k, v FROM {KEYSPACE}.{table}"))


def figures(node):
    return {name: int(node.get(name)) for name in ("Completed", "Stopped", "Failed")}


def test_faults(cassandra_options, tmp_path):
    shim = Shim(cassandra_options, tmp_path / "shim")
    tables = ["statistics", "data", "garbage", "killed", "stopped", "deaf", "missing"]
    with plugin.cassandra(cassandra_options, tmp_path / "node", "stock", POLICY, binary=shim.path, failures=1000) as node:
        create(node, *tables)
        for table in tables:
            write(node, table)
        before = {table: rows(node.session, table) for table in tables}
        damaged_outputs_are_not_taken(node, shim)
        a_killed_service_is_started_again(node, cassandra_options)
        an_operator_stops_it(node, cassandra_options)
        a_deaf_service_is_killed(node, shim, cassandra_options)
        without_the_program_nothing_changes(node, shim)
        for table in tables:
            assert len(node.live(table)) == 1, table
            assert rows(node.session, table) == before[table], table
            node.jmx.verify(KEYSPACE, table)
        # The native protocol is still served, and nobody has stopped gossip.
        assert node.jmx.get("org.apache.cassandra.db:type=StorageService", "OperationMode") == "NORMAL"
        assert "Stopping" not in node.said() and "Exiting forcefully" not in node.said()


def damaged_outputs_are_not_taken(node, shim):
    for what in ("statistics", "data", "garbage"):
        failed = figures(node)["Failed"]
        with shim.does(what):
            node.jmx.compact(KEYSPACE, what)
        assert figures(node)["Failed"] == failed + 1, (what, node.get("Failures"))
    # A pause follows a service that had to be killed.
    assert figures(node)["Completed"] == 0


def a_killed_service_is_started_again(node, options):
    until_it_starts(node)
    before = figures(node)
    slow = Slow(node, options, "killed")
    os.kill(node.service(), signal.SIGKILL)
    slow.hurry()
    slow.end()
    assert slow.failed is None
    assert figures(node)["Failed"] == before["Failed"] + 1


def until_it_starts(node):
    """A compaction of a table of its own, as often as it takes until it is handed over."""
    node.execute("CREATE TABLE IF NOT EXISTS small (k int PRIMARY KEY)")

    def is_handed_over():
        completed = figures(node)["Completed"]
        node.execute("INSERT INTO small (k) VALUES (1)")
        node.jmx.flush(KEYSPACE, "small")
        node.jmx.compact(KEYSPACE, "small")
        return figures(node)["Completed"] > completed

    until(is_handed_over, "the service does not start")


def an_operator_stops_it(node, options):
    until_it_starts(node)
    before = figures(node)
    slow = Slow(node, options, "stopped")
    assert len(node.data_files("stopped")) == 3
    node.jmx.call(COMPACTIONS, "stopCompaction", "MAJOR_COMPACTION")
    slow.end()
    assert isinstance(slow.failed, DeskError) and "Compaction interrupted" in str(slow.failed)
    assert figures(node) == {**before, "Stopped": before["Stopped"] + 1}
    assert len(node.live("stopped")) == 2
    slow.hurry()
    node.jmx.compact(KEYSPACE, "stopped")
    assert figures(node)["Completed"] == before["Completed"] + 1


def a_deaf_service_is_killed(node, shim, options):
    """It lives, and does not even stop when it is told to: so it is killed, and the next starts another."""
    until_it_starts(node)
    service = node.service()
    with shim.does("deaf"):
        compaction = Running(node, options, "deaf")
        node.jmx.call(COMPACTIONS, "stopCompaction", "MAJOR_COMPACTION")
        compaction.end()
        assert isinstance(compaction.failed, DeskError) and "Compaction interrupted" in str(compaction.failed)
    assert not is_alive(service) and len(node.live("deaf")) == 2
    until_it_starts(node)
    node.jmx.compact(KEYSPACE, "deaf")


def without_the_program_nothing_changes(node, shim):
    elsewhere = shim.path.rename(shim.path.with_name("elsewhere"))
    before = figures(node)
    node.jmx.compact(KEYSPACE, "missing")
    assert figures(node) == before and "is not an executable file" in node.get("Reasons")
    elsewhere.rename(shim.path)


def test_a_killed_node_starts_without_the_jar(cassandra_options, tmp_path):
    """A node that dies half-way in a compaction takes the service with it; a Cassandra without the jar cleans up and serves the data."""
    folder = tmp_path / "node"
    with pytest.raises(Killed), plugin.cassandra(cassandra_options, folder, "da", POLICY) as node:
        create(node, "t")
        write(node, "t")
        before = rows(node.session, "t")
        slow = Slow(node, cassandra_options, "t")
        until(lambda: len(node.data_files("t")) == 3, "no output is begun")
        service = node.service()
        files = node.folder("t")
        os.kill(node.pid, signal.SIGKILL)
        slow.end()
        until(lambda: not is_alive(service), "the service outlives the node")
        interrupted = max(files.glob("*-Data.db"), key=lambda file: file.stat().st_mtime_ns)
        raise Killed
    with opened.cassandra(cassandra_options, folder, "da", POLICY) as (session, _):
        assert rows(session, "t") == before
        assert not interrupted.exists()


def is_alive(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
