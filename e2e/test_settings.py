"""
`system_views.settings` has the rows of Cassandra, and Halcyon's own.

Their values are compared where the server reads them (crates/server/src/settings/tests.rs): other tests change those of this node.
"""

from pathlib import Path

from native import Client

KEYS = Path(__file__).resolve().parent.parent / "crates/server/src/settings/keys.txt"
OWN = "# Halcyon's own"


def own():
    """Settings that Cassandra does not have."""
    _, table = KEYS.read_text(encoding="utf-8").split(OWN)
    return {line[2:].split("\t")[0] for line in table.splitlines()[1:]}


def listed(port):
    _, rows, _ = Client(port).query("SELECT name FROM system_views.settings")
    return {name.decode() for (name,) in rows}


def test_settings_are_those_of_cassandra(served, nodes):
    node = nodes.get("5.0.9")
    assert listed(served.port) - own() == listed(node.facts["native_port"])
