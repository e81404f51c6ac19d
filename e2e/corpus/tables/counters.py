"""Counters: increments over several flushes, deletion, static counters."""

from ..table import Table, rounds


def tables():
    yield Table(
        name="counters",
        covers="counters incremented and decremented over four flushes; deleted; static",
        columns="k int, c int, n counter, m counter, s counter static, PRIMARY KEY (k, c)",
        rounds=rounds(
            [f"UPDATE $t SET n = n + {i}, m = m - {i} WHERE k = {i % 3} AND c = {i}" for i in range(1, 10)]
            + ["UPDATE $t SET s = s + 1 WHERE k = 0", "UPDATE $t SET n = n + 0 WHERE k = 5 AND c = 0"],
            [f"UPDATE $t SET n = n + 9223372036854775807 WHERE k = {i % 3} AND c = {i}" for i in (1, 2)]
            + [f"UPDATE $t SET n = n - {i} WHERE k = {i % 3} AND c = {i}" for i in range(3, 8)],
            ["DELETE n FROM $t WHERE k = 0 AND c = 3", "DELETE FROM $t WHERE k = 1 AND c = 4", "DELETE FROM $t WHERE k = 2"],
            ["UPDATE $t SET s = s + 41 WHERE k = 0", "UPDATE $t SET m = m + 5 WHERE k = 0 AND c = 6"],
        ),
        golden=True,
    )
