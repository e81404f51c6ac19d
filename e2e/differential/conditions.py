"""Relations of a WHERE clause and conditions of an IF."""

import struct

from .kinds import Map, Scalar
from .schema import CLUSTERING, PARTITION, REGULAR, STATIC

_SLICES = (">", "<", ">=", "<=")


def _in(draft, kind, term, count=None):
    """`IN (…)`, or `IN ?` with a list."""
    rng = draft.rng
    count = rng.choice((1, 2, 2, 3, 0)) if count is None else count
    if rng.random() < draft.bound * 0.3:
        values = [kind.value(rng).data for _ in range(count)]
        sized = b"".join(struct.pack(">i", len(value)) + value for value in values)
        return f"IN {draft.marker(struct.pack('>i', count) + sized)}"
    return f"IN ({', '.join(term() for _ in range(count))})"


def key(draft, table, column):
    """A term for a column of the key."""
    return draft.term(column.kind, table.key(column), may_be_null=draft.is_spoiled or draft.rng.random() < 0.1)


def partition(draft, table, may_be_many=True):
    rng = draft.rng
    columns = table.of(PARTITION)
    relations = []
    for column in columns:
        if may_be_many and rng.random() < 0.15:
            relations.append(f"{column.name} {_in(draft, column.kind, lambda column=column: key(draft, table, column))}")
        else:
            relations.append(f"{column.name} = {key(draft, table, column)}")
    return relations


def token(draft, table):
    rng = draft.rng
    names = ", ".join(column.name for column in table.of(PARTITION))
    relations = []
    for operator in rng.choice((("=",), (">",), ("<=",), (">", "<="), (">=", "<"))):
        if rng.random() < 0.5:
            place = draft.long(rng.choice((0, 2**62, -(2**62), -(2**63), 2**63 - 1)))
        else:
            place = f"token({', '.join(key(draft, table, column) for column in table.of(PARTITION))})"
        repeated = f", {table.of(PARTITION)[0].name}" if rng.random() < 0.02 else ""
        relations.append(f"token({names}{repeated}) {operator} {place}")
    return relations


def row(draft, table):
    """All clustering columns, exactly."""
    return [f"{column.name} = {key(draft, table, column)}" for column in table.of(CLUSTERING)]


def clusterings(draft, table, may_be_any=False):
    """A prefix, or with `may_be_any` whatever columns."""
    rng = draft.rng
    columns = table.of(CLUSTERING)
    if may_be_any and rng.random() < 0.5:
        columns = [column for column in columns if rng.random() < 0.6]
    else:
        columns = columns[: rng.randrange(len(columns) + 1)]
    # Beside an index, several columns are asked in a way of their own.
    if len(columns) > 1 and rng.random() < (0.5 if table.shape == "indexed" else 0.25):
        return _several(draft, table, columns)
    relations = []
    for place, column in enumerate(columns):
        is_last = place == len(columns) - 1 or (may_be_any and rng.random() < 0.3)
        relations += _clustering(draft, table, column, is_last or rng.random() < 0.03)
    return relations


def _clustering(draft, table, column, may_be_slice):
    rng = draft.rng
    chance = rng.random()
    if may_be_slice and chance < 0.35:
        operators = rng.choice(((">",), ("<",), (">=",), ("<=",), (">", "<"), (">=", "<="), (">", "<=")))
        return [f"{column.name} {operator} {key(draft, table, column)}" for operator in operators]
    if chance < 0.6 or (chance < 0.8 and not may_be_slice):
        return [f"{column.name} = {key(draft, table, column)}"]
    if chance > 0.98:
        return contains(draft, column)
    return [f"{column.name} {_in(draft, column.kind, lambda: key(draft, table, column))}"]


def _several(draft, table, columns):
    rng = draft.rng
    start = rng.choice((0, 0, 1))
    single = [f"{column.name} = {key(draft, table, column)}" for column in columns[:start]]
    columns = columns[start:]
    names = "(" + ", ".join(column.name for column in columns) + ")"

    def values(some=columns):
        return "(" + ", ".join(key(draft, table, column) for column in some) + ")"

    operator = rng.choice(("=", "IN", *_SLICES, "between"))
    if operator == "IN":
        return [*single, f"{names} IN ({', '.join(values() for _ in range(rng.choice((1, 2, 3))))})"]
    if operator == "between":
        lower = f"{names} {rng.choice(('>', '>='))} {values()}"
        shorter = columns[: rng.randrange(1, len(columns) + 1)]
        upper = "(" + ", ".join(column.name for column in shorter) + ")"
        return [*single, lower, f"{upper} {rng.choice(('<', '<='))} {values(shorter)}"]
    return [*single, f"{names} {operator} {values()}"]


def contains(draft, column):
    kind = column.kind
    if kind.name == "map":
        if draft.rng.random() < 0.4:
            return [f"{column.name}[{draft.term(kind.key)}] = {draft.term(kind.element)}"]
        if draft.rng.random() < 0.5:
            return [f"{column.name} CONTAINS KEY {draft.term(kind.key)}"]
    element = getattr(kind, "element", kind)
    return [f"{column.name} CONTAINS {draft.term(element)}"]


def filtered(draft, table):
    """A restriction of a value, or of any column, which needs ALLOW FILTERING or an index."""
    rng = draft.rng
    column = rng.choice(table.values if rng.random() < 0.85 else table.columns)
    if column.kind is None:
        return [f"{column.name} {rng.choice(('=', *_SLICES))} {draft.long(rng.randrange(-2, 9))}"]
    if column.kind.name in ("list", "set", "map") and rng.random() < 0.6:
        return contains(draft, column)
    if rng.random() < 0.04:
        return [f"{column.name} {rng.choice(('LIKE', '!=', 'CONTAINS', 'CONTAINS KEY', 'IS NOT'))} {draft.term(column.kind)}"]
    if rng.random() < 0.15:
        # Not unset: 5.0.9 finds empty values by it.
        return [f"{column.name} {_in(draft, column.kind, lambda: draft.term(column.kind, may_be_null=draft.is_spoiled and not draft.bound))}"]
    return [f"{column.name} {rng.choice(('=', '=', *_SLICES))} {draft.term(column.kind)}"]


def conditions(draft, table):
    """What stands behind IF."""
    rng = draft.rng
    if rng.random() < 0.2:
        return "EXISTS"
    return " AND ".join(_condition(draft, table) for _ in range(rng.choice((1, 1, 1, 2))))


def _condition(draft, table):
    rng = draft.rng
    column = rng.choice(table.of(REGULAR, STATIC) if rng.random() < 0.98 else table.columns)
    kind, subject = column.kind, column.name
    if kind is None:
        return f"{subject} {rng.choice(_SLICES)} {draft.long(1)}"
    if kind.name in ("list", "map") and rng.random() < 0.4:
        key = draft.term(kind.key if isinstance(kind, Map) else Scalar("int"))
        kind, subject = kind.element, f"{subject}[{key}]"
    elif kind.name == "udt" and rng.random() < 0.5:
        field, kind = rng.choice(kind.fields)
        subject = f"{subject}.{field}"
    elif kind.name in ("list", "set", "map") and rng.random() < 0.15:
        return contains(draft, column)[0]
    if rng.random() < 0.15:
        return f"{subject} {_in(draft, kind, lambda: draft.term(kind))}"
    if rng.random() < 0.15:
        return f"{subject} {rng.choice(('=', '!=', *_SLICES))} {draft.term(kind, may_be_null=True) if rng.random() < 0.6 else 'null'}"
    return f"{subject} {rng.choice(('=', '=', '!=', *_SLICES))} {draft.term(kind)}"
