"""
Roles, passwords and permissions: what Cassandra 5.0.9 answers with PasswordAuthenticator and CassandraAuthorizer, and what went wrong
elsewhere.

The differential test grants each permission on each level of resource to a role, to a role that was granted to it, and to one behind that,
executes each kind of statement as the role, and revokes. Answers, codes and texts must be Cassandra's. Caches keep nothing on either side.
"""

import random
import re
import subprocess
from functools import partial
from itertools import product

import pytest
from cassandra.auth import PlainTextAuthProvider

from native import Client, Refused
from oracle import opened
from patience import TIMEOUTS, until
from record_sessions import told
from server import Server

# One Cassandra for all of them.
pytestmark = pytest.mark.xdist_group("roles")
SETTINGS = (
    "authenticator: PasswordAuthenticator",
    "authorizer: CassandraAuthorizer",
    "roles_validity: 0ms",
    "permissions_validity: 0ms",
    "credentials_validity: 0ms",
    "cidr_authorizer: {class_name: CassandraCIDRAuthorizer, parameters: {cidr_authorizer_mode: ENFORCE, cidr_checks_for_superusers: true}}",
)
OURS = "superuser_setup_delay: 0ms\nrole_password_update_min_interval: 0ms\nauth_bcrypt_gensalt_log2_rounds: 4\n"
JVM = (
    "-Dcassandra.superuser_setup_delay_ms=0 -Dcassandra.role_password_update_min_interval_in_ms=0 "
    "-Dcassandra.auth_bcrypt_gensalt_log2_rounds=4"
)
ROOT = ("cassandra", "cassandra")
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
JAVA = "RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return x;'"
SCHEMA = (
    f"CREATE KEYSPACE a WITH replication = {REPLICATION}",
    f"CREATE KEYSPACE b WITH replication = {REPLICATION}",
    "CREATE TABLE a.t (k int, c int, v int, PRIMARY KEY (k, c))",
    "CREATE TABLE b.t (k int, c int, v int, PRIMARY KEY (k, c))",
    "CREATE TABLE a.base (k int PRIMARY KEY, v int)",
    "CREATE MATERIALIZED VIEW a.w AS SELECT * FROM a.base WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)",
    "CREATE TABLE a.masked (k int, c text, v int MASKED WITH mask_replace(7), s text MASKED WITH mask_inner(1, 1), PRIMARY KEY (k, c))",
    "CREATE TYPE a.ty (x int)",
    "CREATE INDEX ix ON a.t (v)",
    "INSERT INTO a.t (k, c, v) VALUES (1, 2, 3)",
    "INSERT INTO a.base (k, v) VALUES (1, 2)",
    "INSERT INTO a.masked (k, c, v, s) VALUES (1, 'c', 3, 'secret')",
    "INSERT INTO a.masked (k, c) VALUES (2, 'c')",
    "CREATE ROLE worker WITH PASSWORD = 'word' AND LOGIN = true",
    "CREATE ROLE parent",
    "CREATE ROLE grand",
    "GRANT parent TO worker",
    "GRANT grand TO parent",
    "CREATE ROLE r1",
    "CREATE ROLE r2",
    "CREATE ROLE heir WITH SUPERUSER = true",
    "INSERT INTO system_auth.cidr_groups (cidr_group, cidrs) VALUES ('near', {('127.0.0.0', 8)})",
    "INSERT INTO system_auth.cidr_groups (cidr_group, cidrs) VALUES ('far', {('10.0.0.0', 8), ('::', 0)})",
    "INSERT INTO system_auth.cidr_groups (cidr_group, cidrs) VALUES ('world', {('0.0.0.0', 0)})",
    "ADD IDENTITY 'su' TO ROLE 'cassandra'",
    "ADD IDENTITY 'r1' TO ROLE 'r1'",
)
# Where what is granted is the same kind of thing elsewhere, it must not help.
RESOURCES = (
    "ALL KEYSPACES", "KEYSPACE a", "ALL TABLES IN KEYSPACE a", "TABLE a.t", "a.base", "a.w", "a.masked", "KEYSPACE b", "b.t",
    "KEYSPACE system", "KEYSPACE system_auth", "system_auth.roles", "KEYSPACE system_views", "KEYSPACE system_traces",
    "ALL ROLES", "ROLE r1", "ROLE r2", "ROLE cassandra", "ROLE worker", "ALL FUNCTIONS", "ALL FUNCTIONS IN KEYSPACE a",
    "ALL FUNCTIONS IN KEYSPACE b", "ALL MBEANS", "MBEAN 'org.apache.cassandra.db:type=StorageService'",
)
PERMISSIONS = ("CREATE", "ALTER", "DROP", "SELECT", "MODIFY", "AUTHORIZE", "DESCRIBE", "EXECUTE", "UNMASK", "SELECT_MASKED")
# None of them changes anything that a later one depends on, whether it is allowed or not.
STATEMENTS = (
    "SELECT * FROM a.t", "SELECT * FROM a.t WHERE v = 3", "SELECT * FROM a.w", "SELECT * FROM b.t", "SELECT count(*) FROM a.t",
    "SELECT * FROM a.masked", "SELECT v FROM a.masked WHERE v = 3 ALLOW FILTERING", "SELECT k, s FROM a.masked WHERE k = 1",
    "SELECT JSON v, ttl(v) FROM a.masked", "SELECT max(v), count(s) FROM a.masked", "SELECT cast(v AS text), s FROM a.masked WHERE k = 2",
    "INSERT INTO a.t (k, c, v) VALUES (1, 2, 3)", "UPDATE a.t SET v = 3 WHERE k = 1 AND c = 2", "DELETE FROM a.t WHERE k = 9",
    "INSERT INTO a.t (k, c, v) VALUES (1, 2, 3) IF NOT EXISTS", "UPDATE a.t SET v = 3 WHERE k = 1 AND c = 2 IF v = 4",
    "DELETE FROM a.t WHERE k = 1 AND c = 2 IF v = 4", "INSERT INTO a.base (k, v) VALUES (1, 2)",
    "BEGIN BATCH INSERT INTO a.t (k, c, v) VALUES (1, 2, 3); DELETE FROM b.t WHERE k = 9; APPLY BATCH",
    "BEGIN BATCH INSERT INTO a.t (k, c, v) VALUES (1, 2, 3); UPDATE a.t SET v = 3 WHERE k = 1 AND c = 2 IF v = 4; APPLY BATCH",
    "TRUNCATE b.t", "TRUNCATE a.w",
    f"CREATE KEYSPACE IF NOT EXISTS a WITH replication = {REPLICATION}", "ALTER KEYSPACE a WITH durable_writes = true",
    "DROP KEYSPACE IF EXISTS missing", "CREATE TABLE IF NOT EXISTS a.t (k int PRIMARY KEY)", "ALTER TABLE a.t ADD v int", "DROP TABLE a.base",
    "DROP TABLE IF EXISTS a.missing", "CREATE TYPE IF NOT EXISTS a.ty (x int)", "ALTER TYPE a.ty ADD x int", "DROP TYPE IF EXISTS a.missing",
    "CREATE INDEX IF NOT EXISTS ix ON a.t (v)", "DROP INDEX IF EXISTS a.missing", "DROP MATERIALIZED VIEW IF EXISTS a.missing",
    "CREATE MATERIALIZED VIEW IF NOT EXISTS a.w AS SELECT * FROM a.base WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)",
    "DROP FUNCTION IF EXISTS a.missing", "USE a", "CREATE ROLE IF NOT EXISTS r1", "CREATE USER IF NOT EXISTS r1",
    "CREATE ROLE IF NOT EXISTS r1 WITH SUPERUSER = true", "ALTER ROLE r1 WITH LOGIN = false", "ALTER ROLE worker WITH LOGIN = true",
    "ALTER ROLE worker WITH PASSWORD = 'word'", "ALTER ROLE r1 WITH PASSWORD = 'word'", "ALTER ROLE worker WITH SUPERUSER = true",
    "ALTER ROLE parent WITH SUPERUSER = true", "ALTER ROLE r1 WITH SUPERUSER = false", "ALTER ROLE worker WITH ACCESS TO ALL DATACENTERS",
    "ALTER ROLE r1 WITH ACCESS FROM CIDRS {'far'}", "ALTER ROLE worker WITH ACCESS FROM ALL CIDRS", "ALTER ROLE r1 WITH ACCESS FROM CIDRS {'nowhere'}",
    "CREATE ROLE IF NOT EXISTS r1 WITH ACCESS FROM CIDRS {'near'}", "SELECT role, cidr_groups FROM system_auth.cidr_permissions WHERE role = 'r1'",
    "ALTER ROLE IF EXISTS missing WITH LOGIN = true", "ALTER ROLE r1", "DROP ROLE IF EXISTS missing", "DROP ROLE missing", "DROP ROLE cassandra",
    "DROP ROLE heir", "DROP ROLE worker", "GRANT r1 TO r2", "REVOKE r1 FROM r2", "GRANT r1 TO missing", "GRANT heir TO r2", "REVOKE heir FROM r2",
    "LIST ROLES", "LIST ROLES OF r1", "LIST ROLES OF worker", "LIST ROLES OF worker NORECURSIVE", "LIST ROLES OF grand", "LIST ROLES OF missing",
    "LIST USERS", "LIST ALL PERMISSIONS OF r1", "LIST ALL PERMISSIONS OF worker", "LIST ALL PERMISSIONS ON a.t OF worker NORECURSIVE",
    "LIST SELECT PERMISSION ON a.t OF grand", "LIST ALL PERMISSIONS ON KEYSPACE system_auth OF missing", "LIST ALL PERMISSIONS ON a.missing",
    "GRANT SELECT ON a.t TO r2", "REVOKE SELECT ON a.t FROM r2", "GRANT CREATE ON KEYSPACE a TO r2", "REVOKE CREATE ON KEYSPACE a FROM r2",
    "GRANT ALTER ON ROLE r1 TO r2", "REVOKE ALTER ON ROLE r1 FROM r2", "GRANT MODIFY ON ALL KEYSPACES TO worker", "GRANT SELECT ON a.t TO missing",
    "GRANT SELECT ON a.missing TO r2", "GRANT MODIFY ON system_auth.roles TO worker", "GRANT EXECUTE ON ALL FUNCTIONS TO r2",
    "REVOKE EXECUTE ON ALL FUNCTIONS FROM r2", "GRANT EXECUTE ON a.t TO r2", "REVOKE SELECT ON b.t FROM r1",
    "ADD IDENTITY IF NOT EXISTS 'r1' TO ROLE 'r1'", "ADD IDENTITY IF NOT EXISTS 'r1' TO ROLE 'cassandra'", "ADD IDENTITY 'r1' TO ROLE 'missing'",
    "DROP IDENTITY IF EXISTS 'missing'", "DROP IDENTITY 'su'", "DROP IDENTITY 'missing'",
    "SELECT key FROM system.local", "SELECT peer FROM system.peers_v2", "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = 'a'",
    "SELECT role, is_superuser FROM system_auth.roles WHERE role = 'cassandra'", "SELECT session_id FROM system_traces.sessions",
    "SELECT keyspace_name FROM system_virtual_schema.keyspaces WHERE keyspace_name = 'system_views'", "SELECT prepared_id FROM system.prepared_statements WHERE prepared_id = 0x00",
    "SELECT address FROM system_views.clients WHERE address = '1.1.1.1'",
    "UPDATE system_auth.roles SET is_superuser = true WHERE role = 'worker'", "DELETE FROM system_auth.roles WHERE role = 'absent'",
    "INSERT INTO system_auth.role_members (role, member) VALUES ('x', 'x')", "TRUNCATE system_auth.roles", "ALTER TABLE system_auth.roles ADD x int",
    "DROP TABLE system_auth.roles", "DROP TABLE system.local", "CREATE TABLE system_auth.x (k int PRIMARY KEY)", "DROP KEYSPACE system_auth",
    "ALTER TABLE system_schema.tables ADD x int", "INSERT INTO system.local (key) VALUES ('x')", "TRUNCATE system_schema.tables",
)


class Pair:
    """Cassandra and Halcyon, which are asked the same."""

    def __init__(self, theirs, ours, nodetool):
        self.ports = (theirs, ours)
        # Of Cassandra.
        self.nodetool = nodetool
        self._open = []
        self.roots = self.clients(ROOT)

    def clients(self, login):
        found = [Client(port, login) for port in self.ports]
        self._open += found
        return found

    def close(self):
        for client in self._open:
            client.close()


@pytest.fixture(scope="module")
def halcyon_with_roles(request, tmp_path_factory):
    """Started with caches that keep nothing."""
    server = serve(request, tmp_path_factory.mktemp("roles"), "\n".join(SETTINGS))
    yield server
    server.close()


def serve(request, folder, settings):
    config = folder / "cassandra.yaml"
    common = "materialized_views_enabled: true\nuser_defined_functions_enabled: true\ndynamic_data_masking_enabled: true\nstorage_compatibility_mode: NONE\n"
    config.write_text(f"{settings}\n{OURS}{common}{TIMEOUTS}", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), folder, "--config", config)
    server.start()
    root(server)
    return server


def root(server):
    """A superuser, once the node has made it."""
    return logged_in(server.port, ROOT)


def logged_in(port, login):
    found = []

    def tried():
        try:
            found.append(Client(port, login))
            return True
        except Refused as refused:
            assert str(refused).startswith("0100 "), refused
            return False

    until(tried, f"no login succeeds as {login[0]}")
    return found[0]


@pytest.fixture(scope="module")
def pair(request, cassandra_options, tmp_path_factory):
    """Cassandra and a Halcyon of its own: both have the same roles."""
    folder = tmp_path_factory.mktemp("cassandra")
    ours = serve(request, tmp_path_factory.mktemp("beside"), "\n".join(SETTINGS))
    facts = opened.start(cassandra_options, folder, "oa", *SETTINGS, jvm=JVM)
    try:
        logged_in(facts["native_port"], ROOT).close()
        both = Pair(facts["native_port"], ours.port, partial(opened.nodetool, cassandra_options, facts))
        for statement in SCHEMA:
            said = [told(client, statement) for client in both.roots]
            assert said[0] == said[1] and said[0].startswith("ok"), (statement, said)
        yield both
        both.close()
    finally:
        opened.stop(cassandra_options, folder)
        ours.close()


def answer(client, statement):
    said = told(client, statement)
    # The order of a set's elements is Java's own.
    return re.sub(r"PERMISSIONS \[.*\]", "PERMISSIONS", said)


def compare(workers, statements, about):
    wrong = []
    for statement in statements:
        theirs, ours = (answer(worker, statement) for worker in workers)
        if theirs != ours:
            wrong.append(f"{about}: {statement}\n  Cassandra: {theirs}\n  Halcyon:   {ours}")
    return wrong


@pytest.mark.timeout(1500)
def test_permissions_are_answered_as_cassandra_answers(pair, rotation):
    """Proves that each statement needs what it needs in Cassandra, on each level of resource, granted, inherited, revoked and absent."""
    rng = random.Random(20260407)
    workers = pair.clients(("worker", "word"))
    harmful = ("TRUNCATE sys", "UPDATE sys", "INSERT INTO sys", "DROP ROLE", "DROP IDEN", "ALTER ROLE", "ADD IDEN", "GRANT MODIFY")
    wrong = compare(pair.roots, [statement for statement in STATEMENTS if not statement.startswith(harmful)], "superuser")
    wrong += compare(workers, STATEMENTS, "nothing granted")
    for resource, permission in rotation(product(RESOURCES, PERMISSIONS)):
        holder = rng.choice(("worker", "worker", "parent", "grand"))
        grant = f"{permission} ON {resource} TO {holder}"
        said = [answer(client, f"GRANT {grant}") for client in pair.roots]
        if said[0] != said[1]:
            wrong.append(f"GRANT {grant}: {said}")
        if not said[0].startswith("ok"):
            continue
        wrong += compare(workers, STATEMENTS, grant)
        said = [answer(client, f"REVOKE {permission} ON {resource} FROM {holder}") for client in pair.roots]
        assert said[0] == said[1] == "ok", (grant, said)
        wrong += compare(workers, rng.sample(STATEMENTS, 12), f"revoked {grant}")
        if len(wrong) > 40:
            break
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:40])


def refusal(ask, *arguments):
    try:
        ask(*arguments)
    except Refused as refused:
        return str(refused)
    return "ok"


# Beside STATEMENTS: faults whose order tells which names exist.
UNPREPARED = (
    "CREATE ROLE r1", "CREATE ROLE r9 WITH SUPERUSER = true", "CREATE ROLE r1 WITH SUPERUSER = true", "CREATE ROLE ''",
    "CREATE ROLE r1 WITH OPTIONS = {'a': 'b'}", "CREATE ROLE r1 WITH ACCESS TO DATACENTERS {'nowhere'}", "CREATE USER r1 SUPERUSER",
    "ALTER ROLE missing", "ALTER ROLE missing WITH LOGIN = true", "ALTER ROLE missing WITH SUPERUSER = true",
    "ALTER ROLE r1 WITH ACCESS TO DATACENTERS {'nowhere'}", "ALTER ROLE missing WITH ACCESS TO ALL DATACENTERS",
    "ALTER ROLE missing WITH SUPERUSER = true AND ACCESS TO ALL DATACENTERS", "ALTER USER missing SUPERUSER", "DROP USER missing",
    "GRANT missing TO r1", "GRANT r1 TO missing", "REVOKE missing FROM r1", "GRANT SELECT ON t TO r1", "GRANT SELECT ON t TO missing",
    "REVOKE SELECT ON t FROM missing", "GRANT SELECT ON KEYSPACE missing TO r1", "GRANT SELECT ON missing.t TO missing",
    "GRANT ALTER ON ROLE missing TO r1", "GRANT EXECUTE ON FUNCTION f(int) TO missing", "GRANT EXECUTE ON FUNCTION missing.f(int) TO missing",
    "GRANT EXECUTE ON FUNCTION a.f(missing) TO missing", "GRANT SELECT ON MBEAN 'wrong' TO missing", "GRANT ALL ON system_auth.roles TO missing",
    "GRANT ALL ON system_auth.roles TO r1", "LIST ALL PERMISSIONS ON t OF missing", "LIST ALL PERMISSIONS ON ROLE missing",
    "LIST ALL PERMISSIONS ON FUNCTION f(int)", "LIST ALL PERMISSIONS OF missing",
)


def test_preparing_checks_login_and_names_as_cassandra_does(pair):
    """Proves that PREPARE of statements about roles asks for names in Cassandra's order, of a superuser and a role; the anonymous are in sessions/anonymous.txt."""
    kinds = ("CREATE ROLE", "CREATE USER", "ALTER ROLE", "DROP ROLE", "GRANT", "REVOKE", "LIST", "ADD IDENTITY", "DROP IDENTITY")
    statements = [statement for statement in STATEMENTS if statement.startswith(kinds)] + list(UNPREPARED)
    workers = pair.clients(("worker", "word"))
    wrong = compare(workers, UNPREPARED, "worker")
    for who, clients in (("superuser", pair.roots), ("worker", workers)):
        for statement in statements:
            theirs, ours = (refusal(client.prepare, statement) for client in clients)
            if theirs != ours:
                wrong.append(f"{who} prepares {statement}\n  Cassandra: {theirs}\n  Halcyon:   {ours}")
    assert not wrong, "\n".join(wrong)


def test_a_role_comes_from_its_addresses(pair):
    """Proves where CassandraCIDRAuthorizer lets a role come from, by the narrowest range around its address, superusers too, and what DROP leaves."""
    pair.nodetool("reloadcidrgroupscache")
    said = []
    for client, port in zip(pair.roots, pair.ports):
        mine = []
        for groups in ("", " AND ACCESS FROM CIDRS {'near'}", " AND ACCESS FROM CIDRS {'far', 'near'}", " AND ACCESS FROM CIDRS {'far'}",
                       " AND ACCESS FROM CIDRS {'world'}", " AND ACCESS FROM ALL CIDRS", " AND SUPERUSER = true AND ACCESS FROM CIDRS {'far'}"):
            mine.append(told(client, f"CREATE ROLE comes WITH PASSWORD = 'word' AND LOGIN = true{groups}"))
            comes = Client(port, ("comes", "word"))
            mine.append(refusal(comes.query, "SELECT key FROM system.local"))
            mine.append(told(client, "SELECT * FROM system_auth.cidr_permissions"))
            mine.append(told(client, "ALTER ROLE comes WITH ACCESS FROM CIDRS {'near'}"))
            mine.append(refusal(comes.query, "SELECT key FROM system.local"))
            mine.append(told(client, "DROP ROLE comes"))
            mine.append(told(client, "SELECT * FROM system_auth.cidr_permissions WHERE role = 'comes'"))
        said.append(mine)
    assert said[0] == said[1]
    assert sum(answer.startswith("2100 You do not have access from this IP 127.0.0.1") for answer in said[1]) == 3
    # How often one statement asks differs.
    for table in ("cidr_filtering_metrics_counts", "cidr_filtering_metrics_latencies"):
        names = [sorted(client.query(f"SELECT name FROM system_views.{table}")[1]) for client in pair.roots]
        assert names[0] == names[1]
        assert any(b"rejected from CIDR group - near" in name for (name,) in names[1]) == (table == "cidr_filtering_metrics_counts")


def test_logins_are_refused_as_cassandra_refuses_them(pair):
    """Proves the class name that AUTHENTICATE carries, and codes and texts of tokens and passwords that are wrong, and of messages that come too early."""
    for client in pair.roots:
        assert client.authenticator == "org.apache.cassandra.auth.PasswordAuthenticator"
        assert told(client, "CREATE ROLE IF NOT EXISTS nologin WITH PASSWORD = 'word'") == "ok"
    tokens = (
        b"\0worker\0wrong", b"\0absent\0word", b"\0r1\0word", b"\0nologin\0word", b"\0nologin\0wrong", b"", b"\0", b"\0\0", b"word", b"worker\0word",
        b"\0worker\0", b"\0\0word", b"\0\0worker\0word", b"a\0b\0worker\0word", "\0wörker\0wörd".encode(), b"x\0worker\0word", b"\0Worker\0word",
        b"\0worker\0Word", b"\0worker\0word",
    )
    for token in tokens:
        theirs, ours = (refusal(client.authenticate, token) for client in pair.clients(None))
        assert theirs == ours, token
    theirs, ours = (refusal(client.query, "SELECT key FROM system.local") for client in pair.clients(None))
    assert theirs == ours and "expecting SASL_RESPONSE" in ours


def test_creators_get_permissions_and_drops_take_them_all(pair):
    """Proves that a creator has all permissions on what it made, and on nothing else (GHSA-ww5v-p45p-3vhq), and that nothing is left after a DROP."""
    for client in pair.roots:
        for statement in (
            "CREATE ROLE maker WITH PASSWORD = 'word' AND LOGIN = true", "GRANT CREATE ON KEYSPACE a TO maker", "GRANT CREATE ON ALL ROLES TO maker",
            "GRANT CREATE ON ALL KEYSPACES TO maker", "GRANT CREATE ON ALL FUNCTIONS TO maker",
        ):
            assert told(client, statement) == "ok", statement
    makers = pair.clients(("maker", "word"))
    listed = ("LIST ALL PERMISSIONS OF maker", "LIST ALL PERMISSIONS ON a.made", "LIST ALL PERMISSIONS OF worker")
    made = (
        "CREATE TABLE IF NOT EXISTS a.t (k int PRIMARY KEY)", "SELECT * FROM a.t", "DROP TABLE a.t", "CREATE TABLE a.made (k int PRIMARY KEY)",
        "CREATE TYPE a.made (x int)", f"CREATE KEYSPACE made WITH replication = {REPLICATION}", "CREATE ROLE made", "CREATE ROLE IF NOT EXISTS r1",
        f"CREATE FUNCTION a.made (x int) {JAVA}", f"CREATE OR REPLACE FUNCTION a.made (x int) {JAVA}", "GRANT SELECT ON a.made TO worker",
        "CREATE AGGREGATE made.sum (int) SFUNC plus STYPE int", "DROP ROLE made", "DROP FUNCTION a.made", "DROP KEYSPACE made", "DROP TABLE a.made",
        "CREATE TABLE a.made (k int PRIMARY KEY)", "DROP TABLE a.made", "DROP TYPE a.made",
    )
    for statement in made:
        wrong = compare(makers, (statement,), "maker")
        assert not wrong, wrong
        wrong = compare(pair.roots, listed, f"after {statement}")
        assert not wrong, wrong
    for client in pair.roots:
        assert told(client, "DROP ROLE maker") == "ok"
        assert told(client, "SELECT role FROM system_auth.role_permissions WHERE role = 'maker'") == "role | "
    assert not compare(makers, ("SELECT * FROM a.t",), "dropped") or "not permitted to log in" in told(makers[1], "SELECT * FROM a.t")


def test_roles_inherit_and_are_listed_as_in_cassandra(pair):
    """Proves memberships, circles, users, and what each LIST shows, in columns and rows."""
    statements = (
        "CREATE ROLE one", "CREATE ROLE two", "CREATE ROLE three WITH LOGIN = true", "GRANT one TO two", "GRANT two TO three", "GRANT three TO one",
        "GRANT one TO one", "GRANT one TO three", "REVOKE one FROM three", "REVOKE two FROM one", "LIST ROLES", "LIST ROLES OF three",
        "LIST ROLES OF three NORECURSIVE", "LIST USERS", "CREATE USER four WITH PASSWORD 'x' SUPERUSER", "CREATE USER four", "ALTER USER four NOSUPERUSER",
        "ALTER USER four", "LIST USERS", "DROP USER four", "DROP USER four", "DROP USER IF EXISTS four", "DROP ROLE two", "LIST ROLES OF three",
        "SELECT * FROM system_auth.role_members", "SELECT role, member_of FROM system_auth.roles WHERE role = 'three'", "CREATE ROLE ''", "CREATE ROLE one",
        "CREATE ROLE five WITH OPTIONS = {'a': 'b'}", "CREATE ROLE five WITH HASHED PASSWORD = 'x'",
        "CREATE ROLE five WITH HASHED PASSWORD = '$2a$10$JSJEMFm6GeaW9XxT5JIheuEtPvat6i7uKbnTcxX3c1wshIIsGyUtG' AND LOGIN = true",
        "ALTER ROLE five WITH ACCESS TO DATACENTERS {'nowhere'}", "CREATE ROLE six WITH ACCESS TO DATACENTERS {'datacenter1'}",
        "ALTER ROLE five WITH ACCESS TO DATACENTERS {'datacenter1'}", "ALTER ROLE cassandra WITH SUPERUSER = false", "DROP ROLE cassandra",
        "GRANT SELECT ON a.t TO one", "GRANT SELECT ON a.t TO one", "GRANT ALL ON a.t TO one", "GRANT ALL ON a.t TO one", "LIST ALL OF one",
        "REVOKE SELECT ON a.t FROM one", "REVOKE SELECT ON a.t FROM one", "REVOKE ALL ON a.t FROM one", "REVOKE ALL ON a.t FROM one", "LIST ALL OF one",
        "GRANT EXECUTE ON MBEAN 'org.apache.cassandra.db:type=StorageService' TO one", "GRANT SELECT ON ALL MBEANS TO one", "LIST ALL OF one",
        "GRANT EXECUTE ON FUNCTION nothing(int) TO one", "GRANT SELECT ON t TO one",
        "GRANT MODIFY ON KEYSPACE system_auth TO one", "GRANT SELECT ON KEYSPACE system_auth TO one", "GRANT ALL ON system_views.settings TO one",
        "INSERT INTO system_auth.identity_to_role (identity, role) VALUES ('early', 'seven')", "CREATE ROLE seven", "DROP IDENTITY 'early'",
        "CREATE ROLE seven", "ADD IDENTITY 'seven' TO ROLE 'seven'", "ADD IDENTITY 'seven' TO ROLE 'one'", "DROP ROLE seven", "DROP IDENTITY 'seven'",
        "DROP ROLE one", "DROP ROLE three", "DROP ROLE five", "DROP ROLE IF EXISTS six", "SELECT * FROM system_auth.resource_role_permissons_index WHERE resource = 'data/a/t'",
    )
    wrong = [w for statement in statements for w in compare(pair.roots, (statement,), "root")]
    assert not wrong, "\n".join(wrong)


def prepared(client, statement):
    """What the execution of a statement is answered with that was prepared; PREPARE needs no permission, as in Cassandra."""
    return refusal(lambda: client.execute(client.prepare(statement)))


def all_ways(client, statement):
    """What a statement is answered with: as a text, prepared, in a batch, and in a batch that was prepared."""
    asked = [prepared(client, statement)]
    if "?" not in statement:
        asked.append(refusal(client.query, statement))
    if not statement.startswith(("TRUNCATE", "SELECT")) and "?" not in statement:
        asked += [refusal(client.batch, [statement]), refusal(client.query, f"BEGIN BATCH {statement}; APPLY BATCH")]
    return asked


def test_cve_2025_23015_modify_on_all_keyspaces_does_not_write_the_system(halcyon_with_roles):
    """Proves that a role with MODIFY on all keyspaces, its own or inherited, writes no table of the system, real or virtual, in any way."""
    roots = root(halcyon_with_roles)
    for statement in (
        "CREATE ROLE lender", "CREATE ROLE writer WITH PASSWORD = 'word' AND LOGIN = true", "GRANT MODIFY ON ALL KEYSPACES TO lender",
        "GRANT SELECT ON ALL KEYSPACES TO lender", "GRANT lender TO writer",
    ):
        assert told(roots, statement) == "ok", statement
    writer = Client(halcyon_with_roles.port, ("writer", "word"))
    _, rows, _ = roots.query("SELECT keyspace_name, table_name, column_name, kind FROM system_schema.columns")
    _, more, _ = roots.query("SELECT keyspace_name, table_name, column_name, kind FROM system_virtual_schema.columns")
    tables = {}
    for keyspace, table, column, kind in ([part.decode() for part in row] for row in rows + more):
        if keyspace.startswith(("system", "halcyon_")):
            tables.setdefault((keyspace, table), []).append((column, kind))
    assert len(tables) > 60, tables.keys()
    for (keyspace, table), columns in tables.items():
        keys = [f'"{column}"' for column, kind in columns if kind in ("partition_key", "clustering")]
        names, marks = ", ".join(keys), ", ".join("?" for _ in keys)
        where = " AND ".join(f"{key} = ?" for key in keys)
        for statement in (
            f'INSERT INTO {keyspace}."{table}" ({names}) VALUES ({marks})', f'DELETE FROM {keyspace}."{table}" WHERE {where}',
            f'INSERT INTO {keyspace}."{table}" ({names}) VALUES ({marks}) IF NOT EXISTS', f'TRUNCATE {keyspace}."{table}"',
        ):
            for said in all_ways(writer, statement):
                assert said.startswith("2100 ") or said.startswith("2200 ") and "not supported" in said, (statement, said)
    assert all(said.startswith("2100 ") for said in all_ways(writer, "UPDATE system_auth.roles SET is_superuser = true WHERE role = 'writer'"))
    said = all_ways(writer, "INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) VALUES ('flush', 'a', '', '')")
    assert said[0] == said[1] == "2100 User writer has no MODIFY permission on <table halcyon_views.commands> or any of its parents"
    assert all(one.startswith(("2100 ", "2200 ")) for one in said), said
    assert refusal(writer.query, "SELECT * FROM system_auth.roles").startswith("2100 ")
    writer.close()
    assert told(roots, "SELECT role FROM system_auth.roles WHERE role = 'writer' AND is_superuser = true ALLOW FILTERING") == "role | "


def test_commands_need_what_their_mbean_needs(halcyon_with_roles):
    """Proves that MODIFY on a virtual table that acts is not enough, and what is."""
    roots = root(halcyon_with_roles)
    flush = "INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) VALUES ('flush', 'system_auth', '', '')"
    throughput = "UPDATE system_views.settings SET value = '64MiB/s' WHERE name = 'compaction_throughput'"
    assert told(roots, "CREATE ROLE operator WITH PASSWORD = 'word' AND LOGIN = true") == "ok"
    operator = Client(halcyon_with_roles.port, ("operator", "word"))
    assert "MODIFY permission on <table halcyon_views.commands>" in told(operator, flush)
    for keyspace in ("halcyon_views", "system_views"):
        assert told(roots, f"GRANT MODIFY ON KEYSPACE {keyspace} TO operator") == "ok"
    mbean = "<mbean org.apache.cassandra.db:type=StorageService>"
    assert f"EXECUTE permission on {mbean}" in told(operator, flush)
    assert f"MODIFY permission on {mbean}" in told(operator, throughput)
    assert told(roots, "GRANT EXECUTE ON MBEAN 'org.apache.cassandra.db:type=StorageService' TO operator") == "ok"
    assert told(roots, "GRANT MODIFY ON ALL MBEANS TO operator") == "ok"
    assert (told(operator, flush), told(operator, throughput)) == ("ok", "ok")
    operator.close()
    roots.close()


def test_cve_2026_27314_identities_of_superusers_are_theirs(halcyon_with_roles):
    """Proves that a role that may create roles binds no identity to a superuser, nor to a role that inherits from one, and takes none away."""
    roots = root(halcyon_with_roles)
    for statement in (
        "CREATE ROLE binder WITH PASSWORD = 'word' AND LOGIN = true", "CREATE ROLE high WITH SUPERUSER = true", "CREATE ROLE higher", "GRANT high TO higher",
        "GRANT CREATE ON ALL ROLES TO binder", "GRANT DROP ON ALL ROLES TO binder", "GRANT ALTER ON ALL ROLES TO binder", "CREATE ROLE low",
        "ADD IDENTITY 'of-high' TO ROLE 'high'", "ADD IDENTITY 'of-low' TO ROLE 'low'",
    ):
        assert told(roots, statement) == "ok", statement
    binder = Client(halcyon_with_roles.port, ("binder", "word"))
    bind = "2100 Only superusers can bind identities to a role with superuser status"
    for role in ("cassandra", "high", "higher"):
        statement = f"ADD IDENTITY 'mine' TO ROLE '{role}'"
        assert refusal(binder.query, statement) == bind and prepared(binder, statement) == bind
        assert refusal(binder.query, f"ADD IDENTITY IF NOT EXISTS 'of-low' TO ROLE '{role}'") == bind
    assert refusal(binder.query, "DROP IDENTITY 'of-high'") == "2100 Only superusers can remove identity bindings from a role with superuser status"
    assert refusal(binder.query, "DROP ROLE high") == "2100 Only superusers can drop a role with superuser status"
    assert refusal(binder.query, "ALTER ROLE low WITH SUPERUSER = true") == "2100 Only superusers are allowed to alter superuser status"
    assert told(binder, "ADD IDENTITY 'mine' TO ROLE 'low'") == "ok"
    assert told(roots, "SELECT identity FROM system_auth.identity_to_role WHERE role = 'high' ALLOW FILTERING").endswith(b"of-high".hex()), "as before"
    binder.close()
    roots.close()


def test_cve_2025_24860_a_role_does_not_change_its_own_access(halcyon_with_roles):
    """Proves that an ordinary role alters its own password and nothing else of itself."""
    roots = root(halcyon_with_roles)
    assert told(roots, "CREATE ROLE selfish WITH PASSWORD = 'word' AND LOGIN = true") == "ok"
    assert told(roots, "GRANT ALTER ON ALL ROLES TO selfish") == "ok"
    selfish = Client(halcyon_with_roles.port, ("selfish", "word"))
    for option, said in (
        ("ACCESS TO ALL DATACENTERS", "Only superusers are allowed to alter access to datacenters."),
        ("ACCESS TO DATACENTERS {'datacenter1'}", "Only superusers are allowed to alter access to datacenters."),
        ("ACCESS FROM ALL CIDRS", "Only superusers are allowed to alter access from CIDR groups."),
        ("ACCESS FROM CIDRS {'x'}", "Only superusers are allowed to alter access from CIDR groups."),
        ("SUPERUSER = true", "You aren't allowed to alter your own superuser status or that of a role granted to you"),
        ("LOGIN = true", "You aren't allowed to alter LOGIN"),
    ):
        assert refusal(selfish.query, f"ALTER ROLE selfish WITH {option}") == f"2100 {said}"
    assert told(selfish, "ALTER ROLE selfish WITH PASSWORD = 'other'") == "ok"
    assert refusal(Client, halcyon_with_roles.port, ("selfish", "word")).startswith("0100 ")
    Client(halcyon_with_roles.port, ("selfish", "other")).close()
    selfish.close()
    roots.close()


def test_cve_2025_26511_an_index_or_view_asks_for_its_base(pair):
    """Proves that a read through an index or a view needs what the table needs, and does not show what is masked."""
    for client in pair.roots:
        assert told(client, "GRANT SELECT ON a.masked TO worker") == "ok"
        assert told(client, "GRANT SELECT ON a.w TO worker") == "ok"
    workers = pair.clients(("worker", "word"))
    statements = (
        "SELECT * FROM a.w", "SELECT * FROM a.t WHERE v = 3", "SELECT * FROM a.masked", "SELECT * FROM a.masked WHERE k = 1",
        "SELECT k FROM a.masked WHERE v = 3 ALLOW FILTERING", "SELECT s FROM a.masked WHERE k = 1 GROUP BY k", "SELECT DISTINCT k FROM a.masked",
        "SELECT (int) v, s AS t FROM a.masked", "SELECT JSON * FROM a.masked", "SELECT min(s), max(v), sum(v) FROM a.masked", "SELECT writetime(s) FROM a.masked WHERE k = 9",
    )
    wrong = compare(workers, statements, "masked")
    for client in pair.roots:
        assert told(client, "REVOKE SELECT ON a.masked FROM worker") == "ok"
        assert told(client, "REVOKE SELECT ON a.w FROM worker") == "ok"
    assert not wrong, "\n".join(wrong)
    assert "2100 " in refusal(workers[1].query, "SELECT * FROM a.w")


def test_scylladb_1221_a_failed_batch_leaves_nothing_admitted(halcyon_with_roles):
    """Proves that a prepared statement is refused after each kind of failure as before, and from the moment at which it is revoked."""
    roots = root(halcyon_with_roles)
    for statement in (
        f"CREATE KEYSPACE batches WITH replication = {REPLICATION}", "CREATE TABLE batches.t (k int PRIMARY KEY, v int)",
        "CREATE ROLE batcher WITH PASSWORD = 'word' AND LOGIN = true", "GRANT MODIFY ON batches.t TO batcher",
    ):
        assert told(roots, statement) == "ok", statement
    batcher = Client(halcyon_with_roles.port, ("batcher", "word"))
    insert = batcher.prepare("INSERT INTO batches.t (k, v) VALUES (1, 1)")
    assert refusal(batcher.execute, insert) == "ok"
    assert told(roots, "REVOKE MODIFY ON batches.t FROM batcher") == "ok"
    refused = "2100 User batcher has no MODIFY permission on <table batches.t> or any of its parents"
    for _ in range(2):
        assert refusal(batcher.execute, insert) == refused
        assert refusal(batcher.batch, [insert]) == refused
        assert refusal(batcher.batch, [insert, "no statement"]).startswith(("2000 ", "2100 "))
        assert prepared(batcher, "INSERT INTO batches.t (k, v) VALUES (1, 1)") == refused
    batcher.close()
    roots.close()


def test_a_role_that_is_dropped_executes_nothing_more(halcyon_with_roles):
    """Proves that an open connection answers nothing once its role is dropped, or may not log in, made again or not."""
    roots = root(halcyon_with_roles)
    assert told(roots, "CREATE ROLE leaver WITH PASSWORD = 'word' AND LOGIN = true AND SUPERUSER = true") == "ok"
    leaver = Client(halcyon_with_roles.port, ("leaver", "word"))
    ask = "SELECT key FROM system.local"
    assert refusal(leaver.query, ask) == "ok"
    assert told(roots, "ALTER ROLE leaver WITH SUPERUSER = false") == "ok"
    assert refusal(leaver.query, "SELECT role FROM system_auth.roles").startswith("2100 User leaver has no SELECT")
    assert told(roots, "ALTER ROLE leaver WITH LOGIN = false") == "ok"
    assert refusal(leaver.query, ask) == "2100 leaver is not permitted to log in"
    assert told(roots, "DROP ROLE leaver") == "ok"
    assert refusal(leaver.query, ask) == "2100 leaver is not permitted to log in"
    leaver.close()
    roots.close()


def test_caches_forget_at_once_and_passwords_change_once_in_five_seconds(request, tmp_path):
    """Proves, with the default validities, that a revocation holds at once, and Cassandra's limit for changes of passwords (CVE-2026-32588)."""
    folder = tmp_path
    config = folder / "cassandra.yaml"
    config.write_text(f"authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer\nsuperuser_setup_delay: 0ms\n{TIMEOUTS}", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), folder, "--config", config, "--shards", "2")
    try:
        server.start()
        roots = root(server)
        for statement in (
            f"CREATE KEYSPACE ks WITH replication = {REPLICATION}", "CREATE TABLE ks.t (k int PRIMARY KEY)", "CREATE ROLE r WITH PASSWORD = 'word' AND LOGIN = true",
        ):
            assert told(roots, statement) == "ok", statement
        assert told(roots, "ALTER ROLE r WITH PASSWORD = 'other'") == "! 1001 Password for role r can only be changed every 5000ms."
        clients = [Client(server.port, ("r", "word")) for _ in range(8)]
        for _ in range(20):
            assert told(roots, "GRANT SELECT ON ks.t TO r") == "ok"
            assert [told(client, "SELECT * FROM ks.t") for client in clients] == ["k | "] * len(clients)
            assert told(roots, "REVOKE SELECT ON ks.t FROM r") == "ok"
            assert all(told(client, "SELECT * FROM ks.t").startswith("! 2100 ") for client in clients)
        assert "ANYONE CAN LOG IN AS SUPERUSER 'cassandra'" in server.said()
    finally:
        server.close()


@pytest.mark.timeout(600)
def test_caches_list_their_keys(request, cassandra_options, tmp_path):
    """Proves that tables of cache keys have what Cassandra's have, and that a DELETE, a TRUNCATE and a longer validity mean the same."""
    validities = ["roles", "permissions", "credentials"]
    settings = [*SETTINGS[:2], *(f"{cache}_validity: 3600s" for cache in validities)]
    ours = serve(request, tmp_path, "\n".join(settings))
    folder = tmp_path / "node"
    facts = opened.start(cassandra_options, folder, "oa", *settings, jvm=JVM)
    found = []
    try:
        for port in (facts["native_port"], ours.port):
            client = logged_in(port, ROOT)

            def keys(cache, client=client):
                rows = client.query(f"SELECT * FROM system_views.{cache}_cache_keys")[1]
                rows = [tuple(value.decode() for value in row) for row in rows]
                # The nodes read different permissions of superusers. A GRANT empties all caches here.
                seen = {"permissions": [("r", "data/ks/t")], "credentials": [("r",)]}.get(cache, rows)
                return sorted(row for row in rows if row in seen)

            for statement in (
                f"CREATE KEYSPACE ks WITH replication = {REPLICATION}", "CREATE TABLE ks.t (k int PRIMARY KEY)", "CREATE ROLE parent",
                "CREATE ROLE r WITH PASSWORD = 'word' AND LOGIN = true", "GRANT parent TO r", "GRANT SELECT ON ks.t TO parent",
            ):
                assert told(client, statement) == "ok", statement
            worker = Client(port, ("r", "word"))
            assert told(worker, "SELECT * FROM ks.t") == "k | "
            listed = [keys(cache) for cache in ("roles", "credentials", "network_permissions", "permissions", "jmx_permissions")]
            said = [told(client, statement) for statement in (
                "INSERT INTO system_views.roles_cache_keys (role) VALUES ('x')", "TRUNCATE system_views.clients",
                "DELETE FROM system_views.credentials_cache_keys WHERE role = 'r'", "TRUNCATE system_views.permissions_cache_keys",
            )]
            left = [row for row in keys("credentials") if row == ("r",)], keys("permissions")
            found.append((listed, said, left))
    finally:
        opened.stop(cassandra_options, folder)
        ours.close()
    assert found[0] == found[1]


@pytest.mark.timeout(600)
def test_roles_and_grants_go_over_and_back(request, cassandra_options, tmp_path):
    """Proves that Halcyon admits the roles of Cassandra's directory by their passwords and grants, and Cassandra those that Halcyon made."""
    settings = SETTINGS[:2]
    folder = tmp_path / "node"
    made = (
        f"CREATE KEYSPACE ks WITH replication = {REPLICATION}", "CREATE TABLE ks.t (k int PRIMARY KEY)", "CREATE ROLE readers", "GRANT SELECT ON ks.t TO readers",
        "CREATE ROLE theirs WITH PASSWORD = 'their word' AND LOGIN = true", "GRANT readers TO theirs", "ADD IDENTITY 'spiffe://x' TO ROLE 'theirs'",
    )
    more = ("CREATE ROLE ours WITH PASSWORD = 'our word' AND LOGIN = true", "GRANT readers TO ours", "GRANT MODIFY ON KEYSPACE ks TO readers", "ALTER ROLE cassandra WITH PASSWORD = 'changed'")
    listed = ("LIST ROLES", "LIST ALL PERMISSIONS OF readers", "LIST ROLES OF theirs", "SELECT * FROM system_auth.identity_to_role")
    facts = opened.start(cassandra_options, folder, "oa", *settings, jvm=JVM)
    try:
        client = logged_in(facts["native_port"], ROOT)
        assert [told(client, statement) for statement in made] == ["ok"] * len(made)
        before = [told(client, statement) for statement in listed]
        opened.nodetool(cassandra_options, facts, "drain")
    finally:
        opened.stop(cassandra_options, folder)
    config = tmp_path / "cassandra.yaml"
    text = open(facts["config"], encoding="utf-8").read()
    config.write_text(text + OURS, encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), tmp_path, "--config", config)
    server.data = facts["storage_dir"]
    try:
        server.start()
        client = root(server)
        assert [told(client, statement) for statement in listed] == before
        theirs = Client(server.port, ("theirs", "their word"))
        assert told(theirs, "SELECT * FROM ks.t") == "k | "
        assert told(theirs, "INSERT INTO ks.t (k) VALUES (1)").startswith("! 2100 ")
        assert [told(client, statement) for statement in more] == ["ok"] * len(more)
        after = [told(client, statement) for statement in listed]
        theirs.close(), client.close()
        assert server.stop() == 0, server.said()
    finally:
        server.close()
    facts = opened.start(cassandra_options, folder, "oa", *settings, jvm=JVM)
    try:
        client = logged_in(facts["native_port"], ("cassandra", "changed"))
        assert [told(client, statement) for statement in listed] == after
        ours = Client(facts["native_port"], ("ours", "our word"))
        assert told(ours, "INSERT INTO ks.t (k) VALUES (1)") == "ok"
        assert told(ours, "TRUNCATE ks.t") == "ok" and told(ours, "DROP TABLE ks.t").startswith("! 2100 ")
    finally:
        opened.stop(cassandra_options, folder)


def test_nodetool_and_drivers_log_in(request, halcyon_with_roles, tmp_path):
    """Proves that nodetool takes a password and a file of passwords, that the Python driver logs in, and who is connected."""
    binary = request.config.getoption("--halcyon")
    words = tmp_path / "passwords"
    words.write_text("other x\ncassandra cassandra\n", encoding="utf-8")
    nodetool = [binary, "nodetool", "-p", str(halcyon_with_roles.port)]

    def run(*arguments):
        return subprocess.run([*nodetool, *arguments], capture_output=True, text=True, timeout=60, check=False)

    assert run("-u", "cassandra", "-pwf", words, "version").returncode == 0
    assert run("-u", "cassandra", "-pw", "cassandra", "flush", "system_auth").returncode == 0
    wrong = run("-u", "cassandra", "-pw", "wrong", "version")
    assert wrong.returncode == 1 and "Provided username cassandra and/or password are incorrect" in wrong.stderr
    assert run("version").returncode == 1
    session = halcyon_with_roles.connect(auth_provider=PlainTextAuthProvider(*ROOT))
    names = {row.username for row in session.execute("SELECT username FROM system_views.clients")}
    assert "cassandra" in names and "anonymous" not in names - {None}, names


def test_a_role_stays_in_its_data_centers(request, tmp_path):
    """Proves that CassandraNetworkAuthorizer keeps a role out of data centers that it was not given, and lists those that it was."""
    server = serve(request, tmp_path, "\n".join((*SETTINGS, "network_authorizer: CassandraNetworkAuthorizer")))
    try:
        roots = root(server)
        for statement in (
            "CREATE ROLE here WITH PASSWORD = 'word' AND LOGIN = true AND ACCESS TO DATACENTERS {'datacenter1'}",
            "CREATE ROLE everywhere WITH PASSWORD = 'word' AND LOGIN = true AND ACCESS TO ALL DATACENTERS",
            "CREATE ROLE away WITH PASSWORD = 'word' AND LOGIN = true",
            "INSERT INTO system_auth.network_permissions (role, dcs) VALUES ('roles/away', {'elsewhere'})",
        ):
            assert told(roots, statement) == "ok", statement
        ask = "SELECT key FROM system.local"
        clients = [Client(server.port, (name, "word")) for name in ("here", "everywhere", "away")]
        assert [refusal(client.query, ask) for client in clients] == ["ok", "ok", "2100 You do not have access to this datacenter (datacenter1)"]
        _, rows, _ = roots.query("LIST ROLES")
        assert {row[0].decode(): row[4].decode() for row in rows} == {"cassandra": "ALL", "here": "datacenter1", "everywhere": "ALL", "away": "elsewhere"}
        assert told(roots, "ALTER ROLE away WITH ACCESS TO DATACENTERS {'datacenter1'}") == "ok"
        assert refusal(clients[2].query, ask) == "ok"
        refused = "2200 Invalid value(s) for DATACENTERS '[elsewhere]',All values must be valid datacenters"
        assert refusal(roots.query, "ALTER ROLE away WITH ACCESS TO DATACENTERS {'elsewhere'}") == refused
    finally:
        server.close()
