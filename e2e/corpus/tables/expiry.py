"""Time to live: of rows, of cells, by default, expired and far away."""

from ..table import Table, rounds

# Far enough that a dump says "not expired" for a decade.
TEN_YEARS = 315360000


def tables():
    yield Table(
        name="ttl",
        covers="TTL on rows, on single cells, overwritten with and without TTL; already expired ones",
        columns="k int, c int, v int, w text, l list<int>, PRIMARY KEY (k, c)",
        rounds=rounds(
            [
                f"INSERT INTO $t (k, c, v, w) VALUES (1, 1, 1, 'row') USING TTL {TEN_YEARS}",
                "INSERT INTO $t (k, c, v, w) VALUES (1, 2, 1, 'expired row') USING TTL 1",
                f"UPDATE $t USING TTL {TEN_YEARS} SET v = 5 WHERE k = 1 AND c = 3",
                "UPDATE $t USING TTL 1 SET v = 6, l = [1, 2] WHERE k = 1 AND c = 4",
                "INSERT INTO $t (k, c, v, w) VALUES (2, 1, 1, 'mixed')",
                "INSERT INTO $t (k, c, v) VALUES (3, 1, 1) USING TTL 1",
            ],
            [
                f"UPDATE $t USING TTL {TEN_YEARS} SET v = 2 WHERE k = 2 AND c = 1",
                "UPDATE $t USING TTL 1 SET w = 'gone' WHERE k = 2 AND c = 1",
                "INSERT INTO $t (k, c, v) VALUES (1, 1, 11)",
                f"INSERT INTO $t (k, c, v) VALUES (4, 1, 1) USING TTL {TEN_YEARS}",
            ],
            [f"UPDATE $t USING TTL {TEN_YEARS + 12345} SET w = 'longer' WHERE k = 4 AND c = 1"],
        ),
        golden=True,
    )
    yield Table(
        name="ttl_default",
        covers="default_time_to_live, overridden by USING TTL and by TTL 0",
        columns="k int PRIMARY KEY, v int, s set<int>",
        options=f"default_time_to_live = {TEN_YEARS}",
        rounds=rounds(
            [
                "INSERT INTO $t (k, v, s) VALUES (1, 1, {1, 2})",
                "INSERT INTO $t (k, v) VALUES (2, 2) USING TTL 0",
                "INSERT INTO $t (k, v) VALUES (3, 3) USING TTL 1",
            ],
            ["UPDATE $t SET v = 10 WHERE k = 1", "DELETE v FROM $t WHERE k = 2", "UPDATE $t SET s = s + {3} WHERE k = 1"],
        ),
        golden=True,
    )
    yield Table(
        name="ttl_beyond_2038",
        covers="expiration times beyond 2038-01-19, which need unsigned seconds",
        columns="k int PRIMARY KEY, v int",
        rounds=rounds([f"INSERT INTO $t (k, v) VALUES ({i}, {i}) USING TTL {630720000 - i}" for i in range(3)]),
        golden=True,
        versions=("oa", "da", "pa", "ea"),
    )
