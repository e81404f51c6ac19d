"""
The same writes on Cassandra and on `halcyon serve`, made from a seed: literals of every type for columns of every type, values
as bytes, updates of every kind with conditions, batches, counters. Answers, refusals and what is then read must be the same.

What is left out is what Cassandra answers with an internal error (code 0000), and text behind the place of a syntax error.
"""

import random
import re

import pytest

from native import UNSET, Client, Refused
from record_sessions import told

KEYSPACE = "modifications"
NATIVE = (
    "ascii bigint blob boolean date decimal double duration float inet int smallint text time timestamp timeuuid tinyint uuid varint"
).split()
COMPOSED = {
    "l": "list<int>", "e": "set<int>", "m": "map<int, text>", "fl": "frozen<list<int>>", "fe": "frozen<set<text>>",
    "fm": "frozen<map<text, int>>", "u": "ud", "fu": "frozen<ud>", "v": "vector<float, 2>",
}  # fmt: skip
LITERALS = """0 1 -1 127 128 -129 32768 2147483648 9223372036854775808 1.5 -0.0 1e3 1E-5 NaN -Infinity 'abc' '' '1' 'é' 'it''s' $$a$$
true FALSE 0x 0x01 0xABC null 6bddc89a-5644-11e4-97fc-56847afe9799 00000000-0000-4000-8000-000000000000 '127.0.0.1' '::1' '2020-01-02'
'2020-1-2' '2020-01-02T03:04' '12:34:56.789' 1y2mo P1Y PT5M -5d [1] {1} {} [] {1:'a'} {a:1} (1,'a') blobAsInt(0x00000001) intAsBlob(1)
(int)1 (text)'a' 1+1 2*3.5 'a'+'b' 10/0 5%2 -(1) nope(1)""".split()
BYTES = [
    b"", b"\0", b"\1", b"abc", b"\xff", b"\0\0", b"\0\0\0\1", bytes(8), b"\x7f" + b"\xff" * 7, bytes(16), bytes([1] * 6) + b"\x10\x01" + bytes(8),
    b"\0\0\0\0\1", b"\0\0\0\1\0\0\0\4\0\0\0\5", b"\0\0\0\1\xff\xff\xff\xff", b"\0\0\0\2\0\0\0\4\0\0\0\5\0\0\0\4\0\0\0\1", b"\xc3\x28", None, UNSET,
]  # fmt: skip
VALUES = {
    "v": ["0", "1", "2", "null", "'x'"], "w": ["'a'", "'b'", "''", "null", "5"], "s": ["0", "1", "null"], "l": ["[1, 2]", "[]", "null", "{1}"],
    "e": ["{'a'}", "{'b', 'a'}", "{}", "null", "['a']"], "m": ["{'a': 1}", "{'b': 2, 'a': 3}", "null", "{'a'}"], "fl": ["[1]", "[]", "null"],
    "u": ["{a: 1, b: 'x'}", "{a: 1}", "null", "{z: 1}"], "fu": ["{a: 1, b: 'x'}", "{b: 'q'}", "null"], "tp": ["(1, 'a')", "(1, null)", "null"],
}  # fmt: skip
CHANGES = """l = l + [7];l = [6] + l;l = l - [1];l[0] = 9;l[5] = 1;l[0] = null;e = e + {'z'};e = e - {'a'};m = m + {'k': 5};m = m - {'a'};m['z'] = 3
m['a'] = null;u.a = 4;u.b = null;u.z = 1;v = v + 1;v += 1;w = w + 'x';l += [8];l -= [8];e += {'y'};m -= {'z'};s = s + 1;fl = fl + [1];p = 1;c = 2
tp = tp + (1, 'a');e['a'] = 1;fu.a = 1;m[null] = 1;l[null] = 2;v = w;nope = 1""".replace("\n", ";").split(";")
KEYS = ["p = 1", "p = 2", "p = 1", "p = 2", "p = 1", "p = 2", "p IN (1, 2)", "p = null", "p > 1"]
ROWS = ["c = {} AND d = '{}'"] * 12 + """c = 1;c > 1;c >= 2 AND c < 3;c IN (1, 2);(c, d) = (1, 'a');(c, d) > (1, 'a');(c, d) IN ((1, 'a'), (2, 'b'))
d = 'a';c IN (1, 2) AND d = 'a';c = 1 AND d > 'a';v = 1""".replace("\n", ";").split(";")
CONDITIONS = """v = 1;v = null;v != 2;v > 0;v IN (1, 2, null);v IN ();w = 'a';s = 1;s = null;l = [1, 2];l[0] = 1;l[0] IN (1, 9);l[9] = null;e = {'a'};m = {'a': 1}
m['a'] = 1;m['a'] > 0;m['q'] = null;u = {a: 1, b: 'x'};u.a = 1;u.b != 'x';fu = {a: 1, b: 'x'};fu.a = 1;fl = [1];tp = (1, 'a');nope = 1;c = 1
v CONTAINS 1;e CONTAINS 'a';v < null;v >= 1;w LIKE 'a%';v IS NOT NULL;s > 0;e = null;l != null;m != {}""".replace("\n", ";").split(";")
COUNTS = """UPDATE cn SET x = x + 1 WHERE p = 1 AND c = 1;UPDATE cn SET x = x - 2, y = y + 1 WHERE p = 1 AND c = 2;UPDATE cn SET sc = sc + 1 WHERE p = 1
DELETE x FROM cn WHERE p = 1 AND c = 3;UPDATE cn SET x = 5 WHERE p = 1 AND c = 1;UPDATE cn USING TTL 5 SET x = x + 1 WHERE p = 1 AND c = 1
INSERT INTO cn (p, c, x) VALUES (1, 1, 1);UPDATE cn SET x = x + 1 WHERE p = 1 AND c = 1 IF x = 1;UPDATE cn SET x += 3 WHERE p = 2 AND c IN (1, 2)
UPDATE cn SET x = y + 1 WHERE p = 1 AND c = 1;SELECT * FROM cn""".replace("\n", ";").split(";")
TABLES = [
    "CREATE TYPE ud (a int, b text)",
    "CREATE TABLE n (k int PRIMARY KEY, {})".format(
        ", ".join([f"c_{kind} {kind}" for kind in NATIVE] + [f"{name} {kind}" for name, kind in COMPOSED.items()])
    ),
    "CREATE TABLE t (p int, c int, d text, s int static, v int, w text, l list<int>, e set<text>, m map<text, int>, fl frozen<list<int>>, u ud, "
    "fu frozen<ud>, tp tuple<int, text>, PRIMARY KEY (p, c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)",
    "CREATE TABLE cn (p int, c int, x counter, y counter, sc counter static, PRIMARY KEY (p, c))",
]
COLUMNS = [f"c_{kind}" for kind in NATIVE] + list(COMPOSED)
BOUND_COLUMNS = [f"c_{kind}" for kind in NATIVE] + ["l", "e", "m", "fl", "fe", "fm", "v"]


def comparable(answer):
    """Signatures come in the order of a Java hash set; a syntax error shows a stretch of the text."""
    return re.sub(r" \([^()]*\[.*", "", answer) if answer.startswith("! 2000") else answer.split("signatures")[0]


class Pair:
    def __init__(self, cassandra, halcyon):
        self._ports = (cassandra, halcyon)
        self._clients = self.more_clients()
        self.different = []
        for text in (
            f"DROP KEYSPACE IF EXISTS {KEYSPACE}",
            f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
            f"USE {KEYSPACE}",
            *TABLES,
        ):
            for client in self._clients:
                client.query(text)

    def more_clients(self):
        return [Client(port) for port in self._ports]

    def ask(self, text, **options):
        expected, found = (told(client, text, **options) for client in self._clients)
        internal = re.match("! (0000|1300)", expected)
        if not internal and comparable(expected) != comparable(found):
            self.different.append(f"{text} {options or ''}\n  C {expected}\n  H {found}")
        return expected == found == "ok"

    def check(self):
        for client in self._clients:
            client.close()
        assert not self.different, f"{len(self.different)} differ\n" + "\n".join(self.different[:15])


@pytest.fixture
def pair(nodes, served):
    pair = Pair(nodes.get("5.0.9").facts["native_port"], served.port)
    yield pair
    pair.check()


def test_literals_fit_as_in_cassandra(pair):
    for column in COLUMNS:
        for literal in LITERALS:
            if pair.ask(f"INSERT INTO n (k, {column}) VALUES (1, {literal})"):
                pair.ask(f"SELECT {column}, toJson({column}) FROM n WHERE k = 1")
                pair.ask(f"UPDATE n SET {column} = {literal} WHERE k = 2 IF {column} = {literal}")


def test_bound_values_fit_as_in_cassandra(pair):
    for column in BOUND_COLUMNS:
        for value in BYTES:
            if pair.ask(f"INSERT INTO n (k, {column}) VALUES (1, ?)", values=[value]):
                pair.ask(f"SELECT {column} FROM n WHERE k = 1")


class Statements:
    def __init__(self, rng):
        self.rng = rng

    def using(self):
        timestamp = self.rng.choice([1000, 1001, 1002, 1003, 1005, 1010])
        kinds = [f"TIMESTAMP {timestamp}"] * 7 + [f"TTL 100000 AND TIMESTAMP {timestamp}", f"TIMESTAMP {timestamp} AND TTL 0", "TIMESTAMP null"]
        return " USING " + self.rng.choice(kinds)

    def where(self):
        rows = self.rng.choice(ROWS).format(self.rng.choice([1, 2, 3]), self.rng.choice("ab"))
        return f"{self.rng.choice(KEYS)} AND {rows}"

    def change(self):
        if self.rng.random() < 0.5:
            column = self.rng.choice(list(VALUES))
            return f"{column} = {self.rng.choice(VALUES[column])}"
        return self.rng.choice(CHANGES)

    def one(self, conditional):
        rng = self.rng
        using = "" if conditional and rng.random() < 0.9 else self.using()
        condition = rng.choice([" IF EXISTS", " IF " + " AND ".join(rng.sample(CONDITIONS, rng.choice([1, 1, 2])))]) if conditional else ""
        chance = rng.random()
        if chance < 0.35:
            columns = rng.sample(list(VALUES), rng.randrange(4))
            values = [str(rng.choice([1, 2])), str(rng.choice([1, 2, 3])), rng.choice(["'a'", "'b'"])] + [rng.choice(VALUES[c]) for c in columns]
            exists = " IF NOT EXISTS" if conditional else ""
            return f"INSERT INTO t ({', '.join(['p', 'c', 'd'] + columns)}) VALUES ({', '.join(values)}){exists}{using}"
        if chance < 0.75:
            return f"UPDATE t{using} SET {', '.join(self.change() for _ in range(rng.choice([1, 1, 2])))} WHERE {self.where()}{condition}"
        targets = ["", "", "v ", "l ", "m['a'] ", "l[0] ", "u.a ", "v, w ", "s ", "e['a'] ", "c ", "fu ", "nope ", "fl[0] ", "l[7] "]
        using = "" if "TTL" in using else using
        return f"DELETE {rng.choice(targets)}FROM t{using} WHERE {self.where()}{condition}"

    def any(self):
        rng = self.rng
        chance = rng.random()
        if chance < 0.82:
            return self.one(rng.random() < 0.3)
        if chance < 0.94:
            conditional = rng.random() < 0.35
            body = "; ".join(self.one(conditional and rng.random() < 0.6) for _ in range(rng.randrange(1, 4)))
            return f"BEGIN {rng.choice(['', '', 'UNLOGGED ', 'COUNTER '])}BATCH{rng.choice(['', '', ' USING TIMESTAMP 1004'])} {body}; APPLY BATCH"
        return rng.choice(COUNTS)


@pytest.mark.seeds(3)
def test_writes_leave_what_they_leave_in_cassandra(pair, seed):
    rng = random.Random(seed)
    statements = Statements(rng)
    for number in range(900):
        pair.ask(statements.any())
        if number % 3 == 0:
            pair.ask(f"SELECT * FROM t WHERE p = {rng.choice([1, 2])}")
        if number % 97 == 0:
            pair.ask("TRUNCATE t")


NEEDS_USE = """SELECT v FROM t WHERE p = 7;SELECT v FROM {0}.t WHERE p = 7;INSERT INTO t (p, c, d) VALUES (7, 7, 'u');UPDATE {0}.t SET s = 7 WHERE p = 7
BEGIN BATCH DELETE FROM t WHERE p = 7 APPLY BATCH;CREATE TABLE IF NOT EXISTS {0}.other (p int PRIMARY KEY);TRUNCATE {0}.t;TRUNCATE t;USE {0}
SELECT key FROM system.local WHERE key = 'u';SELECT nope FROM t""".format(KEYSPACE).replace("\n", ";").split(";")


def test_prepared_statements_that_need_use_are_warned_of_as_in_cassandra(pair):
    # A warning comes once to each connection, and not for a statement that somebody has prepared.
    for number, text in enumerate(NEEDS_USE):
        clients = pair.more_clients()
        for asked in (f"USE {KEYSPACE}", text, text, f"SELECT w FROM t WHERE p = {number}", f"SELECT w FROM {KEYSPACE}.t WHERE p = {number}"):
            expected, found = (warnings(client, asked) for client in clients)
            if expected != found:
                pair.different.append(f"{text}: {asked}\n  C {expected}\n  H {found}")
        for client in clients:
            client.close()


def warnings(client, text):
    """What comes with a prepared statement; USE is executed too."""
    try:
        client.prepare(text)
    except Refused as refused:
        return str(refused)
    found = client.warnings
    if text.startswith("USE"):
        client.query(text)
    return found


SERIAL = """SELECT c FROM t WHERE p IN (1, 2);SELECT c FROM t WHERE p IN (1, 2) LIMIT 2;SELECT count(*) FROM t WHERE p IN (1, 2)
SELECT p, count(*) FROM t WHERE p IN (1, 2) GROUP BY p;SELECT DISTINCT p FROM t WHERE p IN (1, 2);SELECT c FROM t WHERE p IN (1)""".replace("\n", ";").split(";")


def test_serial_reads_of_partitions_are_accepted_in_pages_as_in_cassandra(pair):
    for text in SERIAL:
        for page_size in (None, -1, 1, 2, 3, 100):
            for consistency in (8, 9):
                pair.ask(text, page_size=page_size, consistency=consistency)


# A statement or a batch that is refused for one partition changes none; both elements of a batch are of the list as it was.
BY_INDEX = """UPDATE t SET l = [1, 2, 3] WHERE p = 1 AND c = 1 AND d = 'i';UPDATE t SET l = [1] WHERE p = 2 AND c = 1 AND d = 'i'
UPDATE t SET l[1] = 9 WHERE p IN (1, 2) AND c = 1 AND d = 'i';DELETE l[1] FROM t WHERE p IN (3, 1) AND c = 1 AND d = 'i'
UPDATE t SET l[1] = 9 WHERE p IN (3, 2, 1) AND c = 1 AND d = 'i';UPDATE t SET l[0] = 8 WHERE p IN (2, 1) AND c = 1 AND d = 'i'
BEGIN {}BATCH UPDATE t SET w = 'x' WHERE p = 1 AND c = 1 AND d = 'i'\\; UPDATE t SET l[1] = 4 WHERE p = 1 AND c = 1 AND d = 'i'\\; UPDATE t SET l[1] = 4 WHERE p = 2 AND c = 1 AND d = 'i'\\; APPLY BATCH
BEGIN {}BATCH DELETE l[0] FROM t WHERE p = 1 AND c = 1 AND d = 'i'\\; DELETE l[0] FROM t WHERE p = 1 AND c = 1 AND d = 'i'\\; UPDATE t SET l[0] = 5 WHERE p = 2 AND c = 1 AND d = 'i'\\; APPLY BATCH"""
BY_INDEX = [text.replace("\\;", ";") for text in re.split(r"(?<!\\);|\n", BY_INDEX)]


@pytest.mark.parametrize("kind", ["", "UNLOGGED "])
@pytest.mark.parametrize("consistency", [1, 0, 2], ids=["one", "any", "two"])
def test_lists_by_index_of_several_partitions_are_changed_together_as_in_cassandra(pair, kind, consistency):
    for text in BY_INDEX:
        pair.ask(text.format(kind), consistency=consistency)
        pair.ask("SELECT p, w, l FROM t WHERE p IN (1, 2, 3) AND c = 1")


# Which rows a DELETE means is restricted as those of a SELECT.
TWICE = """c > 1 AND d = 'a' AND v = {1};d = 'a' AND c > 1;d > 'a' AND c > 1;c > 1 AND (c, d) > (1, 'a');(c, d) > (1, 'a') AND d < 'b';(c, d) > (1, 'a') AND c < 4
c > 1 AND c = 2;c = 1 AND c = 1;c < 1 AND c <= 2;d < 'a' AND (c, d) > (1, 'a');(c) = (1) AND d = 'a';(c) > (1) AND (c, d) < (3, 'b');v = 1 AND v = 1
d LIKE 'a%';c = (1) AND d = ('a');(c, d) = (1, 'a') AND d = 'a';(d) = ('a');c IN (1) AND c IN (1);token(p) > 1 AND c = 1""".replace("\n", ";").split(";")


def test_deletions_are_restricted_as_in_cassandra(pair):
    for text in TWICE:
        pair.ask("UPDATE t SET v = 1 WHERE p = 1 AND c = 2 AND d = 'b'")
        for statement in ("DELETE FROM t", "DELETE w FROM t", "UPDATE t SET w = 'y'"):
            pair.ask(f"{statement} WHERE p = 1 AND {text}")
        pair.ask("SELECT p, c, d, v, w FROM t WHERE p = 1")


# A change of the schema that was prepared means the keyspace of its preparation, whichever is in force when it is executed.
MOVED = """DROP TABLE victim;ALTER TABLE changed ADD more int;CREATE TABLE made (p int PRIMARY KEY);DROP TABLE IF EXISTS absent;TRUNCATE emptied
CREATE INDEX found ON indexed (v);DROP TYPE dropped;CREATE TYPE typed (a int)""".replace("\n", ";").split(";")


def test_prepared_changes_of_the_schema_keep_their_keyspace_as_in_cassandra(pair):
    answers = []
    for client in pair.more_clients():
        said = []
        for keyspace in ("kept", "other"):
            client.query(f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
            for table in ("victim", "changed", "emptied", "indexed"):
                client.query(f"CREATE TABLE {keyspace}.{table} (p int PRIMARY KEY, v int)")
            client.query(f"CREATE TYPE {keyspace}.dropped (a int)")
            client.query(f"INSERT INTO {keyspace}.emptied (p) VALUES (1)")
        client.query("USE kept")
        prepared = [client.prepare(text) for text in MOVED]
        client.query("USE other")
        for text, statement in zip(MOVED, prepared):
            try:
                client.execute(statement)
                said.append((text, "done"))
            except Refused as refused:
                said.append((text, str(refused)))
        for table in ("tables", "columns", "types", "indexes"):
            keys = {"tables": "table_name", "columns": "table_name, column_name", "types": "type_name", "indexes": "index_name"}[table]
            for keyspace in ("kept", "other"):
                said.append(client.query(f"SELECT {keys} FROM system_schema.{table} WHERE keyspace_name = '{keyspace}'")[1])
        for keyspace in ("kept", "other"):
            said.append(client.query(f"SELECT p FROM {keyspace}.emptied")[1])
            client.query(f"DROP KEYSPACE {keyspace}")
        answers.append(said)
        client.close()
    assert answers[0] == answers[1]
