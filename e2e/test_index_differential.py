"""
Tables with secondary indexes, Cassandra's own and storage-attached, on Cassandra and on `halcyon serve`, made from a seed: what is
refused and why, rows, their order, the ends of pages. Some indexes are made before the rows, some when half of them are there.
"""

import random

import pytest

from native import Client
from patience import until
from test_select_differential import CONTAINS, KEYSPACE, Table, answer

CLASSES = ["", " USING 'legacy_local_table'", " USING 'sai'"]


class Indexed(Table):
    def __init__(self, rng, name):
        super().__init__(rng, name)
        columns = [column for column, _ in self.key + self.clustering + self.statics + self.regulars]
        if self.collections:
            columns += ["m", "keys(m)", "entries(m)", "l", "e"]
        self.indexed = rng.sample(columns, min(rng.randrange(1, 5), len(columns)))
        self.using = rng.choice(CLASSES)

    def literal(self, kind):
        """Left out are values that Cassandra itself finds now and then, by the path of the read: empty texts in descending clustering
        columns, and of decimals that are equal the one or the other."""
        literal = super().literal(kind)
        return {"''": "'e'", "1.0": "7"}.get(literal, literal)

    def create_index(self, number, column):
        name = f"{self.name.split('.')[1]}_i{number}"
        return name, f"CREATE INDEX {name} ON {self.name} ({column}){self.using}"

    def relation(self):
        """On an indexed column, most of the time."""
        rng = self.rng
        kinds = dict(self.key + self.clustering + self.statics + self.regulars)
        name = rng.choice(self.indexed) if rng.random() < 0.8 else rng.choice(list(kinds))
        if name not in kinds:
            return rng.choice(CONTAINS)
        operator = rng.choice(["=", "=", "=", "=", ">", "<=", "IN"])
        literal = self.literal(kinds[name])
        return f"{name} IN ({literal}, {self.literal(kinds[name])})" if operator == "IN" else f"{name} {operator} {literal}"

    def indexed_select(self):
        rng = self.rng
        relations = [self.relation() for _ in range(rng.choice([1, 1, 1, 2, 2, 3]))]
        if rng.random() < 0.3:
            relations.append(self.partition())
        text = f"SELECT {self.selection()} FROM {self.name} WHERE {' AND '.join(relations)}"
        text += f" PER PARTITION LIMIT {rng.randrange(1, 4)}" if rng.random() < 0.1 else ""
        text += f" LIMIT {rng.randrange(1, 9)}" if rng.random() < 0.2 else ""
        text += " ALLOW FILTERING" if rng.random() < 0.4 else ""
        # Through an index of a static column, 5.0.9 loses rows behind the first page.
        return text, None if "s" in self.indexed else rng.choice([None, None, 1, 2, 3, 7])


def wait_until_built(client, name):
    """Of an index that exists."""
    known = [row for row in client.query(f"SELECT index_name FROM system_schema.indexes WHERE keyspace_name = '{KEYSPACE}'")[1] if row[0] == name.encode()]
    built = f"SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = '{KEYSPACE}'"
    if known:
        until(lambda: (name.encode(),) in [tuple(row) for row in client.query(built)[1]], f"{name} is not built", pause=0.05)


def statements_of(table, selects):
    """Text, page size, and the index that it makes."""
    rng = table.rng
    indexes = [table.create_index(number, column) for number, column in enumerate(table.indexed)]
    writes = [(table.write(1000 + i), None, None) for i in range(rng.randrange(5, 80))]
    half = rng.randrange(len(writes) + 1)
    yield table.create(), None, None
    early = rng.randrange(len(indexes) + 1)
    yield from ((text, None, name) for name, text in indexes[:early])
    yield from writes[:half]
    yield from ((text, None, name) for name, text in indexes[early:])
    yield from writes[half:]
    for _ in range(selects):
        yield (*(table.indexed_select() if rng.random() < 0.8 else table.select()), None)


def compare(seed, cassandra, halcyon, tables=6, selects=60):
    rng = random.Random(seed)
    clients = [Client(cassandra), Client(halcyon)]
    for client in clients:
        client.query(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
        client.query(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    different = []
    for number in range(tables):
        table = Indexed(rng, f"{KEYSPACE}.t{number}")
        for text, page_size, index in statements_of(table, selects):
            expected, found = (answer(client, text, page_size) for client in clients)
            if index:
                for client in clients:
                    wait_until_built(client, index)
            if expected != found:
                indexes = [statement for _, statement in (table.create_index(i, column) for i, column in enumerate(table.indexed))]
                different.append(f"{text} (pages of {page_size})\n  {table.create()}; {'; '.join(indexes)}\n  C {expected}\n  H {found}")
    for client in clients:
        client.close()
    assert not different, f"seed {seed}: {len(different)} differ\n" + "\n".join(different[:20])


@pytest.mark.timeout(600)
@pytest.mark.seeds(6)
def test_answers_are_cassandras(nodes, served, seed):
    compare(seed, nodes.get("5.0.9").facts["native_port"], served.port)


# A column, what is indexed of it, and a value of so many bytes.
LONG = [
    ("t text", "t", lambda size: "'" + "é" * (size // 2) + "x" * (size % 2) + "'"),
    ("t ascii", "t", lambda size: "'" + "a" * size + "'"),
    ("t set<text>", "t", lambda size: "{'a', '" + "b" * size + "'}"),
    ("t list<text>", "t", lambda size: "['a', '" + "b" * size + "']"),
    ("t map<text, text>", "keys(t)", lambda size: "{'" + "b" * size + "': 'a'}"),
    ("t map<text, text>", "values(t)", lambda size: "{'a': '" + "b" * size + "'}"),
    ("t map<text, text>", "entries(t)", lambda size: "{'a': '" + "b" * (size - 7) + "'}"),
    ("t frozen<list<text>>", "full(t)", lambda size: "['" + "b" * (size - 8) + "']"),
    ("t text static", "t", lambda size: "'" + "s" * size + "'"),
]
SIZES = [1024, 1025, 8192, 8193, 20_000]


def test_long_terms_are_taken_as_in_cassandra(nodes, served):
    """Sizes of terms of storage-attached indexes, in all statements that write them, with an analyser, and in columns of keys. Without
    authentication all clients are superusers, for whom the guardrails on these sizes do not hold."""
    clients = [Client(nodes.get("5.0.9").facts["native_port"]), Client(served.port)]
    different = []

    def both(text):
        expected, found = ([*answer(client, text), *client.warnings] for client in clients)
        if expected != found:
            different.append(f"{text[:150]}\n  C {str(expected)[:300]}\n  H {str(found)[:300]}")

    for client in clients:
        client.query(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
        client.query(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    for number, (column, indexed, value) in enumerate(LONG):
        table = f"{KEYSPACE}.l{number}"
        both(f"CREATE TABLE {table} (k int, c int, {column}, v int, PRIMARY KEY (k, c))")
        both(f"CREATE INDEX l{number}_i ON {table} ({indexed}) USING 'sai'")
        for size in SIZES:
            both(f"INSERT INTO {table} (k, c, t) VALUES (1, 1, {value(size)})")
        both(f"UPDATE {table} SET t = {value(8193)} WHERE k = 1{'' if 'static' in column else ' AND c = 1'}")
        rows = [f"INSERT INTO {table} (k, c, t) VALUES (1, {c}, {value(1100)})" for c in range(3)]
        both(f"BEGIN UNLOGGED BATCH {'; '.join(rows)}; APPLY BATCH")
        both(f"BEGIN BATCH {rows[0]}; INSERT INTO {table} (k, c, t) VALUES (1, 9, {value(9000)}); APPLY BATCH")
        both(f"INSERT INTO {table} (k, c, t) VALUES (2, 2, {value(1100)}) IF NOT EXISTS")
        both(f"INSERT INTO {table} (k, c, t) VALUES (3, 2, {value(9000)}) IF NOT EXISTS")
        both(f"SELECT k, c FROM {table}")
    both(f"CREATE TABLE {KEYSPACE}.keys (p1 text, p2 int, c text, v text, PRIMARY KEY ((p1, p2), c))")
    for column in ["p1", "c", "v"]:
        options = " WITH OPTIONS = {'ascii': 'true'}" if column == "v" else ""
        both(f"CREATE INDEX keys_{column} ON {KEYSPACE}.keys ({column}) USING 'sai'{options}")
    for size in SIZES:
        for key, clustering, v in [("p" * size, "c", "v"), ("p", "c" * size, "v"), ("p", "c", "é" * size), ("p", "c", "ﬄ" * (size // 3))]:
            both(f"INSERT INTO {KEYSPACE}.keys (p1, p2, c, v) VALUES ('{key}', 1, '{clustering}', '{v}')")
            both(f"DELETE FROM {KEYSPACE}.keys WHERE p1 = '{key}' AND p2 = 1 AND c = '{clustering}'")
            both(f"DELETE FROM {KEYSPACE}.keys WHERE p1 = '{key}' AND p2 = 1")
    for client in clients:
        client.close()
    assert not different, f"{len(different)} differ\n" + "\n".join(different[:20])
