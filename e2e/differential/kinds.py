"""Types of CQL, and values of them: as a literal, as bytes, and where they stand in the order of their type."""

import ipaddress
import struct
import uuid
from typing import Any, NamedTuple


class Value(NamedTuple):
    literal: str
    data: bytes
    order: Any


def _signed(number):
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _unsigned_vint(number):
    """Cassandra's: the number of further bytes is that of the leading ones of the first."""
    extra = max((number.bit_length() - 1) // 7, 0) if number.bit_length() <= 56 else 8
    if extra == 8:
        return b"\xff" + number.to_bytes(8, "big")
    data = bytearray(number.to_bytes(extra + 1, "big"))
    data[0] |= (0xFF << (8 - extra)) & 0xFF
    return bytes(data)


def _vint(number):
    return _unsigned_vint((number << 1) ^ (number >> 63) if number >= 0 else ((-number) << 1) - 1)


def _integers(length, *numbers):
    return [(str(number), number.to_bytes(length, "big", signed=True)) for number in numbers]


def _floats(code, *literals):
    return [(text, struct.pack(code, float(text.replace("Infinity", "inf")))) for text in literals]


def _texts(*texts):
    return [("'" + text.replace("'", "''") + "'", text.encode()) for text in texts]


def _decimal(text):
    mantissa, _, exponent = text.partition("E")
    whole, _, fraction = mantissa.partition(".")
    return text, struct.pack(">i", len(fraction) - int(exponent or 0)) + _signed(int(whole + fraction))


def _duration(text, months, days, nanos):
    return text, _vint(months) + _vint(days) + _vint(nanos)


def _uuids(*texts):
    return [(text, uuid.UUID(text).bytes) for text in texts]


# Ascending, as the type has it.
_POOLS = {
    "ascii": _texts("", "A", "a", "b", "z"),
    "bigint": _integers(8, -(2**63), -1, 0, 1, 2, 1000, 2**63 - 1),
    "blob": [("0x" + text, bytes.fromhex(text)) for text in ("", "00", "01", "0102", "ff")],
    "boolean": [("false", b"\0"), ("true", b"\1")],
    "date": [("'1600-02-29'", bytes.fromhex("7ffdf057")), ("'1969-12-31'", b"\x7f\xff\xff\xff"), ("'1970-01-01'", b"\x80\0\0\0"), ("2147502121", b"\x80\0\x47\x69"), ("4294967295", b"\xff" * 4)],
    "decimal": [_decimal(text) for text in ("-2.5", "0", "0.001", "1", "10.25", "1E10")],
    "double": _floats(">d", "-Infinity", "-1.5", "-0.0", "0.0", "0.1", "1.5", "3", "Infinity", "NaN"),
    "duration": [_duration("-5d", 0, -5, 0), _duration("0s", 0, 0, 0), _duration("1h30m", 0, 0, 5400 * 10**9), _duration("1y2mo", 14, 0, 0), _duration("3d", 0, 3, 0)],
    "float": _floats(">f", "-Infinity", "-1.5", "-0.0", "0.0", "0.1", "1.5", "3", "Infinity", "NaN"),
    "inet": [(f"'{text}'", ipaddress.ip_address(text).packed) for text in ("::1", "0.0.0.1", "2001:db8::1", "127.0.0.1")],
    "int": _integers(4, -(2**31), -1, 0, 1, 2, 3, 7, 2**31 - 1),
    "smallint": _integers(2, -32768, -1, 0, 1, 2, 32767),
    "text": _texts("", "A", "a", "aa", "b", "it's", "z", "é", "日"),
    "time": [("0", bytes(8)), ("'12:34:56.789'", (45296789 * 10**6).to_bytes(8, "big")), ("'23:59:59.999999999'", (86400 * 10**9 - 1).to_bytes(8, "big"))],
    "timestamp": _integers(8, -86400001, -1, 0, 1) + [("'2020-02-29T12:00:00Z'", (1582977600000).to_bytes(8, "big")), ("4102444800000", (4102444800000).to_bytes(8, "big"))],
    "timeuuid": _uuids("00000001-0000-1000-8000-000000000001", "00000002-0000-1000-8000-000000000001", "6bddc89a-5644-11e4-97fc-56847afe9799"),
    "tinyint": _integers(1, -128, -1, 0, 1, 2, 127),
    "uuid": _uuids("00000000-0000-1000-8000-000000000001", "00000000-0000-4000-8000-000000000002", "ffffffff-ffff-4fff-bfff-ffffffffffff"),
    "varint": [(str(number), _signed(number)) for number in (-(10**20), -1, 0, 1, 2, 255, 10**20)],
}
INTEGERS = ("tinyint", "smallint", "int", "bigint", "varint")
NUMBERS = (*INTEGERS, "float", "double", "decimal")
TEXTS = ("ascii", "text")
# Numbers and texts more often: most functions and operators are about them.
_OFTEN = ("int", "int", "int", "text", "text", "bigint")
_WITHOUT_ORDER = ("duration",)
# Types that have no value of no bytes.
_NEVER_EMPTY = ("tinyint", "smallint", "date", "time", "duration")


class Kind:
    """`cql` is the name of the type in a table, `inner` inside of another type."""

    name = ""
    is_frozen = True
    # Whether tuples and user types always have all of their fields.
    is_whole = False
    # Whether sets and maps are bound in their order.
    is_sorted = False
    parts = ()

    @property
    def is_multicell(self):
        return not self.is_frozen

    @property
    def has_order(self):
        """Whether a key may be of this type: no part of it is a duration."""
        return self.name not in _WITHOUT_ORDER and all(part.has_order for part in self.parts)

    @property
    def inner(self):
        return self.cql

    def mark(self, **flags):
        for kind in (self, *self.parts):
            vars(kind).update(flags)
        for part in self.parts:
            part.mark(**flags)
        return self


class Scalar(Kind):
    def __init__(self, name):
        self.name = self.cql = name
        self.pool = [Value(literal, data, place) for place, (literal, data) in enumerate(_POOLS[name])]
        zero = min(range(len(self.pool)), key=lambda place: len(self.pool[place].data.strip(b"\0")))
        self.usual = self.pool[max(zero - 1, 0) : zero + 3]

    def value(self, rng):
        return rng.choice(self.usual if rng.random() < 0.75 else self.pool)

    def empty(self):
        """No bytes at all, which is not null."""
        return None if self.name in _NEVER_EMPTY else Value(f"blobAs{self.name}(0x)", b"", -1)


def _sized(data):
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


class Composed(Kind):
    def __init__(self, is_frozen):
        self.is_frozen = is_frozen

    @property
    def cql(self):
        return f"frozen<{self.bare}>" if self.is_frozen else self.bare

    @property
    def inner(self):
        return f"frozen<{self.bare}>"


class List(Composed):
    name = "list"

    def __init__(self, element, is_frozen):
        super().__init__(is_frozen)
        self.element = element
        self.parts = (element,)

    @property
    def bare(self):
        return f"{self.name}<{self.element.inner}>"

    def value(self, rng):
        return self.of([self.element.value(rng) for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))])

    def of(self, values):
        data = struct.pack(">i", len(values)) + b"".join(_sized(value.data) for value in values)
        return Value("[" + ", ".join(value.literal for value in values) + "]", data, [value.order for value in values])


class Set(List):
    name = "set"
    # Of values that a client binds, how many are not in the order of the type, or twice there.
    UNORDERED = 0.04

    def value(self, rng):
        values = [self.element.value(rng) for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))]
        if self.is_sorted or rng.random() >= self.UNORDERED:
            values = sorted({value.data: value for value in values}.values(), key=lambda value: value.order)
        made = self.of(values)
        return made._replace(literal="{" + ", ".join(value.literal for value in values) + "}")


def _alike(order):
    """The same for sets that are equal, and for values of a user type without its last fields or with null there."""
    if not isinstance(order, (list, tuple)):
        return order
    while len(order) > 1 and order[-1] == (0,):
        order = order[:-1]
    return frozenset(map(_alike, order))


class Map(Composed):
    name = "map"

    def __init__(self, key, element, is_frozen):
        super().__init__(is_frozen)
        self.key, self.element = self.parts = key, element

    @property
    def bare(self):
        return f"map<{self.key.inner}, {self.element.inner}>"

    def value(self, rng):
        pairs = [(self.key.value(rng), self.element.value(rng)) for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))]
        # Not one key twice: which of its values a literal has, Cassandra decides by addresses in memory.
        pairs = list({_alike(key.order): (key, value) for key, value in pairs}.values())
        if self.is_sorted or rng.random() >= Set.UNORDERED:
            pairs.sort(key=lambda pair: pair[0].order)
        data = struct.pack(">i", len(pairs)) + b"".join(_sized(key.data) + _sized(value.data) for key, value in pairs)
        literal = "{" + ", ".join(f"{key.literal}: {value.literal}" for key, value in pairs) + "}"
        return Value(literal, data, [(key.order, value.order) for key, value in pairs])


class Tuple(Kind):
    name = "tuple"

    def __init__(self, elements):
        self.elements = self.parts = elements

    @property
    def cql(self):
        return f"tuple<{', '.join(element.inner for element in self.elements)}>"

    @property
    def inner(self):
        return f"frozen<{self.cql}>"

    def value(self, rng):
        values = _some(rng, self.elements, self.is_whole)
        data = b"".join(_sized(value.data if value else None) for value in values)
        order = [(0,) if value is None else (1, value.order) for value in values]
        return Value("(" + ", ".join(value.literal if value else "null" for value in values) + ")", data, order)


def _some(rng, kinds, is_whole):
    """A value or none for each; at times not for the last ones."""
    is_short = not is_whole and rng.random() < 0.1
    kinds = kinds[: rng.randrange(1, len(kinds) + 1)] if is_short else kinds
    return [None if rng.random() < 0.12 else kind.value(rng) for kind in kinds]


class Struct(Composed):
    """A user-defined type; `ALTER TYPE … ADD` makes `fields` longer."""

    name = "udt"

    def __init__(self, type_name, fields, is_frozen):
        super().__init__(is_frozen)
        self.type_name, self.fields = type_name, fields

    @property
    def parts(self):
        return [kind for _, kind in self.fields]

    @property
    def bare(self):
        return self.type_name

    def value(self, rng):
        values = _some(rng, [kind for _, kind in self.fields], self.is_whole)
        data = b"".join(_sized(value.data if value else None) for value in values)
        named = [f"{name}: {value.literal if value else 'null'}" for (name, _), value in zip(self.fields, values)]
        order = [(0,) if value is None else (1, value.order) for value in values]
        return Value("{" + ", ".join(named) + "}", data, order)


class Vector(Kind):
    name = "vector"

    def __init__(self, element, dimension):
        self.element, self.dimension = element, dimension
        self.parts = (element,)

    @property
    def cql(self):
        return f"vector<{self.element.inner}, {self.dimension}>"

    def value(self, rng):
        values = [self.element.value(rng) for _ in range(self.dimension)]
        is_fixed = self.element.name in ("int", "float")
        data = b"".join(value.data if is_fixed else _unsigned_vint(len(value.data)) + value.data for value in values)
        return Value("[" + ", ".join(value.literal for value in values) + "]", data, [value.order for value in values])


def scalar(rng, is_ordered=False):
    while True:
        name = rng.choice(_OFTEN if rng.random() < 0.4 else list(_POOLS))
        if not (is_ordered and name in _WITHOUT_ORDER):
            return Scalar(name)


def composed(rng, structs, is_frozen, is_ordered=False, depth=0):
    """A collection, tuple, vector or one of the user-defined types."""

    def element(ordered=is_ordered):
        if depth < 2 and rng.random() < 0.18:
            return composed(rng, structs, True, ordered, depth + 1)
        return scalar(rng, ordered)

    shape = rng.choice(("list", "set", "map", "map", "tuple", "udt", "udt", "vector"))
    if shape == "list":
        return List(element(), is_frozen)
    if shape == "set":
        return Set(element(True), is_frozen)
    if shape == "map":
        return Map(element(True), element(), is_frozen)
    if shape == "tuple":
        return Tuple([element() for _ in range(rng.choice((1, 2, 2, 3)))])
    if shape == "udt" and structs and not is_ordered:
        name, fields = rng.choice(structs)
        return Struct(name, fields, is_frozen)
    if shape == "udt" and structs and is_ordered:
        ordered = [(name, fields) for name, fields in structs if all(kind.has_order for _, kind in fields)]
        if ordered:
            return Struct(*rng.choice(ordered), is_frozen)
    return Vector(Scalar(rng.choice(("float", "float", "int", "text"))), rng.choice((1, 2, 3, 3, 11)))
