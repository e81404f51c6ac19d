"""
The jar on other patches of Cassandra 5.0 than the one that all other tests have: strategies, counters, views and storage-attached indexes,
compared with Cassandra's own compactions. A landing has the oldest patch, `--matrix` has all.
"""

import subprocess

import pytest

import plugin
from test_plugin import major_compactions_are_cassandras, other_kinds_of_tables

PATCHES = [f"5.0.{patch}" for patch in range(9)]


def pytest_generate_tests(metafunc):
    if "release" in metafunc.fixturenames:
        metafunc.parametrize("release", PATCHES if metafunc.config.getoption("--matrix") else PATCHES[:1])


@pytest.mark.timeout(600)
def test_a_patch(release, cassandra_options, tmp_path):
    # Before the node starts: what fetches it does not want the options of its JVM.
    subprocess.run([cassandra_options.xtask, "oracle", "fetch", release], check=True)
    with plugin.cassandra(cassandra_options, tmp_path / "node", "oa", release=release) as node:
        assert node.session.execute("SELECT release_version FROM system.local").one()[0] == release
        major_compactions_are_cassandras(node, tmp_path)
        other_kinds_of_tables(node)
        assert int(node.get("Failed")) == 0, node.get("Failures")
        assert "was not tested" not in node.said() and "Halcyon: the self-test" not in node.said()
