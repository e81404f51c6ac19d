"""`halcyon nodetool` beside Cassandra's: the same lines, arguments and exit codes, each tool against its own node."""

import json
import re
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from datetime import datetime
from pathlib import Path

import pytest
from cassandra import OperationTimedOut
from cassandra.cluster import Cluster, NoHostAvailable
from cassandra.connection import ConnectionException

from native import Client
from oracle import opened
from patience import PATIENCE_SECONDS, TIMEOUTS, until
from server import Server, free_port

RELEASE = "5.0.9"
# The oracle's own words for what it cannot know: sizes, ids, times.
VARIES = [
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "<time>"),
    (re.compile(r"\b\d+(\.\d+)? (bytes|KiB|MiB)"), "<size>"),
    (re.compile(r"TIMESTAMP \d+"), "TIMESTAMP <micros>"),
    (re.compile(r"\b\d{13}\b"), "<millis>"),
    (re.compile(r" +"), " "),
]
RING_OF_ONE = [
    "bootstrap resume", "describering", "failuredetector", "getseeds", "reloadseeds", "join", "listpendinghints",
    "removenode", "removenode status", "repair_admin", "repair_admin list", "assassinate", "move", "netstats extra",
]
SHOWN_SETTINGS = [
    *(f"gettimeout {kind}" for kind in ["truncate", "internodeconnect", "internodeuser", "internodestreaminguser", "misc", "nope", ""]),
    "settimeout", "settimeout read", "settimeout nope 5", "settimeout read x", "settimeout read -1",
    *(line for kind in ["read", "range", "write", "counterwrite", "cascontention", "truncate", "internodeconnect", "internodeuser",
                        "internodestreaminguser", "misc"]
      for line in [f"settimeout {kind} 54321", f"gettimeout {kind}", f"settimeout {kind} 120000"]),
    "disableoldprotocolversions extra", "disableoldprotocolversions", "version", "enableoldprotocolversions",
    "setcachecapacity", "setcachecapacity 1 2", "setcachecapacity 1 x 2", "setcachecapacity -1 2 3", "setcachecapacity 9 8 7",
    "setcachekeystosave", "setcachekeystosave 1 2", "setcachekeystosave 1 2 x", "setcachekeystosave -1 2 3", "setcachekeystosave 1 -2 3",
    "setcachekeystosave 1 2 3",
    "getbatchlogreplaythrottle", "getconcurrentviewbuilders", "getdefaultrf", "getmaxhintwindow", "getconcurrency nope",
    *(f"get{of}streamthroughput{flag}" for of in ["", "interdc"] for flag in ["", " -d", " -m", " -e", " -d -e"]),
    "getcolumnindexsize extra", "setcolumnindexsize", "setdefaultrf", "setmaxhintwindow", "setsnapshotthrottle", "setstreamthroughput",
    "setbatchlogreplaythrottle", "setconcurrentviewbuilders", "statusbackup", "enablebackup", "statusbackup",
    "disablebackup", "statusbackup", "statusbinary", "enablebinary", "statusgossip",
    "getauthcacheconfig", "invalidatecountercache", "invalidatekeycache", "invalidatekeycache extra",
    *(f"setcolumnindexsize {size}" for size in ["x", "64", "-1", "-2", "0", "2097151", "2097152", "4"]), "getcolumnindexsize",
    *(f"setdefaultrf {factor}" for factor in ["x", "0", "-1", "3"]), "getdefaultrf", "setdefaultrf 1", "getdefaultrf",
    *(f"setsnapshotthrottle {links}" for links in ["x", "-1", "5000", "99999999999999999999", "0"]),
    *(line for cache in ["RolesCache", "PermissionsCache", "NetworkPermissionsCache", "nope"] for line in [
        f"setauthcacheconfig --cache-name {cache} --validity-period 3000 --update-interval 1500 --max-entries 77 --enable-active-update",
        f"getauthcacheconfig --cache-name {cache}",
    ]),
    "setauthcacheconfig", "setauthcacheconfig --cache-name RolesCache", "setauthcacheconfig --cache-name nope",
    "setauthcacheconfig --cache-name RolesCache --enable-active-update --disable-active-update",
    "setauthcacheconfig --cache-name RolesCache --max-entries x", "setauthcacheconfig --max-entries 5",
    "setauthcacheconfig --cache-name=RolesCache --validity-period=2000 --disable-active-update", "getauthcacheconfig --cache-name RolesCache",
    "setauthcacheconfig --cache-name PermissionsCache --validity-period -1",
]
SAMPLINGS = [
    *(f"{verb} {line}" for verb in ["profileload", "toppartitions"] for line in [
        "a b c d", "-k 0", "-k -1", "-k 10 -s 10", "-s 1025", "-s x", "-k x", "-i x", "x", "0", "-- -5", "{ks} t x", "-i 5 10", "-i 0 10", "-a nope 10",
        "-a reads,nope 10", "-a , 10",
    ]),
    "profileload 10", "toppartitions {ks} t 10", "profileload {ks} * 10", "profileload * * 10", "profileload -a reads,Writes {ks} t 10",
    "profileload -l", "profileload -t {ks} t", "profileload -t nope", "profileload -t nope nope", "profileload -t nope nope 5",
    "profileload -i 60000 {ks} t 10", "profileload -l", "profileload -i 60000 {ks} t 10", "profileload -i 60000 * * 10", "profileload -i 60000 {ks} u 10",
    "profileload -i 60000 -a READS {ks} * 20", "profileload -i 60000 -l {ks} u", "profileload -t {ks} t", "profileload -t {ks} t",
    "profileload -t", "profileload -t {ks} u",
]
NAMED_TABLES = [
    "getcompactionthreshold {ks} t", "getcompactionthreshold {ks}",
    "setcompactionthreshold {ks} t 5 20", "getcompactionthreshold {ks} t", "setcompactionthreshold {ks} t 4 32", "setcompactionthreshold {ks} t 5",
    "setcompactionthreshold {ks} t 0 4", "setcompactionthreshold {ks} t 10 4", "setcompactionthreshold {ks} t x 4",
    "getsstables {ks} t", "getendpoints {ks} t", "getendpoints {ks} t 1", "getendpoints nope t 1", "getendpoints {ks} nope 1",
    "tablehistograms a b c", "tablehistograms nope t", "tablehistograms {ks} nope",
    *(f"{verb} {name}" for verb in ["tablehistograms", "viewbuildstatus"] for name in ["{ks}.a.b", "{ks}.", "{ks}", ".."]),
    "tablehistograms .t", "tablehistograms {ks}.nope.", "import", "import {ks}", "import {ks} t", "import {ks} t /tmp/no/such/folder",
    "import -q {ks} t /tmp/no/such/folder", "stop nope", "stop COMPACTION", "stop", "stop -id nope",
    "datapaths nope", "datapaths {ks}.nope", "datapaths -F x", "compactionhistory -F x", "tpstats -F x", "viewbuildstatus a b c",
]
REWRITES = [
    "cleanup -j 1 {ks} t", "cleanup nope", "garbagecollect {ks} t", "garbagecollect -g CELL {ks} u", "garbagecollect nope",
    "upgradesstables -j 1 {ks} t", "upgradesstables -a -j 1 {ks} t", "upgradesstables nope", "recompress_sstables -j 1 {ks} t",
    "recompress_sstables nope", "relocatesstables {ks} t", "relocatesstables nope t", "verify -f {ks} t", "verify -f -e {ks} t", "verify -f nope",
    "verify -f {ks} nope", "scrub -j 1 {ks} t", "scrub -ns -n -s -r -j 1 {ks} t u", "scrub -j 1 nope", "scrub -j 1 {ks} nope",
    "forcecompact", "forcecompact {ks}", "forcecompact {ks} t", "forcecompact {ks} t 1", "forcecompact {ks} t 1 2 3", "forcecompact nope t 1",
    "forcecompact {ks} nope 1", "invalidaterowcache", "reloadlocalschema", "replaybatchlog",
]
# What Cassandra does and prints on its node, command by command.
COMMANDS = [
    "version", "nosuch", "info extra", "version -p 1", "reloadssl", "reloadssl extra", "clientstats extra",
    "flush", "flush {ks}", "flush {ks} t u", "flush nope", "flush {ks} nope", "flush {ks} --foo",
    "compact {ks} t", "compact {ks}", "compact nope", "compact {ks} nope",
    "compact --user-defined x", "compact --user-defined /tmp/nope-Data.db", "compact --user-defined -s x",
    "compact --user-defined -st 1 -et 2 x", "compact --user-defined --partition 1 x", "compact -s -st 1 {ks} t", "compact -s --partition 1",
    "compact -st x -et 2 {ks} t", "compact -st 1 {ks} t", "compact -et 1 {ks} t", "compact -st 1.5 -et 2 {ks} t",
    "compact -st 99999999999999999999 -et 1 {ks} t", "compact -st 1 -et 1 {ks} t", "compact -st 1 -et 2 {ks} nope", "compact -st 1 -et 2 nope",
    "compact --start-token=-5 --end-token=+5 {ks} t", "compact -st 1 -et 2 --partition x {ks} t",
    "compact --partition x {ks} t", "compact --partition 99999999999999 {ks} t", "compact --partition 1:2 {ks} t", "compact --partition 1 {ks} t u",
    "compact --partition 1 nope", "compact --partition 1 {ks} nope", "compact -s {ks} nope", "compact -s nope", "compact -s {ks} t",
    "snapshot -t s1 {ks}", "snapshot -t s1 {ks}", "snapshot -t s2 -kt {ks}.t,{ks}.u", "snapshot --tag=s3 --table t {ks}",
    "snapshot -t s4 -sf {ks}", "snapshot nope", "snapshot -t a/b {ks}", "snapshot -kt {ks}.nope", "snapshot -kt nope.t",
    "snapshot -cf t", "snapshot -t",
    "listsnapshots", "clearsnapshot", "clearsnapshot -t s2", "clearsnapshot -t nope", "clearsnapshot -t s3 --all",
    "clearsnapshot -t s1 -- {ks} nope", "clearsnapshot --all -- {ks}", "listsnapshots",
    "snapshot --ttl 0 -t a {ks}", "snapshot --ttl x -t a {ks}", "snapshot --ttl 0s -t a {ks}", "snapshot --ttl 10s -t a {ks}",
    "snapshot --ttl 59s -t a {ks}", "snapshot --ttl 60000ms -t a {ks}", "snapshot --ttl -60s -t a {ks}", "snapshot --ttl 99999d -t a {ks}",
    "snapshot --ttl 99999999999d -t a {ks}", "snapshot --ttl 99999999999999999999d -t a {ks}",
    "snapshot --ttl 0060m -t a {ks}", "snapshot --ttl 60m -t a {ks}", "snapshot --ttl=2h -sf -t b {ks}", "snapshot --ttl 1d -kt {ks}.t -t c",
    "snapshot --ttl 90m -t e --table t {ks}", "snapshot -t .. {ks}", "snapshot -t . {ks}", "snapshot -t ../x {ks}", "snapshot --tag= {ks}",
    "snapshot -t e.f {ks}", "snapshot -t g {ks}.t", "snapshot -t h {ks}.t {ks}", "snapshot -t i -kt {ks}", "snapshot -t j -kt {ks}.t.u",
    "snapshot -t l -kt {ks}.t -cf u", "snapshot -t n --kc.list {ks}.t,{ks}.u",
    "listsnapshots", "listsnapshots -nt", "listsnapshots -e", "listsnapshots --no-ttl --ephemeral",
    "clearsnapshot --all --older-than 10s --older-than-timestamp 2022-12-03T10:15:30Z", "clearsnapshot -t a --older-than 10s",
    "clearsnapshot -t a --older-than-timestamp 2022-12-03T10:15:30Z", "clearsnapshot --older-than 10s",
    "clearsnapshot --all --older-than x", "clearsnapshot --all --older-than 10", "clearsnapshot --all --older-than 10ms",
    "clearsnapshot --all --older-than -1s", "clearsnapshot --all --older-than 1h", "clearsnapshot --all --older-than=1h -- {ks}",
    "clearsnapshot --all --older-than 99999999999999999999s", "clearsnapshot --all --older-than 106751991167301d",
    *(f"clearsnapshot --all --older-than-timestamp {instant}" for instant in [
        "x", "2022-12-03", "2022-12-03T10:15:30", "2022-12-03T10:15:30Z", "2022-12-03T10:15:30.123456789Z", "2022-12-03T10:15:30+01:00",
        "2022-02-30T10:15:30Z", "2022-12-03t10:15:30z", "2022-12-03T24:00:00Z", "2022-12-03T24:00:01Z", "2022-12-03T10:15Z",
        "2022-12-03T10:15:30+0100", "1234567890", "1970-01-01T00:00:01Z",
    ]),
    "listsnapshots", "clearsnapshot --all --older-than-timestamp 9022-12-03T10:15:30Z -- {ks}", "listsnapshots",
    "snapshot -t again --ttl 1h {ks}", "clearsnapshot --all --older-than 0s", "listsnapshots",
    "disableautocompaction {ks} t", "statusautocompaction {ks} t", "statusautocompaction {ks}", "statusautocompaction {ks} u",
    "enableautocompaction {ks} t", "statusautocompaction {ks}", "disableautocompaction {ks} nope", "enableautocompaction nope",
    "settraceprobability 0.5", "gettraceprobability", "settraceprobability 3", "settraceprobability", "settraceprobability x",
    "settraceprobability 0", "gettraceprobability",
    "setcompactionthroughput 16", "getcompactionthroughput", "getcompactionthroughput -d", "setconcurrentcompactors 0",
    "refresh {ks}", "refresh {ks} nope", "refresh nope t", "refresh {ks} t", "rebuild_index {ks} t",
    "tablestats nope", "tablestats {ks}.nope", "tablestats -F xml", "tablestats -s nope", "tablestats -t 1", "tablestats -t -1 -s reads",
    "tablestats -t x -s reads", "tablestats -i", "tablestats -F json -i", "tablestats -s dropped_mutations {ks}",
    *RING_OF_ONE, *SHOWN_SETTINGS, *NAMED_TABLES, *REWRITES, *SAMPLINGS,
]


def normal(text):
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    # Rows of a table are in the order of a hash map.
    lines = [line.rstrip() for line in text.split("-- StackTrace --")[0].splitlines()]
    return sorted(lines)


class Tool:
    """`run` answers the exit status, and what was printed on both outputs."""

    def __init__(self, *command):
        self._command = command

    def run(self, line):
        done = subprocess.run([*self._command, *line.split()], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        return done.returncode, done.stdout, done.stderr

    def normal(self, line):
        status, out, err = self.run(line)
        return status, normal(out), normal(err)


class DeskTool(Tool):
    """Cassandra's nodetool in a JVM that is there already: most of its time is the start of one."""

    def __init__(self, tools, port, folder):
        super().__init__("-p", str(port))
        self._tools = tools
        self._files = [folder / "out", folder / "err"]

    def run(self, line):
        status = self._tools.nodetool(*self._files, *self._command, *line.split())
        return status, *(path.read_text(encoding="utf-8") for path in self._files)


def fill(session, keyspace):
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {replication}")
    session.execute(f'CREATE TYPE {keyspace}."Ty" (a int, b text)')
    for table in "tu":
        session.execute(f'CREATE TABLE {keyspace}.{table} (k int, c int, v text, w frozen<"Ty">, s int static, PRIMARY KEY (k, c))')
    session.execute(f"ALTER TABLE {keyspace}.u DROP v")
    for k in range(100):
        session.execute(f"INSERT INTO {keyspace}.t (k, c, v) VALUES ({k}, 1, 'value')")


def patient(folder):
    """Settings of a node whose requests may wait as long as a busy host makes them."""
    config = folder / "cassandra.yaml"
    config.write_text(f"{TIMEOUTS}\nnodetool_port: 0\n", encoding="utf-8")
    return config


@pytest.fixture(scope="module")
def ours(request, tmp_path_factory):
    """A node, its tool through a link with Cassandra's name, and a session."""
    folder = tmp_path_factory.mktemp("nodetool")
    server = Server(request.config.getoption("--halcyon"), folder, "--config", patient(folder))
    server.start()
    link = folder / "nodetool"
    link.symlink_to(request.config.getoption("--halcyon").absolute())
    yield server, Tool(link, "-p", str(server.port)), server.connect()
    server.close()


@pytest.fixture
def alone(request, tmp_path):
    """A node of one test, its tool, and a session; it has the keyspace `ks`."""
    halcyon = request.config.getoption("--halcyon")
    server = Server(halcyon, tmp_path, "--config", patient(tmp_path))
    try:
        session = server.start().connect()
        fill(session, "ks")
        yield server, Tool(halcyon, "nodetool", "-p", str(server.port)), session
    finally:
        server.close()


@pytest.fixture(scope="module")
def theirs(nodes, tmp_path_factory):
    node = nodes.get(RELEASE)
    return node, DeskTool(node.tools, node.facts["jmx_port"], tmp_path_factory.mktemp("their_nodetool"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [f"{RELEASE}-nodetool"])
def test_the_same_lines_and_codes(ours, theirs, name):
    server, our_tool, session = ours
    node, their_tool = theirs
    keyspace = "nodetool_test"
    fill(session, keyspace)
    fill(node.session, keyspace)
    for tool in (our_tool, their_tool):
        tool.run("clearsnapshot --all")
    differences = []
    for line in COMMANDS:
        line = line.format(ks=keyspace)
        found, expected = our_tool.normal(line), their_tool.normal(line)
        if line.startswith("listsnapshots"):
            # The total is of SSTables there, and of all files here.
            found, expected = ((s, [li for li in out if "Total" not in li], err) for s, out, err in (found, expected))
        if found != expected:
            differences.append(f"{line}\n  ours:   {found}\n  theirs: {expected}")
    assert not differences, "\n".join(differences)
    assert described(server.data / "data", our_tool, keyspace) == described(
        Path(node.facts["storage_dir"]) / "data", their_tool, keyspace
    )


def synopsis(page, verb):
    """The options of a page's synopsis behind the verb, each with its names sorted, and then the arguments."""
    words = " ".join(page.split("SYNOPSIS\n")[1].split("\nOPTIONS")[0].split())
    words = f"{words} ".rpartition(f" {verb} ")[2].strip()
    options, _, arguments = words.partition("[--]")
    either = re.findall(r"\((-[^)]*)\)|(--?[a-zA-Z][-\w]*(?: <[^>]*>)?)", options)
    options = sorted(" | ".join(sorted("".join(names).split(" | "))) for names in either)
    return options + [arguments.strip()] * bool(arguments)


# Commands with commands of their own, which are arguments here.
WITH_COMMANDS = {"bootstrap", "repair_admin", "help"}
# Halcyon's own.
OF_HALCYON = {"loadpartitiondenylist"}


def test_every_verb_of_cassandra_is_known(ours, nodes, cassandra_options):
    """The list of `help` is that of the real tool, and the options and arguments of each page are those that it was found to print."""
    node, tool = nodes.get(RELEASE), ours[1]
    recorded = json.loads((Path(__file__).parent / "nodetool_verbs.json").read_text(encoding="utf-8"))
    lists = [opened.nodetool(cassandra_options, node.facts, "help"), tool.run("help")[1]]
    theirs, found = (set(re.findall(r"^    (\w+)  ", listed, re.M)) for listed in lists)
    assert theirs == set(recorded) and found - theirs == OF_HALCYON and theirs <= found
    differences = []
    for verb in sorted(theirs - WITH_COMMANDS):
        printed = synopsis(tool.run(f"help {verb}")[1], verb)
        if printed != recorded[verb]:
            differences.append(f"{verb}\n  ours:   {printed}\n  theirs: {recorded[verb]}")
    assert not differences, "\n".join(differences)


def test_refusals_say_why(ours):
    """What cannot be done on one node is refused with one line and Cassandra's exit code."""
    _, tool, _ = ours
    for line in ["repair", "decommission", "move 1", "resetlocalschema", "setstreamthroughput 1", "truncatehints", "sjk"]:
        status, out, err = tool.run(line)
        assert (status, out) == (2, "") and err.startswith(f"error: {line.split()[0]}: ") and err.count("\n") == 1, err


def test_the_ring_of_one(ours, theirs):
    """Tokens, ranges, states of gossip, the history of compactions and the paths of tables are laid out as Cassandra's."""
    node, their_tool = theirs
    server, our_tool, session = ours
    for target in (session, node.session):
        fill(target, "ring_test")
    shape = re.compile(r"\S+")
    for line, wanted in [
        ("ring", re.compile(r"^(Datacenter|==|Address)")),
        ("describecluster", re.compile(r"^\t?(Cluster I|\tPartitioner|Stats|\tLive|\tJoin|\tMov|\tLeav|\tUnr|Data|datac|ring_test|system)")),
        ("netstats", re.compile(r"^(Mode|Not|Read|Att|Mism|Pool|Large)")),
        ("tpstats", re.compile(r"^(Pool|Latencies|Message)")),
        ("compactionhistory", re.compile(r"^Compaction")),
        ("getconcurrency", re.compile(r"^Stage ")),
    ]:
        found, expected = (
            sorted(shape.findall(li) for li in tool.run(line)[1].split("\n") if wanted.match(li)) for tool in (our_tool, their_tool)
        )
        assert found == expected and len(found) > 0, line
    ours_knows, theirs_knows = ({li.split(":")[0] for li in tool.run("gossipinfo")[1].split("\n")} for tool in (our_tool, their_tool))
    # Cassandra tells the states of storage-attached indexes, once there have been some.
    assert theirs_knows - ours_knows - {"  INDEX_STATUS"} == {"  NET_VERSION", "  SSTABLE_VERSIONS"} and ours_knows <= theirs_knows
    (_, _, head, *ranges) = our_tool.run("describering ring_test")[1].split("\n")[0:1] + our_tool.run("describering ring_test")[1].split("\n")
    assert head.startswith("TokenRange: ") and len([li for li in ranges if li.startswith("\tTokenRange(start_token:")]) == 16
    for form in ["json", "yaml"]:
        found, expected = (tool.run(f"datapaths -F {form} ring_test.t")[1] for tool in (our_tool, their_tool))
        path = re.compile(r"/\S*/ring_test/t-[0-9a-f]{32}")
        assert path.sub("P", found) == path.sub("P", expected)
        (named,) = path.findall(found)
        assert Path(named).is_dir() and Path(named).parent.parent == server.data / "data"
    assert our_tool.run("compact ring_test")[0] == their_tool.run("compact ring_test")[0] == 0
    for tool in (our_tool, their_tool):
        rows = json.loads(tool.run("compactionhistory -F json")[1])["CompactionHistory"]
        assert {frozenset(row) for row in rows} == {frozenset(rows[0])} and rows[0]["compaction_properties"].startswith("{compaction_type:")
        pools = json.loads(tool.run("tpstats -F json")[1])["ThreadPools"]
        assert {frozenset(pool) for pool in pools.values()} == {frozenset(pools["ReadStage"])} and len(pools) >= 20


def test_partitions_are_found_and_measured_as_in_cassandra(ours, theirs):
    """The SSTables of a key, in text and in hexadecimal digits and with levels, and the cells of partitions, are those of the same rows."""
    node, their_tool = theirs
    _, our_tool, session = ours
    for tool, target in ((our_tool, session), (their_tool, node.session)):
        fill(target, "found_test")
        levels = "WITH compaction = {'class': 'LeveledCompactionStrategy'}"
        target.execute(f"CREATE TABLE found_test.l (a text, b int, c int, PRIMARY KEY ((a, b), c)) {levels}")
        target.execute("INSERT INTO found_test.l (a, b, c) VALUES ('x', 1, 1)")
        assert tool.run("flush found_test")[0] == 0
    path = re.compile(r"/\S*/found_test/(\w+)-[0-9a-f]{32}/\S*-Data.db")
    for line in ["t 1", "t 12345", "-hf found_test t 00000001", "-l found_test l x:1", "-l found_test t 2", "l x:2"]:
        line = line if line.startswith("-") else f"found_test {line}"
        found, expected = (tool.run(f"getsstables {line}") for tool in (our_tool, their_tool))
        assert [path.sub(r"\1", text) for text in found[1:]] == [path.sub(r"\1", text) for text in expected[1:]], line
        assert found[0] == expected[0] == 0, line
    status, out, err = our_tool.run("getsstables found_test t x")
    assert (status, out) == (2, "") and "Unable to parse partition key 'x'" in err
    for target in (session, node.session):
        for key in (1, 1, 2):
            assert target.execute(f"SELECT * FROM found_test.t WHERE k = {key}").one()
    ours_shown, theirs_shown = (tool.run("tablehistograms found_test t")[1].split("\n") for tool in (our_tool, their_tool))
    assert ours_shown[:3] == theirs_shown[:3] and [len(li) for li in ours_shown] == [len(li) for li in theirs_shown]
    for column in (slice(-18, None), slice(-54, -36)):
        assert [li[column] for li in ours_shown] == [li[column] for li in theirs_shown], (ours_shown, theirs_shown)
    ours_shown, theirs_shown = (tool.run("proxyhistograms")[1].split("\n") for tool in (our_tool, their_tool))
    assert ours_shown[:3] == theirs_shown[:3] and [len(li) for li in ours_shown] == [len(li) for li in theirs_shown]


def test_rewritten_sstables(alone):
    """Each SSTable becomes another one; a damaged one is named by verify; the rows remain."""
    server, tool, session = alone
    session.execute("ALTER TABLE ks.t WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 16}")

    def files():
        return sorted(path.name for path in (server.data / "data" / "ks").glob("t-*/*-Data.db"))

    assert tool.run("flush ks t")[0] == 0
    before = files()
    for line in ["upgradesstables ks t", "recompress_sstables ks t", "verify -f -e ks t", "cleanup ks"]:
        assert tool.run(line) == (0, "", ""), line
    assert files() == before
    session.execute("ALTER TABLE ks.t WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}")
    assert tool.run("recompress_sstables ks t") == (0, "", "")
    until(lambda: not set(files()) & set(before), lambda: str(files()))
    assert tool.run("verify -f -e ks t") == (0, "", "")
    assert len(list(session.execute("SELECT k FROM ks.t"))) == 100
    data = min((server.data / "data" / "ks").glob("t-*/*-Data.db"))
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)
    status, out, err = tool.run("verify -f ks t")
    assert (status, out) == (2, "") and str(data) in err, err


def sstables(tool, keyspace):
    status, out, _ = tool.run(f"tablestats -F json {keyspace}.t")
    assert status == 0
    return json.loads(out)[keyspace]["tables"]["t"]["sstable_count"]


@pytest.mark.timeout(600)
def test_compact_chooses_the_sstables_of_cassandra(ours, theirs):
    """Four SSTables of a few partitions each: a range, a partition and files leave as many SSTables as in Cassandra."""
    server, our_tool, session = ours
    node, their_tool = theirs
    keyspace = "chosen"
    tokens = {}
    places = [(our_tool, session, server.data / "data"), (their_tool, node.session, Path(node.facts["storage_dir"]) / "data")]
    for tool, target, _ in places:
        fill(target, keyspace)
        assert tool.run(f"disableautocompaction {keyspace}")[0] == 0
        target.execute(f"TRUNCATE {keyspace}.t")
        for k in range(4):
            target.execute(f"INSERT INTO {keyspace}.t (k, c, v) VALUES ({k}, 1, 'value')")
            assert tool.run(f"flush {keyspace} t")[0] == 0
            (row,) = target.execute(f"SELECT token(k) AS at FROM {keyspace}.t WHERE k = {k}")
            tokens[k] = row.at
    low, second, third, high = sorted(tokens.values())
    lines = [
        "-st {low} -et {low}", "--partition 77", "--partition 2", f"-st {second + 1} -et {third - 1}", f"-st {second - 1} -et {second}",
        f"-st {high} -et -9223372036854775808", f"-st {second} -et {third}", f"-st {high} -et {low}",
        "--start-token=-9223372036854775808 -et 9223372036854775807",
    ]
    counts = [4]
    for line in lines:
        line = f"compact {line.format(low=low)} {keyspace} t"
        found = [(tool.normal(line), sstables(tool, keyspace)) for tool, _, _ in places]
        assert found[0] == found[1], line
        counts.append(found[0][1])
    assert counts == [4, 4, 4, 4, 4, 4, 4, 3, 2, 1]
    for tool, target, _ in places:
        for k in range(2):
            target.execute(f"INSERT INTO {keyspace}.t (k, c, v) VALUES ({k}, 2, 'value')")
            assert tool.run(f"flush {keyspace} t")[0] == 0
    counts = []
    for tool, target, data in places:
        files = sorted(data.glob(f"{keyspace}/t-*/*-Data.db"), key=lambda path: path.stat().st_mtime_ns)[-2:]
        line = f"compact --user-defined {files[0]} {'/'.join(files[1].parts[-3:])}"
        assert tool.run(line) == (0, "", ""), line
        counts.append(sstables(tool, keyspace))
        assert len(list(target.execute(f"SELECT * FROM {keyspace}.t"))) == 6
    assert counts == [2, 2]


def test_compact_refuses_files_that_no_table_has(ours):
    """Where Cassandra does nothing, and does not say so."""
    server, tool, session = ours
    fill(session, "refused")
    assert tool.run("compact refused")[0] == 0

    def files():
        return list((server.data / "data" / "refused").glob("t-*/*-Data.db"))

    # Those of the inputs go some time after the answer.
    until(lambda: len(files()) == 1, lambda: str(files()))
    (data,) = files()
    named = "/".join(data.parts[-3:])
    copies = server.folder / "elsewhere" / "/".join(data.parts[-3:-1])
    copies.mkdir(parents=True)
    shutil.copyfile(data, copies / data.name)
    for path, why in [
        (data.name, "is in no table's folder"),
        (f"/etc/{named}", "is not in a folder of refused.t"),
        (copies / data.name, "is not in a folder of refused.t"),
        (f"{data.parent}/../../../refused/nope-0/{data.name}", "is in no table's folder"),
        (data.parent / re.sub(r"-\w+-", "-9991-", data.name, count=1), "is not an active SSTable of refused.t"),
    ]:
        status, out, err = tool.run(f"compact --user-defined {data} {path}")
        assert (status, out) == (2, "") and why in err, (path, out, err)
        assert data.exists()
    assert sstables(tool, "refused") == 1


@pytest.mark.timeout(600)
def test_snapshots_expire(alone):
    """The node that takes a snapshot is killed; the next one removes it when its time has come."""
    server, tool, _ = alone
    assert tool.run("snapshot -t kept ks")[0] == 0
    assert tool.run("snapshot -t gone --ttl 60s ks")[0] == 0
    (manifest,) = (server.data / "data" / "ks").glob("t-*/snapshots/gone/manifest.json")
    stated = json.loads(manifest.read_text(encoding="utf-8"))
    created, expires = (datetime.fromisoformat(stated[key]) for key in ("created_at", "expires_at"))
    assert (expires - created).total_seconds() == 60
    assert "gone" in tool.run("listsnapshots")[1] and "gone" not in tool.run("listsnapshots -nt")[1]
    server.kill()
    server.start()
    folders = list((server.data / "data" / "ks").glob("*/snapshots/gone"))
    until(lambda: server.said().count("gone has expired and is removed") == len(folders) > 0, server.said, pause=1)
    listed = tool.run("listsnapshots")[1]
    assert not manifest.parent.exists() and "kept" in listed and "gone" not in listed


def described(data, tool, keyspace):
    """`schema.cql` and the keys of `manifest.json` of fresh snapshots."""
    assert tool.run(f"snapshot -t described {keyspace}")[0] == 0
    found = {}
    for folder in sorted(data.glob(f"{keyspace}/*/snapshots/described")):
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        kinds = {key: len(value) if key == "files" else type(value) for key, value in manifest.items()}
        assert sorted(path.name for path in folder.glob("*-Data.db")) == sorted(manifest["files"])
        found[folder.parent.parent.name.split("-")[0]] = normal((folder / "schema.cql").read_text(encoding="utf-8")), kinds
    assert tool.run("clearsnapshot -t described")[0] == 0
    return found


def test_tablestats_knows_the_lines_of_cassandra(ours, theirs):
    """Each line of ours is one of theirs, in their order; the counts that do not depend on the format of files are equal."""
    _, our_tool, session = ours
    node, their_tool = theirs
    for target in (session, node.session):
        fill(target, "stats_test")
    equal = {"SSTable count", "Local write count", "Pending flushes"}
    texts, fields = [], []
    for tool in (our_tool, their_tool):
        for command in ("flush", "compact"):
            assert tool.run(f"{command} stats_test") == (0, "", "")
        status, out, _ = tool.run("tablestats stats_test.t")
        assert status == 0
        texts.append([tuple(line.strip().split(": ")) for line in out.splitlines() if ": " in line])
        status, out, _ = tool.run("tablestats -F json stats_test.t")
        assert status == 0
        fields.append(json.loads(out)["stats_test"]["tables"]["t"])
    known = [title for title, _ in texts[1]]
    assert [title for title in known if title in dict(texts[0])] == [title for title, _ in texts[0]]
    for title in equal:
        assert dict(texts[0])[title] == dict(texts[1])[title], title
    assert set(fields[0]) <= set(fields[1])
    for key, value in fields[0].items():
        assert isinstance(value, type(fields[1][key])) or {type(value), type(fields[1][key])} <= {int, float}, key


def test_tablestats_sorts_and_formats_as_cassandra(ours, theirs):
    """The same tables in the same order, in text, JSON and YAML; what does not depend on the node is the same, levels and windows too."""
    _, our_tool, session = ours
    node, their_tool = theirs
    windows = "{'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'HOURS', 'compaction_window_size': 2}"
    for tool, target in ((our_tool, session), (their_tool, node.session)):
        fill(target, "sorted_test")
        target.execute("ALTER TABLE sorted_test.t WITH compaction = {'class': 'LeveledCompactionStrategy'}")
        target.execute(f"ALTER TABLE sorted_test.u WITH compaction = {windows}")
        target.execute("INSERT INTO sorted_test.u (k, c) VALUES (1, 1) USING TIMESTAMP 1000000")
        target.execute("INSERT INTO sorted_test.u (k, c) VALUES (1, 2) USING TIMESTAMP 3661000000")
        for command in ("flush", "compact"):
            assert tool.run(f"{command} sorted_test")[0] == 0
    same = re.compile(r"(Total|----|\t*(Keyspace|Table|SSTables [a-zA-Z]|Speculative|Pending|Percent|Bytes (re|pen)))")
    for line in ["", "-s table_name", "-s full_name", "-s writes -t 1", "-s writes -t 9", "-s twcs_max_duration", "-s reads", "-l", "-H", "-s percent_repaired -l"]:
        (status, found, _), (_, expected, _) = (tool.run(f"tablestats {line} sorted_test") for tool in (our_tool, their_tool))
        assert status == 0
        if "-s" not in line:
            found, expected = ("\n".join(sorted(text.split("\n"))) for text in (found, expected))
        assert [li for li in found.split("\n") if same.match(li)] == [li for li in expected.split("\n") if same.match(li)], line
    equal = {"twcs", "sstables_in_each_level", "speculative_retries", "pending_flushes", "percent_repaired", "total_number_of_tables", "tables",
             "top_size_partitions", "droppable_tombstone_ratio", "sstables_in_correct_location", "average_live_cells_per_slice_last_five_minutes"}
    for line in ["-l -F yaml", "-l -F yaml -s reads", "-F yaml -H -s reads -t 1"]:
        (_, found, _), (_, expected, _) = (tool.run(f"tablestats {line} sorted_test") for tool in (our_tool, their_tool))
        found, expected = ({li for li in text.split("\n") if not li.lstrip().startswith("-")} for text in (found, expected))
        assert {li.split(":")[0] for li in found} <= {li.split(":")[0] for li in expected}
        of_equal = [{li for li in lines if li.split(":")[0].strip() in equal} for lines in (found, expected)]
        assert of_equal[0] == of_equal[1] and len(of_equal[0]) > 8, line
    for line in ["-F json", "-F json -s reads"]:
        trees = [json.loads(tool.run(f"tablestats {line} sorted_test")[1]) for tool in (our_tool, their_tool)]
        assert {key: sorted(tree) for key, tree in trees[0].items() if isinstance(tree, dict) and "tables" in tree} == {
            key: sorted(tree) for key, tree in trees[1].items() if isinstance(tree, dict) and "tables" in tree
        }
        assert sorted(trees[0]) == sorted(trees[1])


def test_refresh_takes_sstables_in(ours):
    """What a snapshot of one table has is put beside another one's files."""
    server, tool, session = ours
    keyspace = "refresh_test"
    fill(session, keyspace)
    session.execute(f'CREATE TABLE {keyspace}.copy (k int, c int, v text, w frozen<"Ty">, s int static, PRIMARY KEY (k, c))')
    session.execute(f"INSERT INTO {keyspace}.copy (k, c, v) VALUES (-1, 1, 'own')")
    assert tool.run(f"compact {keyspace} t")[0] == 0
    assert tool.run(f"snapshot -t there {keyspace}")[0] == 0
    (source,) = (server.data / "data" / keyspace).glob("t-*/snapshots/there")
    (target,) = (server.data / "data" / keyspace).glob("copy-*")
    (data,) = source.glob("*-Data.db")
    for path in source.glob(data.name.replace("Data.db", "*")):
        version, _, component = path.name.split("-", 2)
        assert not (target / f"{version}-77-{component}").exists()
        shutil.copyfile(path, target / f"{version}-77-{component}")
    count = f"SELECT count(*) FROM {keyspace}.copy"
    assert session.execute(count).one()[0] == 1
    for _ in range(2):
        assert tool.run(f"refresh {keyspace} copy")[0] == 0
        assert session.execute(count).one()[0] == 101
    assert tool.run(f"compact {keyspace} copy") == (0, "", "")
    assert session.execute(count).one()[0] == 101


def imported(tool, session, data, folder):
    """What each import answers and leaves, and how many rows there are then."""
    def source(name, damage=None):
        there = folder / name
        shutil.rmtree(there, ignore_errors=True)
        shutil.copytree(snapshot, there)
        if damage is not None:
            (path,) = there.glob("*-Data.db")
            content = bytearray(path.read_bytes())
            content[damage] ^= 255
            path.write_bytes(content)
        return there

    keyspace = "import_test"
    fill(session, keyspace)
    session.execute(f'CREATE TABLE {keyspace}.copy (k int, c int, v text, w frozen<"Ty">, s int static, PRIMARY KEY (k, c))')
    assert tool.run(f"compact {keyspace} t")[0] == 0 and tool.run(f"snapshot -t there {keyspace}")[0] == 0
    (snapshot,) = (data / keyspace).glob("t-*/snapshots/there")
    (folder / "empty").mkdir()
    answers = []
    for line, damage in [
        ("{empty}", None), ("-q {a}", None), ("{a}", None), ("-cd {a}", None), ("--copy-data --no-verify {a}", None),
        ("-l -r -c -t {a}", None), ("-e {a}", None), ("{a} {b}", 20), ("-cd -e {b} {a}", 20), ("{empty} {a} {a}", None),
    ]:
        session.execute(f"TRUNCATE {keyspace}.copy")
        folders = {"a": source("a"), "b": source("b", damage), "empty": folder / "empty"}
        words = line.format(**folders).split()
        at = next(index for index, word in enumerate(words) if word.startswith("/"))
        status, out, err = tool.normal(" ".join(["import", *words[:at], keyspace, "copy", *words[at:]]))
        # What a tool that exits says in its desk.
        answer = status != 0, out, [line for line in err if line != "error: null"]
        left = {name: len(list(there.iterdir())) > 2 for name, there in folders.items()}
        rows = session.execute(f"SELECT count(*) FROM {keyspace}.copy").one()[0]
        answers.append((line, str(answer).replace(str(folder), ""), left, rows))
    return answers


def test_import_takes_sstables_in(ours, theirs, tmp_path):
    """Proves that directories with sound SSTables are taken in, and others left, as by Cassandra's tool with the same options."""
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    server, our_tool, session = ours
    node, their_tool = theirs
    found = imported(our_tool, session, server.data / "data", tmp_path / "ours")
    assert found == imported(their_tool, node.session, Path(node.facts["storage_dir"]) / "data", tmp_path / "theirs")
    assert [rows for *_, rows in found] == [0] + [100] * 9
    own = next((server.data / "data" / "import_test").glob("copy-*"))
    status, _, said = our_tool.run(f"import import_test t {own}")
    assert (status, said.splitlines()[1:]) == (1, [str(own)]) and list(own.glob("*-Data.db"))


def backed_up(tool, session, data):
    """Which components of how many SSTables are in `backups` after flushes with and without backups."""
    keyspace = "backup_test"
    fill(session, keyspace)
    session.execute(f"ALTER TABLE {keyspace}.u WITH incremental_backups = false")
    for switch in ["disablebackup", "enablebackup", "disablebackup"]:
        assert tool.run(switch)[0] == 0
        for table in "tu":
            session.execute(f"INSERT INTO {keyspace}.{table} (k, c) VALUES (1, 1)")
        assert tool.run(f"flush {keyspace}")[0] == 0
    return {table: sorted(path.name.split("-")[-1] for path in (data / keyspace).glob(f"{table}-*/backups/*")) for table in "tu"}


def test_flushes_are_backed_up(ours, theirs):
    """Proves that `enablebackup` has flushes link their SSTables into `backups`, but for tables that refuse it, as in Cassandra."""
    server, our_tool, session = ours
    node, their_tool = theirs
    found = backed_up(our_tool, session, server.data / "data")
    assert found == backed_up(their_tool, node.session, Path(node.facts["storage_dir"]) / "data")
    assert "Data.db" in found["t"] and not found["u"]


def test_status_and_info(ours):
    _, tool, _ = ours
    status, out, _ = tool.run("status")
    assert status == 0 and re.search(r"^UN  127\.0\.0\.1 +\S+ \S+ +16 +100\.0% +[0-9a-f-]{36}  rack1$", out, re.M), out
    assert tool.run("status nope") == (1, "\nError: The keyspace nope, does not exist\n", "")
    status, out, _ = tool.run("info")
    assert status == 0 and re.search(r"^Data Center +: datacenter1$", out, re.M), out
    status, out, _ = tool.run("compactionstats")
    assert status == 0 and re.search(r"^pending tasks +\d+ *$", out, re.M), out
    status, out, _ = tool.run("getlogginglevels")
    assert status == 0 and re.search(r"^ROOT +INFO$", out, re.M), out


def test_wrong_ports_are_explained(halcyon, ours):
    _, tool, _ = ours
    assert "Failed to connect to '127.0.0.1:1'" in halcyon.run("nodetool", "-p", "1", "status", status=1).stderr
    assert tool.run("repair")[0] == 2


PORTS = ["statusbinary", "disablebinary", "disablebinary", "statusbinary", "info", "enablebinary", "enablebinary", "statusbinary", "info",
         "disablebinary --force", "statusbinary", "enablebinary", "disablebinary extra", "statusbinary"]


def answers(session):
    try:
        session.execute("SELECT key FROM system.local")
    except (NoHostAvailable, OperationTimedOut, ConnectionException):
        return False
    return True


def test_ports_of_clients_close_and_open(request, tmp_path, theirs):
    """Proves that clients are disconnected and kept out while the node and its tool work, with Cassandra's output, and that machines see it."""
    node, their_tool = theirs
    own, watched = free_port(), free_port()
    config = tmp_path / "cassandra.yaml"
    config.write_text(f"{TIMEOUTS}\nnodetool_port: {own}\nmetrics_port: {watched}\n", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), tmp_path, "--config", config)
    server.start()
    tool = Tool(request.config.getoption("--halcyon"), "nodetool", "-p", str(own))

    def told(tool):
        found = [tool.run(line) for line in PORTS]
        return [(line, status, err, re.findall(r"^Native Transport active +: .*$|not running|running", out, re.M)) for line, (status, out, err) in zip(PORTS, found, strict=True)]

    expected = told(their_tool)
    # Cassandra's driver finds its node again.
    until(lambda: answers(node.session), "Cassandra has not opened its port again")
    try:
        assert told(tool) == [(line, status, err.split("-- StackTrace --")[0], found) for line, status, err, found in expected]
        client = Client(server.port)
        assert tool.run("disablebinary")[0] == 0
        with pytest.raises((EOFError, OSError)):
            client.query("SELECT key FROM system.local")
        with pytest.raises(OSError):
            Client(server.port)
        ready = f"http://127.0.0.1:{watched}/ready"
        with pytest.raises(urllib.error.HTTPError, match="503") as refused:
            urllib.request.urlopen(ready, timeout=PATIENCE_SECONDS)
        assert "nodetool enablebinary" in refused.value.read().decode()
        assert tool.run("enablebinary")[0] == 0
        assert urllib.request.urlopen(ready, timeout=PATIENCE_SECONDS).status == 200
        client = Client(server.port)
        assert [tool.run("drain"), tool.run("drain")] == [(0, "", "")] * 2
        with pytest.raises((EOFError, OSError)):
            client.query("SELECT key FROM system.local")
        refused = "nodetool: Unable to start native transport because the node was drained.\nSee 'nodetool help' or 'nodetool help <command>'.\n"
        assert tool.run("enablebinary") == (1, refused, "")
        assert tool.run("statusbinary") == (0, "not running\n", "")
        with pytest.raises(urllib.error.HTTPError, match="503") as refused:
            urllib.request.urlopen(ready, timeout=PATIENCE_SECONDS)
        assert "was drained" in refused.value.read().decode()
        assert server.stop() == 0, server.said()
    finally:
        server.close()


def test_drain(alone):
    """Writes are refused, all is in SSTables, and reads are served through the only port that there is."""
    server, tool, session = alone
    assert re.search(r"^Gossip active +: true$", tool.run("info")[1], re.M)
    assert tool.run("drain") == (0, "", "")
    assert tool.run("drain") == (0, "", "")
    assert re.search(r"^Gossip active +: false$", tool.run("info")[1], re.M)
    assert "DRAINED: all is in SSTables" in server.said()
    with pytest.raises(Exception, match="draining"):
        session.execute("INSERT INTO ks.t (k, c) VALUES (1, 1)")
    assert len(list(session.execute("SELECT k FROM ks.t"))) == 100
    assert list((server.data / "data" / "ks").glob("t-*/*-Data.db"))
    assert server.stop() == 0, server.said()


def test_old_protocols_are_refused_while_they_are_disabled(alone):
    """A client of version 4 connects before and after, and not while older versions are disabled; nodetool itself still does."""
    server, tool, _ = alone

    def connect():
        with Cluster(["127.0.0.1"], port=server.port, protocol_version=4, connect_timeout=PATIENCE_SECONDS) as cluster:
            cluster.connect()

    connect()
    assert tool.run("disableoldprotocolversions") == (0, "", "")
    with pytest.raises(NoHostAvailable, match="Rejecting Protocol Version"):
        connect()
    assert tool.run("enableoldprotocolversions") == (0, "", "")
    connect()


def test_stopdaemon_ends_the_node(alone):
    """The node drains and ends with the status of an orderly stop."""
    server, tool, _ = alone
    assert tool.run("stopdaemon") == (0, "Cassandra has shutdown.\n", "")
    assert server.stop() == 0, server.said()
    assert "drained" in server.said()
    assert tool.run("stopdaemon")[0] == 1


def test_size_estimates_are_cassandras(ours, theirs):
    """Ranges that cover the ring once, in both tables of estimates, with as many partitions and the mean size that Cassandra finds."""
    _, our_tool, session = ours
    node, their_tool = theirs
    found = []
    for tool, target in ((our_tool, session), (their_tool, node.session)):
        fill(target, "estimated")
        target.execute("CREATE TABLE estimated.many (k int PRIMARY KEY, v text)")
        for first in range(0, 10000, 10):
            rows = "".join(f"INSERT INTO estimated.many (k, v) VALUES ({k}, '{'x' * 300}');" for k in range(first, first + 10))
            target.execute(f"BEGIN UNLOGGED BATCH {rows} APPLY BATCH")
        assert tool.run("flush estimated") == (0, "", "")
        assert tool.run("refreshsizeestimates") == (0, "", "")
        rows = list(target.execute("SELECT * FROM system.size_estimates WHERE keyspace_name = 'estimated' AND table_name = 'many'"))
        others = list(target.execute("SELECT * FROM system.table_estimates WHERE keyspace_name = 'estimated' AND table_name = 'many'"))
        assert {row.range_type for row in others} == {"primary", "local_primary"}
        assert sorted(row[3:] for row in others) == sorted(2 * [row[2:] for row in rows])
        ends = sorted((int(row.range_start), int(row.range_end)) for row in rows)
        tokens = [start for start, _ in ends]
        assert ends == list(zip(tokens, [*tokens[1:], -(2**63)], strict=True)) and tokens[0] == -(2**63)
        (mean,) = {row.mean_partition_size for row in rows}
        found.append((len(rows), sum(row.partitions_count for row in rows), mean))
    (ranges, partitions, mean), (their_ranges, their_partitions, their_mean) = found
    assert ranges == 17 and abs(partitions - 10000) <= ranges
    # Theirs counts samples of the index: one for 128 partitions, and one more at each end of a range. That node has one token.
    assert their_ranges == 2 and abs(partitions - their_partitions) <= 2 * 128 * their_ranges
    assert abs(mean - their_mean) <= 0.02 * their_mean
    for tool, target in ((our_tool, session), (their_tool, node.session)):
        target.execute("DROP KEYSPACE estimated")
        assert tool.run("refreshsizeestimates")[0] == 0
        assert not list(target.execute("SELECT * FROM system.size_estimates WHERE keyspace_name = 'estimated'"))


def test_estimates_share_writes_of_the_log(alone):
    """What the server writes about a table takes a few writes of the device, whatever the number of ranges: clients' writes wait behind them."""
    _, tool, session = alone
    assert tool.run("flush ks") == (0, "", "")

    def writes():
        return session.execute("SELECT operations FROM halcyon_views.io_operations WHERE purpose = 'commitlog'").one().operations

    before = writes()
    assert tool.run("refreshsizeestimates") == (0, "", "")
    rows = list(session.execute("SELECT keyspace_name, table_name FROM system.size_estimates"))
    tables = {(row.keyspace_name, row.table_name) for row in rows}
    assert ("ks", "t") in tables and len(rows) == 17 * len(tables)
    assert 0 < writes() - before <= 6 * len(tables)


# Cassandra's has the clustering and the size of a page, too.
QUERY = re.compile(r"^ *SELECT \* FROM sampled_test.p WHERE a = .* ALLOW FILTERING +\d+ *$", re.M)


def sampled(tool, session, keyspace, table, seconds):
    """What `toppartitions` prints of a table while it is read and written, without queries and their times."""
    answers = []
    sampling = threading.Thread(target=lambda: answers.append(tool.run(f"toppartitions {keyspace} {table} {seconds * 1000}")))
    sampling.start()
    time.sleep(seconds / 3)
    for a, b, count in [(1, "x", 5), (2, "y", 2), (9, "gone", 3)]:
        for _ in range(count):
            session.execute(f"SELECT * FROM {keyspace}.{table} WHERE a = {a} AND b = '{b}'")
    session.execute(f"SELECT * FROM {keyspace}.{table} WHERE a = 1 AND b = 'x' AND c = 1")
    for c in range(4):
        session.execute(f"INSERT INTO {keyspace}.{table} (a, b, c, v) VALUES (1, 'x', {c}, 'value')")
    session.execute(f"INSERT INTO {keyspace}.{table} (a, b, c, v) VALUES (3, 'w', 1, '{'v' * 100}') USING TTL 1000")
    session.execute(f"UPDATE {keyspace}.{table} SET s = 5 WHERE a = 3 AND b = 'w'")
    session.execute(f"DELETE FROM {keyspace}.{table} WHERE a = 4 AND b = 'd'")
    sampling.join()
    ((status, out, err),) = answers
    assert (status, err) == (0, ""), (out, err)
    return {part.split(":")[0]: normal(QUERY.sub("  QUERY", part)) for part in out.split("\n\n")}


@pytest.mark.timeout(600)
def test_samplers_find_what_cassandras_find(ours, theirs):
    """The same partitions with the same counts: reads, writes, rows, tombstones, SSTables, sizes of writes."""
    node, their_tool = theirs
    _, our_tool, session = ours
    found = []
    for tool, target in ((our_tool, session), (their_tool, node.session)):
        fill(target, "sampled_test")
        target.execute("CREATE TABLE sampled_test.p (a int, b text, c int, s int static, v text, PRIMARY KEY ((a, b), c))")
        assert tool.run("disableautocompaction sampled_test p")[0] == 0
        for flushed in range(2):
            for c in range(3):
                target.execute(f"INSERT INTO sampled_test.p (a, b, c, v) VALUES (1, 'x', {c}, 'old')")
            target.execute(f"INSERT INTO sampled_test.p (a, b, c, v) VALUES (2, 'y', {flushed}, 'old')")
            target.execute("DELETE FROM sampled_test.p WHERE a = 2 AND b = 'y' AND c = 1")
            assert tool.run("flush sampled_test p")[0] == 0
        # A busy host may not have read and written all before the end.
        for seconds in (3, 9, 27):
            parts = sampled(tool, target, "sampled_test", "p", seconds)
            if any("1:x 4 0" in line for line in parts["Frequency of writes by partition"]):
                break
        # Times decide which queries are in it.
        queries = parts.pop("Longest read query times")
        assert " Query Microseconds" in queries and len(queries) > 5, queries
        found.append(parts)
    assert found[0] == found[1]
    assert any("1:x 6 0" in line for line in found[0]["Frequency of reads by partition"]), found[0]


def test_conditional_writes_that_wait_are_sampled(alone):
    """A job samples in the background until it is stopped; its profile is in the log."""
    server, tool, session = alone
    assert tool.run("profileload -a CAS_CONTENTIONS,WRITES -i 2000 ks t 2000") == (0, "", "")
    assert tool.run("profileload -l")[1].split() == ["KEYSPACE", "TABLE", "ks", "t"]

    def race():
        pending = [session.execute_async("UPDATE ks.t SET v = 'x' WHERE k = 1 AND c = 1 IF EXISTS") for _ in range(50)]
        assert [future.result().one()[0] for future in pending] == [True] * 50

    def told():
        race()
        return re.search(r"profile of ks.t:\n.*Frequency of CAS contention by partition:\n.*\n +ks\.t +1 +\d+ +0", server.said(), re.S)

    until(told, server.said, pause=0.1)
    assert tool.run("profileload -t ks t") == (0, "", "")
    until(lambda: tool.run("profileload -l")[1].split() == ["KEYSPACE", "TABLE"], server.said, pause=0.1)
