"""CREATE TABLE with several faults, made from a seed: Cassandra and Halcyon refuse it for the same one. Types of columns with faults, too."""

import random

import pytest

from native import Client, Refused
from record_sessions import told

KEYSPACE = "faults"
REPLICATION = "replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
SCHEMA = [
    f"CREATE KEYSPACE {KEYSPACE} WITH {REPLICATION}",
    f"CREATE TYPE {KEYSPACE}.flat (a int, b text)",
    f"CREATE TYPE {KEYSPACE}.deep (a int, b list<int>)",
    f"CREATE TABLE {KEYSPACE}.there (k int PRIMARY KEY)",
]
STATEMENTS_OF_A_SEED = 150
NAMES = ["a", "b", "c", "d", "e", "ff", "gg", "hh", "column_i", "zz"]
SOUND = ["int", "text", "frozen<list<int>>", "frozen<flat>", "uuid", "vector<float, 2>"]
FAULTY = [
    "nope", "list<nope>", "frozen<nope>", "frozen<list<nope>>", "map<int, nope>", "tuple<nope, int>", "counter", "duration", "list<int>", "flat", "deep",
    "list<counter>", "set<duration>", "map<duration, int>", "list<list<int>>", "frozen<deep>", "other.flat", "map<nope, counter>", "vector<nope, 2>",
    "map<int, frozen<map<counter, nope>>>", "tuple<int, counter>", "list<flat>", "map<list<int>, list<int>>", "set<nope>",
]  # fmt: skip
OPTIONS = ["comment = 'x'", "gc_grace_seconds = 5"]
FAULTY_OPTIONS = [
    "default_time_to_live = 5", "default_time_to_live = -1", "nope = 1", "gc_grace_seconds = 'x'", "compression = {'class': 'Nope'}",
    "bloom_filter_fp_chance = 2", "id = 'x'", "compaction = {'class': 'Nope'}", "caching = {'keys': 'nope'}", "min_index_interval = 0", "COMPACT STORAGE",
    "compaction = {'class': 'SizeTieredCompactionStrategy', 'nope': 1}", "speculative_retry = 'x'", "memtable = 'nope'",
]  # fmt: skip
TABLES = [f"{KEYSPACE}.t"] * 12 + [f"{KEYSPACE}.there", "nowhere.t", "system.t", "system_views.t", f'{KEYSPACE}."a-b"', f"{KEYSPACE}.{'x' * 230}", "t", "system_auth.t"]


def create_table(rng):
    names = rng.sample(NAMES, rng.randint(1, 6))
    count = rng.randint(1, len(names))
    key, clustering = names[: rng.randint(1, count)], names[count:][: rng.randint(0, 3)]
    if rng.random() < 0.12:
        (key if rng.random() < 0.5 else clustering).append(rng.choice(["zzz", *names]))
    columns = []
    for name in names:
        of = rng.choice(FAULTY if rng.random() < 0.2 else SOUND)
        mask = rng.choice(["", "", "", " MASKED WITH nope()", " MASKED WITH DEFAULT"]) if rng.random() < 0.15 else ""
        columns.append(f"{name} {of}{' static' if rng.random() < 0.12 else ''}{mask}")
    if rng.random() < 0.08:
        columns.append(f"{rng.choice(names)} int")
    primary = f"PRIMARY KEY (({', '.join(key)}){''.join(', ' + name for name in clustering)})"
    if rng.random() < 0.94:
        columns.insert(rng.randint(0, len(columns)), primary)
    if rng.random() < 0.06:
        place = rng.randrange(len(columns))
        columns[place] += "" if columns[place].startswith("PRIMARY") else " PRIMARY KEY"
    options = [rng.choice(FAULTY_OPTIONS if rng.random() < 0.5 else OPTIONS) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
    # An option that is stated twice is refused while the text is read, as columns are.
    if rng.random() < 0.9:
        options = list({option.split(" = ")[0]: option for option in options}.values())
    if rng.random() < 0.3:
        ordered = list(clustering)
        if rng.random() < 0.4:
            rng.shuffle(ordered)
        ordered = ordered[rng.randint(0, 1) if rng.random() < 0.3 else 0 :]
        if rng.random() < 0.3:
            ordered.append(rng.choice([*names, "zzz"]))
        if ordered:
            options.insert(rng.randint(0, len(options)), "CLUSTERING ORDER BY (" + ", ".join(f"{name} {rng.choice(['ASC', 'DESC'])}" for name in ordered) + ")")
    if rng.random() < 0.04:
        columns.insert(rng.randint(0, len(columns)), rng.choice(["a", "b int int", "PRIMARY KEY", "c list<"]))
    text = f"CREATE TABLE {rng.choice(['', '', '', 'IF NOT EXISTS '])}{rng.choice(TABLES)} ({', '.join(columns)})"
    return text + (f" WITH {' AND '.join(options)}" if options else "")


def alter_table(rng):
    of = rng.choice(FAULTY)
    return f"ALTER TABLE {KEYSPACE}.there ADD {rng.choice(['k', 'n'])} {of}{rng.choice(['', ' static'])}"


def alter_type(rng):
    names = ["a", "b", "c", "z"]
    renames = " AND ".join(f"{rng.choice(names)} TO {rng.choice(names)}" for _ in range(rng.randint(1, 3)))
    return f"ALTER TYPE {KEYSPACE}.flat RENAME {rng.choice(['', 'IF EXISTS '])}{renames}"


@pytest.fixture(scope="module")
def clients(nodes, served):
    made = [Client(nodes.get("5.0.9").facts["native_port"]), Client(served.port)]
    for client in made:
        client.query(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
        for text in SCHEMA:
            client.query(text)
    yield made
    for client in made:
        client.query(f"DROP KEYSPACE {KEYSPACE}")
        client.close()


@pytest.mark.timeout(120)
@pytest.mark.seeds(3)
def test_the_first_of_several_faults(clients, seed):
    rng = random.Random(seed)
    different = []
    for _ in range(STATEMENTS_OF_A_SEED):
        text = rng.choice([create_table] * 8 + [alter_table, alter_type])(rng)
        cassandra, halcyon = (told(client, text) for client in clients)
        if cassandra != halcyon and not _is_syntax(cassandra, halcyon):
            different.append(f"{text}\n  C {cassandra}\n  H {halcyon}")
        for client in clients:
            try:
                client.query(f"DROP TABLE IF EXISTS {KEYSPACE}.t")
            except Refused:
                pass
    assert not different, "\n".join(different)


def _is_syntax(cassandra, halcyon):
    """Words of a generated parser, which reads further after a fault and may find what is declared twice."""
    return halcyon.startswith("! 2000 line") and cassandra.startswith(("! 2000 line", "! 2200 Duplicate column", "! 2200 Multiple PRIMARY KEY"))
