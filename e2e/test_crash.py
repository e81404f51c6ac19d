"""
Kills the server under load, starts it again and checks every write that was acknowledged. The machine runs on, so this holds in
every `commitlog_sync` mode.

Eight writers go on until the connection breaks. Each notes what it attempted and what was acknowledged; an operation that
was cut off may or may not be there, everything else must be exactly as acknowledged:

    insert   a row for each number              every acknowledged one is there, with its value
    delete   a row inserted, then deleted       deleted ones stay deleted
    update   one row, counting up               between acknowledged and attempted
    counter  n = n + 1                          between acknowledged and attempted
    lwt      v = n + 1 IF v = n                 between acknowledged and attempted, each applied once
    batch    a logged batch over partitions     all of its rows or none
    truncate rows, and all of them gone         rows before the last truncation are gone, those after it are there
    schema   a table made, filled, altered,     the last one is there as it was acknowledged, the one before is not
             and the one before it dropped
"""

import random
import threading
import time

import pytest
from cassandra.query import BatchStatement

from server import Server

TABLES = (
    "CREATE KEYSPACE crash WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE crash.inserted (k int, i int, v text, PRIMARY KEY (k, i))",
    "CREATE TABLE crash.deleted (k int, i int, v text, PRIMARY KEY (k, i))",
    "CREATE TABLE crash.updated (k int PRIMARY KEY, v int)",
    "CREATE TABLE crash.counted (k int PRIMARY KEY, n counter)",
    "CREATE TABLE crash.conditional (k int PRIMARY KEY, v int)",
    "CREATE TABLE crash.batched (k int PRIMARY KEY, v int)",
    "CREATE TABLE crash.truncated (k int PRIMARY KEY)",
)
PARTITIONS = 16
BATCH = 4
PADDING = "x" * 200
LONGEST_LOAD_SECONDS = 2.0


class Writer:
    def __init__(self):
        self.attempted = 0
        self.acknowledged = 0
        self.fault = None
        # Numbers that were attempted when a connection broke: nobody knows.
        self.unknown = set()

    def run(self, session, stop):
        self.prepare(session)
        try:
            while not stop.is_set():
                self.attempted += 1
                self.write(session, self.attempted)
                self.acknowledged = self.attempted
        except AssertionError as fault:
            self.fault = fault
        except Exception:  # the connection broke, as it should
            self.unknown.add(self.attempted)

    def between(self, found):
        found = found or 0
        assert self.acknowledged <= found <= self.attempted, f"{found}: {self.acknowledged} to {self.attempted}"
        # What was unknown is known now, and the next number goes on from it.
        self.attempted = self.acknowledged = found


class Insert(Writer):
    def prepare(self, session):
        self.statement = session.prepare("INSERT INTO crash.inserted (k, i, v) VALUES (?, ?, ?)")

    def write(self, session, number):
        session.execute(self.statement, (number % PARTITIONS, number, f"{number} {PADDING}"))

    def check(self, session):
        rows = {row.i: row.v for row in session.execute("SELECT i, v FROM crash.inserted")}
        for number in range(1, self.attempted + 1):
            if number in rows:
                assert rows[number] == f"{number} {PADDING}"
            else:
                assert number in self.unknown, f"insert {number} was acknowledged and is gone"
        assert max(rows, default=0) <= self.attempted


class Delete(Writer):
    def prepare(self, session):
        self.insert = session.prepare("INSERT INTO crash.deleted (k, i, v) VALUES (?, ?, ?)")
        self.delete = session.prepare("DELETE FROM crash.deleted WHERE k = ? AND i = ?")

    def write(self, session, number):
        session.execute(self.insert, (number % PARTITIONS, number, PADDING))
        session.execute(self.delete, (number % PARTITIONS, number))

    def check(self, session):
        rows = {row.i for row in session.execute("SELECT i FROM crash.deleted")}
        assert rows <= self.unknown, f"deleted rows are back: {sorted(rows - self.unknown)[:5]}"


class Update(Writer):
    def prepare(self, session):
        self.statement = session.prepare("UPDATE crash.updated SET v = ? WHERE k = 1")

    def write(self, session, number):
        session.execute(self.statement, (number,))

    def check(self, session):
        row = session.execute("SELECT v FROM crash.updated WHERE k = 1").one()
        self.between(row and row.v)


class Count(Writer):
    def prepare(self, session):
        self.statement = session.prepare("UPDATE crash.counted SET n = n + 1 WHERE k = 1")

    def write(self, session, _number):
        session.execute(self.statement)

    def check(self, session):
        row = session.execute("SELECT n FROM crash.counted WHERE k = 1").one()
        self.between(row and row.n)


class Conditional(Writer):
    def prepare(self, session):
        session.execute("INSERT INTO crash.conditional (k, v) VALUES (1, 0) IF NOT EXISTS")
        self.statement = session.prepare("UPDATE crash.conditional SET v = ? WHERE k = 1 IF v = ?")

    def write(self, session, number):
        applied = session.execute(self.statement, (number, number - 1)).one()
        assert applied[0], f"v = {number} IF v = {number - 1}: {applied}"

    def check(self, session):
        row = session.execute("SELECT v FROM crash.conditional WHERE k = 1").one()
        self.between(row and row.v)


class Batched(Writer):
    def prepare(self, session):
        self.statement = session.prepare("INSERT INTO crash.batched (k, v) VALUES (?, ?)")

    def write(self, session, number):
        batch = BatchStatement()
        for key in range(BATCH):
            batch.add(self.statement, (number * BATCH + key, number))
        session.execute(batch)

    def check(self, session):
        rows = {row.k: row.v for row in session.execute("SELECT k, v FROM crash.batched")}
        for number in range(1, self.attempted + 1):
            found = [rows.get(number * BATCH + key) for key in range(BATCH)]
            assert found == [number] * BATCH or (number in self.unknown and found == [None] * BATCH), f"batch {number}: {found}"


class Truncate(Writer):
    EVERY = 20

    def __init__(self):
        super().__init__()
        # Numbers of truncations: of the last one that was acknowledged, and of the last one that was attempted.
        self.truncated = self.truncating = 0

    def prepare(self, session):
        self.insert = session.prepare("INSERT INTO crash.truncated (k) VALUES (?)")

    def write(self, session, number):
        if number % self.EVERY == 0:
            self.truncating = number
            session.execute("TRUNCATE crash.truncated")
            self.truncated = number
        else:
            session.execute(self.insert, (number,))

    def check(self, session):
        rows = {row.k for row in session.execute("SELECT k FROM crash.truncated")}
        back = [k for k in rows if k <= self.truncated]
        assert not back, f"rows from before truncation {self.truncated} are back: {sorted(back)[:5]}"
        inserted = {n for n in range(self.truncating + 1, self.attempted + 1) if n % self.EVERY}
        lost = inserted - rows - self.unknown
        assert not lost, f"rows from after truncation {self.truncating} are gone: {sorted(lost)[:5]}"


class Schema(Writer):
    def prepare(self, session):
        self.first = self.attempted + 1

    def write(self, session, number):
        session.execute(f"CREATE TABLE crash.made_{number} (k int PRIMARY KEY, v int)")
        session.execute(f"INSERT INTO crash.made_{number} (k, v) VALUES (1, {number})")
        session.execute(f"ALTER TABLE crash.made_{number} ADD w text")
        if number > self.first:
            session.execute(f"DROP TABLE crash.made_{number - 1}")

    def check(self, session):
        tables = session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'crash'")
        made = {int(row.table_name[5:]) for row in tables if row.table_name.startswith("made_")}
        known, cut = self.acknowledged, self.attempted
        assert made <= {known, cut}, f"dropped tables are back: {made}, not only {known} and {cut}"
        if known >= self.first:
            assert made, f"made_{known} is gone"
        if known in made:
            row = session.execute(f"SELECT k, v, w FROM crash.made_{known}").one()
            assert row == (1, known, None), f"made_{known}: {row}"
        for number in made:
            session.execute(f"DROP TABLE crash.made_{number}")


SYNC = {
    "batch": "commitlog_sync: batch\n",
    "group": "commitlog_sync: group\ncommitlog_sync_group_window: 10ms\n",
    "periodic": "commitlog_sync: periodic\ncommitlog_sync_period: 10s\n",
}


@pytest.mark.parametrize("sync", SYNC)
def test_nothing_acknowledged_is_lost(request, tmp_path, sync):
    kills = request.config.getoption("--kills")
    seed = request.config.getoption("--seed") or random.randrange(1 << 32)
    print(f"--seed={seed}")
    chance = random.Random(seed)
    # Small, so that flushes and recycled segments happen within seconds.
    config = tmp_path / "cassandra.yaml"
    config.write_text(
        "commitlog_segment_size: 1MiB\ncommitlog_total_space: 8MiB\nmemtable_heap_space: 2MiB\n"
        f"auto_snapshot: {chance.choice(['true', 'false'])}\n{SYNC[sync]}"
    )
    server = Server(request.config.getoption("--halcyon"), tmp_path, "--config", config).start()
    try:
        session = server.connect()
        for statement in TABLES:
            session.execute(statement)
        writers = [Insert(), Delete(), Update(), Count(), Conditional(), Batched(), Truncate(), Schema()]
        for _ in range(kills):
            session = server.connect()
            stop = threading.Event()
            threads = [threading.Thread(target=writer.run, args=(session, stop)) for writer in writers]
            for thread in threads:
                thread.start()
            time.sleep(chance.uniform(0.05, LONGEST_LOAD_SECONDS))
            server.kill_process()
            stop.set()
            for thread in threads:
                thread.join(timeout=60)
            server.kill()
            session = server.start().connect()
            for writer in writers:
                assert writer.fault is None, writer.fault
                writer.check(session)
        written = sum(writer.attempted for writer in writers)
        assert written > 20 * kills, f"only {written} writes"
        assert server.stop() == 0
    finally:
        server.close()
