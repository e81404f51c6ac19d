"""
How answers are compared, and where they may differ: each a narrow predicate, with its reason. What nothing here explains is a defect.
"""

import re
from typing import Callable, NamedTuple

_INTERNAL = ("0000", "1300", "1400", "1500")
# Times of the server are of this century; those that statements name begin at 1000.
_CLOCK_AT_LEAST = 10**15
_CLOCKS = re.compile(rb"\b[12]\d{15}\b")
_TIMES = re.compile(r"^(system\.)?(\w+\()?(max)?(writetime|ttl)\(", re.IGNORECASE)


class Known(NamedTuple):
    reason: str
    explains: Callable


def _is_syntax(_step, expected, found):
    return expected.code == found.code == "2000" and expected.refused.startswith("2000 line") and found.refused.startswith("2000 line")


def _is_internal(_step, expected, _found):
    return expected.code in _INTERNAL


KNOWN = [
    Known("docs/cql.md, syntax errors: the code is the same, the words are those of a generated parser", _is_syntax),
    Known("Cassandra fails: a Java exception, or a read or write failure by one", _is_internal),
]


def explained(step, expected, found):
    """The reason why two answers may differ, if there is one."""
    return next((known.reason for known in KNOWN if known.explains(step, expected, found)), None)


def comparable(answer):
    """Without what no two runs have in common."""
    # Signatures come in the order of a Java hash set.
    refused = answer.refused and answer.refused.split("signatures")[0]
    return answer._replace(refused=refused, lines=tuple(map(_line, answer.lines)))


def _line(line):
    if line[0] != "page":
        return line
    _, columns, rows, warnings, more = line
    if columns and columns[0][0] == "[json]":
        return "page", columns, tuple((_CLOCKS.sub(b"clock", row[0]),) for row in rows), warnings, more
    timed = [place for place, (name, _) in enumerate(columns) if _TIMES.match(name)]
    if timed:
        rows = tuple(tuple(_time(columns[place][0], value) if place in timed else value for place, value in enumerate(row)) for row in rows)
    return "page", columns, rows, warnings, more


def _time(name, value):
    """What the server's clock set: when it was written, and how many seconds are left."""
    if value is None or "ttl" in name.lower():
        return value and b"seconds"
    if len(value) == 8:
        return b"clock" if int.from_bytes(value, "big", signed=True) > _CLOCK_AT_LEAST else value
    # A list of them, each behind its length.
    return tuple(_time(name, value[place + 4 : place + 12]) for place in range(4, len(value), 12))
