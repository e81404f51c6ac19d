"""
The operator's log: its forms, its files across a kill, levels that change while the node runs, and slow requests, which are logged in the
words of Cassandra's MonitoringTask.
"""

import gzip
import json
import re
import subprocess

import pytest

from native import Client, Refused
from patience import PATIENCE_SECONDS, until
from server import Server

LINE = re.compile(r"(ERROR|WARN |INFO |DEBUG) \[[^\]]+\] \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3} (\S+\.rs:\d+|[a-z_.]+) - .*")
SLOW = re.compile(r"<(?P<text>.*)>, (?:time \d+ msec|was slow \d+ times: avg/min/max \d+/\d+/\d+ msec) - slow timeout (?P<timeout>\d+) msec")
CONFIG = """
log_destination: both
log_file_size: 1MiB
log_levels: {server.listen: info}
slow_query_log_timeout: 1ms
monitoring_report_interval: 200ms
"""


@pytest.fixture(scope="module")
def node(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    (folder / "cassandra.yaml").write_text(CONFIG, encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), folder, "--config", folder / "cassandra.yaml").start()
    client = Client(server.port)
    client.query("CREATE KEYSPACE l WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    client.query("CREATE TABLE l.t (p int, c int, v text, PRIMARY KEY (p, c))")
    yield server, client
    client.close()
    server.close()


def command(client, verb, argument):
    text = argument.replace("'", "''")
    return client.query(
        f"INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) VALUES ('{verb}', '', '', '{text}')"
    )


def nodetool(request, server, *words):
    done = subprocess.run(
        [request.config.getoption("--halcyon"), "nodetool", "-p", str(server.port), *words],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS,
    )
    return done.returncode, done.stdout, done.stderr


def logged(server, name):
    path = server.data / "logs" / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_lines_have_the_pattern_of_system_log_and_texts_stay_in_their_line(node):
    server, client = node
    with pytest.raises(Refused):
        command(client, "settraceprobability", "1\nERROR [main] 2026-01-01T00:00:00,000 forged.rs:1 - forged\r\x1b[2J\u2028.")
    until(lambda: "forged" in logged(server, "debug.log"), "the command is not logged", pause=0.02)
    for text in (server.said(), logged(server, "system.log"), logged(server, "debug.log")):
        lines = [line for line in text.split("\n")[:-1] if not line.startswith("<")]
        assert not [line for line in lines if not LINE.fullmatch(line)], lines
        assert not any(line.startswith("ERROR") and "forged" in line for line in lines)
    assert r"1\nERROR [main] 2026-01-01T00:00:00,000 forged.rs:1 - forged\r\u{1b}[2J\u{2028}." in logged(server, "system.log")
    assert "DEBUG" not in server.said() + logged(server, "system.log")


def test_levels_change_while_the_node_runs(request, node):
    server, _ = node
    usual = "\n" + "".join(f"{name:<50}{level:>10}\n" for name, level in [
        ("Logger Name", "Log Level"), ("ROOT", "DEBUG"), ("server.listen", "INFO"),
    ])
    assert nodetool(request, server, "getlogginglevels") == (0, usual, "")
    Client(server.port).close()
    assert "is connected to shard" not in logged(server, "debug.log")
    assert nodetool(request, server, "setlogginglevel", "org.apache.cassandra.transport", "TRACE") == (0, "", "")
    assert re.search(r"^server.listen +TRACE$", nodetool(request, server, "getlogginglevels")[1], re.M)
    Client(server.port).close()
    until(lambda: "is connected to shard" in logged(server, "debug.log"), "no connection is logged", pause=0.02)
    assert nodetool(request, server, "setlogginglevel", "compaction", "warn") == (0, "", "")
    assert re.search(r"^engine.compact +WARN$", nodetool(request, server, "getlogginglevels")[1], re.M)
    status, _, error = nodetool(request, server, "setlogginglevel", "nope", "info")
    assert status == 2 and "unknown logger 'nope'; expected ROOT" in error
    status, _, error = nodetool(request, server, "setlogginglevel", "ROOT", "loud")
    assert status == 2 and "invalid log level 'loud'" in error
    assert nodetool(request, server, "setlogginglevel") == (0, "", "")
    assert nodetool(request, server, "getlogginglevels") == (0, usual, "")


def test_slow_requests_are_logged_as_in_cassandra(node):
    server, client = node
    for c in range(50):
        client.query(f"INSERT INTO l.t (p, c, v) VALUES (1, {c}, '{'x' * 20000}')")
    text = "SELECT p, c, v FROM l.t WHERE p = 1"

    def reported():
        client.query(text)
        return any(found["text"] == text for found in SLOW.finditer(logged(server, "debug.log")))

    until(reported, "no slow request is logged", pause=0.05)
    log = logged(server, "debug.log")
    assert re.search(r"^DEBUG \[\S+\] \S+ server.slow_queries - \d+ operations were slow in the last \d+ msecs:\n<", log, re.M)
    assert {found["timeout"] for found in SLOW.finditer(log)} == {"1"}
    assert "Some operations were slow, details available at debug level (debug.log)" in logged(server, "system.log")
    columns = "query, table_name, times_reported, min_ms, avg_ms, max_ms, cross_node"
    rows = client.query(f"SELECT {columns} FROM system_views.slow_queries WHERE keyspace_name = 'l'")[1]
    row = next(row for row in rows if row[0] == text.encode())
    times, shortest, average, longest = (int.from_bytes(value, "big") for value in row[2:6])
    assert (row[1], row[6]) == (b"t", b"\0") and times >= 1 and 1 <= shortest <= average <= longest
    parts = client.query("SELECT query, waited_us, executed_us FROM halcyon_views.slow_requests")[1]
    waited, executed = next((int.from_bytes(row[1], "big"), int.from_bytes(row[2], "big")) for row in parts if row[0] == text.encode())
    assert waited + executed >= 1000
    # Off, and on again, while it runs.
    client.query("UPDATE system_views.settings SET value = '0ms' WHERE name = 'slow_query_log_timeout'")
    before = len(client.query("SELECT * FROM halcyon_views.slow_requests")[1])
    for _ in range(20):
        client.query(text)
    assert len(client.query("SELECT * FROM halcyon_views.slow_requests")[1]) == before
    with pytest.raises(Refused):
        client.query("UPDATE system_views.settings SET value = '5' WHERE name = 'slow_query_log_timeout'")
    client.query("UPDATE system_views.settings SET value = '500ms' WHERE name = 'slow_query_log_timeout'")


def test_files_are_whole_after_a_kill_and_json_is_valid_line_by_line(request, tmp_path):
    (tmp_path / "cassandra.yaml").write_text(CONFIG + "log_format: json\nlog_file_count: 2\n", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), tmp_path, "--config", tmp_path / "cassandra.yaml").start()
    client = Client(server.port)
    for number in range(100):
        with pytest.raises(Refused):
            command(client, "settraceprobability", f"{number} {'x' * 50000}")
    server.kill()
    client.close()
    server.start()

    def is_tidy():
        names = sorted(path.name for path in (server.data / "logs").iterdir() if path.name.startswith("system.log."))
        return len(names) <= 2 and all(name.endswith(".gz") for name in names)

    until(is_tidy, "rolled files are not compressed and bounded", pause=0.05)
    assert server.stop() == 0
    numbers = []
    for path in sorted((server.data / "logs").glob("system.log*"), key=lambda path: (path.suffix != ".gz", path.name)):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert text.endswith(b"\n") and len(text) <= 1 << 20
        for line in text.decode().splitlines():
            said = json.loads(line)
            assert list(said) == ["time", "level", "thread", "logger", "source", "message"]
            found = re.match(r"a client commands: settraceprobability +(\d+) x", said["message"])
            numbers.extend([int(found[1])] if found else [])
    # The oldest are deleted; the rest is there once, in order, up to what the kill has cut off.
    assert numbers == list(range(numbers[0], numbers[-1] + 1)) and numbers[-1] >= 50
