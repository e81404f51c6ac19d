"""
An operator's day on one node: load, look, throttle, snapshot, a broken file, verify, scrub, restore, logging, drain. `nodetool`, the
metrics and the page say what happens at each step.
"""

import json
import os
import shutil
import urllib.error
import urllib.request

import pytest
from cassandra.concurrent import execute_concurrent_with_args

from patience import PATIENCE_SECONDS, TIMEOUTS, until
from server import HOST, Server, free_port
from test_nodetool import Tool

ROWS = 2000


class Desk:
    """What an operator looks at."""

    def __init__(self, halcyon, folder):
        self._address = f"http://{HOST}:{free_port()}"
        config = folder / "cassandra.yaml"
        config.write_text(f"metrics_port: {self._address.rsplit(':', 1)[1]}\nnodetool_port: 0\n{TIMEOUTS}", encoding="utf-8")
        self.server = Server(halcyon, folder, "--config", config)
        self.tool = Tool(halcyon, "nodetool", "-p", str(self.server.port))

    def does(self, line):
        status, out, err = self.tool.run(line)
        assert (status, err) == (0, ""), (line, out, err)
        return out

    def get(self, path):
        """The status and the text."""
        try:
            with urllib.request.urlopen(self._address + path, timeout=PATIENCE_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def metric(self, series):
        """The value of a series, by its name and labels as they are written."""
        lines = self.get("/metrics")[1].splitlines()
        return next((float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"{series} ")), None)

    def page_says(self, panel, text):
        """Waits until the page shows a text in a panel."""
        with urllib.request.urlopen(f"{self._address}/events", timeout=PATIENCE_SECONDS) as events:
            for line in events:
                shown = json.loads(line[5:]) if line.startswith(b'data: {"at"') else {"panels": {}}
                if text in json.dumps(shown["panels"].get(panel, [])):
                    return


@pytest.fixture
def desk(request, tmp_path):
    desk = Desk(request.config.getoption("--halcyon"), tmp_path)
    yield desk
    desk.server.close()


def flip(path, offset):
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))
        os.fsync(file.fileno())


@pytest.mark.timeout(180)
def test_a_day(desk, tmp_path):
    session = desk.server.start().connect()
    assert desk.get("/ready")[0] == 200 and "UN" in desk.does("status")

    # Load, and look at it.
    session.execute("CREATE KEYSPACE day WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    compression = "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}"
    session.execute(f"CREATE TABLE day.t (k int PRIMARY KEY, v text) WITH compression = {compression}")
    insert = session.prepare("INSERT INTO day.t (k, v) VALUES (?, ?)")
    written = execute_concurrent_with_args(session, insert, [(k, f"value {k} of the day") for k in range(ROWS)])
    assert all(success for success, _ in written)
    count = "SELECT count(*) FROM day.t"
    writes = 'cassandra_table_writelatency_seconds_count{table="t",keyspace="day"}'
    assert desk.metric(writes) == ROWS
    desk.does("flush day t")
    assert f"Local write count: {ROWS}" in desk.does("tablestats day.t")
    desk.page_says("tables", "day")

    # Throttle.
    desk.does("setcompactionthroughput 16")
    assert "16 MB/s" in desk.does("getcompactionthroughput")
    desk.page_says("settings", "16MiB/s")
    desk.does("settimeout read 7000")
    assert desk.does("gettimeout read") == "Current timeout for type read: 7000 ms\n"

    # A snapshot, then a byte of a file is broken.
    desk.does("snapshot -t morning -kt day.t")
    assert "morning" in desk.does("listsnapshots")
    (folder,) = (desk.server.data / "data" / "day").glob("t-*")
    # The links of the snapshot lead to the same bytes.
    shutil.copytree(folder / "snapshots" / "morning", tmp_path / "backup")
    data = min(folder.glob("*-Data.db"))
    flip(data, data.stat().st_size // 2)
    status, _, said = desk.tool.run("verify -f -e day t")
    assert status == 2 and str(data) in said
    desk.page_says("log", "verify: ")

    # Scrub: what is sound stays, what is lost is named, and is in a snapshot.
    desk.does("scrub day t")
    desk.page_says("log", "partitions are lost, in part or as a whole")
    kept = session.execute(count).one()[0]
    assert ROWS - 400 < kept < ROWS
    # A reader of the file may still hold it for a moment.
    until(lambda: not data.exists(), f"{data} to be removed")
    assert "pre-scrub-" in desk.does("listsnapshots")
    desk.does("verify -f -e day t")

    # Restore what was lost.
    desk.does(f"import day t {tmp_path / 'backup'}")
    assert session.execute(count).one()[0] == ROWS
    desk.does("compact day t")
    assert desk.metric('cassandra_table_livesstablecount{table="t",keyspace="day"}') == 1
    assert session.execute(count).one()[0] == ROWS

    # Tombstones of one partition need not wait for gc_grace_seconds.
    session.execute("DELETE FROM day.t WHERE k = 7")
    desk.does("flush day t")
    desk.does("forcecompact day t 7")
    assert desk.does("getsstables day t 7") == ""

    # More of the log, then the end.
    desk.does("setlogginglevel engine.compact debug")
    assert "engine.compact" in desk.does("getlogginglevels")
    desk.does("drain")
    desk.page_says("log", "DRAINED")
    with pytest.raises(Exception, match="draining"):
        session.execute("INSERT INTO day.t (k, v) VALUES (1, 'late')")
    assert session.execute(count).one()[0] == ROWS - 1
    until(lambda: desk.get("/health")[0] == 200, "the process has ended")
    assert desk.server.stop() == 0
