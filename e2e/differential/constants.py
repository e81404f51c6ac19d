"""Selectors that name no column: the same for each row, and computed where there is none."""

from . import kinds

PADDINGS = ("'x'", "'xy'", "''", "null", "'é'")
ALGORITHMS = ("'MD5'", "'SHA-512'", "'nope'", "null")
_NUMBERS = ("1", "0", "2", "-1", "1.5", "(int)7", "(bigint)0", "(varint)3", "1 / 0", "5 % 0", "blobasint(0x00)", "blobasint(0x00000005)")
_VALUES = ("1", "[1]", "'a'")
# Of which some stand for others.
_KIN = ("int", "bigint", "varint", "decimal", "timestamp", "date", "time", "ascii", "text", "blob", "uuid", "timeuuid")
_CLASSES = ("'Int32Type'", "'ListType(Int32Type)'", "'UTF8Type'", "'nope'")


def selector(draft, structs, depth=0):
    rng = draft.rng
    way = rng.choice((_number, _number, _hinted, _hinted_elements, _masked, _composed, _of_struct, _marker, _class))
    return way(draft, structs, depth)


def _inner(draft, structs, depth):
    return _number(draft, structs, depth) if depth > 1 else selector(draft, structs, depth + 1)


def _number(draft, _structs, _depth):
    rng = draft.rng
    one, other = rng.choice(_NUMBERS), rng.choice(_NUMBERS)
    return rng.choice((one, f"{one} {rng.choice('+-*/%')} {other}", f"abs({one})", f"CAST({one} AS {rng.choice(('text', 'int', 'double'))})", f"sum({one})", f"[{one}, {other}]"))


def _hinted(draft, structs, _depth):
    kind = kinds.scalar(draft.rng) if draft.rng.random() < 0.5 else kinds.composed(draft.rng, structs, True)
    return f"({kind.inner}){draft.term(kind, may_be_null=False)}"


def _hinted_elements(draft, _structs, _depth):
    """A collection or a tuple of a type whose elements are of others. No vector: docs/use/cql.md, a vector of elements of another type."""
    rng = draft.rng
    (of, one), (value, other) = [(rng.choice(_KIN), rng.choice(_KIN)) for _ in range(2)]
    first, second = (f"({part}){draft.term(kinds.Scalar(part), may_be_null=False)}" for part in (one, other))
    literal, kind = rng.choice(
        (
            (f"[{first}]", f"list<{of}>"),
            (f"{{{first}}}", f"set<{of}>"),
            (f"{{{first}, {second}}}", f"set<{of}>"),
            (f"{{{first}: {second}}}", f"map<{of}, {value}>"),
            (f"({first}, {second})", f"tuple<{of}, {value}>"),
            (f"[{{{first}}}]", f"list<frozen<set<{of}>>>"),
            (f"{{[{first}]}}", f"set<frozen<list<{of}>>>"),
        )
    )
    whole = f"(frozen<{kind}>){literal}" if rng.random() < 0.2 else f"({kind}){literal}"
    return f"{rng.choice(('map_keys', 'map_values', 'tojson'))}({whole})" if rng.random() < 0.3 else whole


def _masked(draft, structs, depth):
    rng = draft.rng
    if rng.random() < 0.3:
        return f"mask_default({_inner(draft, structs, depth)})"
    return rng.choice((f"mask_hash('a', {rng.choice(ALGORITHMS)})", f"mask_inner('abc', 1, 1, {rng.choice(PADDINGS)})"))


def _composed(draft, structs, depth):
    one, other = _inner(draft, structs, depth), _inner(draft, structs, depth)
    return draft.rng.choice((f"[{one}, {other}]", f"{{{one}, {other}}}", f"(map<int, int>){{{one}: {other}}}", f"(tuple<int, int>)({one}, {other})", f"({one}, {other})"))


def _of_struct(draft, structs, depth):
    """A literal of a user-defined type, at times with a field that it does not have."""
    if not structs:
        return _number(draft, structs, depth)
    rng = draft.rng
    name, fields = rng.choice(structs)
    named = [f"{field}: {rng.choice(_NUMBERS) if rng.random() < 0.05 else draft.term(kind, may_be_null=False)}" for field, kind in fields]
    if rng.random() < 0.1:
        named.append("nope: 1")
    hint = rng.choice((name, name, f"frozen<{name}>", f'"{name}"', f"nope.{name}"))
    field = f".{rng.choice(fields)[0]}" if rng.random() < 0.3 else ""
    literal = f"({hint}){{{', '.join(named)}}}"
    return f"({literal}){field}" if field else literal


def _marker(draft, _structs, _depth):
    return f"(int){draft.marker(bytes(4))} {draft.rng.choice('+/')} (int){draft.marker(draft.rng.choice((bytes(4), bytes((0, 0, 0, 2)))))}"


def _class(draft, _structs, _depth):
    return f"({draft.rng.choice(_CLASSES)}){draft.rng.choice(_VALUES)}"
