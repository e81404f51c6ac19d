"""
Tables with SASI indexes on Cassandra and on `halcyon serve`, made from a seed: what is refused and why, rows, their order, the ends of pages.

What is left out is what Cassandra answers by faults of its own (docs/use/cql.md): patterns of several words where a row was overwritten or a
partition has several rows, restrictions beside those of SASI that it does not look at (IN, parts of the partition key, ranges of texts),
beginnings of texts where CONTAINS has an SSTable, SPARSE with one, empty texts, partitions that have only static columns, languages,
several indexes on one column.
"""

import random

import pytest

from native import UNSET, Client, Refused
from server import flush_statement
from test_index_differential import wait_until_built
from test_select_differential import KEYSPACE, answer

CLASS = "org.apache.cassandra.index.sasi.SASIIndex"
ANALYZERS = "org.apache.cassandra.index.sasi.analyzer."
# Of several words for some analyzer.
SEVERAL = ["1,5", "a-b", "日本"]
WORDS = ["a", "ab", "Ab", "abc", "ABC", "bca", "cab", "abba", "é", "É", "x_y", "can't"]
MODES = [{}, {"mode": "PREFIX"}, {"mode": "CONTAINS"}, {"mode": "contains"}]
TEXTS = [
    {},
    {"analyzed": "true"},
    {"analyzed": "false"},
    {"analyzer_class": "NoOpAnalyzer"},
    {"analyzer_class": "NonTokenizingAnalyzer"},
    {"analyzer_class": "NonTokenizingAnalyzer", "case_sensitive": "false"},
    {"analyzer_class": "NonTokenizingAnalyzer", "normalize_uppercase": "true"},
    {"analyzer_class": "NonTokenizingAnalyzer", "case_sensitive": "false", "analyzed": "false"},
    {"analyzer_class": "StandardAnalyzer"},
    {"analyzer_class": "StandardAnalyzer", "tokenization_normalize_lowercase": "true"},
    {"analyzer_class": "StandardAnalyzer", "tokenization_normalize_uppercase": "true", "tokenization_enable_stemming": "true"},
    {"analyzer_class": "DelimiterAnalyzer"},
    {"analyzer_class": "DelimiterAnalyzer", "delimiter": " "},
    {"is_literal": "false"},
    {"is_literal": "true"},
]
NUMBERS = [{}, {"mode": "SPARSE"}, {"mode": "CONTAINS"}, {"is_literal": "false"}, {"analyzed": "true"}]
# Some of each are refused.
REFUSED = [
    {"mode": "foo"}, {"mode": "SPARSE"}, {"analyzer_class": "Nope"}, {"analyzer_class": "AbstractAnalyzer"},
    {"max_compaction_flush_memory_in_mb": "much"}, {"max_compaction_flush_memory_in_mb": "7"}, {"nope": "nope"},
    {"analyzer_class": "NonTokenizingAnalyzer", "case_sensitive": "true", "normalize_lowercase": "true"},
]


class Table:
    """`is_quiet`: partitions of one row, which is written once."""

    def __init__(self, rng, name):
        self.rng, self.name = rng, name
        self.is_quiet = rng.random() < 0.4
        self.texts = ["v", "a"] + ([] if self.is_quiet else ["c", "d", "s"])
        self.numbers = ["n", "i"]
        self.is_flushed = rng.random() < 0.5
        self.written = 0
        self.indexes = []
        for column in rng.sample(self.texts + self.numbers, rng.randrange(1, 4)):
            self.indexes.append((column, self.options(column)))

    def options(self, column):
        rng = self.rng
        if rng.random() < 0.15:
            chosen = dict(rng.choice(REFUSED))
        elif column in self.numbers:
            chosen = dict(rng.choice(NUMBERS[:1] + NUMBERS[2:] if self.is_flushed else NUMBERS))
        else:
            chosen = {**rng.choice(TEXTS), **rng.choice(MODES)}
        if "analyzer_class" in chosen:
            chosen["analyzer_class"] = ANALYZERS + chosen["analyzer_class"]
        return chosen

    def create(self):
        columns = "k int, v text, a ascii, n int, i timestamp"
        if self.is_quiet:
            return f"CREATE TABLE {self.name} ({columns}, PRIMARY KEY (k))"
        columns += ", c text, d text, s text static"
        return f"CREATE TABLE {self.name} ({columns}, PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY (c ASC, d DESC)"

    def create_index(self, number):
        column, options = self.indexes[number]
        name = f"{self.name.split('.')[1]}_i{number}"
        with_options = f" WITH OPTIONS = {options}" if options else ""
        return name, f"CREATE CUSTOM INDEX {name} ON {self.name} ({column}) USING '{CLASS}'{with_options}"

    def literal(self, column):
        rng = self.rng
        if column in self.numbers:
            return str(rng.randrange(-2, 4))
        words = [rng.choice(WORDS + SEVERAL) for _ in range(rng.choice([1, 1, 2, 3]))]
        text = rng.choice([" ", ",", ", "]).join(words)
        text = text.encode("ascii", "ignore").decode() or "z" if column == "a" else text
        return "'" + text.replace("'", "''") + "'"

    def key(self):
        key = [f"k = {self.rng.randrange(8)}"]
        return key if self.is_quiet else key + [f"c = {self.literal('c')}", f"d = {self.literal('d')}"]

    def write(self):
        rng = self.rng
        self.written += 1
        chance = rng.random()
        if not self.is_quiet and chance < 0.1:
            return f"DELETE {rng.choice(['', 'v', 'n'])} FROM {self.name} WHERE {' AND '.join(self.key())}"
        values = {"k": str(self.written if self.is_quiet else rng.randrange(8))}
        for column in self.texts + self.numbers:
            if column in "cd" or rng.random() < 0.8:
                values[column] = self.literal(column)
        return f"INSERT INTO {self.name} ({', '.join(values)}) VALUES ({', '.join(values.values())})"

    def pattern(self, column):
        rng = self.rng
        word = rng.choice(WORDS if column != "a" else ["a", "Ab", "abba", "cab"])
        if self.is_quiet and rng.random() < 0.3 and column != "a":
            word = " ".join(rng.choice(WORDS + SEVERAL) for _ in range(rng.choice([1, 2])))
        start = rng.randrange(len(word))
        word = rng.choice([word, word[start:], word[: start + 1]])
        is_contains = any(of == column and options.get("mode", "").upper() == "CONTAINS" for of, options in self.indexes)
        text = rng.choice(["%{}", "%{}%", "{}"] + ([] if is_contains and self.is_flushed else ["{}%", "{}%"])).format(word)
        return "'" + rng.choice([text] * 30 + ["", "%", "%%"]).replace("'", "''") + "'"

    def relation(self, column):
        rng = self.rng
        if column in self.numbers:
            return f"{column} {rng.choice(['=', '=', '>', '<=', '>=', '<'])} {self.literal(column)}"
        if rng.random() < 0.25:
            return f"{column} = {self.literal(column)}"
        return f"{column} LIKE {self.pattern(column)}"

    def select(self):
        rng = self.rng
        indexed = [column for column, _ in self.indexes]
        columns = {rng.choice(indexed if rng.random() < 0.9 else self.texts + self.numbers) for _ in range(rng.choice([1, 1, 1, 2, 3]))}
        # Of several refusals, Cassandra's first is not that of the static column.
        columns = columns - {"s"} if len(columns) > 1 else columns
        relations = [self.relation(column) for column in sorted(columns)]
        if rng.random() < 0.15:
            relations.append(rng.choice([f"k = {rng.randrange(8)}", "token(k) > 0"]))
        if rng.random() < 0.05:
            relations = ["v > 'b'"]
        selection = rng.choice(["*", "*", "k, v", "count(*)", "k, n"])
        text = f"SELECT {selection} FROM {self.name} WHERE {' AND '.join(relations)}"
        text += f" PER PARTITION LIMIT {rng.randrange(1, 4)}" if rng.random() < 0.1 else ""
        text += f" LIMIT {rng.randrange(1, 9)}" if rng.random() < 0.2 else ""
        text += " ALLOW FILTERING" if rng.random() < 0.5 else ""
        return text, rng.choice([None, None, 1, 2, 3, 7])


def compare(seed, cassandra, halcyon, flush, tables=6, selects=60):
    """`flush` flushes a table of Cassandra."""
    rng = random.Random(seed)
    clients = [Client(cassandra), Client(halcyon)]
    for client in clients:
        client.query(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
        client.query(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    different, asked = [], 0

    def both(table, text, page_size=None):
        nonlocal asked
        asked += 1
        expected, found = (answer(client, text, page_size) for client in clients)
        if expected != found:
            indexes = "; ".join(table.create_index(i)[1] for i in range(len(table.indexes)))
            different.append(f"{text} (pages of {page_size})\n  {table.create()}; {indexes}\n  C {expected}\n  H {found}")

    for number in range(tables):
        table = Table(rng, f"{KEYSPACE}.t{number}")
        both(table, table.create())
        # To make an index of rows, Cassandra flushes them.
        early = rng.randrange(len(table.indexes) + 1) if table.is_flushed else len(table.indexes)
        writes = rng.randrange(5, 80)
        for part, indexes in enumerate([range(early), range(early, len(table.indexes))]):
            for i in indexes:
                name, text = table.create_index(i)
                both(table, text)
                for client in clients:
                    wait_until_built(client, name)
            for _ in range(writes):
                both(table, table.write())
            if part == 0 and table.is_flushed:
                flush(f"t{number}")
                clients[1].query(flush_statement(KEYSPACE, f"t{number}"))
        for _ in range(selects):
            both(table, *table.select())
    for client in clients:
        client.close()
    assert not different, f"seed {seed}: {len(different)} of {asked} differ\n" + "\n".join(different[:20])
    return asked


@pytest.mark.seeds(6)
def test_answers_are_cassandras(nodes, served, seed):
    node = nodes.get("5.0.9")
    compare(seed, node.facts["native_port"], served.port, lambda table: node.jmx.flush(KEYSPACE, table))


# Patterns with what is not UTF-8, wildcards within, and without anything else.
BOUND = [b"ab%", b"%b", b"%b%", b"ab", b"", b"%", b"%%", b"%%%", b"a%b", b"\xff%", b"%\xc3%", "É%".encode(), b"\x00%", UNSET]


def bound(client, column, pattern):
    try:
        return sorted(client.query(f"SELECT k FROM {KEYSPACE}.b WHERE {column} LIKE ?", values=(pattern,))[1])
    except Refused as refused:
        return str(refused)


def compare_bound(cassandra, halcyon):
    clients = [Client(cassandra), Client(halcyon)]
    for client in clients:
        client.query(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
        client.query(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
        client.query(f"CREATE TABLE {KEYSPACE}.b (k int PRIMARY KEY, v text, w blob)")
        for column, options in [("v", "'mode': 'CONTAINS'"), ("w", "'mode': 'CONTAINS', 'is_literal': 'true'")]:
            client.query(f"CREATE CUSTOM INDEX {column}i ON {KEYSPACE}.b ({column}) USING '{CLASS}' WITH OPTIONS = {{{options}}}")
            wait_until_built(client, f"{column}i")
        for key, text in enumerate(["ab", "a%b", "aab", "É", "b", "%", "abc\0", "\0ab"]):
            client.query(f"INSERT INTO {KEYSPACE}.b (k, v, w) VALUES ({key}, '{text}', 0x{text.encode('latin-1').hex()})")
    different = []
    for column in "vw":
        for pattern in BOUND:
            expected, found = (bound(client, column, pattern) for client in clients)
            if expected != found:
                different.append(f"{column} LIKE {pattern}\n  C {expected}\n  H {found}")
    assert not different, "\n".join(different)


@pytest.mark.parametrize("release", ["5.0.9"])
def test_bound_patterns_are_cassandras(nodes, served, release):
    compare_bound(nodes.get(release).facts["native_port"], served.port)
