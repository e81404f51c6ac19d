"""One statement while it is made: its text, and the values bound to it in the order of its markers."""

from native import UNSET

from . import kinds
from .kinds import Scalar

# Of some type, for a column of another.
ODD_LITERALS = """0 -1 128 9223372036854775808 1.5 1e3 NaN 'abc' '' $$a$$ true 0x 0xABC null 6bddc89a-5644-11e4-97fc-56847afe9799 '127.0.0.1'
'2020-01-02' '12:34:56' 1y2mo [1] {1} {} [] {1:'a'} {f0:1} (1,'a') (int)1 (text)'a' 1+1 10/0 -(1) intAsBlob(1) blobAsInt(0x00000001) nope(1) [1,null] {'a','a'}
(list<int>)[1] (1) (null) {null} {'a':null} ?""".split()
ODD_BYTES = [b"\0", b"\1", b"abc", b"\xff", b"\0\0\0\1", bytes(8), b"\0\0\0\1\0\0\0\4\0\0\0\5", b"\0\0\0\1\xff\xff\xff\xff", b"\xc3\x28", b"\0\0\0\2\0\0\0\1"]


class Draft:
    def __init__(self, rng, is_spoiled=False, functions=None):
        self.rng, self.functions = rng, functions
        self.values = []
        self.is_spoiled = is_spoiled
        # Of terms, how many are markers.
        self.bound = rng.choice((0, 0, 0.5, 1))
        self.is_named = rng.random() < 0.05

    def marker(self, data):
        self.values.append(data)
        return f":n{len(self.values)}" if self.is_named else "?"

    def term(self, kind, value=None, may_be_null=True):
        """A term of a type, in one of the ways in which it can be said."""
        rng = self.rng
        if rng.random() < (0.15 if self.is_spoiled else 0.004):
            return self._odd()
        if may_be_null and rng.random() < 0.06:
            return self._nothing()
        if value is None:
            value = kind.value(rng)
            if may_be_null and isinstance(kind, Scalar) and rng.random() < 0.02:
                value = kind.empty() or value
        if rng.random() < self.bound:
            return f"({kind.inner}) {self.marker(value.data)}" if rng.random() < 0.04 else self.marker(value.data)
        if rng.random() < 0.06:
            return self._said_otherwise(kind, value)
        return value.literal

    def _odd(self):
        if self.rng.random() < self.bound:
            return self.marker(self.rng.choice(ODD_BYTES))
        literal = self.rng.choice(ODD_LITERALS)
        return self.marker(self.rng.choice(ODD_BYTES)) if literal == "?" else literal

    def _nothing(self):
        if self.rng.random() < self.bound:
            return self.marker(self.rng.choice((None, UNSET)))
        return "null"

    def _said_otherwise(self, kind, value):
        rng = self.rng
        chance = rng.random()
        own = self.functions.returning(kind) if self.functions else []
        if own and chance < 0.6:
            return f"{rng.choice(own)}({value.literal})"
        if chance < 0.25:
            return f"({kind.inner}) {value.literal}"
        if kind.name in kinds.NUMBERS and chance < 0.6:
            return f"{value.literal} {rng.choice('+-*%')} {kind.value(rng).literal}"
        if isinstance(kind, Scalar):
            return f"blobAs{kind.name}(0x{value.data.hex()})"
        if kind.name in ("list", "set"):
            first, last = "[]" if kind.name == "list" else "{}"
            return first + ", ".join(self.term(kind.element, may_be_null=False) for _ in range(rng.randrange(3))) + last
        if kind.name == "tuple":
            return "(" + ", ".join(self.term(element) for element in kind.elements) + ")"
        if kind.name == "map":
            pairs = ((self.term(kind.key, may_be_null=False), self.term(kind.element, may_be_null=False)) for _ in range(rng.randrange(2)))
            return "{" + ", ".join(f"{key}: {element}" for key, element in pairs) + "}"
        if kind.name == "udt":
            # Not unset: of a value whose fields are cells, 5.0.9 stores an empty one then.
            return "{" + ", ".join(f"{name}: {self.term(field, may_be_null=False)}" for name, field in kind.fields) + "}"
        return value.literal

    def number(self, number):
        """Of a LIMIT, a TTL, a timestamp."""
        if self.rng.random() < self.bound:
            return self.marker(number.to_bytes(4, "big", signed=True))
        return str(number)

    def long(self, number):
        if self.rng.random() < self.bound:
            return self.marker(number.to_bytes(8, "big", signed=True))
        return str(number)
