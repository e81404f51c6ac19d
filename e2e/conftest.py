"""
What the tests run against: the binary, golden tables, and a node per release of Cassandra.

Without --oracle every test that needs Cassandra is skipped, aloud. A missing binary is a failure, not a skip.
"""

from pathlib import Path

import pytest

from cases import Binary, RELEASES
from native import ASKED
from oracle.node import Node
from server import Server

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_addoption(parser):
    parser.addoption("--halcyon", type=Path, default=REPOSITORY / "target/debug/halcyon", help="the binary to test")
    parser.addoption("--served-port", type=int, help="test the server that listens there, say Cassandra, instead of ours")
    parser.addoption("--kills", type=int, default=4, help="how often test_crash.py kills the server")
    parser.addoption("--histories", type=int, default=20, help="how many test_histories.py has compacted")
    parser.addoption("--seed", type=int, help="of random tests, as a failed one printed it")
    parser.addoption("--xtask", type=Path, help="the program behind `cargo x`, which starts and stops nodes")
    parser.addoption("--plugin", type=Path, help="the jar that `cargo x plugin` built")
    parser.addoption("--oracle", type=Path, help="the folder that `cargo x oracle fetch` filled")


def pytest_collection_modifyitems(items):
    """By release, so that each node is started once: first what needs none, then 5.0.9, then 6.0; last in each what stops the node."""
    releases = sorted(set(RELEASES.values()))

    def place(item):
        name = item.callspec.id if hasattr(item, "callspec") else ""
        release = next((i for i, release in enumerate(releases, 1) if name.startswith(release)), 0)
        return release, item.get_closest_marker("stops_the_node") is not None

    items.sort(key=place)


# The ports where a Cassandra listened.
ORACLES = set()


def pytest_terminal_summary(terminalreporter):
    def asked(ports):
        return set().union(*(ASKED[port] for port in ports))

    compared = asked(ORACLES) & asked(set(ASKED) - ORACLES)
    if compared:
        terminalreporter.write_line(f"{len(compared)} different statements were compared with what Cassandra answers")


@pytest.fixture(scope="session")
def halcyon(request):
    return Binary(request.config.getoption("--halcyon"))


@pytest.fixture(scope="session")
def served(request, tmp_path_factory):
    """One `halcyon serve` for all tests that only need a server."""
    other = request.config.getoption("--served-port")
    folder = tmp_path_factory.mktemp("served")
    config = folder / "cassandra.yaml"
    # As the nodes beside it: the version limits expirations.
    config.write_text("storage_compatibility_mode: NONE\nsasi_indexes_enabled: true\n", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), folder, "--config", config)
    if other:
        server.port = other
    else:
        server.start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def cassandra_options(request):
    """The options of a run that has Cassandra."""
    options = request.config.option
    if options.oracle is None:
        pytest.skip("needs Cassandra: run by `cargo x e2e`, or pass --oracle and --xtask")
    return options


@pytest.fixture(scope="session")
def nodes(cassandra_options, tmp_path_factory):
    """One node at a time: asking for another release stops the one that runs."""
    options = cassandra_options
    running = _OneNode(options, tmp_path_factory)
    yield running
    running.close()


class _OneNode:
    def __init__(self, options, tmp_path_factory):
        self._options = options
        self._folders = tmp_path_factory
        self._node = None

    def get(self, release):
        if self._node is None or self._node.release != release:
            self.close()
            self._node = Node(self._options.xtask, self._options.oracle, release, self._folders.mktemp("node"))
            ORACLES.add(self._node.facts["native_port"])
        return self._node

    def close(self):
        if self._node is not None:
            self._node.close()
            self._node = None
