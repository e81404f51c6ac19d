"""A random table and what belongs to it, with the few keys that its statements are about."""

from typing import NamedTuple

from . import kinds
from .kinds import Kind, Scalar

PARTITION, CLUSTERING, STATIC, REGULAR = "partition", "clustering", "static", "regular"
_INDEXABLE = ("int", "text", "bigint", "boolean", "uuid", "date", "smallint", "timestamp", "inet", "blob")
_SASI = "org.apache.cassandra.index.sasi.SASIIndex"


class Column(NamedTuple):
    name: str
    kind: Kind
    role: str


class Structs:
    """The user-defined types of a keyspace."""

    def __init__(self, rng):
        self._rng = rng
        self.all = []
        for number in range(rng.choice((0, 1, 1, 2))):
            fields = [(f"f{place}", self._field()) for place in range(rng.choice((1, 2, 2, 3)))]
            self.all.append((f"ud{number}", fields))

    def _field(self):
        return kinds.composed(self._rng, [], True, depth=1) if self._rng.random() < 0.2 else kinds.scalar(self._rng)

    def create(self):
        for name, fields in self.all:
            yield f"CREATE TYPE {name} ({', '.join(f'{field} {kind.inner}' for field, kind in fields)})"

    def grow(self):
        """One more field, which values that are written later have."""
        name, fields = self._rng.choice(self.all)
        field, kind = f"f{len(fields)}", self._field()
        fields.append((field, kind))
        return f"ALTER TYPE {name} ADD {field} {kind.inner}"


class Table:
    """`shape`: plain, counter, compact, indexed or viewed. The last two leave out what Cassandra answers by the path of the read."""

    def __init__(self, rng, name, shape, structs):
        self.rng, self.name, self.shape, self.structs = rng, name, shape, structs
        self.is_plain = shape == "plain"
        self.columns = [Column(f"p{i}", self._key_kind(), PARTITION) for i in range(rng.choice((1, 1, 1, 2)))]
        clusterings = rng.choice((0, 1) if shape == "compact" else (0, 1, 1, 2, 2, 3))
        self.orders = [rng.choice(("ASC", "DESC")) for _ in range(clusterings)]
        self.columns += [Column(f"c{i}", self._clustering_kind(order), CLUSTERING) for i, order in enumerate(self.orders)]
        self.columns += getattr(self, f"_values_of_{shape}")(clusterings > 0)
        self.keys = {column.name: self._few(column) for column in self.columns if column.role in (PARTITION, CLUSTERING)}

    def _clustering_kind(self, order):
        """Of rows whose clusterings are equal and not the same bytes, and of collections in descending order, docs/use/cql.md tells."""
        return self._key_kind().mark(is_whole=True, is_sorted=order == "DESC")

    def _key_kind(self):
        if self.is_plain and self.rng.random() < 0.2:
            return kinds.composed(self.rng, self.structs.all, True, is_ordered=True)
        if self.shape in ("indexed", "viewed"):
            return Scalar(self.rng.choice(_INDEXABLE))
        return kinds.scalar(self.rng, is_ordered=True)

    def _few(self, column):
        found = {}
        for _ in range(8):
            value = column.kind.value(self.rng)
            found.setdefault(value.data, value)
        values = [value for value in found.values() if self._may_be_key(column, value)][:3]
        if self.is_plain and column.role == CLUSTERING and isinstance(column.kind, Scalar) and self.rng.random() < 0.1:
            values.append(column.kind.empty() or values[-1])
        return values or list(found.values())

    def _may_be_key(self, column, value):
        return value.data != b"" or (column.role == CLUSTERING and self.shape == "plain")

    def _values_of_plain(self, has_clustering):
        rng = self.rng
        statics = [Column(f"s{i}", self._value_kind(), STATIC) for i in range(rng.choice((0, 1, 1, 2)))] if has_clustering else []
        return statics + [Column(f"v{i}", self._value_kind(), REGULAR) for i in range(rng.choice((1, 2, 3, 4, 5)))]

    def _value_kind(self):
        rng = self.rng
        chance = rng.random()
        if chance < 0.45:
            return kinds.scalar(rng)
        return kinds.composed(rng, self.structs.all, is_frozen=chance > 0.8)

    def _values_of_counter(self, has_clustering):
        statics = [Column("s0", None, STATIC)] if has_clustering and self.rng.random() < 0.4 else []
        return statics + [Column(f"v{i}", None, REGULAR) for i in range(self.rng.choice((1, 1, 2)))]

    def _values_of_compact(self, has_clustering):
        return [Column(f"v{i}", kinds.scalar(self.rng), REGULAR) for i in range(1 if has_clustering else self.rng.choice((1, 2)))]

    def _values_of_indexed(self, has_clustering):
        rng = self.rng
        columns = [Column("s0", Scalar(rng.choice(_INDEXABLE)), STATIC)] if has_clustering and rng.random() < 0.4 else []
        columns += [Column(f"v{i}", Scalar(rng.choice(_INDEXABLE)), REGULAR) for i in range(rng.choice((1, 2)))]
        if rng.random() < 0.7:
            columns.append(Column("v9", rng.choice((kinds.List, kinds.Set))(Scalar(rng.choice(_INDEXABLE)), rng.random() < 0.3), REGULAR))
        if rng.random() < 0.5:
            columns.append(Column("m", kinds.Map(Scalar(rng.choice(_INDEXABLE)), Scalar(rng.choice(_INDEXABLE)), False), REGULAR))
        return columns

    _values_of_viewed = _values_of_indexed

    @property
    def is_counter(self):
        return self.shape == "counter"

    def of(self, *roles):
        return [column for column in self.columns if column.role in roles]

    @property
    def values(self):
        return self.of(STATIC, REGULAR)

    def key(self, column):
        """Of the few, or at times another one."""
        if self.rng.random() < 0.96:
            return self.rng.choice(self.keys[column.name])
        return column.kind.value(self.rng)

    def create(self):
        columns = [f"{name} {kind.cql if kind else 'counter'}{' static' if role == STATIC else ''}" for name, kind, role in self.columns]
        partition = "(" + ", ".join(column.name for column in self.of(PARTITION)) + ")"
        clusterings = [column.name for column in self.of(CLUSTERING)]
        options = ["COMPACT STORAGE"] if self.shape == "compact" else []
        if clusterings:
            options.append(f"CLUSTERING ORDER BY ({', '.join(f'{name} {order}' for name, order in zip(clusterings, self.orders))})")
        suffix = f" WITH {' AND '.join(options)}" if options else ""
        return f"CREATE TABLE {self.name} ({', '.join(columns)}, PRIMARY KEY ({', '.join([partition, *clusterings])})){suffix}"

    def indexes(self):
        """Of one class: text and name."""
        rng = self.rng
        using = rng.choice(("", " USING 'sai'", " USING 'sai'", "SASI"))
        targets = []
        for column in rng.sample(self.columns, min(len(self.columns), rng.choice((1, 2, 3)))):
            is_map = column.kind.name == "map"
            target = f"{rng.choice(('keys', 'values', 'entries'))}({column.name})" if is_map else column.name
            targets.append(f"full({column.name})" if isinstance(column.kind, kinds.Composed) and column.kind.is_frozen else target)
        for number, target in enumerate(targets):
            name = f"{self.name}_i{number}"
            if using == "SASI":
                yield f"CREATE CUSTOM INDEX {name} ON {self.name} ({target}) USING '{_SASI}'", name
            else:
                yield f"CREATE INDEX {name} ON {self.name} ({target}){using}", name

    def view(self):
        """Text and name."""
        rng = self.rng
        key = [column.name for column in self.of(PARTITION, CLUSTERING)]
        rng.shuffle(key)
        if rng.random() < 0.7:
            key.insert(rng.randrange(len(key) + 1), rng.choice([column.name for column in self.of(REGULAR)]))
        partition = rng.randrange(1, len(key) + 1)
        others = [column.name for column in self.of(REGULAR) if column.name not in key and rng.random() < 0.6]
        selected = "*" if not self.of(STATIC) and rng.random() < 0.5 else ", ".join(key + others)
        where = " AND ".join(f"{name} IS NOT NULL" for name in key)
        primary = ", ".join([f"({', '.join(key[:partition])})", *key[partition:]])
        name = f"{self.name}_view"
        return f"CREATE MATERIALIZED VIEW {name} AS SELECT {selected} FROM {self.name} WHERE {where} PRIMARY KEY ({primary})", name
