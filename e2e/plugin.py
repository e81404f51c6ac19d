"""A Cassandra with the jar of plugin/cassandra/, and what tests ask of it."""

import os
import random
import re
import select
import shutil
import subprocess
import sys
import threading
import zipfile
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from cases import load_dump, logical
from oracle import opened
from oracle.desks import DeskError, Jmx, Tools
from patience import PATIENCE_SECONDS, until

MBEAN = "halcyon.cassandra:type=Halcyon"
COMPACTIONS = "org.apache.cassandra.db:type=CompactionManager"
KEYSPACE = "p"
# The strictest policy: a damaged file that its reader finds takes the node offline.
POLICY = "disk_failure_policy: stop_paranoid"
STRATEGIES = {
    "stcs": "{'class': 'SizeTieredCompactionStrategy', 'min_threshold': 2}",
    "twcs": "{'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS', 'min_threshold': 2}",
    "lcs": "{'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': 1}",
    "ucs": "{'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'T2', 'base_shard_count': 4, 'target_sstable_size': '1MiB', 'min_sstable_size': '0B'}",
}


class Killed(Exception):
    """Ends a node's context where there is no node any more."""


class Node:
    """A running node. Its log has what the plug-in says at WARN."""

    def __init__(self, options, session, facts, release=opened.RELEASE):
        java = opened.java(options, release)
        self.session = session
        self.facts = facts
        self.pid = facts["pid"]
        self.jmx = Jmx(java, facts["jmx_port"])
        self._java = java

    @cached_property
    def tools(self):
        return Tools(self._java)

    def close(self):
        self.jmx.close()
        if "tools" in self.__dict__:
            self.tools.close()

    def create_keyspace(self):
        self.execute(f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
        self.session.set_keyspace(KEYSPACE)

    def execute(self, *arguments):
        return self.session.execute(*arguments)

    def said(self):
        return Path(self.facts["log"]).read_text(encoding="utf-8")

    def get(self, attribute):
        return self.jmx.get(MBEAN, attribute)

    def has_plugin(self):
        try:
            return self.get("Enabled") in ("true", "false")
        except DeskError:
            return False

    def is_ready(self):
        """The agent has tested the service and set the tables."""
        return self.has_plugin() and self.get("ForAllTables") == "true"

    def counts(self, attribute):
        """An attribute that has numbers by name."""
        rows = re.findall(r"contents=\{key=(.*?), value=(\d+)\}", self.get(attribute))
        return {name: int(number) for name, number in rows}

    def metric(self, name, **keys):
        """Beside Cassandra's own."""
        keys = "".join(f",{key}={value}" for key, value in keys.items())
        kind = "HalcyonTable" if "keyspace" in keys else "Halcyon"
        bean = f"org.apache.cassandra.metrics:type={kind}{keys},name={name}"
        try:
            return int(self.jmx.get(bean, "Count"))
        except DeskError:
            return int(self.jmx.get(bean, "Value"))

    def jmx_has(self, bean):
        try:
            return bool(self.jmx.get(bean, "Count"))
        except DeskError:
            return False

    def completed(self):
        return int(self.get("Completed"))

    def done_by_halcyon(self, table, kind="Compaction"):
        """Compactions in Cassandra's own history."""
        history = self.execute("SELECT columnfamily_name, compaction_properties FROM system.compaction_history")
        found = [row.compaction_properties for row in history if row.columnfamily_name == table]
        return [one for one in found if one.get("compacted_by") == "halcyon" and one["compaction_type"] == kind]

    def service(self):
        """Its pid."""
        state = self.get("Service")
        assert state.startswith("running "), state
        return int(state.split()[1])

    def running(self):
        """Bytes that compactions which run have read."""
        shown = self.jmx.get(COMPACTIONS, "Compactions")
        return sum(int(number) for number in re.findall(r"completed=(\d+)", shown))

    def folders(self, table):
        """One on each disk."""
        shown = self.jmx.get(f"org.apache.cassandra.db:type=Tables,keyspace={KEYSPACE},table={table}", "DataPaths")
        return [Path(path) for path in shown.strip("[]").split(", ")]

    def folder(self, table):
        (found,) = self.folders(table)
        return found

    def data_files(self, table):
        return self._files(table, "*-Data.db")

    def _files(self, table, *patterns):
        return sorted(path for folder in self.folders(table) for pattern in patterns for path in folder.glob(pattern))

    def live(self, table):
        """Data files when those that were replaced are deleted, which Cassandra does later."""
        until(lambda: self._is_tidy(table), "files are left over")
        return self.data_files(table)

    def repairs(self, table, scratch):
        """Of each SSTable when it was repaired (0: it was not), the session that repairs it, and whether it is a transient replica's."""
        while True:
            files = self.live(table)
            found = [self.repair(file, scratch) for file in files]
            # Those that were replaced meanwhile have no metadata.
            if files == self.live(table):
                return sorted(found)

    def repair(self, file, scratch):
        output = scratch / (file.name + ".metadata")
        self.tools.metadata(file, output)
        said = output.read_text(encoding="utf-8")
        found = re.search(r"Repaired at: (\d+).*Pending repair: (\S+).*IsTransient: (\S+)", said, re.DOTALL)
        return (int(found[1]), found[2], found[3] == "true") if found else (0, "?", False)

    def _is_tidy(self, table):
        name = f"org.apache.cassandra.metrics:type=Table,keyspace={KEYSPACE},scope={table},name=LiveSSTableCount"
        return not self._files(table, "*.tmp", "*_txn_*") and int(self.jmx.get(name, "Value")) == len(self.data_files(table))

    def dumps(self, table, scratch, files=None):
        """The content of each SSTable, or of these, in the order of tokens."""
        found = []
        for file in self.live(table) if files is None else files:
            output = scratch / (file.name + ".json")
            self.tools.dump(file, output)
            found.append(logical(load_dump(output.read_text(encoding="utf-8"))))
        return sorted(found, key=str)

    def copy(self, table, to):
        """A copy of a table's files, for an import into another."""
        to.mkdir(parents=True)
        for file in self._files(table, "*"):
            if file.is_file():
                shutil.copyfile(file, to / file.name)


def jvm(options, *more, jar=None, **given):
    """Options of the node's JVM."""
    given = {"binary": options.halcyon, **given}
    return " ".join(["-ea", *more, f"-javaagent:{jar or options.plugin}", *(f"-Dhalcyon.{name}={value}" for name, value in given.items())])


def without_line(options, line, to):
    """The jar as it was before it knew a line of releases."""
    with zipfile.ZipFile(options.plugin) as whole, zipfile.ZipFile(to, "w") as jar:
        of_line = f"halcyon/lines/{line}"
        lists = [name for name in whole.namelist() if name.startswith("halcyon/lines/") and name not in ("halcyon/lines/", of_line)]
        own = set(whole.read(of_line).decode().split("\n")).difference(*(whole.read(name).decode().split("\n") for name in lists))
        for name in whole.namelist():
            if name != of_line and name.removesuffix(".class") not in own:
                jar.writestr(name, whole.read(name))
    return to


@contextmanager
def cassandra(options, folder, form, *settings, agent=(), release=opened.RELEASE, **given):
    with opened.cassandra(options, folder, form, *settings, jvm=jvm(options, *agent, **given), release=release) as (session, facts):
        node = Node(options, session, facts, release)
        try:
            until(node.is_ready, "the plug-in has not started")
            yield node
        finally:
            node.close()


def to_hand_over(options, port, *arguments):
    """The command that sets tables by JMX."""
    return [options.halcyon, "compact", "--node", f"127.0.0.1:{port}", "--jar", options.plugin, *arguments]


def hand_over(options, port, *arguments, code=0):
    """Answers what it printed, on both ways."""
    done = subprocess.run(to_hand_over(options, port, *arguments), capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def create(node, *tables):
    node.create_keyspace()
    for table in tables:
        node.execute(f"CREATE TABLE {table} (k int PRIMARY KEY, v blob) WITH compaction = {STRATEGIES['stcs']}")
        node.jmx.disable_autocompaction(KEYSPACE, table)


def write(node, table, sstables=2, partitions=30):
    """What cannot be compressed: 100 KB a partition."""
    chance = random.Random(table)
    insert = node.session.prepare(f"INSERT INTO {table} (k, v) VALUES (?, ?)")
    for first in range(sstables):
        for k in range(first, first + partitions):
            node.execute(insert, (k, chance.randbytes(100_000)))
        node.jmx.flush(KEYSPACE, table)


def rows(session, table):
    return sorted((row.k, hash(row.v)) for row in session.execute(f"SELECT k, v FROM {KEYSPACE}.{table}"))


def figures(node):
    return {name: int(node.get(name)) for name in ("Completed", "Stopped", "Failed")}


def until_it_starts(node):
    """A compaction of a table of its own, as often as it takes until it is handed over."""
    node.execute("CREATE TABLE IF NOT EXISTS small (k int PRIMARY KEY)")

    def is_handed_over():
        completed = figures(node)["Completed"]
        node.execute("INSERT INTO small (k) VALUES (1)")
        node.jmx.flush(KEYSPACE, "small")
        node.jmx.compact(KEYSPACE, "small")
        return figures(node)["Completed"] > completed

    until(is_handed_over, "the service does not start")


def is_alive(pid):
    """Until all of its threads have ended and its parent can hear of it: the state in /proc, of its first thread, says Z before that."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        return not select.select([process], [], [], 0)[0]
    finally:
        os.close(process)


class Shim:
    """A program in the place of `halcyon`, which does to its answers what `does` says: see shim.py."""

    def __init__(self, options, folder):
        folder.mkdir()
        self.path, self._control, self._held = folder / "halcyon", folder / "control", folder / "held"
        here = Path(__file__).resolve().parent
        self.path.write_text(f"#!/bin/sh\nexec {sys.executable} {here}/shim.py {options.halcyon} {self._control} \"$@\"\n", encoding="utf-8")
        self.path.chmod(0o755)

    @contextmanager
    def does(self, what):
        self._control.write_text(what, encoding="utf-8")
        try:
            yield
        finally:
            self._control.unlink()

    @contextmanager
    def holds(self, stage):
        """To be entered before a compaction, which is at this stage when `until_held` returns, until the context ends."""
        self._held.unlink(missing_ok=True)
        with self.does(f"hold {stage}"):
            yield

    def until_held(self):
        until(self._held.exists, "the compaction does not come to this stage")


class Running:
    """A major compaction that runs in another thread."""

    def __init__(self, node, options, table, is_shown=True):
        self._jmx = Jmx(options.oracle / opened.RELEASE / "java", node.facts["jmx_port"])
        self.failed = None
        self._thread = threading.Thread(target=self._run, args=(table,))
        self._thread.start()
        if is_shown:
            until(lambda: table in node.jmx.get(COMPACTIONS, "Compactions"), "the compaction does not begin")

    def _run(self, table):
        try:
            self._jmx.compact(KEYSPACE, table)
        except Exception as error:  # A killed node ends the desk too.
            self.failed = error

    def is_over(self):
        return not self._thread.is_alive()

    def end(self):
        self._thread.join(timeout=PATIENCE_SECONDS)
        assert self.is_over()
        self._jmx.close()


class Slow(Running):
    """Until `hurry`."""

    def __init__(self, node, options, table):
        self._node = node
        self._set(1)
        super().__init__(node, options, table)
        until(lambda: node.running() > 0, "nothing is read")

    def _set(self, mebibytes):
        self._node.jmx.set("org.apache.cassandra.db:type=StorageService", "CompactionThroughputMbPerSec", mebibytes)

    def hurry(self):
        self._set(0)
