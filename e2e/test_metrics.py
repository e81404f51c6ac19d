"""
What a server of metrics gets from a node: the names that jmx_exporter's example gives Cassandra's metrics, values that follow what is
done, and whether the node is ready.
"""

import gzip
import socket
import urllib.error
import urllib.request

import pytest

from native import Client, Refused
from patience import TIMEOUTS, until
from scraped import Scraped
from server import HOST, Server, free_port

@pytest.fixture(scope="module")
def node(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics")
    port = free_port()
    (folder / "cassandra.yaml").write_text(f"metrics_port: {port}\n{TIMEOUTS}", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), folder, "--config", folder / "cassandra.yaml").start()
    client = Client(server.port)
    client.query("CREATE KEYSPACE m WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    client.query("CREATE TABLE m.t (p int PRIMARY KEY, v int)")
    client.query("CREATE TABLE m.u (p int PRIMARY KEY, v int)")
    client.close()
    yield server, f"http://{HOST}:{port}"
    server.close()


def get(url, **headers):
    """Status, headers and bytes."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def scrape(address):
    return Scraped(get(f"{address}/metrics")[2].decode())


def test_counts_follow_what_clients_do(node):
    server, address = node
    client = Client(server.port)
    before = scrape(address)
    for number in range(10):
        client.query(f"INSERT INTO m.t (p, v) VALUES ({number}, 1)")
        client.query(f"SELECT v FROM m.t WHERE p = {number}")
    client.query("INSERT INTO m.u (p, v) VALUES (1, 1)")
    client.query("SELECT v FROM m.t")
    client.query("INSERT INTO m.t (p, v) VALUES (1, 1) IF NOT EXISTS")
    with pytest.raises(Refused):
        client.query("INSERT INTO m.t (p, v) VALUES (1, 1)", consistency=2)
    after = scrape(address)

    def more(name, **labels):
        return after.of(name, **labels) - (before.of(name, **labels) or 0)

    requests = "cassandra_clientrequest_latency_seconds_count"
    counted = {scope: more(requests, clientrequest=scope) for scope in ("Read", "Write", "RangeSlice", "CASWrite", "CASRead")}
    assert counted == {"Read": 10, "Write": 12, "RangeSlice": 1, "CASWrite": 1, "CASRead": 0}
    assert more("cassandra_clientrequest_unavailables_count", clientrequest="Write") == 1
    assert more("cassandra_table_readlatency_seconds_count", keyspace="m", table="t") == 11
    # The conditional write was not applied, the one of two replicas was refused.
    assert more("cassandra_keyspace_writelatency_seconds_count", keyspace="m") == 11
    assert more("cassandra_client_connectednativeclients") == 0 and after.of("cassandra_client_connectednativeclients") == 1
    quantiles = [after.of("cassandra_clientrequest_latency_seconds", clientrequest="Read", quantile=q) for q in ("0.50", "0.99", "0.999")]
    assert 0 < quantiles[0] <= quantiles[1] <= quantiles[2] < 60, quantiles
    total = after.of("cassandra_clientrequest_latency_seconds_sum", clientrequest="Read")
    assert 0 < total <= 10 * quantiles[2], (total, quantiles)
    buckets = {dict(labels)["le"]: value for (name, labels), value in after.series.items() if name == "halcyon_client_request_latency_seconds_bucket" and ("scope", "Read") in labels}
    bounds = sorted(buckets, key=float)
    assert [buckets[bound] for bound in bounds] == sorted(buckets.values()) and buckets["+Inf"] >= 10
    client.close()


def test_metrics_are_rows_as_in_cassandra_6(node):
    server, address = node
    client = Client(server.port)
    client.query("INSERT INTO m.u (p, v) VALUES (2, 1)")
    client.query("SELECT v FROM m.u WHERE p = 2")
    client.close()
    session = server.connect()
    assert len(list(session.execute("SELECT * FROM system_metrics.all_groups"))) == 44
    of = "org.apache.cassandra.metrics"
    scraped = scrape(address)

    def row(table, name):
        return session.execute(f"SELECT * FROM system_metrics.{table} WHERE name = '{of}.{name}'").one()

    reads = row("table_group", "Table.ReadLatency.m.u")
    assert (reads.scope, reads.type) == ("m.u", "timer")
    assert float(reads.value) == scraped.of("cassandra_table_readlatency_seconds_count", keyspace="m", table="u") >= 1
    timer = row("type_timer", "Table.ReadLatency.m.u")
    # Microseconds.
    assert timer.count == int(reads.value) and 0 < timer.p75th <= timer.p999th <= timer.max < 60e6, timer
    pool = row("thread_pools_group", "ThreadPools.MaxPoolSize.request.ReadStage")
    assert (pool.scope, pool.type) == ("request.ReadStage", "gauge")
    assert row("keyspace_group", "keyspace.WriteLatency.m").type == "timer"
    assert row("type_counter", "Storage.Load").scope == "undefined"
    assert row("type_meter", "Client.AuthFailure").one_minute_rate == 0.0
    assert row("type_histogram", "Table.SSTablesPerReadHistogram.m.u").max == 0
    assert not list(session.execute("SELECT * FROM system_metrics.paxos_group"))


def test_a_family_comes_once_and_tables_of_all_keyspaces_are_shown(node):
    _, address = node
    scraped = scrape(address)
    assert len(scraped.families) == len(set(scraped.families))
    tables = {dict(labels)["keyspace"] for name, labels in scraped.series if name == "cassandra_table_livesstablecount"}
    assert {"m", "system", "system_schema"} <= tables
    pools = {dict(labels)["threadpools"] for name, labels in scraped.series if name == "cassandra_threadpools_pendingtasks"}
    assert {"CompactionExecutor", "MemtableFlushWriter", "Native-Transport-Requests"} <= pools
    assert scraped.of("cassandra_cache_hitrate", cache="KeyCache") is not None


def test_formats_and_compression_are_negotiated(node):
    _, address = node
    status, headers, plain = get(f"{address}/metrics", **{"Accept-Encoding": "identity"})
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4") and not headers["Content-Encoding"]
    _, headers, packed = get(f"{address}/metrics", **{"Accept-Encoding": "gzip", "Accept": "application/openmetrics-text; version=1.0.0"})
    assert headers["Content-Encoding"] == "gzip" and headers["Content-Type"].startswith("application/openmetrics-text")
    assert gzip.decompress(packed).endswith(b"# EOF\n") and len(packed) < len(plain) / 4


def test_other_requests_are_refused(node):
    _, address = node
    assert get(f"{address}/ready")[0] == 200 and get(f"{address}/health")[0] == 200
    assert get(f"{address}/nothing")[0] == 404
    # A page of another host in a browser on this machine.
    assert get(f"{address}/metrics", Host="example.com")[0] == 421
    request = urllib.request.Request(f"{address}/metrics", data=b"x", method="POST")
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(request, timeout=60)


def test_the_endpoint_is_off_with_one_line_and_a_taken_port_is_named(request, tmp_path, node):
    _, address = node
    port = address.rsplit(":", 1)[1]
    config = tmp_path / "cassandra.yaml"
    config.write_text(f"metrics_port: {port}\n", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), tmp_path, "--config", config)
    with pytest.raises(AssertionError, match=f"cannot listen on 127.0.0.1:{port} for metrics: .*; choose another with metrics_address and metrics_port"):
        server.start()
    config.write_text(f"metrics_port: {port}\nmetrics_enabled: false\n", encoding="utf-8")
    server.start()
    assert "metrics are on" not in server.said()
    server.close()


def test_a_node_that_drains_is_not_ready(request, tmp_path):
    port = free_port()
    config = tmp_path / "cassandra.yaml"
    config.write_text(f"metrics_port: {port}\n", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), tmp_path, "--config", config).start()
    until(lambda: get(f"http://{HOST}:{port}/ready")[0] == 200, "the node is not ready")
    assert server.stop() == 0
    with pytest.raises(OSError):
        get(f"http://{HOST}:{port}/ready")
    server.close()


def test_clients_that_say_nothing_keep_no_other_out(node):
    _, address = node
    port = int(address.rsplit(":", 1)[1])
    silent = [socket.create_connection((HOST, port)) for _ in range(150)]
    assert get(f"{address}/health")[0] == 200
    for connection in silent:
        connection.close()


def test_the_page_asks_for_no_login_where_clients_do_not(node):
    """test_page.py has the page of a node with roles."""
    _, address = node
    status, headers, page = get(f"{address}/")
    assert status == 200 and b"Halcyon" in page and "default-src 'none'" in headers["Content-Security-Policy"]
    with urllib.request.urlopen(f"{address}/events", timeout=60) as events:
        seen = next(line for line in events if b'"read_latency":{"rows":[' in line)
    assert b'"may_stop":true' in seen and b'"error"' not in seen, seen
