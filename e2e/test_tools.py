"""Nodes and the tools that write see each other: ours by locks, Cassandra by the files that it has open."""

import json
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from patience import PATIENCE_SECONDS
from server import Server

RELEASE = "5.0.9"
KEYSPACE = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
TABLE = "CREATE TABLE ks.t (k int PRIMARY KEY, v text) WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}"


@pytest.fixture
def server(request, tmp_path):
    server = Server(request.config.getoption("--halcyon"), tmp_path)
    yield server
    server.close()


def table_folder(data):
    (folder,) = Path(data).glob("ks/t-*")
    return folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fill(server):
    """Two SSTables of ks.t, left by two lives of the node."""
    for life in range(2):
        session = server.start().connect()
        if life == 0:
            session.execute(KEYSPACE)
            session.execute(TABLE)
        for k in range(200):
            session.execute("INSERT INTO ks.t (k, v) VALUES (%s, %s)", (k, str(life) * 2000))
        assert server.stop() == 0, server.said()
    return table_folder(server.data / "data")


def answers(server):
    return sorted(server.connect().execute("SELECT k, v FROM ks.t"))


@contextmanager
def slow_compaction(binary, folder):
    """It has begun to write, and would take minutes."""
    process = subprocess.Popen(
        [binary, "compact", folder, "--throughput", "1KiB/s", "--buffer-size", "4KiB"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )
    try:
        end = time.monotonic() + PATIENCE_SECONDS
        while not any("_txn_" in name for name in names(folder)):
            assert process.poll() is None and time.monotonic() < end, process.stderr.read()
            time.sleep(0.0005)
        # However fast the machine is: it stands still in the middle, with all its locks.
        process.send_signal(signal.SIGSTOP)
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def refused_start(server):
    with pytest.raises(AssertionError, match="the server ended with 3"):
        server.start()
    return server.said().splitlines()[-1]


def test_a_tool_beside_a_running_node(halcyon, server):
    folder = fill(server)
    expected = [(k, "1" * 2000) for k in range(200)]
    server.start()
    before = names(folder)
    refused = halcyon.run("compact", folder, status=3).stderr
    assert f"process {server.pid} (halcyon)" in refused and "stop it" in refused, refused
    assert str(server.data) in refused
    halcyon.run("sstable", "verify", folder)
    halcyon.run("compact", folder, "--output", server.folder / "copy")
    assert names(folder) == before
    assert answers(server) == expected
    # A node that was killed hinders no other program.
    server.kill()
    halcyon.run("compact", folder)
    server.start()
    assert answers(server) == expected


def test_a_node_beside_a_running_tool(request, server):
    binary = request.config.getoption("--halcyon")
    folder = fill(server)
    with slow_compaction(binary, folder) as tool:
        said = refused_start(server)
        assert f"process {tool.pid} (halcyon)" in said and "wait until it is done, or stop it" in said, said
        # A tool that was killed hinders no other program, and the next one cleans up what it left.
        tool.kill()
        tool.wait()
        session = server.start().connect()
        assert not [name for name in names(folder) if "_txn_" in name]
        assert len(list(session.execute("SELECT k FROM ks.t"))) == 200
    server.kill()
    with slow_compaction(binary, folder) as tool:
        tool.send_signal(signal.SIGINT)
        tool.send_signal(signal.SIGCONT)
        assert tool.wait(timeout=PATIENCE_SECONDS) != 0
        server.start()


def test_two_nodes_by_different_paths(request, server, tmp_path):
    """The second is led to the same folder by a link."""
    server.start()
    folder = tmp_path / "second"
    folder.mkdir()
    (folder / "data").symlink_to(server.data)
    second = Server(request.config.getoption("--halcyon"), folder)
    said = refused_start(second)
    assert f"process {server.pid} (halcyon)" in said, said


def test_a_running_cassandra(request, cassandra_options, halcyon, tmp_path):
    options = cassandra_options
    from cassandra.cluster import Cluster

    node = tmp_path / "node"
    start = [options.xtask, "oracle", "start", RELEASE, "--dir", node]
    facts = json.loads(subprocess.run(start, check=True, stdout=subprocess.PIPE, text=True).stdout)
    data = Path(facts["storage_dir"]) / "data"
    seen = f"process {facts['pid']} (java CassandraDaemon)"
    try:
        cluster = Cluster(["127.0.0.1"], port=facts["native_port"], protocol_version=5)
        session = cluster.connect()
        session.execute(KEYSPACE)
        session.execute(TABLE)
        folder = table_folder(data)
        # Cassandra has nothing of this table open, but it is its table.
        into = halcyon.run("compact", data / "system_schema", "--output", folder, status=3).stderr
        assert seen in into, into
        for k in range(100):
            session.execute("INSERT INTO ks.t (k, v) VALUES (%s, 'x')", (k,))
        tool = [options.oracle / RELEASE / "java", "org.apache.cassandra.tools.NodeTool", "-p", str(facts["jmx_port"]), "flush"]
        subprocess.run(tool, check=True, timeout=PATIENCE_SECONDS)
        before = names(folder)
        in_place = halcyon.run("compact", folder, status=3).stderr
        assert seen in in_place and str(folder) in in_place and "nodetool drain" in in_place, in_place
        halcyon.run("sstable", "verify", folder)
        ours = Server(request.config.getoption("--halcyon"), tmp_path, "--config", facts["config"])
        ours.data = facts["storage_dir"]
        said = refused_start(ours)
        assert seen in said and "nothing has been touched" in said, said
        assert names(folder) == before
        assert len(list(session.execute("SELECT k FROM ks.t"))) == 100
        cluster.shutdown()
    finally:
        subprocess.run([options.xtask, "oracle", "stop", "--dir", node], check=True, stdout=subprocess.PIPE)
    halcyon.run("compact", folder)
