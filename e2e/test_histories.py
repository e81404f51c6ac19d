"""
Random histories: what Halcyon makes of SSTables inside of a real Cassandra is what Cassandra's own task makes of them, cell for cell.

1. A table of random columns, order, strategy and options gets random writes and deletions, in some SSTables and a memtable.
2. Copies of the SSTables are imported into a table of the same schema, which gets the same memtable.
3. The same of them are compacted: here by Halcyon, there by Cassandra. What is left out, and the memtables, keep tombstones alive.
4. sstabledump says the same of all outputs, and both tables answer the same.

Histories go in batches: what is deleted in the second of a compaction is not purged by it, so all of a batch wait for that once.
`--histories N`, `--seed S`; `cargo x soak histories`.
"""

import json
import random
import time

import pytest

import plugin
from cases import assert_same
from plugin import KEYSPACE, MBEAN, STRATEGIES

BATCH = 10
COMPRESSIONS = ["{'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}", "{'class': 'ZstdCompressor'}", "{'enabled': 'false'}"]
REGULARS = {"v": "text", "x": "bigint", "l": "list<int>", "m": "map<text, int>", "e": "set<int>", "u": "frozen<pair>", "n": "pair"}


class History:
    def __init__(self, seed):
        self.chance = chance = random.Random(seed)
        self.seed = seed
        self.table = f"h{seed}"
        self.stock = f"{self.table}_stock"
        self.counts = chance.random() < 0.1
        self.clustering = [("c", "int"), ("d", "text")][: chance.randrange(3)]
        self.has_static = bool(self.clustering) and not self.counts and chance.random() < 0.7
        names = chance.sample(sorted(REGULARS), chance.randrange(1, len(REGULARS) + 1))
        self.columns = {"n": "counter"} if self.counts else {name: REGULARS[name] for name in names}
        self.sstables = chance.randrange(2, 5)
        # Mostly some are left out, and are in the way.
        self.compacted = self.sstables if chance.random() < 0.3 else chance.randrange(1, self.sstables)
        self.in_memtable = chance.choice([0, 0, 3, 12])

    def __repr__(self):
        return f"--seed {self.seed} --histories 1: {self.create(self.table)}; {self.compacted} of {self.sstables}, {self.in_memtable}"

    def create(self, table):
        chance = random.Random(self.seed)
        columns = [f"{name} {kind}" for name, kind in [("k", "int"), *self.clustering, *self.columns.items()]]
        if self.has_static:
            columns.append("s text static")
        key = ", ".join(["k", *(name for name, _ in self.clustering)])
        options = [
            f"gc_grace_seconds = {chance.choice([0, 0, 0, 1000000])}",
            f"compression = {chance.choice(COMPRESSIONS)}",
            f"compaction = {self._strategy(chance)}",
            f"bloom_filter_fp_chance = {chance.choice([0.01, 0.5, 1.0])}",
        ]
        if self.clustering:
            orders = ", ".join(f"{name} {chance.choice(['ASC', 'DESC'])}" for name, _ in self.clustering)
            options.append(f"CLUSTERING ORDER BY ({orders})")
        return f"CREATE TABLE {table} ({', '.join(columns)}, PRIMARY KEY ({key})) WITH {' AND '.join(options)}"

    def _strategy(self, chance):
        strategy = chance.choice(list(STRATEGIES.values()))
        # Not for what nothing repairs: it would keep all.
        return strategy[:-1] + ", 'only_purge_repaired_tombstones': 'true'}" if chance.random() < 0.1 else strategy

    def statements(self, table, count, first, last):
        return [self._statement(table, self.chance.randint(first, last)) for _ in range(count)]

    def _where(self, depth):
        chosen = [f"k = {self.chance.randrange(25)}"]
        for name, _ in self.clustering[:depth]:
            chosen.append(f"{name} = {self._key(name)}")
        return " AND ".join(chosen)

    def _key(self, name):
        return self.chance.randrange(8) if name == "c" else f"'d{self.chance.randrange(4)}'"

    def _value(self, name):
        n = self.chance.randrange(1000)
        return {
            "v": f"'{'v' * (n % 40)}{n}'", "x": str(n), "l": f"[{n}, {n + 1}]", "m": f"{{'{n % 7}': {n}}}", "e": f"{{{n % 7}, {n % 9}}}",
            "u": f"{{a: {n}, b: 'u'}}", "n": f"{{a: {n}}}",
        }[name]  # fmt: skip

    def _statement(self, table, at):
        chance, whole = self.chance, len(self.clustering)
        if self.counts:
            if chance.random() < 0.1:
                return f"DELETE FROM {table} WHERE {self._where(whole)}"
            return f"UPDATE {table} SET n = n + {chance.randrange(1, 9)} WHERE {self._where(whole)}"
        at = f"USING TIMESTAMP {at}"
        choices = [self._insert, self._insert, self._insert, self._update, self._part]
        if whole:
            choices.append(self._range)
        kind = chance.choice([*choices, None, "static"])
        if kind == "static" and self.has_static:
            value = chance.choice(["null", f"'s{chance.randrange(99)}'"])
            return f"UPDATE {table} {at} SET s = {value} WHERE k = {chance.randrange(25)}"
        if kind is None or kind == "static":
            return f"DELETE FROM {table} {at} WHERE {self._where(chance.randrange(whole + 1))}"
        return kind(table, at)

    def _insert(self, table, at):
        lives = self.chance.choice(["", "", "", " AND TTL 1", " AND TTL 1000000"])
        names = self.chance.sample(sorted(self.columns), self.chance.randrange(len(self.columns) + 1))
        keys = {"k": self.chance.randrange(25), **{name: self._key(name) for name, _ in self.clustering}}
        values = {**keys, **{name: self._value(name) for name in names}}
        return f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(map(str, values.values()))}) {at}{lives}"

    def _update(self, table, at):
        name = self.chance.choice(sorted(self.columns))
        value = self._value(name)
        if name in "lme" and self.chance.random() < 0.7:
            value = f"{name} + {value}"
        lives = self.chance.choice(["", "", " AND TTL 1"])
        return f"UPDATE {table} {at}{lives} SET {name} = {value} WHERE {self._where(len(self.clustering))}"

    def _part(self, table, at):
        """A cell, a whole collection, or an item of one."""
        name = self.chance.choice(sorted(self.columns))
        part = {"m": f"m['{self.chance.randrange(7)}']", "e": f"e[{self.chance.randrange(9)}]", "n": "n.a"}
        what = self.chance.choice([name, part.get(name, name)])
        return f"DELETE {what} FROM {table} {at} WHERE {self._where(len(self.clustering))}"

    def _range(self, table, at):
        depth = self.chance.randrange(len(self.clustering))
        name = self.clustering[depth][0]
        bounds = self.chance.choice([(">", "<="), (">=", None), (None, "<"), (">=", "<=")])
        limits = [f"{name} {bound} {self._key(name)}" for bound in bounds if bound]
        return f"DELETE FROM {table} {at} WHERE {' AND '.join([self._where(depth), *limits])}"


def prepare(node, history, scratch):
    for table in (history.table, history.stock):
        node.execute(history.create(table))
        node.jmx.disable_autocompaction(KEYSPACE, table)
    for number in range(history.sstables):
        for statement in history.statements(history.table, 40, 1000 * number, 1000 * number + 2500):
            node.execute(statement)
        node.jmx.flush(KEYSPACE, history.table)
    node.copy(history.table, scratch / KEYSPACE / history.stock)
    # Counters are added to, so the same again is not the same: their memtables stay empty.
    if not history.counts:
        for statement in history.statements(history.table, history.in_memtable, 0, 8000):
            node.execute(statement)
            node.execute(statement.replace(history.table, history.stock, 1))


def chosen(node, history, table):
    """The same in both tables: an import gives files other names, and leaves what is in them."""
    by_content = sorted(node.data_files(table), key=lambda file: file.read_bytes())
    return random.Random(history.seed).sample(by_content, min(history.compacted, len(by_content)))


def compact(node, history, table):
    """Answers which files were not compacted."""
    files = chosen(node, history, table)
    kept = set(node.data_files(table)) - set(files)
    node.jmx.compact_files(files)
    return kept


def outputs(node, table, kept, scratch):
    found = node.dumps(table, scratch, [file for file in node.live(table) if file not in kept])
    return sorted(found, key=str)


def compare(node, history, kept, kept_by_stock, scratch):
    """Answers how many deletions the outputs have."""
    ours = outputs(node, history.table, kept, scratch)
    theirs = outputs(node, history.stock, kept_by_stock, scratch)
    assert len(ours) == len(theirs), history
    for one, other in zip(ours, theirs):
        assert_same(one, other)
    rows, rows_of_stock = ([row[0] for row in node.execute(f"SELECT JSON * FROM {table}")] for table in (history.table, history.stock))
    assert rows == rows_of_stock, history
    return json.dumps(ours).count("deletion_info")


def batch(node, histories, scratch):
    """Answers how many Halcyon did, and the deletions in each history's outputs."""
    for history in histories:
        prepare(node, history, scratch)
    time.sleep(3)
    completed = node.completed()
    kept = [compact(node, history, history.table) for history in histories]
    done = node.completed() - completed
    node.jmx.set(MBEAN, "Enabled", "false")
    for history in histories:
        node.jmx.import_sstables(KEYSPACE, history.stock, scratch / KEYSPACE / history.stock)
    kept_by_stock = [compact(node, history, history.stock) for history in histories]
    node.jmx.set(MBEAN, "Enabled", "true")
    deletions = []
    for history, *others in zip(histories, kept, kept_by_stock):
        try:
            deletions.append(compare(node, history, *others, scratch))
        except AssertionError as error:
            raise AssertionError(f"{history}: {error}") from error
    for history in histories:
        for table in (history.table, history.stock):
            node.execute(f"DROP TABLE {table}")
    return done, deletions


@pytest.mark.rotates
@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", ["stock", "da"])
def test_histories(cassandra_options, tmp_path, form):
    """Each format has half of them."""
    first = cassandra_options.seed if cassandra_options.seed is not None else random.SystemRandom().randrange(1 << 30)
    count = max(1, cassandra_options.histories // 2)
    print(f"--seed {first}")
    done, deletions = 0, []
    with plugin.cassandra(cassandra_options, tmp_path / "node", form) as node:
        node.create_keyspace()
        node.execute("CREATE TYPE pair (a int, b text)")
        for begin in range(first, first + count, BATCH):
            some = [History(seed) for seed in range(begin, min(begin + BATCH, first + count))]
            of_batch, found = batch(node, some, tmp_path / str(begin))
            done += of_batch
            deletions += found
        assert int(node.get("Failed")) == 0, node.get("Failures")
        # What has only expired inputs has nothing to merge.
        assert done >= count * 0.8, (done, node.get("Reasons"))
    # That both decide alike is compared above. That both decisions come up is a matter of chance, and of how many there are.
    if count >= BATCH:
        assert any(deletions), "no tombstone was kept"
    if count >= 10 * BATCH:
        assert 0 in deletions, "nowhere were all tombstones purged"
