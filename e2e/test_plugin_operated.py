"""What an operator does to a Cassandra that hands its compactions over, and sees of it, is as with its own."""

import re
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import plugin
from cage import Cage
from oracle.desks import DeskError
from patience import until
from plugin import COMPACTIONS, KEYSPACE, POLICY, Running, Slow, create, figures, until_it_starts, write

STORAGE = "org.apache.cassandra.db:type=StorageService"
MEBIBYTE = 1 << 20


@contextmanager
def a_group():
    """A control group; none where none can be made."""
    try:
        group = Cage("plugin", 1 << 30)
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        group.close()


@pytest.mark.timeout(600)
def test_an_operated_node(cassandra_options, tmp_path):
    missing = tmp_path / "no-group"
    with a_group() as group:
        groups = ",".join(str(path) for path in (missing, group.folder if group else missing))
        settings = (POLICY, "concurrent_compactors: 2", "key_cache_size: 16MiB")
        with plugin.cassandra(cassandra_options, tmp_path / "node", "stock", *settings, cgroup=groups) as node:
            create(node, "one", "other", "fast", "hot")
            for table in ("one", "other", "fast"):
                write(node, table, partitions=100)
            until_it_starts(node)
            one_of_two_is_stopped(node, cassandra_options)
            the_throughput_is_followed(node, cassandra_options)
            hot_keys_stay_hot(node)
            assert figures(node)["Failed"] == 0, node.get("Failures")
            it_is_in_its_group(node, group, missing)


def it_is_in_its_group(node, group, missing):
    """The last of all, for it may have to be skipped."""
    assert f"runs outside of the control group {missing}" in node.said()
    if group is None:
        pytest.skip("this machine allows no control groups")
    assert group.folder.name in Path(f"/proc/{node.service()}/cgroup").read_text(encoding="ascii")


def compaction_id(node, table):
    shown = node.jmx.get(COMPACTIONS, "Compactions")
    (found,) = [one for one in re.findall(r"\{([^}]*)\}", shown) if f"columnfamily={table}," in one + ","]
    return re.search(r"compactionId=([0-9a-f-]+)", found)[1]


def one_of_two_is_stopped(node, options):
    before, service = figures(node), node.service()
    one, other = Slow(node, options, "one"), Running(node, options, "other")
    node.jmx.call(COMPACTIONS, "stopCompactionById", compaction_id(node, "one"))
    one.end()
    assert isinstance(one.failed, DeskError) and "Compaction interrupted" in str(one.failed)
    assert not other.is_over(), "it was over before the other was stopped: so this says nothing"
    assert len(node.live("one")) == 2
    # A service that does not stop within 20 s is killed: this one said that it has stopped, and continues with the other.
    assert node.service() == service
    one.hurry()
    other.end()
    assert other.failed is None and len(node.live("other")) == 1
    assert figures(node) == {**before, "Stopped": before["Stopped"] + 1, "Completed": before["Completed"] + 1}
    node.jmx.compact(KEYSPACE, "one")
    assert figures(node)["Completed"] == before["Completed"] + 2


def the_throughput_is_followed(node, options):
    """1 MiB/s, and no limit while it runs. A busy machine only makes compaction slower than it may be, and 50 times slower than it can be."""
    slow = Slow(node, options, "fast")
    began, first = time.monotonic(), node.running()
    until(lambda: node.running() >= first + 2 * MEBIBYTE, "it does not continue")
    read, elapsed = node.running() - first, time.monotonic() - began
    # The limiter lends a second's worth, and a tick is a mebibyte.
    assert not slow.is_over() and read <= (elapsed + 2) * MEBIBYTE
    began = time.monotonic()
    slow.hurry()
    slow.end()
    left, elapsed = 200 * 100_000 - first - read, time.monotonic() - began
    assert slow.failed is None and left / elapsed > 2 * MEBIBYTE, (left, elapsed)


def key_cache_hit_rate(node):
    """Of the SSTables that are live, since they are."""
    return float(node.jmx.get(f"org.apache.cassandra.metrics:type=Table,keyspace={KEYSPACE},scope=hot,name=KeyCacheHitRate", "Value"))


def read_every_fourth(node):
    for k in range(0, 400, 4):
        node.execute(f"SELECT k FROM hot WHERE k = {k}")


def hot_keys_stay_hot(node):
    """What was read before a compaction is found in the key cache after it, as with Cassandra's own; if that is wanted."""
    for wanted, rate in (("true", 1), ("false", 0)):
        for k in range(400):
            node.execute(f"INSERT INTO hot (k) VALUES ({k})")
            if k % 200 == 199:
                node.jmx.flush(KEYSPACE, "hot")
        read_every_fourth(node)
        node.jmx.set(STORAGE, "MigrateKeycacheOnCompaction", wanted)
        completed = figures(node)["Completed"]
        node.jmx.compact(KEYSPACE, "hot")
        assert figures(node)["Completed"] == completed + 1 and len(node.live("hot")) == 1
        read_every_fourth(node)
        assert key_cache_hit_rate(node) == rate, wanted
