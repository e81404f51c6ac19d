"""
What the tests run against: the binary, golden tables, and a node per release of Cassandra.

Without --oracle every test that needs Cassandra is skipped, aloud. A missing binary is a failure, not a skip.
"""

from pathlib import Path

import pytest

import rotation as matrices
import schedule
from cases import Binary, RELEASES
from native import ASKED
from oracle.node import Node
from patience import TIMEOUTS
from server import Server

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_addoption(parser):
    parser.addoption("--halcyon", type=Path, default=REPOSITORY / "target/debug/halcyon", help="the binary to test")
    parser.addoption("--served-port", type=int, help="test the server that listens there, say Cassandra, instead of ours")
    parser.addoption("--kills", type=int, default=4, help="how often test_crash.py kills the server")
    parser.addoption("--histories", type=int, default=20, help="how many test_histories.py has compacted")
    parser.addoption("--seeds", type=int, help="how many of each differential test, instead of those of a landing")
    parser.addoption("--seed", type=int, help="of random tests, as a failed one printed it")
    parser.addoption("--matrix", action="store_true", help="let the plug-in run on every release of Cassandra that its jar is for")
    landing = {"type": int, "nargs": "?", "const": matrices.landing(), "metavar": "NUMBER"}
    parser.addoption("--landing", **landing, help="run a fifth of each matrix, that of this landing (rotation.py), instead of all of it")
    parser.addoption("--testssl", action="store_true", help="let testssl.sh look for weaknesses of TLS: three minutes")
    parser.addoption("--record-durations", action="store_true", help="write durations.json, by which tests are scheduled")
    parser.addoption("--xtask", type=Path, help="the program behind `cargo x`, which starts and stops nodes")
    parser.addoption("--plugin", type=Path, help="the jar that `cargo x plugin` built")
    parser.addoption("--oracle", type=Path, help="the folder that `cargo x oracle fetch` filled")


def pytest_generate_tests(metafunc):
    mark = metafunc.definition.get_closest_marker("seeds")
    if mark is not None:
        count = metafunc.config.getoption("--seeds") or mark.args[0]
        metafunc.parametrize("seed", range(count), ids=lambda seed: f"5.0.9-{seed}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """
    Tests that share a node of Cassandra run in one process, a group; the other tests run wherever a process is free.

    The groups that take longest begin first, so that none is left when all others have ended. In a group, last comes what stops its node.
    """
    config.hook.pytest_deselected(items=matrices.deselect(items, config.getoption("--landing")))
    for item in items:
        if "nodes" in item.fixturenames:
            name = item.callspec.id if hasattr(item, "callspec") else ""
            release = next((one for one in sorted(set(RELEASES.values())) if name.startswith(one)), "5.0.9")
            item.add_marker(pytest.mark.xdist_group(f"oracle-{release}"))
    schedule.sort(items)


# The ports where a Cassandra listened.
ORACLES = set()
# How many statements each process compared.
COMPARED = []


def pytest_sessionfinish(session):
    def asked(ports):
        return set().union(*(ASKED[port] for port in ports))

    COMPARED.append(len(asked(ORACLES) & asked(set(ASKED) - ORACLES)))
    # What one of several processes tells the one that reports.
    getattr(session.config, "workeroutput", {})["compared"] = COMPARED[0]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    COMPARED.append(getattr(node, "workeroutput", {}).get("compared", 0))


def pytest_runtest_logreport(report):
    schedule.add(report)


def pytest_terminal_summary(terminalreporter, config):
    if any(COMPARED):
        terminalreporter.write_line(f"{sum(COMPARED)} different statements were compared with what Cassandra answers")
    if config.getoption("--record-durations"):
        schedule.record()


@pytest.fixture(scope="session")
def rotation(request):
    """The part of a matrix that this run loops over."""
    landing = request.config.getoption("--landing")
    return lambda cases: matrices.part(cases, landing)


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
    config.write_text(f"storage_compatibility_mode: NONE\nsasi_indexes_enabled: true\ndynamic_data_masking_enabled: true\n{TIMEOUTS}", encoding="utf-8")
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
