"""
Kills the server under load, starts it again and checks every write that was acknowledged. The machine runs on, so this holds in
every `commitlog_sync` mode.

Writers work until the connection breaks. Each notes what it attempted and what was acknowledged; an operation that was cut off
may or may not be there, everything else must be exactly as acknowledged:

    insert   a row for each number              every acknowledged one is there, with its value
    delete   a row inserted, then deleted       deleted ones stay deleted
    update   one row, counting up               between acknowledged and attempted
    counter  n = n + 1                          between acknowledged and attempted
    lwt      v = n + 1 IF v = n                 between acknowledged and attempted, each applied once
    batch    a logged batch over partitions     all of its rows or none
    truncate rows, and all of them deleted      rows before the last truncation are deleted, those after it are there
    schema   a table made, filled, altered,     the last one is there as it was acknowledged, the one before is not
             and the one before it dropped
"""

import re
import threading
import time
from dataclasses import dataclass

from native import Client, Refused
from patience import PATIENCE_SECONDS

TABLES = (
    "CREATE KEYSPACE crash WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE crash.inserted (k int, i int, v text, PRIMARY KEY (k, i)) WITH compaction = {'class': 'UnifiedCompactionStrategy'}",
    "CREATE TABLE crash.deleted (k int, i int, v text, PRIMARY KEY (k, i)) WITH compaction = {'class': 'LeveledCompactionStrategy'}",
    "CREATE TABLE crash.updated (k int PRIMARY KEY, v int)",
    "CREATE TABLE crash.counted (k int PRIMARY KEY, n counter)",
    "CREATE TABLE crash.conditional (k int PRIMARY KEY, v int)",
    "CREATE TABLE crash.batched (k int PRIMARY KEY, v int)",
    "CREATE TABLE crash.truncated (k int PRIMARY KEY)",
)
# So small that flushes, compactions and recycled segments happen all the time.
SETTINGS = (
    "commitlog_segment_size: 1MiB\ncommitlog_total_space: 4MiB\nmemtable_heap_space: 1MiB\ncompaction_throughput: 0MiB/s\n"
)
SYNC = {
    "batch": "commitlog_sync: batch\n",
    "group": "commitlog_sync: group\ncommitlog_sync_group_window: 10ms\n",
    "periodic": "commitlog_sync: periodic\ncommitlog_sync_period: 10s\n",
}
PARTITIONS = 16
BATCH = 4
PADDING = "x" * 1000
PAGE_ROWS = 5000


def number(cell):
    return int.from_bytes(cell, "big", signed=True)


def rows_of(client, text):
    """All pages."""
    rows, state = [], None
    while True:
        _, page, state = client.query(text, PAGE_ROWS, state)
        rows += page
        if not state:
            return rows


class Writer:
    # The table that grows with each write, if one does.
    grows = None

    def __init__(self):
        self.attempted = self.acknowledged = 0
        self.operations = 0
        self.fault = None
        # Numbers that were attempted when a connection broke: their outcome is unknown.
        self.unknown = set()
        self.first = 1

    def run(self, port, stop):
        try:
            client = Client(port)
            self.prepare(client)
            while not stop.is_set():
                self.attempted += 1
                self.write(client, self.attempted)
                self.acknowledged = self.attempted
                self.operations += 1
        except (AssertionError, Refused) as fault:
            self.fault = fault
        except (EOFError, OSError):  # the connection broke, as it should, or was never made
            if self.attempted != self.acknowledged:
                self.unknown.add(self.attempted)

    def prepare(self, client):
        pass

    def forget(self, client):
        """Before all that was written makes every check longer."""
        if self.grows:
            client.query(f"TRUNCATE {self.grows}")
            self.unknown.clear()
            self.first = self.attempted + 1

    def known(self):
        return range(self.first, self.attempted + 1)

    def between(self, rows):
        found = number(rows[0][0]) if rows else 0
        assert self.acknowledged <= found <= self.attempted, f"{found}: {self.acknowledged} to {self.attempted}"
        # What was unknown is known now, and the next number continues from it.
        self.attempted = self.acknowledged = found


class Insert(Writer):
    grows = "crash.inserted"

    def write(self, client, number):
        client.query(f"INSERT INTO crash.inserted (k, i, v) VALUES ({number % PARTITIONS}, {number}, '{number} {PADDING}')")

    def check(self, client):
        rows = {number(i): v.decode() for i, v in rows_of(client, "SELECT i, v FROM crash.inserted")}
        for wanted in self.known():
            if wanted in rows:
                assert rows[wanted] == f"{wanted} {PADDING}"
            else:
                assert wanted in self.unknown, f"insert {wanted} was acknowledged and is missing"
        assert rows.keys() <= set(self.known()), f"rows that no client wrote: {sorted(rows.keys() - set(self.known()))[:5]}"


class Delete(Writer):
    grows = "crash.deleted"

    def write(self, client, number):
        k = number % PARTITIONS
        client.query(f"INSERT INTO crash.deleted (k, i, v) VALUES ({k}, {number}, '{PADDING}')")
        client.query(f"DELETE FROM crash.deleted WHERE k = {k} AND i = {number}")

    def check(self, client):
        rows = {number(i) for (i,) in rows_of(client, "SELECT i FROM crash.deleted")}
        assert rows <= self.unknown, f"deleted rows are back: {sorted(rows - self.unknown)[:5]}"


class Update(Writer):
    def write(self, client, number):
        client.query(f"UPDATE crash.updated SET v = {number} WHERE k = 1")

    def check(self, client):
        self.between(rows_of(client, "SELECT v FROM crash.updated WHERE k = 1"))


class Count(Writer):
    def write(self, client, _number):
        client.query("UPDATE crash.counted SET n = n + 1 WHERE k = 1")

    def check(self, client):
        self.between(rows_of(client, "SELECT n FROM crash.counted WHERE k = 1"))


class Conditional(Writer):
    def prepare(self, client):
        client.query("INSERT INTO crash.conditional (k, v) VALUES (1, 0) IF NOT EXISTS")

    def write(self, client, number):
        columns, rows, _ = client.query(f"UPDATE crash.conditional SET v = {number} WHERE k = 1 IF v = {number - 1}")
        assert rows == [(b"\1",)], f"v = {number} IF v = {number - 1}: {columns} {rows}"

    def check(self, client):
        self.between(rows_of(client, "SELECT v FROM crash.conditional WHERE k = 1"))


class Batched(Writer):
    grows = "crash.batched"

    def write(self, client, number):
        rows = [f"INSERT INTO crash.batched (k, v) VALUES ({number * BATCH + key}, {number})" for key in range(BATCH)]
        client.query(f"BEGIN BATCH {'; '.join(rows)}; APPLY BATCH")

    def check(self, client):
        rows = {number(k): number(v) for k, v in rows_of(client, "SELECT k, v FROM crash.batched")}
        for wanted in self.known():
            found = [rows.get(wanted * BATCH + key) for key in range(BATCH)]
            assert found == [wanted] * BATCH or (wanted in self.unknown and found == [None] * BATCH), f"batch {wanted}: {found}"


class Truncate(Writer):
    EVERY = 20

    def __init__(self):
        super().__init__()
        # Numbers of truncations: of the last one that was acknowledged, and of the last one that was attempted.
        self.truncated = self.truncating = 0

    def write(self, client, number):
        if number % self.EVERY == 0:
            self.truncating = number
            client.query("TRUNCATE crash.truncated")
            self.truncated = number
        else:
            client.query(f"INSERT INTO crash.truncated (k) VALUES ({number})")

    def check(self, client):
        rows = {number(k) for (k,) in rows_of(client, "SELECT k FROM crash.truncated")}
        back = [k for k in rows if k <= self.truncated]
        assert not back, f"rows from before truncation {self.truncated} are back: {sorted(back)[:5]}"
        inserted = {n for n in range(self.truncating + 1, self.attempted + 1) if n % self.EVERY}
        lost = inserted - rows - self.unknown
        assert not lost, f"rows from after truncation {self.truncating} are missing: {sorted(lost)[:5]}"


class Schema(Writer):
    def write(self, client, number):
        client.query(f"CREATE TABLE crash.made_{number} (k int PRIMARY KEY, v int)")
        client.query(f"INSERT INTO crash.made_{number} (k, v) VALUES (1, {number})")
        client.query(f"ALTER TABLE crash.made_{number} ADD w text")
        if number > self.first:
            client.query(f"DROP TABLE crash.made_{number - 1}")

    def check(self, client):
        tables = rows_of(client, "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'crash'")
        made = {int(name[5:]) for (name,) in tables if name.startswith(b"made_")}
        known, cut = self.acknowledged, self.attempted
        assert made <= {known, cut}, f"dropped tables are back: {made}, not only {known} and {cut}"
        if known >= self.first:
            assert made, f"made_{known} is missing"
        if known in made:
            ((k, v, w),) = rows_of(client, f"SELECT k, v, w FROM crash.made_{known}")
            assert (number(k), number(v), w) == (1, known, None), f"made_{known}: {k} {v} {w}"
        for each in made:
            client.query(f"DROP TABLE crash.made_{each}")
        # The next one has no table before it.
        self.first = self.attempted + 1


@dataclass
class Figures:
    kills: int = 0
    kills_during_start: int = 0
    starts: int = 0
    acknowledged: int = 0
    sstables_written: int = 0
    compactions: int = 0
    seconds: float = 0.0


class Campaign:
    """A server that is killed again and again, and who writes to it."""

    # Of kills, how many come while the server starts.
    DURING_START = 1 / 8
    LONGEST_START_SECONDS = 0.3
    FORGET_EVERY = 10

    def __init__(self, server, chance, longest_load_seconds):
        self.server, self.chance, self._longest = server, chance, longest_load_seconds
        self.figures = Figures()
        self.writers = [Insert(), Delete(), Update(), Count(), Conditional(), Batched(), Truncate(), Schema()]
        self._began = time.monotonic()
        self._ids = {}
        server.start()
        self.figures.starts += 1
        client = Client(server.port)
        for statement in TABLES:
            client.query(statement)
        client.close()

    def kill(self):
        """Load, a kill, a start, checks."""
        stop = threading.Event()
        threads = [threading.Thread(target=writer.run, args=(self.server.port, stop)) for writer in self.writers]
        for thread in threads:
            thread.start()
        time.sleep(self.chance.uniform(0.02, self._longest))
        self.server.kill_process()
        stop.set()
        for thread in threads:
            thread.join(timeout=PATIENCE_SECONDS)
        self.server.kill()
        self.figures.kills += 1
        while self.chance.random() < self.DURING_START:
            self.server.launch()
            time.sleep(self.chance.uniform(0, self.LONGEST_START_SECONDS))
            self.server.kill()
            self.figures.kills += 1
            self.figures.kills_during_start += 1
        self.server.start()
        self.figures.starts += 1
        self._check()

    def _check(self):
        client = Client(self.server.port)
        for writer in self.writers:
            assert writer.fault is None, writer.fault
            writer.check(client)
            if self.figures.starts % self.FORGET_EVERY == 0:
                writer.forget(client)
        client.close()

    def count(self):
        """The figures so far. SSTables are counted by their numbers, which go up in each folder."""
        for file in self.server.data.glob("data/*/*/*-Data.db"):
            found = re.match(r"\w+-(\d+)-", file.name)
            self._ids[file.parent] = max(self._ids.get(file.parent, 0), int(found[1]))
        self.figures.sstables_written = sum(self._ids.values())
        self.figures.compactions = self.server.said().count("Compacted (")
        self.figures.acknowledged = sum(writer.operations for writer in self.writers)
        self.figures.seconds = time.monotonic() - self._began
        return self.figures
