"""
A node, or its service, that is killed at any stage of a hand-over costs nothing: data as before, nothing left over.

```text
 task sent ─► output asked for, granted ─► all read ─► verified: done │ opened ─► prepared ─► committed
 └──────────── shim.py keeps what the service says ────────────────┘ └── stop_at.c stops the node ──┘
```
"""

import os
import re
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

import plugin
from patience import until
from plugin import KEYSPACE, POLICY, Killed, Running, Shim, create, figures, is_alive, rows, until_it_starts, write

OF_THE_SERVICE = ["sent", "asked", "granted", "written", "done"]
OF_THE_NODE = {"opened": "before REMOVE:[", "prepared": "before COMMIT:[", "committed": "after COMMIT:["}
TABLE = "t"


class Stops:
    """What has the node stop itself; the library must be loaded when it starts."""

    def __init__(self, folder, monkeypatch):
        folder.mkdir()
        self._at = folder / "stop_at"
        library = folder / "stop_at.so"
        source = Path(__file__).resolve().parent / "stop_at.c"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        monkeypatch.setenv("LD_PRELOAD", str(library))
        monkeypatch.setenv("HALCYON_STOP_AT", str(self._at))

    @contextmanager
    def at(self, stage):
        self._at.write_text(f"{OF_THE_NODE[stage]} /{TABLE}-", encoding="utf-8")
        yield
        self._at.unlink(missing_ok=True)

    @staticmethod
    def until_stopped(pid):
        until(lambda: state(pid) == "T", "the compaction does not come to this stage")


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]


def children(pid):
    """Processes that any thread of the process has started."""
    return [int(child) for listed in Path(f"/proc/{pid}/task").glob("*/children") for child in listed.read_text(encoding="ascii").split()]


@pytest.fixture
def shim(cassandra_options, tmp_path):
    return Shim(cassandra_options, tmp_path / "shim")


@pytest.fixture
def stops(tmp_path, monkeypatch):
    return Stops(tmp_path / "stops", monkeypatch)


@contextmanager
def started(options, folder, shim):
    with plugin.cassandra(options, folder, "stock", POLICY, binary=shim.path, failures=1000) as node:
        yield node


def parts_of_sstables(node):
    """The names that the table's files begin with."""
    (folder,) = node.folders(TABLE)
    return {re.match(r"(.+-big-)[A-Za-z]+\.[a-z0-9]+$", path.name)[1] for path in folder.iterdir() if path.is_file()}


def nothing_is_left(node, sstables, content):
    files = node.live(TABLE)
    assert len(files) == sstables, files
    assert parts_of_sstables(node) == {file.name.removesuffix("Data.db") for file in files}
    assert rows(node.session, TABLE) == content
    node.jmx.verify(KEYSPACE, TABLE)


@pytest.mark.timeout(600)
def test_a_killed_node(cassandra_options, tmp_path, shim, stops, rotation):
    """Each start finds what the kill before it left, and is killed in its turn."""
    sstables, content = 0, []
    for stage in rotation((*OF_THE_SERVICE, *OF_THE_NODE)):
        with pytest.raises(Killed), started(cassandra_options, tmp_path / "node", shim) as node:
            if sstables == 0:
                create_without_background(node)
                write(node, TABLE)
            else:
                nothing_is_left(node, sstables, content)
            sstables, content = len(node.live(TABLE)), rows(node.session, TABLE)
            kill_in_a_compaction(node, stage, shim, stops, cassandra_options)
            raise Killed
    # Only what is committed counts.
    with started(cassandra_options, tmp_path / "node", shim) as node:
        nothing_is_left(node, 1 if stage == "committed" else sstables, content)


def create_without_background(node):
    """Nothing is compacted that a test has not asked for, from the first moment of a start on."""
    create(node, TABLE)
    node.execute(f"ALTER TABLE {TABLE} WITH compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}}")


def kill_in_a_compaction(node, stage, shim, stops, options):
    def kill():
        services = children(node.pid)
        assert services
        os.kill(node.pid, signal.SIGKILL)
        until(lambda: not any(map(is_alive, services)), "the service outlives the node")

    if stage in OF_THE_NODE:
        with stops.at(stage):
            compaction = Compaction(node, options)
            stops.until_stopped(node.pid)
            kill()
    else:
        with shim.holds(stage):
            compaction = Compaction(node, options)
            shim.until_held()
            kill()
    compaction.end()


class Compaction(Running):
    """Of the table; the node may not live to show it."""

    def __init__(self, node, options):
        super().__init__(node, options, TABLE, is_shown=False)


@pytest.mark.timeout(600)
def test_a_killed_service(cassandra_options, tmp_path, shim, stops):
    """Before it is heard to be done Cassandra's own task does the work; then it is not needed any more."""
    with started(cassandra_options, tmp_path / "node", shim) as node:
        create(node, TABLE)
        write(node, TABLE)
        content = rows(node.session, TABLE)
        for stage in (*OF_THE_SERVICE, *OF_THE_NODE):
            until_it_starts(node)
            before = figures(node)
            kill_its_service(node, stage, shim, stops, cassandra_options)
            counted = "Completed" if stage in OF_THE_NODE else "Failed"
            assert figures(node) == {**before, counted: before[counted] + 1}, (stage, node.get("Failures"))
            nothing_is_left(node, 1, content)
        assert node.jmx.get("org.apache.cassandra.db:type=StorageService", "OperationMode") == "NORMAL"


def kill_and_wait(pid):
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_alive(pid), "it outlives a kill")


def kill_its_service(node, stage, shim, stops, options):
    (child,) = children(node.service())
    if stage in OF_THE_NODE:
        with stops.at(stage):
            compaction = Compaction(node, options)
            stops.until_stopped(node.pid)
            kill_and_wait(child)
            os.kill(node.pid, signal.SIGCONT)
            compaction.end()
    else:
        with shim.holds(stage):
            compaction = Compaction(node, options)
            shim.until_held()
            kill_and_wait(child)
        compaction.end()
    assert compaction.failed is None
