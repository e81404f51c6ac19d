"""`cargo x apps`: others' software against `halcyon serve` and against Cassandra 5.0.9, and how many of its tests pass on each."""

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from apps.results import FAILED, PASSED, SKIPPED
from apps.suites import SUITES
from server import Server

HALCYON, CASSANDRA = "halcyon", "cassandra"
RELEASE = "5.0.9"
SETTINGS = {
    "storage_compatibility_mode": "NONE", "materialized_views_enabled": "true", "user_defined_functions_enabled": "true",
    # Applications wait for what they ask; a machine with few cores that runs them too is slow.
    "read_request_timeout": "20s", "write_request_timeout": "20s", "request_timeout": "20s",
}


@contextlib.contextmanager
def halcyon(arguments, folder):
    config = folder / "cassandra.yaml"
    config.write_text("".join(f"{name}: {value}\n" for name, value in SETTINGS.items()), encoding="utf-8")
    server = Server(arguments.halcyon, folder, "--config", config)
    try:
        yield server.start().port
        if not server.is_running():
            raise AssertionError(f"the server ended:\n{server.said()[-4000:]}")
    finally:
        server.close()


@contextlib.contextmanager
def cassandra(arguments, folder):
    settings = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}: {value}")]
    start = [arguments.xtask, "oracle", "start", RELEASE, "--format", "oa", "--heap", "1g", "--dir", folder, *settings]
    facts = json.loads(subprocess.run(start, check=True, stdout=subprocess.PIPE, text=True).stdout)
    try:
        yield facts["native_port"]
    finally:
        subprocess.run([arguments.xtask, "oracle", "stop", "--dir", folder], check=True, stdout=subprocess.PIPE)


NODES = {HALCYON: halcyon, CASSANDRA: cassandra}


def run(name, node, arguments):
    """The verdict on each test of a suite, on a new node."""
    scratch = arguments.work / name
    folder = scratch / node
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with NODES[node](arguments, folder) as port, (folder / "suite.log").open("w+", encoding="utf-8") as log:
        verdicts = SUITES[name].run(port, scratch, log)
    if not verdicts:
        raise AssertionError(f"{name} ran no test: {folder / 'suite.log'}")
    return verdicts


def show(name, verdicts):
    """A line for each node, and what passes on Cassandra only."""
    for node, of_node in verdicts.items():
        count = Counter(of_node.values())
        print(f"{name:10}  {node:10} {count[PASSED]:5} passed  {count[FAILED]:4} failed  {count[SKIPPED]:4} skipped", flush=True)
    lost = sorted(test for test in passed(verdicts, CASSANDRA) - passed(verdicts, HALCYON))
    if len(verdicts) == len(NODES):
        print(f"{name:10}  {len(lost)} pass on Cassandra only")
        for test in lost:
            print(f"    {test}")
    return lost


def passed(verdicts, node):
    return {test for test, verdict in verdicts.get(node, {}).items() if verdict == PASSED}


def main():
    parser = argparse.ArgumentParser(prog="cargo x apps", description=__doc__)
    parser.add_argument("--halcyon", type=Path, required=True)
    parser.add_argument("--xtask", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="where suites are built and servers have their data")
    parser.add_argument("--only", choices=NODES)
    parser.add_argument("--report", type=Path)
    parser.add_argument("suite", nargs="*", help=f"{', '.join(SUITES)}; none: all")
    arguments = parser.parse_args()
    # `choices` would refuse the empty list, in Python before 3.12.
    if unknown := [name for name in arguments.suite if name not in SUITES]:
        parser.error(f"there is no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    arguments.work = arguments.work.resolve()
    report, lost = {}, []
    for name in arguments.suite or SUITES:
        scratch = arguments.work / name
        scratch.mkdir(parents=True, exist_ok=True)
        SUITES[name].prepare(scratch)
        nodes = [arguments.only] if arguments.only else NODES
        report[name] = {node: run(name, node, arguments) for node in nodes}
        lost += show(name, report[name])
    if arguments.report:
        arguments.report.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    sys.exit(bool(lost) and not arguments.only)


main()
