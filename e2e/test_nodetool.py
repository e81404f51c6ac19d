"""`halcyon nodetool` beside Cassandra's: the same lines, arguments and exit codes, each tool against its own node."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from server import Server

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
# What Cassandra does and prints on its node, command by command.
COMMANDS = [
    "version", "nosuch", "info extra", "version -p 1",
    "flush", "flush {ks}", "flush {ks} t u", "flush nope", "flush {ks} nope", "flush {ks} --foo",
    "compact {ks} t", "compact {ks}", "compact nope", "compact {ks} nope",
    "snapshot -t s1 {ks}", "snapshot -t s1 {ks}", "snapshot -t s2 -kt {ks}.t,{ks}.u", "snapshot --tag=s3 --table t {ks}",
    "snapshot -t s4 -sf {ks}", "snapshot nope", "snapshot -t a/b {ks}", "snapshot -kt {ks}.nope", "snapshot -kt nope.t",
    "snapshot -cf t", "snapshot -t",
    "listsnapshots", "clearsnapshot", "clearsnapshot -t s2", "clearsnapshot -t nope", "clearsnapshot -t s3 --all",
    "clearsnapshot -t s1 -- {ks} nope", "clearsnapshot --all -- {ks}", "listsnapshots",
    "disableautocompaction {ks} t", "statusautocompaction {ks} t", "statusautocompaction {ks}", "statusautocompaction {ks} u",
    "enableautocompaction {ks} t", "statusautocompaction {ks}", "disableautocompaction {ks} nope", "enableautocompaction nope",
    "settraceprobability 0.5", "gettraceprobability", "settraceprobability 3", "settraceprobability", "settraceprobability x",
    "settraceprobability 0", "gettraceprobability",
    "setcompactionthroughput 16", "getcompactionthroughput", "getcompactionthroughput -d", "setconcurrentcompactors 0",
    "refresh {ks}", "refresh {ks} nope", "refresh nope t", "refresh {ks} t", "rebuild_index {ks} t",
    "tablestats nope", "tablestats {ks}.nope", "tablestats -F xml",
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
        done = subprocess.run([*self._command, *line.split()], capture_output=True, text=True, timeout=120)
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


@pytest.fixture(scope="module")
def ours(request, tmp_path_factory):
    """A node, its tool through a link with Cassandra's name, and a session."""
    folder = tmp_path_factory.mktemp("nodetool")
    server = Server(request.config.getoption("--halcyon"), folder)
    server.start()
    link = folder / "nodetool"
    link.symlink_to(request.config.getoption("--halcyon").absolute())
    yield server, Tool(link, "-p", str(server.port)), server.connect()
    server.close()


@pytest.fixture(scope="module")
def theirs(nodes, tmp_path_factory):
    node = nodes.get(RELEASE)
    return node, DeskTool(node.tools, node.facts["jmx_port"], tmp_path_factory.mktemp("their_nodetool"))


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
        if line == "listsnapshots":
            # The total is of SSTables there, and of all files here.
            found, expected = ((s, [li for li in out if "Total" not in li], err) for s, out, err in (found, expected))
        if found != expected:
            differences.append(f"{line}\n  ours:   {found}\n  theirs: {expected}")
    assert not differences, "\n".join(differences)
    assert described(server.data / "data", our_tool, keyspace) == described(
        Path(node.facts["storage_dir"]) / "data", their_tool, keyspace
    )


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
    assert "7199 is Cassandra's port for JMX" in halcyon.run("nodetool", "-p", "7199", "status", status=1).stderr
    assert "Failed to connect to '127.0.0.1:1'" in halcyon.run("nodetool", "-p", "1", "status", status=1).stderr
    assert tool.run("repair")[0] == 2


def test_drain(request, tmp_path):
    """Writes are refused, reads served, and all is in SSTables."""
    server = Server(request.config.getoption("--halcyon"), tmp_path)
    try:
        session = server.start().connect()
        fill(session, "ks")
        tool = Tool(request.config.getoption("--halcyon"), "nodetool", "-p", str(server.port))
        assert tool.run("drain") == (0, "", "")
        assert tool.run("drain") == (0, "", "")
        with pytest.raises(Exception, match="draining"):
            session.execute("INSERT INTO ks.t (k, c) VALUES (1, 1)")
        assert len(list(session.execute("SELECT k FROM ks.t"))) == 100
        assert list((server.data / "data" / "ks").glob("t-*/*-Data.db"))
        assert server.stop() == 0, server.said()
    finally:
        server.close()


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
