"""
Materialized views on Cassandra and on `halcyon serve`: random tables with random views, written with timestamps that come in any order;
what is refused and why, the rows of the views with their times, and what the schema says of them.
"""

import random

import pytest

from native import Client
from patience import TIMEOUTS, until
from server import Server
from test_select_differential import Table, answer

KEYSPACE = "differential_views"


class Viewed(Table):
    """A table and its views."""

    def __init__(self, rng, name):
        super().__init__(rng, name)
        self.views = [self.view(f"{name}_v{number}") for number in range(rng.randrange(1, 4))]

    def literal(self, kind):
        """Left out: empty texts, which as keys of partitions are another matter, and decimals that are equal but not the same."""
        literal = super().literal(kind)
        return {"''": "'e'", "1.0": "7"}.get(literal, literal)

    def view(self, name):
        rng = self.rng
        base_key = [column for column, _ in self.key + self.clustering]
        regulars = [column for column, _ in self.regulars]
        key = list(base_key)
        rng.shuffle(key)
        if rng.random() < 0.7:
            key.insert(rng.randrange(len(key) + 1), rng.choice(regulars))
        partition = rng.randrange(1, min(len(key), 3) + 1)
        columns = [column for column in regulars if column not in key and rng.random() < 0.5]
        columns += [text.split()[0] for text in self.collections if rng.random() < 0.5]
        everything = not self.statics and rng.random() < 0.5
        selected = "*" if everything else ", ".join(key + columns)
        relations = [self.restriction(column) for column in key]
        rng.shuffle(relations)
        order = ""
        if key[partition:] and rng.random() < 0.5:
            orders = ", ".join(f"{column} {rng.choice(['ASC', 'DESC'])}" for column in key[partition:])
            order = f" WITH CLUSTERING ORDER BY ({orders})"
        primary = ", ".join([f"({', '.join(key[:partition])})"] + key[partition:])
        where = " AND ".join(relations)
        return name, f"CREATE MATERIALIZED VIEW {name} AS SELECT {selected} FROM {self.name} WHERE {where} PRIMARY KEY ({primary}){order}"

    def restriction(self, column):
        kinds = dict(self.key + self.clustering)
        if column not in kinds or self.rng.random() < 0.8:
            return f"{column} IS NOT NULL"
        literal = self.literal(kinds[column])
        if kinds[column] == "blob":
            # An empty key is refused here when the view is made, and there when its base is written.
            return f"{column} >= {literal}"
        operator = self.rng.choice(["=", ">=", "<", "IN"])
        return f"{column} IN ({literal}, {self.literal(kinds[column])})" if operator == "IN" else f"{column} {operator} {literal}"

    def insert(self, using):
        ttl = f" AND TTL {self.rng.choice([1000, 100000])}" if self.rng.random() < 0.15 else ""
        return super().insert(using + ttl)

    def changes(self, number):
        """One write, or several of one batch."""
        if self.rng.random() < 0.85:
            return self.write(1000 + number)
        writes = "; ".join(self.write(1000 + number) for _ in range(self.rng.randrange(2, 5)))
        return f"BEGIN {self.rng.choice(['UNLOGGED ', ''])}BATCH {writes}; APPLY BATCH"

    def condition(self):
        values = ", ".join(self.literal(kind) for _, kind in self.clustering)
        names = [name for name, _ in self.key + self.clustering]
        keys = ", ".join(self.rng.choice(self.keys))
        written = f"{keys}, {values}" if values else keys
        return f"INSERT INTO {self.name} ({', '.join(names)}, v) VALUES ({written}, {self.literal(self.regulars[0][1])}) IF NOT EXISTS"


def wait_until_built(client, view):
    keyspace, name = view.split(".")
    built = f"SELECT view_name FROM system.built_views WHERE keyspace_name = '{keyspace}' AND view_name = '{name}'"
    until(lambda: client.query(built)[1], f"{view} is not built", pause=0.05)


def exists(client, view):
    keyspace, name = view.split(".")
    return client.query(f"SELECT view_name FROM system_schema.views WHERE keyspace_name = '{keyspace}' AND view_name = '{name}'")[1]


def times(table, view):
    """When the view's values of simple columns were written."""
    columns = [column for column, _ in table.regulars]
    return [f"SELECT writetime({column}), {column} FROM {view}" for column in columns]


def statements_of(table):
    """Text, and the view that it makes."""
    rng = table.rng
    yield table.create(), None
    writes = [table.changes(number) for number in range(rng.randrange(10, 70))]
    is_conditional = rng.random() < 0.3
    if is_conditional:
        writes.append(table.condition())
    early = rng.randrange(len(table.views) + 1)
    half = rng.randrange(len(writes) + 1)
    yield from ((text, name) for name, text in table.views[:early])
    yield from ((text, None) for text in writes[:half])
    yield from ((text, name) for name, text in table.views[early:])
    yield from ((text, None) for text in writes[half:])
    if rng.random() < 0.1:
        yield f"TRUNCATE {table.name}", None
        yield from ((table.changes(200 + number), None) for number in range(5))
    for name, _ in table.views:
        yield f"SELECT * FROM {name}", None
        # A conditional write has a time of the server.
        yield from ((text, None) for text in times(table, name) if not is_conditional)
        yield f"DESCRIBE MATERIALIZED VIEW {name}", None
        yield f"SELECT base_table_name, include_all_columns, where_clause FROM system_schema.views WHERE keyspace_name = '{KEYSPACE}'", None


def compare(seed, cassandra, halcyon, tables=8):
    rng = random.Random(seed)
    clients = [Client(cassandra), Client(halcyon)]
    for client in clients:
        client.query(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
        client.query(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    different = []
    for number in range(tables):
        table = Viewed(rng, f"{KEYSPACE}.t{number}")
        asked = []
        for text, view in statements_of(table):
            expected, found = (answer(client, text) for client in clients)
            asked.append(text)
            if view:
                for client in clients:
                    if exists(client, view):
                        wait_until_built(client, view)
            if expected != found:
                before = ";\n  ".join(text for text in asked if not text.startswith(("SELECT", "DESCRIBE")))
                different.append(f"{text}\n  {before}\n  C {expected}\n  H {found}")
                break
    for client in clients:
        client.close()
    assert not different, f"seed {seed}: {len(different)} differ\n" + "\n".join(different[:5])


@pytest.fixture(scope="module")
def with_views(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("with_views")
    config = folder / "cassandra.yaml"
    config.write_text(f"storage_compatibility_mode: NONE\nmaterialized_views_enabled: true\n{TIMEOUTS}", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), folder, "--config", config).start()
    yield server
    server.close()


@pytest.mark.seeds(6)
def test_views_are_cassandras(nodes, with_views, seed):
    compare(seed, nodes.get("5.0.9").facts["native_port"], with_views.port)
