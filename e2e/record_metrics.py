"""
Records the series that Cassandra shows through jmx_exporter: testdata/metrics/cassandra-<release>.series, which test_dashboards.py compares
with those of Halcyon.

    .venv/bin/python e2e/record_metrics.py target/debug/xtask

Maven fetches the agent (io.prometheus.jmx:jmx_prometheus_javaagent, Apache-2.0). The rules are those of its own example for Cassandra; its
list of MBeans is left out, so that every metric is shown. `ColumnFamily` is another name of `Table`.
"""

import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from native import Client
from scraped import Scraped
from server import HOST, free_port

RELEASE = "5.0.9"
AGENT = ("io.prometheus.jmx", "jmx_prometheus_javaagent", "1.0.1")
RECORD = Path(__file__).resolve().parent.parent / "testdata" / "metrics" / f"cassandra-{RELEASE}.series"
BEAN = r"org.apache.cassandra.metrics<type=(\S*)(?:, ((?!scope)\S*)=(\S*))?(?:, scope=(\S*))?, name="
# Name of the MBean, attribute, series, whether microseconds become seconds, quantile.
RULES = (
    (r"(\S*)", "Value", "cassandra_$1_$5", False, ""),
    (r"(.+)?(?:Total)(Latency)", "Count", "cassandra_$1_$5$6_seconds_sum", True, ""),
    (r"((?:.+)?(?:Latency))", "Count", "cassandra_$1_$5_seconds_count", False, ""),
    (r"(.+)", "Count", "cassandra_$1_$5_count", False, ""),
    (r"((?:.+)?(?:Latency))", r"(\d+)thPercentile", "cassandra_$1_$5_seconds", True, "0.$6"),
    (r"(.+)", r"(\d+)thPercentile", "cassandra_$1_$5", False, "0.$6"),
)


def configuration():
    rules = []
    for name, attribute, series, is_scaled, quantile in RULES:
        labels = {"$1": "$4", "$2": "$3"} | ({"quantile": quantile} if quantile else {})
        rule = {"pattern": f"{BEAN}{name}><>{attribute}", "name": series, "labels": labels}
        rules.append(rule | ({"valueFactor": 0.000001} if is_scaled else {}))
    # JSON is YAML.
    return json.dumps({
        "lowercaseOutputName": True,
        "lowercaseOutputLabelNames": True,
        "includeObjectNames": ["org.apache.cassandra.metrics:*"],
        "excludeObjectNames": ["org.apache.cassandra.metrics:type=ColumnFamily,*"],
        "rules": rules,
    })


def load(client):
    """A little of each kind."""
    client.query("CREATE KEYSPACE m WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    client.query("CREATE TABLE m.t (p int PRIMARY KEY, v int)")
    for number in range(20):
        client.query(f"INSERT INTO m.t (p, v) VALUES ({number}, 1)")
        client.query(f"SELECT v FROM m.t WHERE p = {number}")
    client.query("SELECT v FROM m.t")
    client.query("INSERT INTO m.t (p, v) VALUES (1, 1) IF NOT EXISTS")
    # Cassandra shows the metrics of batches from the first one on.
    client.query("BEGIN BATCH INSERT INTO m.t (p, v) VALUES (1, 2); INSERT INTO m.t (p, v) VALUES (2, 2); APPLY BATCH")


def exporter(folder, port, rules):
    """Options of a JVM that show its MBeans at a port."""
    group, artifact, version = AGENT
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
    subprocess.run(["mvn", "-q", "-B", goal, f"-Dartifact={group}:{artifact}:{version}", f"-DoutputDirectory={folder}"], check=True)
    (folder / "rules.yaml").write_text(rules, encoding="utf-8")
    return ["--add-modules=jdk.httpserver", f"-javaagent:{folder}/{artifact}-{version}.jar={port}:{folder}/rules.yaml"]


def main(xtask):
    folder = Path(tempfile.mkdtemp())
    port = free_port()
    agent = " ".join(exporter(folder, port, configuration()))
    start = [xtask, "oracle", "start", RELEASE, "--dir", folder / "node", "--jvm", agent]
    node = json.loads(subprocess.run(start, check=True, capture_output=True, text=True).stdout)
    try:
        load(Client(node["native_port"]))
        with urllib.request.urlopen(f"http://{HOST}:{port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
    finally:
        subprocess.run([xtask, "oracle", "stop", "--dir", folder / "node"], check=True)
    RECORD.write_text(recorded(text), encoding="utf-8")


def recorded(text):
    shapes = Scraped("\n".join(line for line in text.splitlines() if line.startswith("cassandra_") and "_objectname" not in line)).shapes()
    lines = [f"{name}{{{shape}}}" for name, of_name in sorted(shapes.items()) for shape in sorted(of_name)]
    head = f"# Series of Cassandra {RELEASE} under jmx_exporter {AGENT[2]}, made by e2e/record_metrics.py; a star: any value."
    return "\n".join([head, *lines]) + "\n"


if __name__ == "__main__":
    main(sys.argv[1])
