"""
`system_views.settings`: the rows of Cassandra, with its values where neither file sets one and no node decides for itself.

What files set is compared where the server reads them (crates/server/src/settings/tests.rs).
"""

import re
from pathlib import Path

from native import Client

KEYS = Path(__file__).resolve().parent.parent / "crates/server/src/settings/keys.txt"
OWN = "# Halcyon's own"
# By memory, cores and options of the JVM.
DECIDED = {
    "concurrent_validations",
    "disk_access_mode",
    "disk_failure_policy",
    "file_cache_size",
    "index_summary_capacity",
    "internode_max_message_size",
    "key_cache_size",
    "max_mutation_size",
    "memtable_cleanup_threshold",
    "memtable_heap_space",
    "memtable_offheap_space",
    "native_transport_max_concurrent_requests",
    "native_transport_max_message_size",
    "native_transport_max_request_data_in_flight",
    "networking_cache_size",
    "paxos_repair_parallelism",
    "prepared_statements_cache_size",
    "repair_command_pool_size",
    "repair_session_space",
}


def own():
    """Settings that Cassandra does not have."""
    _, table = KEYS.read_text(encoding="utf-8").split(OWN)
    return {line[2:].split("\t")[0] for line in table.splitlines()[1:]}


def listed(port):
    _, rows, _ = Client(port).query("SELECT name, value FROM system_views.settings")
    return {name.decode(): value for name, value in rows}


def set_by(config):
    lines = Path(config).read_text(encoding="utf-8").splitlines()
    return {line.split(":")[0] for line in lines if ":" in line and not line.startswith((" ", "#"))}


def present(name):
    """What a name of 4.0 is called now, or begins with."""
    return re.sub(r"^enable_(.*)", r"\1_enabled", name)


def test_settings_are_listed_as_in_cassandra(served, nodes):
    node = nodes.get("5.0.9")
    ours, theirs = listed(served.port), listed(node.facts["native_port"])
    assert ours.keys() - own() == theirs.keys()
    given = tuple(DECIDED | set_by(node.facts["config"]) | set_by(served.folder / "cassandra.yaml"))
    differ = {name: (value, ours[name]) for name, value in theirs.items() if ours[name] != value}
    assert not {name: values for name, values in differ.items() if not present(name).startswith(given)}
