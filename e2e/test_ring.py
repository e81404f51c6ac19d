"""
A ring of three Cassandras, two of which hand their compactions to Halcyon, through what happens to rings.

Clients write at QUORUM all the time. At the end every node alone has what a model says, all replicas have the same Merkle trees, a
Cassandra without the jar serves the files, and nothing is left over.
"""

import os
import random
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from oracle import opened
from oracle.desks import Tools
from patience import PATIENCE_SECONDS, until
from plugin import KEYSPACE, STRATEGIES, Slow
from ring import Model, Ring

COLUMNS = "(k int, c int, s text static, v text, l list<int>, m map<int, int>, PRIMARY KEY (k, c))"
# LCS compacts its level 0 when it has four.
ROUNDS = 6
SPLIT = f"{KEYSPACE}.split"
ELSEWHERE = "two"
MAJOR = "Major compaction"


@pytest.fixture
def ring(cassandra_options, tmp_path):
    started = Ring(cassandra_options, tmp_path / "ring")
    yield started
    started.close()


class Clients:
    """What clients wrote to the ring, through any node that lives."""

    def __init__(self, ring, seed):
        self._ring = ring
        self._chance = random.Random(seed)
        self.models = [Model(f"{KEYSPACE}.{name}") for name in STRATEGIES]
        # Of two replicas, a quorum is both.
        self.of_two = Model(f"{ELSEWHERE}.t")
        # Its tombstones go at once, so all replicas must have each write.
        self.hasty = Model(f"{KEYSPACE}.hasty")
        self.counts = {}

    def _session(self):
        return self._chance.choice(list(self._ring.nodes.values())).session

    def write(self, statements=60):
        for model in self.models:
            for _ in range(statements):
                model.write(self._session(), self._chance)

    def write_while_all_live(self):
        """Also what fails, or goes wrong, with a node that is down."""
        self.write()
        for _ in range(60):
            self.of_two.write(self._session(), self._chance)
            self.hasty.write(self._session(), self._chance, ConsistencyLevel.ALL)
            k, n = self._chance.randrange(20), self._chance.randrange(1, 9)
            self.counts[k] = self.counts.get(k, 0) + n
            add = SimpleStatement(f"UPDATE {KEYSPACE}.counts SET n = n + {n} WHERE k = {k}", consistency_level=ConsistencyLevel.QUORUM)
            self._session().execute(add)

    def agree(self, consistency):
        """The ring, asked through each node, says what the model says. At ONE a node reads what it has itself."""
        for number, node in self._ring.nodes.items():
            for model in (*self.models, self.hasty):
                assert model.read(node.session, consistency) == model.rows(), (number, model.table)
            # A node has a part of it.
            assert self.of_two.read(node.session, ConsistencyLevel.QUORUM) == self.of_two.rows(), number
            counted = node.execute(SimpleStatement(f"SELECT k, n FROM {KEYSPACE}.counts", consistency_level=consistency))
            assert {row.k: row.n for row in counted} == self.counts, number


def create(ring):
    session = ring.nodes[1].session
    for keyspace, replicas in ((KEYSPACE, 3), (ELSEWHERE, 2)):
        session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}")
    for name, strategy in STRATEGIES.items():
        session.execute(f"CREATE TABLE {KEYSPACE}.{name} {COLUMNS} WITH compaction = {strategy}")
    session.execute(f"CREATE TABLE {ELSEWHERE}.t {COLUMNS} WITH compaction = {STRATEGIES['stcs']}")
    session.execute(f"CREATE TABLE {KEYSPACE}.hasty {COLUMNS} WITH gc_grace_seconds = 0 AND compaction = {STRATEGIES['ucs']}")
    session.execute(f"CREATE TABLE {KEYSPACE}.counts (k int PRIMARY KEY, n counter) WITH compaction = {STRATEGIES['lcs']}")
    session.execute(f"CREATE TABLE {SPLIT} (k int PRIMARY KEY, v blob) WITH compaction = {STRATEGIES['stcs']}")
    ring.all_see(list(ring.nodes))
    for node in ring.nodes.values():
        node.jmx.disable_autocompaction(KEYSPACE, "split")


def flush(ring):
    for node in ring.nodes.values():
        node.jmx.flush(KEYSPACE)
        node.jmx.flush(ELSEWHERE)


def fill(ring, first, partitions):
    """What cannot be compressed: 100 KB a partition."""
    session = ring.nodes[1].session
    chance = random.Random(first)
    insert = session.prepare(f"INSERT INTO {SPLIT} (k, v) VALUES (?, ?)")
    insert.consistency_level = ConsistencyLevel.ALL
    for k in range(first, first + partitions):
        session.execute(insert, (k, chance.randbytes(100_000)))
    for node in ring.nodes.values():
        node.jmx.flush(KEYSPACE, "split")


@pytest.mark.timeout(1800)
def test_a_mixed_ring(ring, cassandra_options, tmp_path, rotation):
    for number, with_jar in ((1, True), (2, True), (3, False)):
        ring.start(number, with_jar)
    create(ring)
    clients = Clients(ring, seed=1)
    compactions_in_the_background(ring, clients)
    major_compactions(ring, clients)
    happenings = (
        lambda: repaired_stays_apart(ring, cassandra_options, tmp_path),
        lambda: killed_services(ring, clients, cassandra_options),
        lambda: a_killed_node(ring, clients, cassandra_options),
        lambda: nodes_come_and_go(ring, clients),
        lambda: without_the_jar(ring),
    )
    for happens in rotation(happenings):
        happens()
    all_are_equal(ring, clients)
    nothing_is_left(ring, cassandra_options)


OLD = "5.0.8"


@pytest.mark.timeout(900)
def test_a_rolling_upgrade_to_a_patch(ring, cassandra_options, request):
    """Two of three nodes have the jar; each node in turn gets the next patch, while clients write to the others."""
    if not request.config.getoption("--matrix"):
        pytest.skip("a landing has one release of 5.0: --matrix")
    subprocess.run([cassandra_options.xtask, "oracle", "fetch", OLD], check=True)
    jars = {1: True, 2: True, 3: False}
    for number, with_jar in jars.items():
        ring.start(number, with_jar, release=OLD)
    create(ring)
    fill(ring, 0, partitions=5)
    clients = Clients(ring, seed=2)
    clients.write_while_all_live()
    for number, with_jar in jars.items():
        flush(ring)
        handed_over_where_the_jar_is(ring, jars)
        ring.nodetool(number, "drain")
        ring.stop(number)
        clients.write(statements=30)
        ring.start(number, with_jar)
        ring.all_see(list(jars))
        clients.write_while_all_live()
        releases = [node.execute("SELECT release_version FROM system.local").one()[0] for _, node in sorted(ring.nodes.items())]
        assert releases == [opened.RELEASE] * number + [OLD] * (3 - number)
    flush(ring)
    handed_over_where_the_jar_is(ring, jars)
    all_are_equal(ring, clients)
    nothing_is_left(ring, cassandra_options)


def handed_over_where_the_jar_is(ring, jars):
    for number, node in ring.nodes.items():
        for table in STRATEGIES:
            done = len(node.done_by_halcyon(table, MAJOR))
            node.jmx.compact(KEYSPACE, table)
            assert not node.has_plugin() if not jars[number] else len(node.done_by_halcyon(table, MAJOR)) > done, (number, table)


def compactions_in_the_background(ring, clients):
    for _ in range(ROUNDS):
        clients.write_while_all_live()
        flush(ring)
    for node in (ring.nodes[1], ring.nodes[2]):
        for name in (*STRATEGIES, "hasty"):
            until(lambda: node.done_by_halcyon(name), f"{name} is not compacted in the background")
    assert not ring.nodes[3].has_plugin() and not ring.nodes[3].done_by_halcyon("stcs")
    time.sleep(1.5)
    clients.agree(ConsistencyLevel.QUORUM)


def major_compactions(ring, clients):
    clients.write_while_all_live()
    flush(ring)
    for number, node in ring.nodes.items():
        for table in (*STRATEGIES, "hasty", "counts"):
            done = len(node.done_by_halcyon(table))
            node.jmx.compact(KEYSPACE, table)
            # One in the background may have done it before.
            assert number == 3 or len(node.done_by_halcyon(table)) > done or len(node.live(table)) <= 4, (number, table)
    time.sleep(1.5)
    clients.agree(ConsistencyLevel.QUORUM)


def repaired_stays_apart(ring, options, scratch):
    """An incremental repair of some ranges splits SSTables. What is repaired, being repaired and unrepaired is compacted apart."""
    first, third = ring.nodes[1], ring.nodes[3]
    # They are split in pairs.
    for n in range(4):
        fill(ring, 1000 * n, partitions=100)
    # The third node takes seconds to split what it has, and so long the first has SSTables of a repair that is not over.
    third.jmx.set("org.apache.cassandra.db:type=StorageService", "CompactionThroughputMbPerSec", 1)
    completed, whole = first.completed(), set(first.live("split"))
    repair = threading.Thread(target=ring.nodetool, args=(1, "repair", "-pr", KEYSPACE, "split"))
    repair.start()
    until(lambda: not whole & set(first.live("split")), "nothing is being repaired")
    assert len(first.data_files("split")) == len(whole) == 4
    first.jmx.compact(KEYSPACE, "split")
    found = first.repairs("split", scratch)
    assert repair.is_alive(), "the repair was over too soon"
    assert first.completed() == completed + 2, first.get("Reasons")
    # An unrepaired one, and one of the session.
    assert [when for when, *_ in found] == [0, 0] and found[0][1] == "--" != found[1][1], found
    third.jmx.set("org.apache.cassandra.db:type=StorageService", "CompactionThroughputMbPerSec", 0)
    repair.join(timeout=PATIENCE_SECONDS)
    assert not repair.is_alive()
    for number in (1, 2):
        repaired_keep_their_time(ring.nodes[number], scratch)


def repaired_keep_their_time(node, scratch):
    # The end of a repair is work of the background, which is off here, and of a major compaction.
    node.jmx.compact(KEYSPACE, "split")
    times = sorted({when for when, *_ in node.repairs("split", scratch)})
    assert len(times) == 2 and times[0] == 0, times
    done = node.completed()
    node.jmx.compact(KEYSPACE, "split")
    assert node.completed() == done + 2, node.get("Reasons")
    assert node.repairs("split", scratch) == [(when, "--", False) for when in times]


def killed_services(ring, clients, options):
    """At its first bytes, when an output is written, and when it has nothing to do."""
    node = ring.nodes[1]
    for megabytes in (0, 1, 2):
        fill(ring, 4000 + 100 * megabytes, partitions=20)
        slow = Slow(node, options, "split")
        until(lambda: node.running() >= megabytes << 20, "the compaction does not continue")
        failed = int(node.get("Failed"))
        os.kill(node.service(), signal.SIGKILL)
        clients.write(statements=10)
        slow.hurry()
        slow.end()
        assert slow.failed is None and int(node.get("Failed")) == failed + 1, (slow.failed, node.get("Failures"))
        restarted(node)
    os.kill(node.service(), signal.SIGKILL)
    restarted(node)


def restarted(node):
    """Compactions are handed over again."""
    done = node.completed()

    def is_handed_over():
        node.jmx.flush(KEYSPACE, "stcs")
        node.jmx.compact(KEYSPACE, "stcs")
        return node.completed() > done

    until(is_handed_over, "the service does not start")


def a_killed_node(ring, clients, options):
    """It dies half-way in a compaction; clients write on, and it starts again with what it had."""
    fill(ring, 5000, partitions=20)
    slow = Slow(ring.nodes[2], options, "split")
    files = ring.nodes[2].folder("split")
    until(lambda: any(path.name.find("_txn_") > 0 for path in files.iterdir()), "no output is begun")
    ring.kill(2)
    slow.end()
    until(lambda: "127.0.0.2" not in ring.seen_by(1), "the first node believes that the second lives")
    clients.write(statements=20)
    ring.start(2, True)
    ring.all_see([1, 2, 3])
    ring.nodes[2].jmx.disable_autocompaction(KEYSPACE, "split")


def nodes_come_and_go(ring, clients):
    """One leaves, and sends what only it and another have; a new one gets everything from files that Halcyon wrote."""
    ring.nodetool(1, "repair", KEYSPACE)
    ring.nodetool(1, "repair", ELSEWHERE)
    ring.nodetool(3, "decommission", "--force")
    ring.stop(3)
    ring.all_see([1, 2])
    ring.start(4, False)
    ring.all_see([1, 2, 4])
    clients.write_while_all_live()
    flush(ring)


def without_the_jar(ring):
    for number in (1, 2):
        ring.stop(number)
        ring.start(number, False)
    ring.all_see(list(ring.nodes))


def all_are_equal(ring, clients):
    for keyspace in (KEYSPACE, ELSEWHERE):
        ring.nodetool(1, "repair", "--full", keyspace)
        said = ring.nodetool(1, "repair", "--full", "--preview", keyspace)
        assert "Previewed data was in sync" in said, said
    time.sleep(1.5)
    clients.agree(ConsistencyLevel.ONE)
    for node in ring.nodes.values():
        schema = [str(row) for row in node.execute("SELECT * FROM system_schema.tables")]
        assert schema and not [row for row in schema if "alcyon" in row]
        node.jmx.verify(KEYSPACE)
        node.jmx.verify(ELSEWHERE)


def nothing_is_left(ring, options):
    """When the nodes have stopped: no logs of transactions, no files of unfinished outputs; every SSTable is sound."""
    places = {number: ring.storage(number) for number in ring.nodes}
    ring.close()
    for number, (storage, config) in places.items():
        files = [path for path in Path(storage).glob("data/*/*/*") if path.is_file()]
        left = [path.name for path in files if "_txn_" in path.name or path.name.endswith(".tmp")]
        assert not left, (number, left)
        java = options.oracle / opened.RELEASE / "java"
        with Tools(java, f"-Dcassandra.storagedir={storage}", f"-Dcassandra.config=file://{config}") as tools:
            for table in (*STRATEGIES, "hasty", "counts", "split"):
                verified = tools.verify(KEYSPACE, table)
                named = [path for path in files if re.search(rf"/{KEYSPACE}/{table}-[0-9a-f]+/[^/]+-Data\.db$", str(path))]
                # Only some of what happens fills this table.
                assert verified == len(named) >= int(table != "split"), (number, table)
