"""A ring of Cassandras on addresses of the loopback, some with the jar of plugin/cassandra/; and a model of what clients wrote."""

import os
import signal

from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

import plugin
from oracle import opened
from patience import until
from plugin import Node

FORM = "stock"
HEAP = "384m"
# The snitch has a node read its own data at ONE, and nothing moves reads elsewhere.
SETTINGS = ["endpoint_snitch: RackInferringSnitch", "dynamic_snitch: false", "disk_failure_policy: stop_paranoid"]
TOKENS, NODES = 4, 4


def tokens(number):
    """A node's, in turn with those of the others. With tokens by chance, now and then a node has hardly a range of its own."""
    places = range(number - 1, TOKENS * NODES, NODES)
    between = ", ".join(str(-(2**63) + (place + 1) * (2**64 // (TOKENS * NODES + 1))) for place in places)
    return [f"num_tokens: {TOKENS}", f"initial_token: '{between}'"]


class Ring:
    """Nodes by number: 2 listens on 127.0.0.2. The first is everyone's seed, and lives as long as the ring."""

    def __init__(self, options, folder):
        self._options = options
        self._folder = folder
        self._facts = {}
        self._clusters = {}
        self.nodes = {}

    def _place(self, number):
        return self._folder / str(number)

    def start(self, number, with_jar, release=opened.RELEASE):
        """A node that was there before keeps its ports and its data."""
        more = ["--address", f"127.0.0.{number}", "--heap", HEAP]
        if number in self._facts:
            more += ["--port", str(self._facts[number]["native_port"])]
        if number != 1:
            more += ["--seed", f"127.0.0.1:{self._facts[1]['storage_port']}"]
        jvm = plugin.jvm(self._options) if with_jar else "-ea"
        facts = opened.start(self._options, self._place(number), FORM, *SETTINGS, *tokens(number), jvm=jvm, more=more, release=release)
        self._facts[number] = facts
        self._clusters[number] = opened.cluster(facts)
        node = self.nodes[number] = Node(self._options, self._clusters[number].connect(), facts, release)
        if with_jar:
            until(node.is_ready, "the plug-in has not started")
        return node

    def nodetool(self, number, *arguments):
        return opened.nodetool(self._options, self._facts[number], *arguments)

    def _forget(self, number):
        self.nodes.pop(number).close()
        self._clusters.pop(number).shutdown()

    def kill(self, number):
        os.kill(self._facts[number]["pid"], signal.SIGKILL)
        self._forget(number)

    def stop(self, number):
        self._forget(number)
        opened.stop(self._options, self._place(number))

    def close(self):
        for number in list(self.nodes):
            self.stop(number)

    def storage(self, number):
        """The folder of a node's data, and the configuration that tools need."""
        return self._facts[number]["storage_dir"], self._facts[number]["config"]

    def all_see(self, numbers):
        """Each of the nodes sees exactly these, alive, with one schema."""
        for number in numbers:
            until(lambda: self.seen_by(number) == {f"127.0.0.{other}" for other in numbers}, f"{number} sees {self.seen_by(number)}")
            until(lambda: self._schemas(number) == 1, f"{number} does not see one schema")

    def seen_by(self, number):
        shown = self.nodes[number].jmx.get("org.apache.cassandra.db:type=StorageService", "LiveNodes")
        return set(shown.strip("[]").split(", "))

    def _schemas(self, number):
        session = self.nodes[number].session
        return len({row.schema_version for table in ("local", "peers_v2") for row in session.execute(f"SELECT schema_version FROM system.{table}")})


class Model:
    """What a table `(k int, c int, s text static, v text, l list<int>, m map<int, int>, PRIMARY KEY (k, c))` holds."""

    def __init__(self, table):
        self.table = table
        self._statics = {}
        self._rows = {}

    def write(self, session, chance, consistency=ConsistencyLevel.QUORUM):
        """One random statement, to the ring and to the model."""
        k, c, n = chance.randrange(40), chance.randrange(12), chance.randrange(1000)
        action = chance.choice([self._insert, self._insert, self._brief, self._entry, self._append, self._unmap, self._delete_row,
                                self._delete_range, self._delete_partition])  # fmt: skip
        session.execute(SimpleStatement(action(k, c, n), consistency_level=consistency))

    def _row(self, k, c):
        return self._rows.setdefault((k, c), {"live": False, "v": None, "l": [], "m": {}})

    def _insert(self, k, c, n):
        self._statics[k] = f"s{n}"
        self._row(k, c).update(live=True, v=f"v{n}", l=[n])
        lives = ("", " USING TTL 1000000")[n % 2]
        return f"INSERT INTO {self.table} (k, c, s, v, l) VALUES ({k}, {c}, 's{n}', 'v{n}', [{n}]){lives}"

    def _brief(self, k, c, n):
        """Has expired when anybody looks."""
        self._row(k, c).update(live=False, v=None)
        return f"INSERT INTO {self.table} (k, c, v) VALUES ({k}, {c}, 'v{n}') USING TTL 1"

    def _entry(self, k, c, n):
        self._row(k, c)["m"][n % 5] = n
        return f"UPDATE {self.table} SET m[{n % 5}] = {n} WHERE k = {k} AND c = {c}"

    def _append(self, k, c, n):
        self._row(k, c)["l"].append(n)
        return f"UPDATE {self.table} SET l = l + [{n}] WHERE k = {k} AND c = {c}"

    def _unmap(self, k, c, _):
        self._row(k, c)["m"] = {}
        return f"DELETE m FROM {self.table} WHERE k = {k} AND c = {c}"

    def _delete_row(self, k, c, _):
        self._rows.pop((k, c), None)
        return f"DELETE FROM {self.table} WHERE k = {k} AND c = {c}"

    def _delete_range(self, k, c, _):
        for other in range(c + 1, c + 5):
            self._rows.pop((k, other), None)
        return f"DELETE FROM {self.table} WHERE k = {k} AND c > {c} AND c <= {c + 4}"

    def _delete_partition(self, k, *_):
        self._statics.pop(k, None)
        for c in range(12):
            self._rows.pop((k, c), None)
        return f"DELETE FROM {self.table} WHERE k = {k}"

    def rows(self):
        shown = []
        for (k, c), row in self._rows.items():
            if row["live"] or row["v"] or row["l"] or row["m"]:
                shown.append((k, c, self._statics.get(k), row["v"], row["l"] or None, row["m"] or None))
        with_rows = {row[0] for row in shown}
        shown += [(k, None, s, None, None, None) for k, s in self._statics.items() if k not in with_rows]
        return sorted(shown, key=repr)

    def read(self, session, consistency):
        found = session.execute(SimpleStatement(f"SELECT k, c, s, v, l, m FROM {self.table}", consistency_level=consistency))
        return sorted(((k, c, s, v, l, dict(m) if m else None) for k, c, s, v, l, m in found), key=repr)
