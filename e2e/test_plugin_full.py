"""A disk that is full, or becomes so while Halcyon compacts, costs a compaction and no node; with room again it is done."""

import os
import subprocess
from contextlib import contextmanager

import pytest

import plugin
from oracle.desks import DeskError
from plugin import KEYSPACE, MBEAN, POLICY, Running, Shim, create, figures, rows, until_it_starts, write

# Cassandra leaves 50 MiB of each disk free.
SIZE = "192m"
LEFT = 1 << 20


@pytest.fixture
def disk(tmp_path):
    """A file system of its own, in memory."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "halcyon-test", folder], check=True)
    yield folder
    # The service, which ends with the node, may have it open for a moment.
    subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def full(disk):
    filler = disk / "filler"
    found = os.statvfs(disk)
    with open(filler, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, found.f_bavail * found.f_frsize - LEFT)
    yield
    filler.unlink()


def test_a_full_disk(cassandra_options, tmp_path, disk):
    shim = Shim(cassandra_options, tmp_path / "shim")
    with plugin.cassandra(
        cassandra_options, tmp_path / "node", "stock", POLICY, f"data_file_directories: [{disk}]", binary=shim.path
    ) as node:
        create(node, "t")
        write(node, "t")
        content = rows(node.session, "t")
        until_it_starts(node)
        before = figures(node)
        # Cassandra has found room for it, which another program then takes.
        with shim.holds("asked"):
            compaction = Running(node, cassandra_options, "t")
            shim.until_held()
            filled = full(disk)
            filled.__enter__()
        compaction.end()
        assert isinstance(compaction.failed, DeskError) and "FSDiskFullWriteError" in str(compaction.failed), compaction.failed
        assert figures(node) == {**before, "Failed": before["Failed"] + 1} and "the disk is full" in node.get("Failures")
        nothing_has_changed(node, content)
        # Cassandra finds no room, with or without Halcyon.
        for enabled in ("true", "false"):
            node.jmx.set(MBEAN, "Enabled", enabled)
            with pytest.raises(DeskError, match="Not enough space for compaction"):
                node.jmx.compact(KEYSPACE, "t")
            nothing_has_changed(node, content)
        node.jmx.set(MBEAN, "Enabled", "true")
        filled.__exit__(None, None, None)
        node.jmx.compact(KEYSPACE, "t")
        assert figures(node)["Completed"] == before["Completed"] + 1
        assert len(node.live("t")) == 1 and rows(node.session, "t") == content


def nothing_has_changed(node, content):
    assert len(node.live("t")) == 2
    assert node.jmx.get("org.apache.cassandra.db:type=StorageService", "OperationMode") == "NORMAL"
    assert node.jmx.get("org.apache.cassandra.db:type=StorageService", "NativeTransportRunning") == "true"
    assert rows(node.session, "t") == content
