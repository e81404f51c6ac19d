"""Histories in which the same cells meet again and again, at equal and at different timestamps."""

import random

from ..table import Table, rounds


def tables():
    yield _equal_timestamps()
    yield _timestamps()
    yield _random_history("asc", 11)
    yield _random_history("desc", 12)
    yield _overlapping_partitions()


def _equal_timestamps():
    """Each partition is one duel, fought at timestamp 1000 in two SSTables, and again in the other order."""
    sides = {
        "value": "UPDATE $t USING TIMESTAMP 1000 SET v = {n}, w = 'w{n}' WHERE k = {k} AND c = 1",
        "insert": "INSERT INTO $t (k, c, v, w) VALUES ({k}, 1, {n}, 'i{n}') USING TIMESTAMP 1000",
        "ttl": "INSERT INTO $t (k, c, v, w) VALUES ({k}, 1, {n}, 't{n}') USING TIMESTAMP 1000 AND TTL 315360000",
        "longer ttl": "UPDATE $t USING TIMESTAMP 1000 AND TTL 315369999 SET v = {n} WHERE k = {k} AND c = 1",
        "cell deletion": "DELETE v FROM $t USING TIMESTAMP 1000 WHERE k = {k} AND c = 1",
        "row deletion": "DELETE FROM $t USING TIMESTAMP 1000 WHERE k = {k} AND c = 1",
        "range deletion": "DELETE FROM $t USING TIMESTAMP 1000 WHERE k = {k} AND c >= 0 AND c < 5",
        "partition deletion": "DELETE FROM $t USING TIMESTAMP 1000 WHERE k = {k}",
        "collection": "UPDATE $t USING TIMESTAMP 1000 SET m = {{1: {n}, {n}: 0}} WHERE k = {k} AND c = 1",
        "element": "UPDATE $t USING TIMESTAMP 1000 SET m[1] = {n} WHERE k = {k} AND c = 1",
        "element deletion": "DELETE m[1] FROM $t USING TIMESTAMP 1000 WHERE k = {k} AND c = 1",
        "expired": "UPDATE $t USING TIMESTAMP 1000 AND TTL 1 SET v = {n} WHERE k = {k} AND c = 1",
    }
    first, second = [], []
    duels = [(a, b) for a in sides for b in sides]
    for k, (a, b) in enumerate(duels):
        first.append(sides[a].format(k=k, n=3))
        second.append(sides[b].format(k=k, n=20))
    return Table(
        name="equal_timestamps",
        covers="every pair of mutation kinds meeting at one timestamp, in both orders",
        columns="k int, c int, v int, w text, m map<int, int>, PRIMARY KEY (k, c)",
        rounds=rounds(first, second),
        golden=True,
    )


def _timestamps():
    """No partition deletion is negative: Cassandra writes one from oa on, and then calls its own file corrupt."""
    stamps = [0, 1, -1, -9223372036854775807, 9223372036854775807, 1442880000000000, -6795364578871345152]
    return Table(
        name="timestamps",
        covers="negative, zero and huge write timestamps, of data and of deletions",
        columns="k int, c int, v int, PRIMARY KEY (k, c)",
        rounds=rounds(
            [f"INSERT INTO $t (k, c, v) VALUES (1, {i}, {i}) USING TIMESTAMP {stamp}" for i, stamp in enumerate(stamps)],
            [f"DELETE FROM $t USING TIMESTAMP {stamp} WHERE k = 1 AND c = {i}" for i, stamp in enumerate(reversed(stamps))]
            + ["DELETE FROM $t USING TIMESTAMP 5 WHERE k = 2", "DELETE FROM $t USING TIMESTAMP 9223372036854775807 WHERE k = 3"],
            ["INSERT INTO $t (k, c, v) VALUES (2, 1, 1) USING TIMESTAMP 6", "INSERT INTO $t (k, c, v) VALUES (2, 2, 1) USING TIMESTAMP -6", "INSERT INTO $t (k, c, v) VALUES (3, 1, 1)"],
        ),
        golden=True,
    )


def _random_history(order, seed):
    dice = random.Random(seed)
    return Table(
        name=f"random_history_{order}",
        covers=f"random mutations of every kind with few distinct timestamps over five flushes, {order}, seed {seed}",
        columns="k int, a int, b int, s int static, v int, w text, m map<int, int>, l set<int>, PRIMARY KEY (k, a, b)",
        options=f"gc_grace_seconds = 0 AND CLUSTERING ORDER BY (a {order.upper()}, b {order.upper()})",
        rounds=[[_random_mutation(dice) for _ in range(160)] for _ in range(5)],
    )


def _random_mutation(dice):
    k, a, b = dice.randrange(12), dice.randrange(6), dice.randrange(4)
    n, stamp = dice.randrange(100), dice.randrange(1000, 1040)
    ttl = dice.choice(["", "", "", " AND TTL 1", " AND TTL 315360000"])
    row = f"k = {k} AND a = {a} AND b = {b}"
    low, high = sorted((dice.randrange(6), dice.randrange(7)))
    using = f"USING TIMESTAMP {stamp}"
    kinds = [
        f"INSERT INTO $t (k, a, b, v, w) VALUES ({k}, {a}, {b}, {n}, 'w{n}') {using}{ttl}",
        f"INSERT INTO $t (k, a, b, v, m) VALUES ({k}, {a}, {b}, {n}, {{{n % 3}: {n}}}) {using}{ttl}",
        f"UPDATE $t {using}{ttl} SET v = {n} WHERE {row}",
        f"UPDATE $t {using}{ttl} SET m[{n % 4}] = {n}, l = l + {{{n % 5}}} WHERE {row}",
        f"UPDATE $t {using}{ttl} SET s = {n} WHERE k = {k}",
        f"DELETE v FROM $t {using} WHERE {row}",
        f"DELETE m[{n % 4}], l FROM $t {using} WHERE {row}",
        f"DELETE s FROM $t {using} WHERE k = {k}",
        f"DELETE FROM $t {using} WHERE {row}",
        f"DELETE FROM $t {using} WHERE k = {k} AND a >= {low} AND a < {high}",
        f"DELETE FROM $t {using} WHERE k = {k} AND a > {low}",
        f"DELETE FROM $t {using} WHERE k = {k} AND a = {a} AND b <= {b}",
        f"DELETE FROM $t {using} WHERE k = {k}",
    ]
    return dice.choices(kinds, weights=[8, 5, 6, 6, 3, 3, 3, 1, 3, 2, 1, 1, 1])[0]


def _overlapping_partitions():
    return Table(
        name="overlapping",
        covers="hundreds of partitions over four SSTables, half of them in one SSTable only",
        columns="k text PRIMARY KEY, a int, b text",
        rounds=rounds(
            *[
                [f"INSERT INTO $t (k, a, b) VALUES ('key{i}', {i}, 'round {number}')" for i in range(number * 75, number * 75 + 150)]
                for number in range(4)
            ]
        ),
    )
