"""
Every statement of the differential corpus, for one node that need not refuse what Cassandra refuses: that it does is tested
elsewhere. Here is what it accepts, and what is then in its tables.
"""

import itertools
import random
import re
from pathlib import Path

from cassandra.encoder import Encoder
from cassandra.query import bind_params

import test_modify_differential as modify
import test_options_differential as options
import test_select_differential as select
from corpus import table as corpus_table
from corpus.tables import all_tables
from native import Client, Refused

CRATES = Path(__file__).resolve().parent.parent / "crates"
REPLICATION = "replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
SHORT_TTL = re.compile(r"(TTL |default_time_to_live = '?)(\d{1,5})\b")
MODIFY_ROUNDS, MODIFY_STATEMENTS = 12, 120
SELECT_TABLES, SELECT_WRITES = 20, 60
LONGEST_WAIT_SECONDS = 3


class Asker:
    """Counts what is accepted and what is refused."""

    def __init__(self, port):
        self.client = Client(port)
        self.accepted = self.refused = 0

    def ask(self, text, values=()):
        try:
            self.client.query(lasting(text), values=values)
        except Refused:
            self.refused += 1
            return False
        self.accepted += 1
        return True

    def make_keyspace(self, name):
        self.client.query(f"CREATE KEYSPACE {name} WITH {REPLICATION}")
        self.client.query(f"USE {name}")


def lasting(text):
    """A statement of which nothing ends between two readings: what expires within a second is dead before the first. Cassandra itself
    forgets `cdc` at a restart where it captures no changes."""
    text = text.replace("cdc = 'true'", "cdc = 'false'").replace("cdc = true", "cdc = false")
    return SHORT_TTL.sub(lambda found: found[0] if int(found[2]) < 2 else found[1] + str(int(found[2]) + 100_000), text)


def write_all(port):
    """Fills keyspaces of every kind; answers how much was accepted."""
    asker = Asker(port)
    for write in (_corpus, _select, _modify, _options, _sessions, _ddl):
        write(asker)
    asker.client.close()
    return asker.accepted


def _corpus(asker):
    asker.make_keyspace(corpus_table.KEYSPACE)
    for table in all_tables():
        for statement in table.types:
            asker.ask(statement)
        if not asker.ask(table.create()):
            continue
        rounds = (statement for statements in table.rounds for statement in statements)
        for statement in itertools.chain(table.setup, rounds):
            if isinstance(statement, tuple):
                statement = bind_params(statement[0], statement[1], Encoder())
            if isinstance(statement, str):
                asker.ask(statement.replace("$t", table.name))


def _select(asker):
    asker.make_keyspace("law_select")
    for seed in range(SELECT_TABLES):
        table = select.Table(random.Random(seed), f"law_select.t{seed}")
        asker.ask(table.create())
        for number in range(SELECT_WRITES):
            asker.ask(table.write(1000 + number))


def _modify(asker):
    asker.make_keyspace("law_literals")
    for text in modify.TABLES:
        asker.ask(text)
    keys = itertools.count()
    for column, literal in itertools.product(modify.COLUMNS, modify.LITERALS):
        asker.ask(f"INSERT INTO n (k, {column}) VALUES ({next(keys)}, {literal})")
    for column, value in itertools.product(modify.BOUND_COLUMNS, modify.BYTES):
        asker.ask(f"INSERT INTO n (k, {column}) VALUES ({next(keys)}, ?)", [value])
    for seed in range(MODIFY_ROUNDS):
        asker.make_keyspace(f"law_writes_{seed}")
        for text in modify.TABLES:
            asker.ask(text)
        statements = modify.Statements(random.Random(seed))
        for _ in range(MODIFY_STATEMENTS):
            asker.ask(statements.any())


def _options(asker):
    asker.make_keyspace("law_options")
    statements = options.Statements(options.SEED)
    asker.ask("CREATE TABLE altered (k int PRIMARY KEY)")
    for number in range(options.STATEMENTS):
        chosen = statements.options()
        if number % 3 == 0:
            table, done = "altered", asker.ask(f"ALTER TABLE altered WITH {chosen}")
        else:
            table, done = f"made_{number}", asker.ask(f"CREATE TABLE made_{number} (k int PRIMARY KEY) WITH {chosen}")
        if done:
            asker.ask(f"INSERT INTO {table} (k) VALUES ({number}) USING TTL 200000")
            # Cassandra's start logs an error where a memtable is due before its table is complete.
            asker.ask(f"ALTER TABLE {table} WITH memtable_flush_period_in_ms = 0")


def _sessions(asker):
    for file in sorted((CRATES / "query/tests/data/sessions").glob("*.txt")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith(("! ", "> ")):
                asker.ask(line[2:])


def _ddl(asker):
    cases = (CRATES / "schema/tests/data/ddl.txt").read_text(encoding="utf-8").split("\n====\n")
    for case in filter(None, cases):
        asker.ask(case.split("\n----\n")[0])
