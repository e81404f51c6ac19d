"""The audit log and the full query log, beside Cassandra's, and that no password is in any file of a node."""

import json
import re
import subprocess
import uuid

import pytest
from cassandra import DriverException
from cassandra.query import BatchStatement, SimpleStatement

from oracle import opened
from patience import PATIENCE_SECONDS, TIMEOUTS, until
from server import Server

SENTINEL = "hush-5e27"
# The example in Cassandra's conf/logback.xml, without rolling.
LOGBACK = """<configuration>
  <appender name="AUDIT" class="ch.qos.logback.core.FileAppender">
    <file>{file}</file>
    <encoder><pattern>%-5level [%thread] %date{{ISO8601}} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <appender name="STDERR" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%msg%n</pattern></encoder></appender>
  <logger name="org.apache.cassandra.audit" additivity="false" level="INFO"><appender-ref ref="AUDIT"/></logger>
  <root level="WARN"><appender-ref ref="STDERR"/></root>
</configuration>
"""
# What Cassandra's jvm17-server.options has for Chronicle.
CHRONICLE = " ".join(
    [f"--add-exports java.base/{name}=ALL-UNNAMED" for name in ["jdk.internal.misc", "jdk.internal.ref", "sun.nio.ch"]]
    + ["--add-exports jdk.unsupported/sun.misc=ALL-UNNAMED"]
    + [
        f"--add-opens java.base/{name}=ALL-UNNAMED"
        for name in ["java.lang", "java.lang.reflect", "java.io", "java.util", "java.nio", "sun.nio.ch", "jdk.internal.ref", "jdk.internal.math"]
    ]
    + ["--add-opens jdk.compiler/com.sun.tools.javac=ALL-UNNAMED"]
)
KEYSPACE = "audit_ks"
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
STATEMENTS = [
    f"CREATE KEYSPACE {KEYSPACE} WITH replication = {REPLICATION}",
    f"ALTER KEYSPACE {KEYSPACE} WITH durable_writes = true",
    "SELECT * FROM nowhere",
    f"USE {KEYSPACE}",
    "USE nowhere",
    "CREATE TABLE t (\n  k int PRIMARY KEY,\n  v text)",
    f"CREATE TABLE {KEYSPACE}.u (k int, c int, password text, PRIMARY KEY (k, c))",
    "CREATE TABLE t (k int PRIMARY KEY)",
    "CREATE TYPE ty (a int)",
    "ALTER TYPE ty ADD b int",
    "ALTER TABLE u ADD w int",
    "CREATE INDEX named ON t (v)",
    "CREATE INDEX ON u (w)",
    "CREATE MATERIALIZED VIEW mv AS SELECT k, c, w FROM u WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k)",
    "INSERT INTO t (k, v) VALUES (1, 'a|b')",
    "INSERT INTO t (k, v) VALUES (1, 'x') IF NOT EXISTS",
    f"UPDATE {KEYSPACE}.t SET v = 'y' WHERE k = 2",
    "UPDATE t SET v = 'y' WHERE k = 2 IF v = 'z'",
    "DELETE FROM t WHERE k = 1",
    "SELECT * FROM t",
    "SELECT password FROM u WHERE k = 1 AND password = 'of a table' ALLOW FILTERING",
    "SELECT release_version FROM system.local",
    "BEGIN BATCH INSERT INTO t (k) VALUES (3); INSERT INTO t (k) VALUES (4); APPLY BATCH",
    "TRUNCATE t",
    "TRUNCATE TABLE nowhere.t",
    "SELECT * FROM t WHERE",
    "INSERT INTO t (k, nope) VALUES (1, 2)",
    "INSERT INTO t (k) VALUES ('text')",
    "SELEC 1",
    f"CREATE ROLE r WITH PASSWORD = '{SENTINEL}' AND LOGIN = true",
    f"CREATE USER r WITH PASSWORD '{SENTINEL}' NOSUPERUSER",
    f"ALTER ROLE r WITH pAssword='{SENTINEL}'",
    f"CREATE ROLE r WITH PASSWORD = '{SENTINEL}' AND",
    f"CREATE ROLE r WITH LOGIN = true AND PASSWORD = {SENTINEL}",
    f"SELECT password FROM nowhere WHERE password = '{SENTINEL}'",
    "DROP ROLE r",
    "GRANT SELECT ON t TO r",
    f"GRANT SELECT ON KEYSPACE {KEYSPACE} TO r",
    "GRANT MODIFY ON ALL KEYSPACES TO r",
    "GRANT r TO s",
    "REVOKE SELECT ON t FROM r",
    "LIST ROLES",
    "LIST USERS",
    "LIST ALL PERMISSIONS",
    "ADD IDENTITY 'i' TO ROLE r",
    "DESCRIBE KEYSPACES",
]
LAST = [
    "DROP MATERIALIZED VIEW mv",
    "DROP INDEX named",
    "DROP INDEX nowhere",
    "DROP TABLE u",
    "DROP TYPE ty",
    "DROP TYPE IF EXISTS ty",
    f"DROP KEYSPACE {KEYSPACE}",
]


def execute(session, statement):
    """Answers None, or what the server refused with."""
    try:
        session.execute(statement)
    except Exception as error:  # Each error of the driver is one of the server's here.
        assert not isinstance(error, DriverException) or "Unable" not in str(error), error
        return type(error).__name__
    return None


def talk(session):
    """All that an audit log tells apart; answers the errors."""
    answers = [execute(session, statement) for statement in STATEMENTS]
    insert = session.prepare(f"INSERT INTO {KEYSPACE}.t (k, v) VALUES (?, ?)")
    select = session.prepare("SELECT v FROM t WHERE k = ?")
    for _ in range(2):
        answers.append(execute(session, insert.bind((7, "seven"))))
    answers.append(execute(session, select.bind((7,))))
    for text in ["SELECT * FROM nowhere.t", "INSERT INTO t", f"ALTER ROLE r WITH PASSWORD = '{SENTINEL}'"]:
        try:
            session.prepare(text)
        except Exception as error:  # As above.
            answers.append(type(error).__name__)
    batch = BatchStatement()
    batch.add(SimpleStatement(f"INSERT INTO {KEYSPACE}.t (k, v) VALUES (8, 'eight')"))
    batch.add(insert, (9, "nine"))
    answers.append(execute(session, batch))
    wrong = BatchStatement()
    wrong.add(insert, (9, "nine"))
    wrong.add(SimpleStatement("INSERT INTO t (nope) VALUES (1)"))
    answers.append(execute(session, wrong))
    # The server has forgotten it; the driver prepares it again.
    answers += [execute(session, statement) for statement in ["DROP TABLE t", "CREATE TABLE t (k int PRIMARY KEY, v blob)"]]
    answers.append(execute(session, insert.bind((7, "seven"))))
    return answers + [execute(session, statement) for statement in LAST]


VARIES = [
    (re.compile(r"\|host:[^|]*\|source:[^|]*\|port:\d+\|timestamp:\d+"), "|host|source|port|timestamp"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
]
HEAD = re.compile(r"^INFO  \[[^\]]*\] \d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d,\d{3} FileAuditLogger.java:51 - ")


def entries(path):
    """What an audit log has, without what varies. Other lines of a statement are indented in ours."""
    found = []
    # The first line there is of no request.
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.endswith("- Audit logging is enabled.")]
    for line in lines:
        head = HEAD.match(line)
        if head:
            found.append(line[head.end():])
        else:
            found[-1] += "\n" + line.removeprefix("    ")
    for pattern, word in VARIES:
        found = [pattern.sub(word, entry) for entry in found]
    return found


# Without the test's own questions to our node.
def comparable(found):
    return [entry for entry in found if "|ks:halcyon_views|" not in entry]


AUDIT = """audit_logging_options:
  enabled: true
  logger:
    - class_name: {logger}
  audit_logs_dir: {folder}
"""


def node(request, folder, settings, name="cassandra.yaml"):
    config = folder / name
    config.write_text(f"materialized_views_enabled: true\n{TIMEOUTS}{settings}", encoding="utf-8")
    return Server(request.config.getoption("--halcyon"), folder, "--config", config)


def tool(request, server, *words):
    command = [request.config.getoption("--halcyon"), "nodetool", "-p", str(server.port), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    return done.returncode, done.stdout, done.stderr


def statistics(session, name):
    rows = session.execute("SELECT * FROM halcyon_views.request_logs")
    return next(row for row in rows if row.name == name)


def written(session, path):
    """Waits until all that was queued is in the file."""
    until(lambda: statistics(session, "audit_log").queued_bytes == 0, "the audit log's queue is not written")
    return entries(path)


@pytest.mark.timeout(600)
def test_entries_are_cassandras(cassandra_options, request, tmp_path, monkeypatch):
    """Proves that a session makes the entries that it makes in Cassandra, in the same order and with the same words."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    server = node(request, ours, AUDIT.format(logger="FileAuditLogger", folder=ours / "audit"))
    try:
        session = server.start().connect(schema_metadata_enabled=False)
        answers = talk(session)
        found = written(session, ours / "audit/audit.log")
    finally:
        server.close()
    logback = tmp_path / "logback.xml"
    logback.write_text(LOGBACK.format(file=theirs / "audit.log"), encoding="utf-8")
    # The JVM reads it after its command line, which has a logback.xml of its own.
    monkeypatch.setenv("_JAVA_OPTIONS", f"-Dlogback.configurationFile={logback}")
    setting = "audit_logging_options: {enabled: true, logger: [{class_name: FileAuditLogger}]}"
    facts = opened.start(cassandra_options, theirs, "oa", setting)
    try:
        monkeypatch.delenv("_JAVA_OPTIONS")
        cluster = opened.cluster(facts)
        cluster.schema_metadata_enabled = False
        expected_answers = talk(cluster.connect())
        cluster.shutdown()
        expected = entries(theirs / "audit.log")
    finally:
        opened.stop(cassandra_options, theirs)
    assert answers == expected_answers
    found, expected = comparable(found), comparable(expected)
    different = [(ours, theirs) for ours, theirs in zip(found, expected) if ours != theirs]
    assert not different, "\n".join(f"- {theirs}\n+ {ours}" for ours, theirs in different)
    assert len(found) == len(expected)
    assert SENTINEL not in "".join(found)


def test_json_lines_and_filters(request, tmp_path):
    """Proves that each entry is one JSON object, and that lists of keyspaces, categories and users decide which there are."""
    settings = AUDIT.format(logger="JsonAuditLogger", folder=tmp_path / "audit")
    settings += "  excluded_categories: QUERY\n  included_keyspaces: audit_ks\n"
    server = node(request, tmp_path, settings)
    try:
        session = server.start().connect()
        session.execute(f"CREATE KEYSPACE audit_ks WITH replication = {REPLICATION}")
        session.execute(f"CREATE KEYSPACE other WITH replication = {REPLICATION}")
        for keyspace in ["audit_ks", "other"]:
            session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY, v text)")
            session.execute(f"INSERT INTO {keyspace}.t (k, v) VALUES (1, 'a\n\"b')")
            session.execute(f"SELECT * FROM {keyspace}.t")
        until(lambda: statistics(session, "audit_log").queued_bytes == 0, "not written")
        lines = [json.loads(line) for line in (tmp_path / "audit/audit.json").read_text(encoding="utf-8").splitlines()]
        assert [line["type"] for line in lines] == ["CREATE_KEYSPACE", "CREATE_TABLE", "UPDATE"]
        assert {line["ks"] for line in lines} == {"audit_ks"} and lines[-1]["scope"] == "t"
        assert lines[-1]["operation"] == "INSERT INTO audit_ks.t (k, v) VALUES (1, 'a\n\"b')"
        assert tool(request, server, "enableauditlog", "--excluded-users", "anonymous")[0] == 0
        session.execute("INSERT INTO audit_ks.t (k) VALUES (2)")
        assert tool(request, server, "enableauditlog", "--included-categories", "query")[0] == 0
        session.execute("SELECT v FROM audit_ks.t")
        assert tool(request, server, "disableauditlog")[0] == 0
        session.execute("SELECT v FROM audit_ks.t")
        lines = [json.loads(line) for line in (tmp_path / "audit/audit.json").read_text(encoding="utf-8").splitlines()]
        # The category QUERY is still excluded by the file, so it is not included.
        assert len(lines) == 3, lines[3:]
    finally:
        server.close()


@pytest.mark.timeout(300)
def test_verbs_are_cassandras(cassandra_options, request, nodes, tmp_path):
    """Proves that nodetool prints the options as Cassandra's does, and refuses in its words."""
    log, audit = tmp_path / "fql", tmp_path / "audit"
    settings = f"audit_logging_options:\n  logger: FileAuditLogger\n  audit_logs_dir: {audit}\n"
    settings += f"full_query_logging_options:\n  log_dir: {log}\n  roll_cycle: daily\n  max_log_size: 12345678\n"
    server = node(request, tmp_path, settings)
    facts = opened.start(
        cassandra_options, tmp_path / "theirs", "oa",
        f"audit_logging_options: {{logger: FileAuditLogger, audit_logs_dir: {audit}}}",
        f"full_query_logging_options: {{log_dir: {log}-theirs, roll_cycle: DAILY, max_log_size: 12345678}}", jvm=CHRONICLE,
    )
    lines = [
        "getauditlog", "getfullquerylog", "enableauditlog --included-keyspaces a,b,,a --excluded-keyspaces b --blocking false --roll-cycle minutely",
        "getauditlog", "enableauditlog --excluded-categories query,dml --max-queue-weight 77", "getauditlog", "disableauditlog", "getauditlog",
        "enablefullquerylog --max-queue-weight 99 --blocking FALSE", "getfullquerylog", "enablefullquerylog", "disablefullquerylog", "getfullquerylog",
        "enablefullquerylog --blocking maybe", "enablefullquerylog --archive-command /bin/true", "enableauditlog --archive-command /bin/true",
        "enableauditlog --included-categories nope", "resetfullquerylog", "disablefullquerylog", "disableauditlog",
    ]
    try:
        server.start()
        their_tool = [cassandra_options.oracle / "5.0.9/java", "org.apache.cassandra.tools.NodeTool", "-p", str(facts["jmx_port"])]
        different = []
        for line in lines:
            status, out, err = tool(request, server, *line.split())
            done = subprocess.run([*their_tool, *line.split()], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
            theirs = [text.rstrip() for text in done.stdout.replace("-theirs", "").splitlines()]
            said = done.stderr.split("-- StackTrace --")[0].strip()
            # Java's class names stand before some messages.
            same = said.endswith(err.strip().removeprefix("error: "))
            if (status, [text.rstrip() for text in out.splitlines()]) != (done.returncode, theirs) or not same:
                different.append((line, status, out, err, done.returncode, theirs, said))
        assert not different, "\n".join(map(str, different))
    finally:
        server.close()
        opened.stop(cassandra_options, tmp_path / "theirs")


@pytest.mark.parametrize("logger", ["", "BinAuditLogger", "org.apache.cassandra.audit.BinAuditLogger", "DiagnosticEventAuditLogger", "Nope"])
def test_loggers_that_are_not_there_refuse_the_start(request, tmp_path, logger):
    """Proves that a logger that cannot be had is named with its cure, also where it is Cassandra's default."""
    settings = "audit_logging_options:\n  enabled: true\n" + (f"  logger: {logger}\n" if logger else "")
    server = node(request, tmp_path, settings)
    try:
        with pytest.raises(AssertionError) as failed:
            server.start()
        said = str(failed.value)
        assert "audit_logging_options" in said and "FileAuditLogger" in said and "JsonAuditLogger" in said, said
        assert (logger or "BinAuditLogger").rsplit(".", maxsplit=1)[-1] in said, said
    finally:
        server.close()


def test_a_full_device_stops_no_request(request, tmp_path):
    """Proves that requests are answered while the audit log cannot be written, and that the log says how many entries are lost."""
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit/audit.log").symlink_to("/dev/full")
    server = node(request, tmp_path, AUDIT.format(logger="FileAuditLogger", folder=tmp_path / "audit"))
    try:
        session = server.start().connect()
        session.execute(f"CREATE KEYSPACE ks WITH replication = {REPLICATION}")
        session.execute("CREATE TABLE ks.t (k int PRIMARY KEY)")
        for k in range(100):
            session.execute(f"INSERT INTO ks.t (k) VALUES ({k})")
        until(lambda: statistics(session, "audit_log").failed >= 102, "losses are not counted")
        assert "audit-log: cannot write: No space left on device" in server.said()
        (tmp_path / "audit/audit.log").unlink()
        session.execute("INSERT INTO ks.t (k) VALUES (1000)")
        until(lambda: statistics(session, "audit_log").queued_bytes == 0 and (tmp_path / "audit/audit.log").exists(), "not written again")
        assert server.stop() == 0
        assert "VALUES (1000)" in (tmp_path / "audit/audit.log").read_text(encoding="utf-8")
    finally:
        server.close()


def halcyon(request, *words):
    command = [request.config.getoption("--halcyon"), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    return done.returncode, done.stdout, done.stderr


CONTENTS = ["SELECT k, v, writetime(v) FROM ks.t", "SELECT k, c, v, writetime(v) FROM ks.u"]


def contents(session):
    return [sorted(session.execute(text)) for text in CONTENTS]


def test_a_full_query_log_is_replayed(request, tmp_path):
    """Proves that a log replayed on an empty node makes the same rows with the same timestamps, and that dump prints what was asked."""
    ours, copy = tmp_path / "ours", tmp_path / "copy"
    ours.mkdir()
    copy.mkdir()
    server, second = node(request, ours, ""), node(request, copy, "")
    try:
        session = server.start().connect()
        log = tmp_path / "fql"
        assert tool(request, server, "enablefullquerylog", "--path", str(log)) == (0, "", "")
        assert tool(request, server, "enablefullquerylog", "--path", str(log))[0] == 1
        session.execute(f"CREATE KEYSPACE ks WITH replication = {REPLICATION}")
        session.execute("USE ks")
        session.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
        session.execute("CREATE TABLE ks.u (k int, c int, v text, PRIMARY KEY (k, c))")
        insert = session.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
        for k in range(20):
            session.execute(insert, (k, f"v{k}"))
        session.execute("INSERT INTO t (k, v) VALUES (100, 'conditional') IF NOT EXISTS")
        session.execute(SimpleStatement("INSERT INTO ks.u (k, c, v) VALUES (%s, 1, %s)"), (1, "one"))
        batch = BatchStatement()
        for c in range(5):
            batch.add(SimpleStatement("UPDATE ks.u SET v = 'b' WHERE k = 2 AND c = " + str(c)))
        batch.add(insert, (3, "batched"))
        session.execute(batch)
        session.execute("DELETE FROM t WHERE k = 4")
        execute(session, "INSERT INTO t (k) VALUES ('refused')")
        execute(session, f"CREATE ROLE r WITH PASSWORD = '{SENTINEL}'")
        expected = contents(session)
        assert tool(request, server, "disablefullquerylog")[0] == 0
        session.execute("INSERT INTO t (k, v) VALUES (5, 'later')")
        status, dumped, _ = halcyon(request, "fql", "dump", log)
        assert status == 0
        assert dumped.count("Type: single-query") == dumped.count("Query start time") - 1 and "Batch type: LOGGED" in dumped
        assert "Query: INSERT INTO t (k, v) VALUES (?, ?)\nValues: \n00000000 00 00 00 13" in dumped
        assert "refused" not in dumped and "later" not in dumped and SENTINEL not in dumped
        target = second.start().connect()
        address = f"127.0.0.1:{second.port}"
        status, said, errors = halcyon(request, "fql", "replay", "--target", address, "--replay-ddl-statements", log)
        assert (status, errors) == (0, ""), (said, errors)
        replayed = contents(target)
        # A conditional write has the timestamp of its own proposal.
        conditional = [row for row in expected[0] if row.v == "conditional"]
        assert len(conditional) == 1 and len(replayed[0]) == len(expected[0])
        assert [row for row in replayed[0] if row.v != "conditional"] == [row for row in expected[0] if row.v != "conditional"]
        assert replayed[1] == expected[1]
        status, said, _ = halcyon(request, "fql", "replay", "--target", address, "--keyspace", "other", log)
        assert status == 0 and "0 requests sent" not in said.split(";")[0] or "of other keyspaces" in said
        files = list(log.glob("*.fql"))
        assert len(files) == 1
        assert tool(request, server, "enablefullquerylog", "--path", str(log))[0] == 0
        (log / "other.txt").write_text("stays", encoding="utf-8")
        assert tool(request, server, "resetfullquerylog")[0] == 0
        assert [path.name for path in log.iterdir()] == ["other.txt"]
    finally:
        server.close()
        second.close()


def test_a_damaged_log_is_named(request, tmp_path):
    """Proves that a torn end is reported and the rest printed, and that a changed byte is named with its place."""
    server = node(request, tmp_path, f"full_query_logging_options: {{log_dir: {tmp_path / 'fql'}}}\n")
    try:
        server.start()
        assert tool(request, server, "enablefullquerylog")[0] == 0
        session = server.connect()
        session.execute("SELECT * FROM system.local")
        assert tool(request, server, "disablefullquerylog")[0] == 0
    finally:
        server.close()
    (file,) = (tmp_path / "fql").glob("*.fql")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    status, out, err = halcyon(request, "fql", "dump", file)
    assert status == 0 and "incomplete record" in err and "Type:" in out
    file.write_bytes(whole[:20] + bytes([whole[20] ^ 1]) + whole[21:])
    status, _, err = halcyon(request, "fql", "dump", file)
    assert status == 1 and "damaged at byte 8" in err
    status, _, err = halcyon(request, "fql", "dump", tmp_path / "cassandra.yaml")
    assert status == 1 and "not a full query log" in err


def test_no_file_has_a_password(request, tmp_path):
    """Proves that after a session with passwords in every form no file of the node, no log and no virtual table has one of them."""
    log = tmp_path / "fql"
    settings = AUDIT.format(logger="FileAuditLogger", folder=tmp_path / "audit")
    server = node(request, tmp_path, settings)
    sentinel = f"s{uuid.uuid4().hex}"
    quoted = f"'{sentinel}'"
    texts = [
        f"CREATE ROLE a WITH PASSWORD = {quoted} AND LOGIN = true",
        f"create role b with login = true and password={quoted}",
        f"CREATE ROLE c WITH PASSWORD = $${sentinel}$$",
        f"CREATE ROLE c WITH PASSWORD = '{sentinel}''it'",
        f"ALTER ROLE a WITH\nPASSWORD\n=\n{quoted}",
        f"ALTER ROLE a WITH HASHED PASSWORD = {quoted}",
        f"ALTER ROLE a WITH OPTIONS = {{'password': {quoted}}}",
        f"CREATE USER d WITH PASSWORD {quoted} SUPERUSER",
        f"ALTER USER d WITH HASHED PASSWORD {quoted}",
        f"ALTER USER d WITH PASSWORD {quoted} x",
        f"ALTER USER d WITH PASSWORD = = {quoted}",
        f"CREATE ROLE x WITH PASSWORD = {quoted}; CREATE ROLE y WITH PASSWORD = {quoted}",
        f"CREATE ROLE IF NOT EXISTS {quoted} WITH PASSWORD {quoted}".replace(f"{quoted} WITH", "e WITH"),
        f"ALTER ROLE a WITH PASSWORD = {sentinel}",
        f"ALTER ROLE a WITH PASSWORD = /* c */ {quoted} -- {sentinel}",
    ]
    try:
        session = server.start().connect(schema_metadata_enabled=False)
        assert tool(request, server, "enablefullquerylog", "--path", str(log))[0] == 0
        assert tool(request, server, "settraceprobability", "1")[0] == 0
        for text in texts:
            execute(session, text)
            try:
                session.prepare(text)
            except Exception:  # Only the traces of the text matter.
                pass
            batch = BatchStatement()
            batch.add(SimpleStatement(text))
            execute(session, batch)
        for table in ["system.prepared_statements", "system_views.queries", "system_traces.sessions", "system_traces.events", "halcyon_views.request_logs"]:
            rows = str(list(session.execute(f"SELECT * FROM {table}")))
            assert sentinel not in rows, f"{table}: {rows}"
        assert len(list(session.execute("SELECT * FROM system_traces.sessions"))) >= len(texts)
        assert tool(request, server, "flush")[0] == 0
        assert tool(request, server, "disablefullquerylog")[0] == 0
        assert server.stop() == 0
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert len(files) > 20 and log / "nope" not in files
        having = [str(path) for path in files if sentinel.encode() in path.read_bytes()]
        assert having == []
        # The sessions are there, without the passwords.
        assert (tmp_path / "audit/audit.log").read_text(encoding="utf-8").count("*******") > len(texts)
    finally:
        server.close()
