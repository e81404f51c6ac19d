"""
How answers are compared, and where they may differ: each a narrow predicate, with its reason. What nothing here explains is a defect.
"""

import re
from typing import Callable, NamedTuple

_INTERNAL = ("0000", "1300", "1400", "1500")
# Times of the server are of this century; those that statements name begin at 1000.
_CLOCK_AT_LEAST = 10**15
_CLOCKS = re.compile(rb"\b(?:1[6-9]|2\d)\d{14}\b")
# Times to live are of a hundred thousand seconds, less what has passed since.
_LEAST_LEFT = 90_000
_SECONDS = re.compile(rb"\b(?:9\d{4}|100000)\b")


class Known(NamedTuple):
    reason: str
    # Of the schema's statements, the step, Cassandra's answer and Halcyon's.
    explains: Callable


def _is_syntax(_schema, _step, expected, found):
    return expected.code == found.code == "2000"


def _is_internal(_schema, _step, expected, _found):
    return expected.code in _INTERNAL


def _is_descending(schema, step, expected, found):
    """Of a column in descending order Cassandra does not know the type there."""
    descending = [name for text in schema for name in re.findall(r"(\w+) DESC", text)]
    named = [name for name in descending if re.search(rf"\b{name}\b", step.text)]
    if not named:
        return False
    if expected.refused:
        wants = r"requires a (?:collection|float vector) argument, but found argument (\w+) of type|CONTAINS(?: KEY)? on non-(?:collection|map) column (\w+)"
        wants = re.search(wants, expected.refused)
        casts = "Invalid call to function system.cast_as_" in expected.refused and found.refused is None
        return "Ambiguous '" in expected.refused or casts or (wants is not None and (wants[1] or wants[2]) in named)
    plain = rf"cast\(({'|'.join(named)}) as \w+\)"
    return found.refused is None and re.sub(plain, r"\1", str(expected.lines)) == re.sub(plain, r"\1", str(found.lines))


def _is_time_uuid(_schema, _step, expected, found):
    """The type of a column of the result, and nothing else."""
    custom = "org.apache.cassandra.db.marshal.LegacyTimeUUIDType"
    return custom in str(expected.lines) and str(expected.lines).replace(custom, "timeuuid") == str(found.lines)


def _is_order_of_fields(_schema, step, expected, found):
    """In names of columns of the result or in a message, and nothing else."""
    pages = [[line[2:] for line in answer.lines if line[0] == "page"] for answer in (expected, found)]
    return "{f" in step.text and pages[0] == pages[1] and sorted(str(expected)) == sorted(str(found))


def _is_order_of_members(_schema, step, expected, found):
    """Of several members of a JSON object that do not fit, each tells of another one."""
    fault = "2200 Error decoding JSON value for "
    return "JSON" in step.text and all((answer.refused or "").startswith(fault) for answer in (expected, found))


def _is_hidden_column(schema, _step, expected, found):
    """Of a table with COMPACT STORAGE that has no clustering columns."""
    return any("COMPACT STORAGE" in text for text in schema) and "column1" in str(expected) + str(found)


def _is_sign_of_nan(_schema, step, expected, found):
    """Of a similarity that was computed."""
    signed, plain = str(bytes.fromhex("ffc00000")), str(bytes.fromhex("7fc00000"))
    return "similarity_" in step.text and str(expected).replace(signed, plain) == str(found)


def _is_order_of_conditions(_schema, step, expected, found):
    """Of several conditions, one is false and another one cannot be evaluated."""
    refused = [answer.refused for answer in (expected, found) if answer.refused]
    faults = r"Invalid comparison with|Invalid 'unset' value in condition|Invalid null value for \w+ element access"
    return " IF " in step.text and " AND " in step.text.split(" IF ", 1)[1] and all(re.search(faults, fault) for fault in refused)


KNOWN = [
    Known("docs/cql.md, syntax errors: the code is the same, the words are those of a generated parser", _is_syntax),
    Known("docs/cql.md, columns in descending order: casts to their own type, functions of their type, operators between constants", _is_descending),
    Known("docs/cql.md, min and max of timeuuid: a type that no driver knows", _is_time_uuid),
    Known("docs/cql.md, names of results: fields of a literal in the order of hashes", _is_order_of_fields),
    Known("docs/cql.md, INSERT JSON with several faults: in the order of hashes", _is_order_of_members),
    Known("docs/cql.md, COMPACT STORAGE without clustering columns: the hidden one", _is_hidden_column),
    Known("docs/cql.md, similarities that are no number: their sign is that of the machine", _is_sign_of_nan),
    Known("docs/cql.md, several conditions: which one is evaluated first is a matter of hashes", _is_order_of_conditions),
    Known("Cassandra fails: a Java exception, or a read or write failure by one", _is_internal),
]


def explained(schema, step, expected, found):
    """The reason why two answers may differ, if there is one."""
    expected, found = comparable(expected), comparable(found)
    return next((known.reason for known in KNOWN if known.explains(schema, step, expected, found)), None)


def comparable(answer):
    """Without what no two runs have in common."""
    # Signatures come in the order of a Java hash set.
    refused = answer.refused and answer.refused.split("signatures")[0]
    return answer._replace(refused=refused, lines=tuple(map(_line, answer.lines)))


def _line(line):
    if line[0] != "page":
        return line
    _, columns, rows, warnings, more = line
    return "page", columns, tuple(tuple(map(_timeless, columns, row)) for row in rows), warnings, more


def _timeless(column, value):
    """A value without what the server's clock has set: times of writing, and seconds that are left."""
    name, kind = column
    if value is None:
        return None
    if name == "[json]":
        return _SECONDS.sub(b"seconds", _CLOCKS.sub(b"clock", value))
    if kind in ("bigint", "int"):
        return _number(value)
    if kind in ("('list', 'bigint')", "('list', 'int')"):
        size = 8 if "bigint" in kind else 4
        return tuple(_number(value[place + 4 : place + 4 + size]) for place in range(4, len(value), 4 + size))
    return value


def _number(value):
    number = int.from_bytes(value, "big", signed=True)
    if len(value) == 8 and _CLOCK_AT_LEAST < number < 3 * _CLOCK_AT_LEAST:
        return b"clock"
    return b"seconds" if len(value) == 4 and _LEAST_LEFT < number <= 100_000 else value
