"""The suites that `cargo x apps` knows: what fetches and builds each, and what runs it against the node at a port."""

import json
import os
import subprocess
import sys
from pathlib import Path

from . import results

HERE = Path(__file__).resolve().parent
HOST = "127.0.0.1"
SUITE_SECONDS = 30 * 60


class Go:
    """Tests of a module of Go, at the version that `go` fetches and checks: what each run of `go test` is called, and its arguments."""

    def __init__(self, module, runs, environment=None):
        self.module = module
        self.folder = None
        self._runs = runs
        self._environment = environment or {}

    def prepare(self, scratch):
        said = subprocess.run(["go", "mod", "download", "-json", self.module], cwd=scratch, check=True, stdout=subprocess.PIPE, text=True)
        self.folder = json.loads(said.stdout)["Dir"]

    def run(self, port, scratch, log):
        verdicts = {}
        for label, arguments in self._runs.items():
            given = [argument.format(host=HOST, port=port) for argument in arguments]
            command = ["go", "test", "-json", "-count=1", f"-timeout={SUITE_SECONDS}s", *given]
            said = subprocess.run(command, cwd=self.folder, env=self.variables(port), stdout=subprocess.PIPE, stderr=log, text=True)
            events = [json.loads(line) for line in said.stdout.splitlines() if line.startswith("{")]
            log.writelines(event.get("Output", "") for event in events)
            verdicts |= results.of_go(label, events)
        return verdicts

    def variables(self, port):
        return {**os.environ, **{name: value.format(host=HOST, port=port) for name, value in self._environment.items()}}


class Temporal(Go):
    """Its tests, and its tool that brings a keyspace to the newest schema: each step's exit status is a test."""

    STEPS = (
        ("create", "-k", "temporal_of_tool", "--rf", "1"),
        ("-k", "temporal_of_tool", "setup-schema", "-v", "0.0"),
        ("-k", "temporal_of_tool", "update-schema", "-d", "{folder}/schema/cassandra/temporal/versioned"),
        ("drop", "-k", "temporal_of_tool", "-f"),
    )

    def prepare(self, scratch):
        super().prepare(scratch)
        tool = scratch / "temporal-cassandra-tool"
        subprocess.run(["go", "build", "-o", tool, "./cmd/tools/cassandra"], cwd=self.folder, check=True)

    def run(self, port, scratch, log):
        verdicts = super().run(port, scratch, log)
        for step in self.STEPS:
            words = [word.format(folder=self.folder) for word in step]
            command = [scratch / "temporal-cassandra-tool", "--ep", HOST, "-p", str(port), *words]
            done = subprocess.run(command, stdout=log, stderr=log, timeout=SUITE_SECONDS)
            verb = next(word for word in step if word in ("create", "setup-schema", "update-schema", "drop"))
            verdicts[f"temporal-cassandra-tool {verb}"] = results.FAILED if done.returncode else results.PASSED
        return verdicts


class Pytest:
    """An application of our own, in Python, whose tests are `app.py`."""

    def __init__(self, name, *requirements):
        self._program = HERE / name / "app.py"
        self._requirements = requirements
        self._python = sys.executable

    def prepare(self, scratch):
        if self._requirements:
            self._python = scratch / "python/bin/python"
            subprocess.run([sys.executable, "-m", "venv", self._python.parent.parent], check=True)
            subprocess.run([self._python, "-m", "pip", "install", "--quiet", *self._requirements], check=True)

    def run(self, port, scratch, log):
        report = scratch / "junit.xml"
        report.unlink(missing_ok=True)
        command = [self._python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", HERE / "pytest.ini", f"--junitxml={report}", self._program]
        variables = {**os.environ, "APP_HOST": HOST, "APP_PORT": str(port)}
        subprocess.run(command, cwd=HERE, env=variables, stdout=log, stderr=log, timeout=SUITE_SECONDS)
        return results.of_junit([report])


class Maven:
    """An application of our own, in Java, with its tests."""

    def __init__(self, name):
        self._project = HERE / name / "pom.xml"

    def prepare(self, scratch):
        self._call(scratch, "test-compile", check=True)

    def run(self, port, scratch, log):
        reports = scratch / "surefire-reports"
        for old in reports.glob("*.xml"):
            old.unlink()
        self._call(scratch, "surefire:test", f"-Dspring.cassandra.contact-points={HOST}:{port}", stdout=log, stderr=log)
        return results.of_junit(reports.glob("*.xml"))

    def _call(self, scratch, *arguments, **options):
        command = ["mvn", "-q", "-B", "-f", self._project, f"-Doutput={scratch}", *arguments]
        return subprocess.run(command, timeout=SUITE_SECONDS, **options)


TEMPORAL = {"CASSANDRA_SEEDS": "{host}", "CASSANDRA_PORT": "{port}"}
TEMPORAL_TOOL_TESTS = "^Test(CQLClient|SetupCQLSchema|UpdateCQLSchema|Version)TestSuite$"
GOCQL = (
    ".", "-tags=cassandra integration gocql_debug", "-cluster={host}:{port}", "-clusterSize=1", "-rf=1", "-gocql.cversion=5.0.9",
    "-gocql.timeout=30s", "-autowait=100ms",
)

SUITES = {
    "temporal": Temporal(
        "go.temporal.io/server@v1.32.0",
        {"persistence": ("./common/persistence/tests", "-run=^TestCassandra"), "tool": ("./tools/tests", f"-run={TEMPORAL_TOOL_TESTS}")},
        TEMPORAL,
    ),
    "gocql": Go(
        "github.com/apache/cassandra-gocql-driver/v2@v2.1.2",
        {
            "protocol 3": (*GOCQL, "-proto=3"),
            "protocol 4, snappy": (*GOCQL, "-proto=4", "-compressor=snappy"),
            "protocol 5, lz4": (*GOCQL, "-proto=5", "-compressor=lz4"),
        },
    ),
    "cqlengine": Pytest("cqlengine"),
    "vectors": Pytest("vectors", "cassio==0.1.10", "pytest==9.2.0"),
    "spring": Maven("spring"),
}
