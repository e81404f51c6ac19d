"""
The jar on other releases of Cassandra than the one that all other tests have: strategies, counters, views and storage-attached indexes,
compared with Cassandra's own compactions, and an operator's trial. A landing has one other release, in short; `--matrix` has all.
"""

import os
import signal
import subprocess

import pytest

import plugin
import test_plugin
from oracle import opened
from oracle.desks import Jmx
from patience import until
from plugin import KEYSPACE, MBEAN, STRATEGIES, Slow, figures, until_it_starts
from test_plugin import major_compactions_are_cassandras, other_kinds_of_tables, rows

NEXT = "6.0-alpha2"
# The first of them has neither UCS, nor storage-attached indexes, nor who compacted in its history.
OLD = ("4.1.10", "stock")
PATCHES = [*((f"5.0.{patch}", "oa") for patch in range(9)), (NEXT, "pa"), (NEXT, "ea")]
TRIED = [OLD, ("5.0.0", "oa"), (NEXT, "pa"), (NEXT, "ea")]


def pytest_generate_tests(metafunc):
    if "release" in metafunc.fixturenames:
        releases = TRIED if "trial" in metafunc.function.__name__ else PATCHES
        metafunc.parametrize("release, form", releases if metafunc.config.getoption("--matrix") else [])


def fetch(options, release):
    """Before the node starts: what fetches it does not want the options of its JVM."""
    subprocess.run([options.xtask, "oracle", "fetch", release], check=True)


def is_known(node, release):
    assert node.session.execute("SELECT release_version FROM system.local").one()[0] == release
    assert int(node.get("Failed")) == 0, node.get("Failures")
    assert "was not tested" not in node.said() and "Halcyon: the self-test" not in node.said()


@pytest.mark.timeout(600)
def test_a_patch(release, form, cassandra_options, tmp_path):
    fetch(cassandra_options, release)
    with plugin.cassandra(cassandra_options, tmp_path / "node", form, release=release) as node:
        major_compactions_are_cassandras(node, tmp_path)
        other_kinds_of_tables(node)
        is_known(node, release)


@pytest.mark.timeout(600)
def test_a_trial_of_a_patch(release, form, cassandra_options, tmp_path):
    """What an operator tries: majors and background compactions of all strategies, the end of the service, the jar taken away."""
    fetch(cassandra_options, release)
    folder = tmp_path / "node"
    names = [name for name in STRATEGIES if (release, form) != OLD or name != "ucs"]
    with plugin.cassandra(cassandra_options, folder, form, release=release) as node:
        test_plugin.create(node, names)
        # LCS compacts its level 0 when it has four.
        before = written(node, names, range(5))
        background_compactions_are_halcyons(node, names)
        assert {name: rows(node, name) for name in names} == before
        before = written(node, names, range(5, 7))
        major_compactions_are_halcyons(node, names)
        assert {name: rows(node, name) for name in names} == before
        is_known(node, release)
        plugin.create(node, "killed")
        plugin.write(node, "killed")
        content = plugin.rows(node.session, "killed")
        the_service_is_killed(node, cassandra_options)
        # Cassandra 6.0 knows itself by its address.
        place = ("--port", str(node.facts["native_port"]))
    with opened.cassandra(cassandra_options, folder, form, more=place, release=release) as (session, facts):
        session.set_keyspace(KEYSPACE)
        with Jmx(cassandra_options.oracle / opened.RELEASE / "java", facts["jmx_port"]) as jmx:
            jmx.compact(KEYSPACE)
            jmx.verify(KEYSPACE)
        found = {name: [row[0] for row in session.execute(f"SELECT JSON * FROM {name}")] for name in names}
        assert found == before and plugin.rows(session, "killed") == content


def written(node, names, seeds):
    """What the tables have after that."""
    for name in names:
        for seed in seeds:
            test_plugin.write(node, name, seed)
    return {name: rows(node, name) for name in names}


def background_compactions_are_halcyons(node, names):
    for name in names:
        completed = node.completed()
        node.jmx.enable_autocompaction(KEYSPACE, name)
        until(lambda: node.completed() > completed, f"{name} is not compacted in the background")
        node.jmx.disable_autocompaction(KEYSPACE, name)
        node.live(name)


def major_compactions_are_halcyons(node, names):
    for name in names:
        completed = node.completed()
        node.jmx.compact(KEYSPACE, name)
        assert node.completed() > completed, (name, node.get("Reasons"), node.get("Failures"))
        node.live(name)
        node.jmx.verify(KEYSPACE, name)


def the_service_is_killed(node, options):
    """In a compaction, which Cassandra's own task then does."""
    before, content = figures(node), plugin.rows(node.session, "killed")
    slow = Slow(node, options, "killed")
    os.kill(node.service(), signal.SIGKILL)
    slow.hurry()
    slow.end()
    assert slow.failed is None and len(node.live("killed")) == 1
    assert figures(node) == {**before, "Failed": before["Failed"] + 1}
    assert plugin.rows(node.session, "killed") == content
    until_it_starts(node)


@pytest.mark.timeout(300)
def test_another_line(cassandra_options, tmp_path):
    """As that release is by default: its cursor compaction and its parallel shards have what is not handed over."""
    with plugin.cassandra(cassandra_options, tmp_path / "node", "pa", "cursor_compaction_enabled: true", release=NEXT) as node:
        test_plugin.create(node)
        before = written(node, STRATEGIES, range(2))
        major_compactions_are_halcyons(node, STRATEGIES)
        assert {name: rows(node, name) for name in STRATEGIES} == before
        shards_are_one_task(node)
        is_known(node, NEXT)


def shards_are_one_task(node):
    """Of SSTables that span all shards. What is handed over is one task; else Cassandra makes one for each shard, and the reason is counted once."""
    for table, enabled in (("twcs", "true"), ("stcs", "false")):
        test_plugin.write(node, table, 2)
        node.execute(f"ALTER TABLE {table} WITH compaction = {STRATEGIES['ucs']}")
        parameters = f"org.apache.cassandra.db:type=Tables,keyspace={KEYSPACE},table={table}"
        until(lambda: "Halcyon60Unified" in node.jmx.get(parameters, "CompactionParametersJson"), "the overlay is not set again")
        node.jmx.disable_autocompaction(KEYSPACE, table)
        assert len(node.live(table)) == 2
        before = compactions(node, table)
        node.jmx.set(MBEAN, "Enabled", enabled)
        node.jmx.compact(KEYSPACE, table)
        more = [now - then for now, then in zip(compactions(node, table), before)]
        assert more == [1, 0] if enabled == "true" else more[0] == 0 and more[1] > 1, more
        assert len(node.live(table)) > 1
    assert node.metric("HandedBackBy", scope="Disabled") == 1
    node.jmx.set(MBEAN, "Enabled", "true")


def compactions(node, table):
    """How many are Halcyon's and Cassandra's in the node's own history."""
    found = node.execute("SELECT columnfamily_name, compaction_properties FROM system.compaction_history")
    ours = [row.compaction_properties.get("compacted_by") == "halcyon" for row in found if row.columnfamily_name == table]
    return ours.count(True), ours.count(False)

