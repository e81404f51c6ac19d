"""
The operator's log: its forms, its files across a kill, levels that change while the node runs; slow requests, which are logged in the words
of Cassandra's MonitoringTask; and spans of requests, which a collector of OpenTelemetry gets.
"""

import gzip
import http.server
import json
import re
import ssl
import subprocess
import threading

import pytest

from native import Client, Refused
from patience import PATIENCE_SECONDS, until
from server import HOST, Server, flush_statement, free_port
from stores import Authority

LINE = re.compile(r"(ERROR|WARN |INFO |DEBUG) \[[^\]]+\] \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3} (\S+\.rs:\d+|[a-z_.]+) - .*")
SLOW = re.compile(r"<(?P<text>.*)>, (?:time \d+ msec|was slow \d+ times: avg/min/max \d+/\d+/\d+ msec) - slow timeout (?P<timeout>\d+) msec")
CONFIG = """
log_destination: both
log_file_size: 1MiB
log_levels: {server.listen: info}
slow_query_log_timeout: 1ms
monitoring_report_interval: 200ms
"""

SPANS = """
tracing_otlp_endpoint: {}
tracing_otlp_sampling_ratio: 1.0
"""


class Collector(http.server.ThreadingHTTPServer):
    """Takes OTLP over HTTPS."""

    daemon_threads = True

    def __init__(self, pem):
        super().__init__((HOST, 0), Answers)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.messages = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def spans(self):
        of = [message["resourceSpans"][0] for message in self.messages]
        return [span for resource in of for span in resource["scopeSpans"][0]["spans"]]


class Answers(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        assert (self.path, self.headers["content-type"]) == ("/v1/traces", "application/json")
        self.server.messages.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        """Nothing: the test looks at the messages."""


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("authority"))
    collector = Collector(authority.pem_of("collector"))
    yield collector, authority.pem
    collector.shutdown()


@pytest.fixture(scope="module")
def node(request, tmp_path_factory, collector):
    folder = tmp_path_factory.mktemp("logs")
    spans = SPANS.format(f"https://{HOST}:{collector[0].server_port}") + f"tracing_otlp_truststore: {collector[1]}\n"
    (folder / "cassandra.yaml").write_text(CONFIG + spans, encoding="utf-8")
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
        command(client, "setlogginglevel", '{"name":\n"ERROR [main] 2026-01-01T00:00:00,000 forged.rs:1 - forged\u2028.",\r"level":"info"}')
    until(lambda: "forged" in logged(server, "debug.log"), "the command is not logged", pause=0.02)
    for text in (server.said(), logged(server, "system.log"), logged(server, "debug.log")):
        lines = [line for line in text.split("\n")[:-1] if not line.startswith("<")]
        assert not [line for line in lines if not LINE.fullmatch(line)], lines
        assert not any(line.startswith("ERROR") and "forged" in line for line in lines)
    assert r'{"name":\n"ERROR [main] 2026-01-01T00:00:00,000 forged.rs:1 - forged\u{2028}.",\r"level":"info"}' in logged(server, "system.log")
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
    # The parts of the slowest one make up its time.
    columns = "query, max_ms, waited_us, executed_us, log_us, device_us, sstables, device_reads"
    rows = client.query(f"SELECT {columns} FROM system_views.slow_queries WHERE keyspace_name = 'l'")[1]
    for row in rows:
        longest, waited, executed, log_us, *_ = (int.from_bytes(value, "big") for value in row[1:])
        assert longest == (waited + executed) // 1000 or longest == (waited + executed) // 1000 + 1
        assert log_us <= executed
    parts = client.query("SELECT query, waited_us, executed_us FROM halcyon_views.slow_requests")[1]
    waited, executed = next((int.from_bytes(row[1], "big"), int.from_bytes(row[2], "big")) for row in parts if row[0] == text.encode())
    assert waited + executed >= 1000
    # The parts of a read name its SSTables; a wait is a part of the execution.
    client.query(flush_statement("l", "t"))

    def parts_of_reads():
        client.query(text)
        names = "query, executed_us, log_us, sstables, device_reads, device_us"
        rows = client.query(f"SELECT {names} FROM halcyon_views.slow_requests")[1]
        return [[int.from_bytes(value, "big") for value in row[1:]] for row in rows if row[0] == text.encode()]

    until(lambda: any(sstables == 1 for _, _, sstables, _, _ in parts_of_reads()), lambda: str(parts_of_reads()), pause=0.05)
    assert all(log == 0 and (device == 0 or reads > 0) for _, log, _, reads, device in parts_of_reads())
    # Off, and on again, while it runs.
    client.query("UPDATE system_views.settings SET value = '0ms' WHERE name = 'slow_query_log_timeout'")
    before = len(client.query("SELECT * FROM halcyon_views.slow_requests")[1])
    for _ in range(20):
        client.query(text)
    assert len(client.query("SELECT * FROM halcyon_views.slow_requests")[1]) == before
    with pytest.raises(Refused):
        client.query("UPDATE system_views.settings SET value = '5' WHERE name = 'slow_query_log_timeout'")
    client.query("UPDATE system_views.settings SET value = '500ms' WHERE name = 'slow_query_log_timeout'")


def test_a_collector_gets_the_spans_of_requests(node, collector):
    _, client = node
    text = "SELECT v FROM l.t WHERE p = 7"
    client.query(text)
    with pytest.raises(Refused):
        client.query("SELECT nope FROM l.t")

    def of(text):
        wanted = {"key": "db.query.text", "value": {"stringValue": text}}
        return [span for span in collector[0].spans() if wanted in span["attributes"]]

    until(lambda: of(text) and of("SELECT nope FROM l.t"), "the spans do not arrive", pause=0.05)
    whole, failed = of(text)[0], of("SELECT nope FROM l.t")[0]
    assert re.fullmatch("[0-9a-f]{32}", whole["traceId"]) and re.fullmatch("[0-9a-f]{16}", whole["spanId"])
    assert (whole["name"], whole["kind"], whole["status"]) == ("Execute CQL3 query", 2, {})
    assert failed["status"]["code"] == 2 and "nope" in failed["status"]["message"]
    parts = [span for span in collector[0].spans() if span.get("parentSpanId") == whole["spanId"]]
    assert [part["name"] for part in parts] == ["wait for the core", "execute"]
    assert {part["traceId"] for part in parts} == {whole["traceId"]}
    times = [int(parts[0]["startTimeUnixNano"]), int(parts[0]["endTimeUnixNano"]), int(parts[1]["endTimeUnixNano"])]
    assert times == sorted(times) and times[0] == int(whole["startTimeUnixNano"]) and times[2] == int(whole["endTimeUnixNano"])
    assert parts[1]["events"][0]["name"] == f"Parsing {text}"
    node = {at["key"]: at["value"]["stringValue"] for at in collector[0].messages[0]["resourceSpans"][0]["resource"]["attributes"]}
    assert node["service.name"] == "halcyon"
    # Not stored: no client has asked for a trace.
    assert not client.query("SELECT session_id FROM system_traces.sessions")[1]


def test_files_are_whole_after_a_kill_and_json_is_valid_line_by_line(request, tmp_path):
    (tmp_path / "cassandra.yaml").write_text(CONFIG + "log_format: json\nlog_file_count: 2\n" + SPANS.format(f"http://{HOST}:{free_port()}"), encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), tmp_path, "--config", tmp_path / "cassandra.yaml").start()
    client = Client(server.port)
    for number in range(100):
        with pytest.raises(Refused):
            command(client, "settraceprobability", f'{{"probability":{number + 2}{" " * 50000}}}')
    lost = "were not sent to http://127.0.0.1:"
    until(lambda: lost in logged(server, "system.log"), "a collector that is down is not reported", pause=0.05)
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
            found = re.match(r'a client runs the command settraceprobability +{"probability":(\d+) ', said["message"])
            numbers.extend([int(found[1])] if found else [])
    # The oldest are deleted; the rest is there once, in order, up to what the kill has cut off.
    assert numbers == list(range(numbers[0], numbers[-1] + 1)) and numbers[-1] >= 50
