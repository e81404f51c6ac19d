"""
Dashboards and alert rules that operators of Cassandra have: a real Prometheus scrapes a node under every exporter's names, and each
expression has to find data. What Cassandra itself shows is recorded in testdata/metrics (record_metrics.py).

The expressions are in testdata/metrics/dashboards, with the repository that each file is from.
"""

import json
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from native import Client
from patience import TIMEOUTS, until
from record_metrics import RECORD, load
from scraped import Scraped
from server import HOST, Server, flush_statement, free_port

REPOSITORY = Path(__file__).resolve().parent.parent
DASHBOARDS = REPOSITORY / "testdata" / "metrics" / "dashboards"
OPS = REPOSITORY / "ops" / "prometheus"
SCHEMES = ("jmx_exporter", "management-api", "instaclustr", "criteo", "otel")
# What the jobs of these exporters' users set.
JOB_LABELS = {"jmx_exporter": {"cassandra_cluster": "c"}}
# Of those that make sense on one node.
WANTED = 0.95
# Seconds before now at which expressions are evaluated: some look that far ahead.
AGO = 5

# Where the expressions of a file are evaluated, and what Grafana's variables stand for.
FILES = {
    "jsonnet-libs--apache-cassandra-nodes.json.exprs": {"job": "jmx_exporter", "instance": ".+"},
    "jsonnet-libs--apache-cassandra-overview.json.exprs": {"job": "jmx_exporter", "instance": ".+"},
    "jsonnet-libs--prometheus_alerts.yaml.exprs": {},
    "awesome-prometheus-alerts--instaclustr-cassandra-exporter.yml.exprs": {},
    "cassandra_exporter--cassandra_default.json.exprs": {
        "datacenter": "datacenter1", "cluster": "Test Cluster", "keyspace": "m", "table": "t",
        "percentiles": "(50thpercentile|98thpercentile|99thpercentile|max)",
    },
    "k8ssandra--cassandra-condensed.json.exprs": {
        "cluster": ".+", "dc": ".+", "rack": ".+", "host": ".+", "keyspace": "m", "table": "t",
        "by": "cluster", "rate": "1m", "latency": "0.99",
    },
}
COMMON = {"cassandra_cluster": "c", "__interval": "3s", "__rate_interval": "20s"}

# Regular expressions of lines that are left out: names and variables, or without a meaning on one node; and why.
LEFT_OUT = {
    r"^(prometheus|loki)$|^[\w.,]+$": "a name or the values of a variable",
    r"^label_values\(": "a variable of Grafana",
    r"messaging_crossnodelatency": "messages between nodes",
    r"cassandra_connection_|:connection:": "connections between nodes",
    r"^sum\(irate\(dse_": "a metric of DataStax Enterprise",
    r"hints_on_disk": "not in Cassandra 5.0",
    r"waitingonfreememtablespace": "not in Cassandra 5.0",
    r"threadpools:\(\.\+\?\)::\(": "matches no name of the exporter: two colons",
}


# They share a node and a Prometheus.
pytestmark = pytest.mark.xdist_group("dashboards")


@pytest.fixture(scope="module")
def watched(request, tmp_path_factory):
    """A node under a little load, and the Prometheus that watches it in all schemes."""
    folder = tmp_path_factory.mktemp("dashboards")
    port = free_port()
    (folder / "cassandra.yaml").write_text(f"metrics_port: {port}\n{TIMEOUTS}", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), folder, "--config", folder / "cassandra.yaml").start()
    client = Client(server.port)
    load(client)
    client.query(flush_statement("m", "t"))
    done = threading.Event()
    working = threading.Thread(target=work, args=(client, done))
    working.start()
    prometheus = Prometheus(folder, port)
    try:
        prometheus.wait()
        yield prometheus, f"http://{HOST}:{port}"
    finally:
        done.set()
        working.join()
        prometheus.stop()
        client.close()
        server.close()


def work(client, done):
    number = 0
    while not done.wait(0.05):
        number += 1
        client.query(f"INSERT INTO m.t (p, v) VALUES ({number}, 1)")
        client.query(f"SELECT v FROM m.t WHERE p = {number}")
        client.query("SELECT v FROM m.t LIMIT 1")


class Prometheus:
    def __init__(self, folder, target):
        self.port = free_port()
        program = shutil.which("prometheus")
        assert program, "the package prometheus is missing"
        config = folder / "prometheus.yaml"
        config.write_text(configuration(target), encoding="utf-8")
        subprocess.run(["promtool", "check", "config", config], check=True, capture_output=True)
        options = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address={HOST}:{self.port}"]
        with (folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen([program, *options], stdout=log, stderr=subprocess.STDOUT)

    def get(self, path, **parameters):
        url = f"http://{HOST}:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def wait(self):
        """Until every job was scraped for as long as expressions look back."""
        def is_watching():
            try:
                found = self.get("query", query=f"count_over_time(up[1h]) >= {AGO + 6}")
            except OSError:
                return False
            return len(found.get("data", {}).get("result", ())) == len(SCHEMES) + 1
        until(is_watching, "Prometheus does not scrape all jobs", pause=0.5)
        down = [target["lastError"] for target in self.get("targets")["data"]["activeTargets"] if target["health"] != "up"]
        assert not down, down

    def stop(self):
        self._process.terminate()
        self._process.wait(timeout=60)


def configuration(target):
    lines = ["global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}", "rule_files:", f"  - {OPS / 'halcyon-rules.yaml'}", "scrape_configs:"]
    for scheme in SCHEMES:
        labels = json.dumps(JOB_LABELS.get(scheme, {}))
        # A label of the exporter wins over one of Prometheus: the address that a node tells is its instance.
        lines += [
            f"  - job_name: {scheme}", "    honor_labels: true", f"    params: {{names: [{scheme}]}}",
            f"    static_configs: [{{targets: ['{HOST}:{target}'], labels: {labels}}}]",
        ]
    lines += ["  - job_name: mcac", "    honor_labels: true", "    params: {names: [management-api]}", f"    static_configs: [{{targets: ['{HOST}:{target}']}}]"]
    relabelling = (OPS / "mcac.yaml").read_text(encoding="utf-8").splitlines()
    return "\n".join([*lines, *("    " + line for line in relabelling)]) + "\n"


def expressions(name):
    """Those of a file that make sense here, with all variables filled, and those that are left out with the reason."""
    kept, left = [], []
    for line in (DASHBOARDS / name).read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        why = next((why for pattern, why in LEFT_OUT.items() if re.search(pattern, line)), None)
        if why is not None:
            left.append((line, why))
            continue
        kept.append(filled(line, FILES[name] | COMMON))
    return kept, left


def filled(expression, variables):
    for variable, value in sorted(variables.items(), key=lambda pair: -len(pair[0])):
        expression = expression.replace(f"${variable}", value)
    assert "$" not in re.sub(r'"\$\d[^"]*"', "", expression), expression
    # An alert has data when it fires: what it compares has to be there.
    return re.sub(r"\s*[<>]=?\s*[\d.]+$", "", expression)


@pytest.mark.parametrize("name", sorted(FILES))
def test_expressions_of_dashboards_find_data(watched, name):
    prometheus, _ = watched
    kept, left = expressions(name)
    print(f"{len(kept)} expressions, {len(left)} left out")
    at, empty = time.time() - AGO, []
    for expression in kept:
        answer = prometheus.get("query", query=expression, time=at)
        assert answer["status"] == "success", (expression, answer)
        if not answer["data"]["result"]:
            empty.append(expression)
    assert len(empty) <= (1 - WANTED) * len(kept), "\n".join([f"{len(empty)} of {len(kept)} find nothing:", *empty])


def test_our_own_dashboard_finds_data(watched):
    prometheus, _ = watched
    panels = json.loads((OPS.parent / "grafana" / "halcyon.json").read_text(encoding="utf-8"))["panels"]
    found = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    assert len(found) > 15
    for expression in found:
        asked = filled(expression, {"instance": ".+", "purpose": ".+"} | COMMON)
        answer = prometheus.get("query", query=asked, time=time.time() - AGO)
        assert answer["status"] == "success" and answer["data"]["result"], (asked, answer)


def test_every_scheme_is_scraped_and_an_unknown_one_is_refused(watched):
    _, address = watched
    for scheme in SCHEMES:
        with urllib.request.urlopen(f"{address}/metrics?names={scheme}", timeout=60) as answer:
            scraped = Scraped(answer.read().decode())
        assert len(scraped.families) == len(set(scraped.families)), scheme
        # Promtool knows what Prometheus does not like.
        assert len(scraped.series) > 100, scheme
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{address}/metrics?names=mcac", timeout=60)
    assert refused.value.code == 400 and "management-api, instaclustr, criteo, otel" in refused.value.read().decode()


# Series of Halcyon under jmx_exporter's names that Cassandra has not, and why.
MORE = {
    r"cassandra_\w+_seconds_average": "Grafana's dashboards ask for it: a rule of their own",
    r"cassandra_(up|down)_endpoint_count": "Grafana's dashboards ask for it: a rule of their own",
    r"cassandra_client_connectednativeclients": "Cassandra has it twice, and the exporter tells them apart by a label with the MBean",
    r"cassandra_cache_\w+\{cache=ChunkCache\}": "this Cassandra has no chunk cache, which file_cache_enabled switches on",
    r"cassandra_table_droppedmutations_count": "no longer in 5.0; dashboards of MCAC ask for it",
    r"cassandra_streaming_total(in|out)\w+_count": "Cassandra has it from its first stream on",
    r"cassandra_table_coordinator\w+_seconds_sum": "Cassandra has timers here, whose sum the exporter does not know",
}
# Series of Cassandra that Halcyon has not, and why.
LESS = {
    r"cassandra_messaging_|cassandra_droppedmessage_|cassandra_hintsservice_": "messages between nodes",
    r"cassandra_repair_|cassandra_readrepair_|\w*(repair|anticompact|validat|preview|mutatedanticompaction)": "repair",
    r"\w*(speculative|additionalwrite|idealcl|unreplicated|outofrangetoken|replicafiltering|shortread|readrepairrequests|transientwrites)": "replicas",
    r"\w*(caspropose|casprepare|cascommit)latency|cassandra_paxos_|\w*unknownresult|\w*paxosoutofrange": "Paxos",
    r"cassandra_storageattachedindex_|cassandra_index_|\w*sstableindex": "counters of SAI and of row indexes",
    r"cassandra_bufferpool_|cassandra_memtablepool_pendingflushtasks": "pools of buffers of the JVM",
    r"cassandra_cidrauthorizer_": "CIDR authorizer",
    r"\w*(tombstonewarnings|tombstonefailures|tombstoneaborts|readsize|rowindexsize|toomany)": "warnings and aborts by size: guardrails count them in the log",
    r"cassandra_clientrequest_(aborts|localrequests|remoterequests|mutationsizehistogram|readsizeaborts|roundtrips)|cassandra_clientrequest_\w+\{clientrequest=ViewWrite|\w*view": "not counted",
    r"cassandra_clientrequestsize_|cassandra_clientmessagesize_": "sizes of messages",
    r"cassandra_client_(queued|requestdispatched|requestssize|timedoutbefore|unknownexception)": "not counted: halcyon_client_request_wait_seconds is the time in the queue",
    r"cassandra_cql_usestatements": "not counted",
    r"cassandra_commitlog_(oversized|waitingonflush)": "not counted",
    r"cassandra_compaction_(compactions|compressed|indexsummary|sstablesdropped)": "not counted",
    r"cassandra_storage_(repairexceptions|startupops|totalops|uncompressed)|cassandra_storageproxy_": "not counted",
    r"cassandra_threadpools_(maxtasksqueued|oldesttaskqueuetime)": "pools have no queue of their own",
    r"\w*(memtablecolumnscount|colupdatetimedelta|keycachehitrate|recentbloomfilter|bloomfilterdiskspace|snapshotssize|sstablesperrange|uncompressedlive|oldversion|unleveled|bytespending|bytesrepaired|bytesunrepaired)": "not counted",
    r"cassandra_keyspace_(allmemtables|memtable(on|off|switch)|bloomfilter|compression|indexsummary)": "the sum over the tables of the keyspace",
    r"cassandra_table_\w+\{(quantile=\*)?\}": "sums over all tables: sum() has them",
}


def test_series_under_the_names_of_jmx_exporter_are_those_of_cassandra(watched):
    _, address = watched
    with urllib.request.urlopen(f"{address}/metrics", timeout=60) as answer:
        shapes = Scraped(answer.read().decode()).shapes()
    ours = {f"{name}{{{shape}}}" for name, of_name in shapes.items() if name.startswith("cassandra_") for shape in of_name}
    theirs = {line for line in RECORD.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}

    def unexplained(series, reasons):
        return sorted(one for one in series if not any(re.match(pattern, one) for pattern in reasons))

    more, less = unexplained(ours - theirs, MORE), unexplained(theirs - ours, LESS)
    assert not more and not less, "\n".join(["only in Halcyon:", *more, "only in Cassandra:", *less])
    assert len(ours & theirs) > 250, len(ours & theirs)


@pytest.mark.parametrize("name, page", [("halcyon", "alerts"), ("cassandra-plugin", "cassandra-plugin")])
def test_alert_rules_are_tested_and_documented(name, page):
    for arguments in (("check", "rules", f"{name}-rules.yaml"), ("test", "rules", f"{name}-rules.test.yaml")):
        checked = subprocess.run(["promtool", *arguments], cwd=OPS, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr
    rules = (OPS / f"{name}-rules.yaml").read_text(encoding="utf-8")
    sections = re.findall(r"^##+ (Halcyon\w+)$", (REPOSITORY / f"docs/operate/{page}.md").read_text(encoding="utf-8"), re.M)
    assert re.findall(r"- alert: (\w+)", rules) == sections
    assert re.findall(page + r"\.md#(\w+)", rules) == [section.lower() for section in sections]


def test_alert_rules_find_their_series_and_stay_silent(watched):
    prometheus, _ = watched
    groups = prometheus.get("rules")["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert rules and all(rule["health"] == "ok" for rule in rules), rules
    series = set(re.findall(r"(?:cassandra|halcyon|jvm)_\w+", (OPS / "halcyon-rules.yaml").read_text(encoding="utf-8")))
    for name in sorted(series):
        assert prometheus.get("query", query=name)["data"]["result"], name


def reference(text):
    """All metrics under the default names, as docs/operate/metrics-reference.md lists them."""
    scraped = Scraped(text)
    labels = {}
    for name, found in scraped.series:
        labels.setdefault(re.sub("_(bucket|count|sum)$", "", name) if name.startswith("halcyon_") else name, set()).update(label for label, _ in found)
    rows = [f"| `{name}` | {', '.join(sorted(labels.get(name, ()))) or '–'} | {what} |" for name, what in sorted(scraped.help.items())]
    head = ["# Metrics: a list", "", "All metrics with the default names; [metrics.md](metrics.md) explains them. Of a histogram, `_bucket`", "and `_count` are shown. `e2e/test_dashboards.py` compares this list with a node.", ""]
    return "\n".join([*head, "| metric | labels | meaning |", "|---|---|---|", *rows]) + "\n"


def test_all_metrics_are_documented(watched, tmp_path):
    _, address = watched
    with urllib.request.urlopen(f"{address}/metrics", timeout=60) as answer:
        expected = reference(answer.read().decode())
    written = REPOSITORY / "docs/operate/metrics-reference.md"
    (tmp_path / written.name).write_text(expected, encoding="utf-8")
    assert written.read_text(encoding="utf-8") == expected, f"replace {written} by {tmp_path / written.name}"
