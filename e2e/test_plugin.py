"""
Compactions of a real Cassandra that the jar of plugin/cassandra/ hands over.

1. Tables of all kinds are written, and their SSTables copied.
2. Halcyon compacts the originals; the copies are imported into tables of the same schema, and compacted by Cassandra's own tasks.
3. Both answer as before, and sstabledump says the same of both.
"""

import json
import random
import re
import struct
import threading
import time
import urllib.request
import uuid
from pathlib import Path

import pytest

import plugin
from cases import assert_same
from oracle import opened
from oracle.desks import DeskError, Tools
from patience import until
from record_metrics import exporter
from server import HOST, free_port
from plugin import KEYSPACE, MBEAN, STRATEGIES

COLUMNS = "(k int, c int, s text static, v text, l list<int>, m map<text, int>, u frozen<pair>, x bigint, PRIMARY KEY (k, c))"


OPS = Path(__file__).resolve().parent.parent / "ops"
FORMS = [pytest.param(form, marks=(pytest.mark.rotates, pytest.mark.xdist_group(f"plugin-{form}"))) for form in ("stock", "da")]


@pytest.fixture(scope="module", params=FORMS)
def node(request, cassandra_options, tmp_path_factory):
    with plugin.cassandra(cassandra_options, tmp_path_factory.mktemp("plugin") / "node", request.param, verify="rows") as running:
        yield running


def create(node, names=tuple(STRATEGIES)):
    node.create_keyspace()
    node.execute("CREATE TYPE pair (a int, b text)")
    for name in names:
        for table in (name, name + "_stock"):
            node.execute(f"CREATE TABLE {table} {COLUMNS} WITH gc_grace_seconds = 0 AND compaction = {STRATEGIES[name]}")
            node.jmx.disable_autocompaction(KEYSPACE, table)


def write(node, table, seed):
    """Rows and every kind of tombstone, over and over each other."""
    chance = random.Random(seed)
    for _ in range(400):
        k, c = chance.randrange(40), chance.randrange(12)
        at = f"USING TIMESTAMP {1000 * seed + chance.randrange(3000)}"
        where = f"WHERE k = {k} AND c = {c}"
        node.execute(chance.choice([
            f"INSERT INTO {table} (k, c, v, l, u) VALUES ({k}, {c}, 'v{seed}', [{c}, {seed}], {{a: 1, b: 'b'}}) {at}",
            f"INSERT INTO {table} (k, c, s, v) VALUES ({k}, {c}, 's{seed}', 'w') {at} AND TTL 100000",
            f"UPDATE {table} {at} SET m['{c}'] = {seed}, x = {seed} {where}",
            f"UPDATE {table} {at} SET l = l + [{seed}], v = null {where}",
            f"DELETE m FROM {table} {at} {where}",
            f"DELETE s FROM {table} {at} WHERE k = {k}",
            f"DELETE FROM {table} {at} {where}",
            f"DELETE FROM {table} {at} WHERE k = {k} AND c > {c} AND c <= {c + 4}",
            f"DELETE FROM {table} {at} WHERE k = {k}",
        ]))  # fmt: skip
    node.jmx.flush(KEYSPACE, table)


def rows(node, table):
    return [row[0] for row in node.execute(f"SELECT JSON * FROM {table}")]


def test_major_compactions_are_cassandras(node, tmp_path):
    major_compactions_are_cassandras(node, tmp_path)


def major_compactions_are_cassandras(node, tmp_path):
    create(node)
    for name in STRATEGIES:
        for seed in range(3):
            write(node, name, seed)
        node.copy(name, tmp_path / KEYSPACE / (name + "_stock"))
    # What is deleted in the second of a compaction is not purged by it.
    time.sleep(2)
    for name in STRATEGIES:
        compare_with_stock(node, name, tmp_path)
    schema = node.execute(f"SELECT compaction FROM system_schema.tables WHERE keyspace_name = '{KEYSPACE}'")
    assert not [row for row in schema if "alcyon" in str(row)]


def compare_with_stock(node, name, scratch):
    """Compacts a table, and by Cassandra's own tasks the copies of its files in another; both must be the same, cell for cell."""
    stock = name + "_stock"
    before = rows(node, name)
    completed = node.completed()
    node.jmx.compact(KEYSPACE, name)
    assert node.completed() > completed, (node.get("Reasons"), node.get("Failures"))
    node.jmx.set(MBEAN, "Enabled", "false")
    node.jmx.import_sstables(KEYSPACE, stock, scratch / KEYSPACE / stock)
    node.jmx.compact(KEYSPACE, stock)
    node.jmx.set(MBEAN, "Enabled", "true")
    assert rows(node, name) == rows(node, stock) == before
    ours, theirs = node.dumps(name, scratch), node.dumps(stock, scratch)
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs):
        assert_same(one, other)
    node.jmx.verify(KEYSPACE, name)


def test_what_is_elsewhere_keeps_tombstones(node, tmp_path):
    """An SSTable that is not compacted, and rows in a memtable, are older than some of the tombstones: Cassandra's purge decides."""
    node.create_keyspace()
    node.execute("CREATE TYPE IF NOT EXISTS pair (a int, b text)")
    for table in ("kept", "kept_stock"):
        node.execute(f"CREATE TABLE {table} {COLUMNS} WITH gc_grace_seconds = 0 AND compaction = {STRATEGIES['stcs']}")
        node.jmx.disable_autocompaction(KEYSPACE, table)
    for seed in range(3):
        write(node, "kept", seed)
    copies = tmp_path / KEYSPACE / "kept_stock"
    node.copy("kept", copies)
    time.sleep(2)
    completed, reasons = node.completed(), node.get("Reasons")
    compact_two_of_three(node, "kept")
    assert node.completed() == completed + 1, (reasons, node.get("Reasons"), node.get("Failures"))
    node.jmx.set(MBEAN, "Enabled", "false")
    node.jmx.import_sstables(KEYSPACE, "kept_stock", copies)
    compact_two_of_three(node, "kept_stock")
    node.jmx.set(MBEAN, "Enabled", "true")
    assert rows(node, "kept") == rows(node, "kept_stock")
    ours, theirs = node.dumps("kept", tmp_path), node.dumps("kept_stock", tmp_path)
    assert len(ours) == len(theirs) == 2
    for one, other in zip(ours, theirs):
        assert_same(one, other)


def compact_two_of_three(node, table):
    """The same two in both tables: import gives files other names, but leaves them as large as they are."""
    for k in range(0, 40, 3):
        node.execute(f"INSERT INTO {table} (k, c, v) VALUES ({k}, 1, 'old') USING TIMESTAMP 500")
    files = sorted(node.data_files(table), key=lambda file: file.stat().st_size)
    assert len({file.stat().st_size for file in files}) == 3
    node.jmx.compact_files(files[:2])


INDEXED = "(k int, c int, s int static, v int, w text, PRIMARY KEY (k, c))"
QUESTIONS = ["v = 3", "w = 'w2'", "s = 5", "v > 1 AND w = 'w1'"]


def create_others(node):
    """Tables of other kinds: views, counters, indexes; and one whose index keeps its compactions with Cassandra."""
    node.create_keyspace()
    with_ucs = f"WITH gc_grace_seconds = 0 AND compaction = {STRATEGIES['ucs']}"
    node.execute(f"CREATE TABLE counted (k int, c int, n counter, PRIMARY KEY (k, c)) {with_ucs}")
    # Views are not made of tables without grace.
    with_grace = with_ucs.replace("gc_grace_seconds = 0", "gc_grace_seconds = 1")
    node.execute(f"CREATE TABLE base (k int, c int, v int, w int, PRIMARY KEY (k, c)) {with_grace}")
    node.execute(
        "CREATE MATERIALIZED VIEW seen AS SELECT * FROM base WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c) "
        + with_grace
    )
    for table in ("attached", "legacy"):
        node.execute(f"CREATE TABLE {table} {INDEXED} {with_ucs}")
    for column in ("v", "w", "s"):
        node.execute(f"CREATE INDEX ON attached ({column}) USING 'sai'")
    node.execute("CREATE INDEX ON legacy (v)")
    node.jmx.disable_autocompaction(KEYSPACE, "counted", "base", "seen", "attached", "legacy")


def write_others(node, seed):
    chance = random.Random(seed)
    for _ in range(200):
        k, c, v = (chance.randrange(bound) for bound in (12, 10, 6))
        node.execute(f"UPDATE counted SET n = n + {v} WHERE k = {k} AND c = {c}")
        where = f"WHERE k = {k} AND c = {c}"
        for table in ("attached", "legacy"):
            node.execute(chance.choice([
                f"INSERT INTO {table} (k, c, s, v, w) VALUES ({k}, {c}, {v}, {v}, 'w{v % 3}')",
                f"UPDATE {table} SET v = {v} {where}", f"DELETE w FROM {table} {where}", f"DELETE FROM {table} {where}",
            ]))  # fmt: skip
        node.execute(chance.choice([
            f"INSERT INTO base (k, c, v, w) VALUES ({k}, {c}, {v}, {seed})", f"UPDATE base SET v = {v} {where}",
            f"UPDATE base SET v = null {where}", f"DELETE FROM base {where}", f"DELETE w FROM base {where}",
        ]))  # fmt: skip
    node.jmx.flush(KEYSPACE)


def answers(node):
    said = {table: sorted(rows(node, table)) for table in ("counted", "base", "seen", "attached", "legacy")}
    for question in QUESTIONS:
        found = node.execute(f"SELECT JSON * FROM attached WHERE {question} ALLOW FILTERING")
        said[question] = sorted(row[0] for row in found)
    return said


@pytest.mark.timeout(300)
def test_other_kinds_of_tables(node):
    other_kinds_of_tables(node)


def other_kinds_of_tables(node):
    """Counters, views and their bases, SAI; a legacy index is not a table of ours."""
    create_others(node)
    for seed in range(3):
        write_others(node, seed)
    before = answers(node)
    assert all(before.values())
    time.sleep(3)
    for table in ("counted", "base", "seen", "attached"):
        completed = node.completed()
        node.jmx.compact(KEYSPACE, table)
        assert node.completed() > completed, (table, node.get("Reasons"), node.get("Failures"))
        assert answers(node) == before, table
        node.live(table)
        node.jmx.verify(KEYSPACE, table)
    completed = node.completed()
    node.jmx.compact(KEYSPACE, "legacy")
    assert node.completed() == completed and "an index that is not SAI" in node.get("Reasons")
    assert answers(node) == before


@pytest.mark.timeout(600)
def test_all_ways_to_compact(cassandra_options, tmp_path, rotation):
    """Major, in the background, by name, rewritten; several disks; what the operator sets and sees; changed schemas."""
    disks, port = tmp_path / "second", free_port()
    shown = exporter(tmp_path, port, "{}")
    with plugin.cassandra(
        cassandra_options, tmp_path / "node", "oa", f"data_file_directories: [{tmp_path}/node/data/data, {disks}]", agent=shown, exclude="left.out"
    ) as node:
        major_compactions_are_cassandras(node, tmp_path)
        the_agent_needs_no_other(node, cassandra_options)
        ways = (
            lambda: all_that_nodes_compact(node, tmp_path),
            lambda: a_changed_schema_is_followed(node),
            lambda: what_is_handed_back_is_shown(node, cassandra_options, port),
            lambda: reads_set_the_pace(node, cassandra_options),
            lambda: tables_are_apart(node, cassandra_options),
        )
        for way in rotation(ways):
            way()
        assert int(node.get("Failed")) == 0, node.get("Failures")


def all_that_nodes_compact(node, scratch):
    for name in STRATEGIES:
        # LCS compacts its level 0 when it has four.
        for seed in range(3, 7):
            write(node, name, seed)
    before = {name: rows(node, name) for name in STRATEGIES}
    compactions_in_the_background(node)
    user_defined_compactions(node)
    rewritten_sstables(node)
    outputs_are_on_their_disks(node, scratch)
    assert {name: rows(node, name) for name in STRATEGIES} == before


def what_is_handed_back_is_shown(node, options, port):
    forced_compactions_stay(node, options)
    metrics_are_shown(node, port)


def tables_are_apart(node, options):
    a_table_has_options(node, options)
    excluded_tables_stay(node)


def compactions_in_the_background(node):
    for name in STRATEGIES:
        node.jmx.enable_autocompaction(KEYSPACE, name)
        until(lambda: node.done_by_halcyon(name, "Compaction"), f"{name} is not compacted in the background")
        node.jmx.disable_autocompaction(KEYSPACE, name)
        node.live(name)


def user_defined_compactions(node):
    for name in STRATEGIES:
        completed = node.completed()
        node.jmx.compact_files(node.data_files(name)[:1])
        assert node.completed() > completed, (name, node.get("Reasons"), node.get("Failures"))


def rewritten_sstables(node):
    for name in STRATEGIES:
        files = set(node.live(name))
        node.jmx.upgrade(KEYSPACE, name)
        assert node.done_by_halcyon(name, "Upgrade sstables"), (name, node.get("Reasons"), node.get("Failures"))
        assert not files & set(node.live(name)), name


def outputs_are_on_their_disks(node, folder):
    """Each of the two disks has a range of the tokens, so a major compaction has an output on each."""
    node.jmx.compact(KEYSPACE, "stcs")
    node.live("stcs")
    found = [len(list(disk.glob(f"{KEYSPACE}/stcs-*/*-Data.db"))) for disk in (folder / "node/data/data", folder / "second")]
    assert found == [1, 1]


def a_changed_schema_is_followed(node):
    """New tables and altered strategies are handed over, dropped columns dropped."""
    node.execute("CREATE TABLE later (k int PRIMARY KEY, v int, w text)")
    node.jmx.disable_autocompaction(KEYSPACE, "later")
    for k in range(3):
        node.execute(f"INSERT INTO later (k, v, w) VALUES ({k}, {k}, 'w')")
        node.jmx.flush(KEYSPACE, "later")
    node.execute("ALTER TABLE later DROP w")
    node.execute("ALTER TABLE later ADD x int")
    strategy = f"org.apache.cassandra.db:type=Tables,keyspace={KEYSPACE},table=later"
    for name in ("lcs", "ucs", "stcs"):
        node.execute(f"ALTER TABLE later WITH compaction = {STRATEGIES[name]}")
        until(lambda: "Halcyon" in node.jmx.get(strategy, "CompactionParametersJson"), "the overlay is not set again")
        completed = node.completed()
        node.jmx.compact(KEYSPACE, "later")
        assert node.completed() > completed, (name, node.get("Reasons"), node.get("Failures"))
        assert sorted(rows(node, "later")) == [f'{{"k": {k}, "v": {k}, "x": null}}' for k in range(3)]


def the_agent_needs_no_other(node, options):
    """What would be taken back by JMX it would hand over again."""
    assert "stcs  " in plugin.hand_over(options, node.facts["jmx_port"]) and node.get("ForAllTables") == "true"
    assert "its agent" in plugin.hand_over(options, node.facts["jmx_port"], "--remove", code=3)


def forced_compactions_stay(node, options):
    """They purge before the grace is over, which is Cassandra's own rule."""
    node.execute("CREATE TABLE forced (k int PRIMARY KEY)")
    node.jmx.disable_autocompaction(KEYSPACE, "forced")
    node.execute("INSERT INTO forced (k) VALUES (2)")
    node.execute("DELETE FROM forced WHERE k = 1")
    node.jmx.flush(KEYSPACE, "forced")
    time.sleep(1)
    completed = node.completed()
    opened.nodetool(options, node.facts, "forcecompact", KEYSPACE, "forced", "1")
    assert node.completed() == completed and "nodetool forcecompact" in node.get("Reasons")
    node.live("forced")
    node.jmx.compact(KEYSPACE, "forced")
    assert node.completed() == completed + 1


def metrics_are_shown(node, port):
    """Through an exporter without a configuration: all that the dashboard and the alerts ask for, of the node, by reason, and by table."""
    assert node.metric("CompactionsCompleted") == node.completed() > 0
    assert node.metric("HandedBackBy", scope="ForceCompact") == 1
    assert node.metric("CompactionsHandedBack", keyspace=KEYSPACE, scope="forced") == 1
    assert 0 < node.metric("CompactionsCompleted", keyspace=KEYSPACE, scope="lcs") < node.completed()
    assert node.metric("BytesRead") > node.metric("BytesWritten") > 0 and node.metric("MemoryBytes") > 0 and node.metric("ServiceRunning") == 1
    assert node.metric("CpuMillis") > node.metric("CpuMillis", keyspace=KEYSPACE, scope="lcs") > 0
    assert node.metric("MemoryBytes", keyspace=KEYSPACE, scope="lcs") == 0 and node.metric("LatencyTargetMicros") == node.metric("PaceBytesPerSecond") == 0
    node.execute("CREATE TABLE gone (k int PRIMARY KEY)")
    node.execute("INSERT INTO gone (k) VALUES (1)")
    node.jmx.flush(KEYSPACE, "gone")
    node.jmx.compact(KEYSPACE, "gone")
    with urllib.request.urlopen(f"http://{HOST}:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    found = set(re.findall(r'^(org_apache_cassandra_metrics_Halcyon\w*)\{.*?name="(\w+)"', text, re.M))
    wanted = set()
    for file in ("grafana/cassandra-plugin.json", "prometheus/cassandra-plugin-rules.yaml"):
        asked = (OPS / file).read_text(encoding="utf-8").replace("\\", "")
        wanted |= set(re.findall(r'(org_apache_cassandra_metrics_Halcyon\w*)\{[^}]*?name="(\w+)"', asked))
    assert len(wanted) > 12 and wanted <= found, wanted - found
    assert 'scope="gone"' in text and "halcyon_self_test" not in text
    node.execute("DROP TABLE gone")
    until(lambda: not node.jmx_has(f"org.apache.cassandra.metrics:type=HalcyonTable,keyspace={KEYSPACE},scope=gone,name=BytesRead"), "its metrics stay")


def reads_set_the_pace(node, options):
    """No read is as fast as this target: while there are reads compaction is slow, without them it hurries."""
    # Each compaction that waits raises the floor.
    for name in STRATEGIES:
        node.execute(f"DROP TABLE {name}")
        node.execute(f"DROP TABLE {name}_stock")
    node.execute("CREATE TABLE paced (k int PRIMARY KEY, v blob)")
    node.jmx.disable_autocompaction(KEYSPACE, "paced")
    insert = node.session.prepare("INSERT INTO paced (k, v) VALUES (?, ?)")
    # So much that it lasts until the rate has grown.
    for sstable in range(4):
        for k in range(200):
            node.execute(insert, (k, random.randbytes(100_000)))
        node.jmx.flush(KEYSPACE, "paced")
    assert node.get("Pace") == node.get("LatencyTarget") == "off"
    node.jmx.set(MBEAN, "LatencyTarget", "1us")
    over = threading.Event()
    reader = threading.Thread(target=read_until, args=(node, over))
    reader.start()
    try:
        until(lambda: pace(node) <= SLOW, f"reads do not slow compaction: {node.get('Pace')}")
        assert "reads took longer than 1 us" in node.get("Pace")
        compaction = plugin.Running(node, options, "paced")
        slow = pace(node)
        assert slow <= SLOW and not compaction.is_over()
    finally:
        over.set()
        reader.join()
    until(lambda: pace(node) > 2 * slow, "compaction does not speed up after the last read")
    node.jmx.set(MBEAN, "LatencyTarget", "off")
    compaction.end()
    with pytest.raises(DeskError, match="off or a duration"):
        node.jmx.set(MBEAN, "LatencyTarget", "fast")


def a_table_has_options(node, options):
    """Set by JMX while the node runs: a throughput, a target for its reads alone, and whether it is handed over at all."""
    node.execute("CREATE TABLE own (k int PRIMARY KEY, v blob)")
    node.jmx.disable_autocompaction(KEYSPACE, "own")
    plugin.write(node, "own", partitions=100)
    set_option(node, f"{KEYSPACE}.ow*", "throughput_mib", "1")
    compaction = plugin.Running(node, options, "own")
    until(lambda: node.running() > 0, "nothing is read")
    began, first = time.monotonic(), node.running()
    until(lambda: node.running() >= first + (2 << 20), "it does not continue")
    # The limiter lends a second's worth, and a tick is a mebibyte.
    assert not compaction.is_over() and node.running() - first <= (time.monotonic() - began + 2) * (1 << 20)
    assert node.metric("MemoryBytes", keyspace=KEYSPACE, scope="own") > 20 << 20
    set_option(node, f"{KEYSPACE}.ow*", "throughput_mib", "none")
    compaction.end()
    set_option(node, f"{KEYSPACE}.own", "latency_target", "1us")
    until(lambda: node.get("PaceBytesPerSecond") != "null", "its target is not followed")
    until(lambda: node.execute("SELECT k FROM own WHERE k = 1") and f"of {KEYSPACE}.own took longer than 1 us" in node.get("Pace"), "its reads do not count")
    set_option(node, f"{KEYSPACE}.own", "latency_target", "none")
    until(lambda: node.get("PaceBytesPerSecond") == "null", "its target is still followed")
    with pytest.raises(DeskError, match="no option of tables"):
        set_option(node, KEYSPACE, "speed", "1")
    for logger in ("halcyon.cassandra", "org.apache.cassandra.db.compaction.CompactionStrategyManager"):
        node.jmx.call("org.apache.cassandra.db:type=StorageService", "setLoggingLevel", logger, "INFO")
    parameters = f"org.apache.cassandra.db:type=Tables,keyspace={KEYSPACE},table=own"
    for exclude, is_ours in ((f"{KEYSPACE}.ow*", False), ("left.out", True)):
        node.jmx.set(MBEAN, "Exclude", exclude)
        until(lambda: ("Halcyon" in node.jmx.get(parameters, "CompactionParametersJson")) == is_ours, f"exclude={exclude} has no effect")
    # One line for all tables, in the place of one for each.
    until(lambda: node.said().count("tables of this node are handed over, or no longer") == 2, "it is not logged")
    assert "Switching local compaction strategy" not in node.said()


def set_option(node, pattern, name, value):
    node.jmx.call(MBEAN, "setTableOption", pattern, name, value)


# The floor is 1 MiB/s for each compaction that waits.
SLOW = 4 << 20


def pace(node):
    return int(node.get("PaceBytesPerSecond"))


def read_until(node, over):
    while not over.is_set():
        node.execute("SELECT k FROM paced WHERE k = 1")


def excluded_tables_stay(node):
    node.execute("CREATE KEYSPACE left WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    node.execute("CREATE TABLE left.out (k int PRIMARY KEY)")
    completed = node.completed()
    for k in range(2):
        node.execute(f"INSERT INTO left.out (k) VALUES ({k})")
        node.jmx.flush("left", "out")
    node.jmx.compact("left", "out")
    assert node.completed() == completed


# The state of a repair session that outlives a restart (ConsistentSession.State).
FINALIZE_PROMISED = 3


@pytest.mark.timeout(300)
def test_transient_replicas_stay_apart(cassandra_options, tmp_path):
    """What a node has of a token range for a while only is compacted with its like, and says so of itself afterwards."""
    folder, session = tmp_path / "node", uuid.uuid1()
    with plugin.cassandra(cassandra_options, folder, "da") as node:
        node.create_keyspace()
        node.execute("CREATE TABLE t (k int PRIMARY KEY) WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}")
        for k in range(6):
            node.execute(f"INSERT INTO t (k) VALUES ({k})")
            node.jmx.flush(KEYSPACE, "t")
        a_repair_that_is_not_over(node, session)
        files = node.live("t")
    with Tools(cassandra_options.oracle / opened.RELEASE / "java") as tools:
        for number, file in enumerate(files[:4]):
            tools.pending(file, session, number < 2)
    with plugin.cassandra(cassandra_options, folder, "da") as node:
        node.session.set_keyspace(KEYSPACE)
        groups = [(0, "--", False), (0, str(session), False), (0, str(session), True)]
        before = keys_of(node, tmp_path / "before")
        assert sorted(before) == groups
        completed = node.completed()
        node.jmx.compact(KEYSPACE, "t")
        assert node.completed() == completed + 3, (node.get("Reasons"), node.get("Failures"))
        assert len(node.live("t")) == 3 and keys_of(node, tmp_path / "after") == before


def keys_of(node, scratch):
    """By repair session and kind of replica."""
    scratch.mkdir()
    found = {}
    for file in node.live("t"):
        output = scratch / (file.name + ".json")
        node.tools.dump(file, output)
        keys = [partition["partition"]["key"][0] for partition in json.loads(output.read_text(encoding="utf-8"))]
        found.setdefault(node.repair(file, scratch), []).extend(keys)
    return {group: sorted(keys) for group, keys in found.items()}


def a_repair_that_is_not_over(node, session):
    """As the node finds it in its own table when it starts."""
    (table,) = node.execute("SELECT id FROM system_schema.tables WHERE keyspace_name = %s AND table_name = 't'", (KEYSPACE,))
    address = node.facts["address"], node.facts["storage_port"]
    # All tokens: two of them, each behind its length.
    tokens = struct.pack(">iqiq", 8, -(2**63), 8, -(2**63))
    node.execute(
        "INSERT INTO system.repairs (parent_id, started_at, last_update, repaired_at, state, coordinator, coordinator_port, participants_wp, ranges, cfids) "
        "VALUES (%s, toTimestamp(now()), toTimestamp(now()), toTimestamp(now()), %s, %s, %s, %s, %s, %s)",
        (session, FINALIZE_PROMISED, *address, {"%s:%s" % address}, {tokens}, {table.id}),
    )
    node.jmx.flush("system", "repairs")
