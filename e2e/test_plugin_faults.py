"""What goes wrong beside and inside of a Cassandra that hands its compactions over, costs no data and no node."""

import os
import signal
from pathlib import Path

import pytest

import plugin
from oracle import opened
from oracle.desks import DeskError, Jmx
from patience import until
from plugin import COMPACTIONS, KEYSPACE, MBEAN, POLICY, Killed, Running, Shim, Slow, create, figures, is_alive, rows, until_it_starts, write


@pytest.mark.timeout(600)
def test_faults(cassandra_options, tmp_path, rotation):
    shim = Shim(cassandra_options, tmp_path / "shim")
    with plugin.cassandra(cassandra_options, tmp_path / "node", "stock", POLICY, binary=shim.path, failures=1000) as node:
        # Each with the tables that it compacts.
        faults = (
            (lambda: damaged_outputs_are_not_taken(node, shim), ["statistics", "data", "garbage"]),
            (lambda: a_killed_service_is_started_again(node, cassandra_options), ["killed"]),
            (lambda: an_operator_stops_it(node, cassandra_options), ["stopped"]),
            (lambda: a_deaf_service_is_killed(node, shim, cassandra_options), ["deaf"]),
            (lambda: without_the_program_nothing_changes(node, shim), ["missing"]),
        )
        faults = rotation(faults)
        tables = [table for _, compacted in faults for table in compacted]
        create(node, *tables)
        for table in tables:
            write(node, table)
        before = {table: rows(node.session, table) for table in tables}
        for fault, _ in faults:
            fault()
        for table in tables:
            assert len(node.live(table)) == 1, table
            assert rows(node.session, table) == before[table], table
            node.jmx.verify(KEYSPACE, table)
        # The native protocol is still served, and gossip runs.
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
    """It lives, and does not stop when asked: so it is killed, and the next starts another."""
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
    assert figures(node) == before and "does not exist" in node.get("Reasons")
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


@pytest.mark.timeout(300)
def test_what_lives_and_does_not_work(cassandra_options, tmp_path):
    """A program of another release, and one that answers pings and has forgotten its task: Cassandra's own task does the work, and says why once."""
    shim = Shim(cassandra_options, tmp_path / "shim")
    tables = ["one", "other", "forgotten"]
    with plugin.cassandra(cassandra_options, tmp_path / "node", "stock", POLICY, binary=shim.path, failures=1000, hung_seconds=5) as node:
        create(node, *tables, "again")
        for table in (*tables, "again"):
            write(node, table)
        before = {table: rows(node.session, table) for table in tables}
        another_release_is_left_alone(node, shim)
        what_does_not_start_says_why(node, shim)
        what_compacts_otherwise_is_left_alone(node, shim)
        a_forgotten_compaction_is_noticed(node, shim)
        for table in tables:
            assert len(node.live(table)) == 1, table
            assert rows(node.session, table) == before[table], table
        assert node.jmx.get("org.apache.cassandra.db:type=StorageService", "OperationMode") == "NORMAL"


def another_release_is_left_alone(node, shim):
    with shim.does("version"):
        os.kill(node.service(), signal.SIGKILL)
        until(lambda: not node.get("Service").startswith("running"), "its end is not noticed")
        for table in ("one", "other"):
            is_tried(node, table)
    assert figures(node) == {"Completed": 0, "Stopped": 0, "Failed": 0}
    assert node.counts("Reasons")["the service does not start"] == 2
    assert node.said().count("it speaks another protocol") == 1


def is_tried(node, table):
    """By a service that is started for it, at once."""
    node.jmx.call(MBEAN, "forgetFailures")
    node.jmx.compact(KEYSPACE, table)


def what_does_not_start_says_why(node, shim):
    """Its own words and status reach the log, once, and JMX."""
    elsewhere = shim.path.rename(shim.path.with_name("elsewhere"))
    shim.path.write_text("#!/bin/sh\necho needs more >&2\necho of everything >&2\nexit 7\n", encoding="utf-8")
    shim.path.chmod(0o755)
    for _ in range(2):
        is_tried(node, "again")
        write(node, "again", sstables=1)
    said = "exit status 7; it said: needs more | of everything"
    assert node.get("Service") == said and node.said().count(said) == 1
    assert node.get("ServiceExitStatus") == "7" and node.metric("ServiceRunning") == 0
    elsewhere.rename(shim.path)


def what_compacts_otherwise_is_left_alone(node, shim):
    """A program that was put in the place of another is tried with a table that is in no schema, before it gets one of the node's."""
    before = figures(node)
    with shim.does("data"):
        is_tried(node, "again")
    assert figures(node) == before and "the self-test failed: " in node.said() and node.metric("HandedBackBy", scope="SelfTest") > 0
    write(node, "again", sstables=1)
    is_tried(node, "again")
    assert figures(node) == {**before, "Completed": before["Completed"] + 1}


def a_forgotten_compaction_is_noticed(node, shim):
    until_it_starts(node)
    before, service = figures(node), node.service()
    with shim.does("hung"):
        node.jmx.compact(KEYSPACE, "forgotten")
    after = figures(node)
    assert after == {**before, "Failed": before["Failed"] + 1}, node.get("Failures")
    assert not is_alive(service)
    assert len([line for line in node.said().splitlines() if "has forgotten the compaction" in line]) == 1
    assert len(node.live("forgotten")) == 1
    until_it_starts(node)


def test_a_cassandra_of_another_release(cassandra_options, tmp_path):
    """The jar says that it is not for this one, and does nothing: as one does that does not know this line of releases."""
    release = "6.0-alpha2"
    jvm = plugin.jvm(cassandra_options, jar=plugin.without_line(cassandra_options, "6.0", tmp_path / "halcyon-cassandra.jar"))
    with opened.cassandra(cassandra_options, tmp_path / "node", "pa", jvm=jvm, release=release) as (session, facts):
        log = Path(facts["log"])
        until(lambda: f"does not fit Cassandra {release}, which lacks " in log.read_text(encoding="utf-8"), "it says nothing")
        session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
        session.execute(f"CREATE TABLE {KEYSPACE}.t (k int PRIMARY KEY)")
        with Jmx(cassandra_options.oracle / release / "java", facts["jmx_port"]) as jmx:
            for k in range(2):
                session.execute(f"INSERT INTO {KEYSPACE}.t (k) VALUES ({k})")
                jmx.flush(KEYSPACE, "t")
            jmx.compact(KEYSPACE, "t")
        history = session.execute("SELECT keyspace_name, compaction_properties FROM system.compaction_history")
        assert [row.compaction_properties.get("compacted_by") for row in history if row.keyspace_name == KEYSPACE] == [None]
        assert sorted(row.k for row in session.execute(f"SELECT k FROM {KEYSPACE}.t")) == [0, 1]
        assert len([line for line in log.read_text(encoding="utf-8").splitlines() if "Halcyon:" in line or "halcyon:" in line]) == 1
