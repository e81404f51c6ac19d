"""Statements about the schema, most of which are refused: which check comes first, what it says, and what DESCRIBE shows of what is accepted."""

from . import kinds
from .step import Statement

_INDEX_OPTIONS = ("{}", "{'foo': 'bar'}", "{'case_sensitive': 'x'}")
_INITIAL = ("0", "null", "'a'", "(1, 2)", "{}")
_BODY = "CALLED ON NULL INPUT RETURNS {} LANGUAGE java AS 'return {};'"
# Each with values that fit, and some that do not.
_OPTIONS = {
    "gc_grace_seconds": ("0", "864000", "-1", "'a'", "1.5"),
    "comment": ("'a'", "1", "{'a': 'b'}"),
    "default_time_to_live": ("100", "-1", "630720001"),
    "bloom_filter_fp_chance": ("0.1", "0", "2", "'x'"),
    "crc_check_chance": ("1.0", "1.5", "'a'"),
    "speculative_retry": ("'99p'", "'none'", "'foo'"),
    "caching": ("{'keys': 'ALL'}", "{'keys': 'x'}", "{'nope': 'a'}", "'a'"),
    "compaction": ("{'class': 'LeveledCompactionStrategy'}", "{'class': 'nope'}", "{'a': 'b'}", "{'class': 'SizeTieredCompactionStrategy', 'min_threshold': 1}"),
    "compression": ("{'enabled': false}", "{'class': 'LZ4Compressor'}", "{'class': 'nope'}", "{'chunk_length_in_kb': 3, 'class': 'LZ4Compressor'}", "{}"),
    "memtable_flush_period_in_ms": ("0", "-1"),
    "min_index_interval": ("128", "0"),
    "max_index_interval": ("2048", "1"),
    "additional_write_policy": ("'99p'", "'x'"),
    # A node without CDC does not store that it is on: a restart forgets it.
    "cdc": ("'a'", "0"),
    "read_repair": ("'NONE'", "'x'"),
    "id": ("5", "'zz'"),
    "nope": ("1",),
}


class Definer:
    """Makes tables, types and functions of its own (`x…`), and tries to change those of the session."""

    def __init__(self, rng, table, structs):
        self.rng, self.table, self.structs, self.made = rng, table, structs, 0

    def any(self):
        form = self.rng.choice(("index", "table", "table", "alter", "alter", "type", "function", "function", "aggregate", "view", "drop", "describe", "describe"))
        text = getattr(self, f"_{form}")()
        verb = "SELECT" if form == "describe" else "CREATE"
        return Statement(text, verb, form)

    def _name(self):
        self.made += 1
        return f"x{self.made}"

    def _known(self, letter="x"):
        """Of what may have been made."""
        return f"{letter}{self.rng.randrange(1, self.made + 2)}"

    def _perhaps(self, text, chance=0.3):
        return text if self.rng.random() < chance else ""

    def _spelled(self):
        rng = self.rng
        chance = rng.random()
        if chance < 0.3:
            return kinds.scalar(rng).cql
        if chance < 0.6:
            return kinds.composed(rng, self.structs.all, rng.random() < 0.5).cql
        named = self.structs.all[0][0] if self.structs.all else self._known()
        odd = ("counter", "frozen<int>", "list<list<int>>", "set<counter>", f"frozen<{named}>", named, f'frozen<"{named}">', f"list<{named}>", "nope", "frozen<nope>", "list<nope>",
               f"nope.{named}", "vector<int, 0>", "map<duration, int>", "'Int32Type'", "'nope'", f"tuple<{named}, int>", "frozen<list<duration>>", "empty", f"vector<{named}, 2>")  # fmt: skip
        return rng.choice(odd)

    def _options(self):
        rng = self.rng
        names = rng.sample(list(_OPTIONS), rng.choice((1, 1, 2)))
        return " AND ".join(f"{name} = {rng.choice(_OPTIONS[name])}" for name in names)

    def _column(self):
        return self.rng.choice(self.table.columns).name if self.rng.random() < 0.9 else "nope"

    def _index(self):
        """Only what is refused, or makes nothing that reads use: of indexes that find rows, the sessions of their own shape tell."""
        rng = self.rng
        column = rng.choice(self.table.columns)
        fits = column.kind is not None and column.kind.name == "map"
        target = rng.choice((column.name, f"keys({column.name})", f"values({column.name})", f"entries({column.name})", f"full({column.name})"))
        if fits or column.kind is None or target == column.name or self.table.shape != "plain":
            target = rng.choice(("nope", f"{column.name}, {self._column()}", f"nope({column.name})", "keys(nope)", ""))
        using = rng.choice(("", "", " USING 'sai'", " USING 'nope'", " USING 'SASI'"))
        options = self._perhaps(f" WITH OPTIONS = {rng.choice(_INDEX_OPTIONS)}")
        return f"CREATE {self._perhaps('CUSTOM ')}INDEX {self._perhaps('IF NOT EXISTS ')}{self._perhaps(self._known())} ON {rng.choice(('t', 't', 't', 'nope', self._known()))} ({target}){using}{options}"

    def _table(self):
        rng = self.rng
        columns = [f"{rng.choice(('k', 'c', 'v', 'w'))}{self._perhaps(str(rng.randrange(2)), 0.5)} {self._spelled()}{self._perhaps(' static', 0.1)}" for _ in range(rng.choice((1, 2, 3)))]
        names = [column.split(" ")[0] for column in columns]
        key = rng.sample(names, rng.randrange(1, len(names) + 1))
        if rng.random() < 0.1:
            key.append(rng.choice(("nope", names[0])))
        order = self._perhaps(f"CLUSTERING ORDER BY ({rng.choice((*key, 'nope'))} {rng.choice(('ASC', 'DESC'))})", 0.2)
        options = [option for option in (order, self._perhaps(self._options(), 0.4)) if option]
        suffix = f" WITH {' AND '.join(options)}" if options else ""
        name = rng.choice((self._name(), self._name(), "t", "nope.x", "system.x"))
        return f"CREATE TABLE {self._perhaps('IF NOT EXISTS ')}{name} ({', '.join(columns)}, PRIMARY KEY ({', '.join(key)})){suffix}"

    def _alter(self):
        rng = self.rng
        what = rng.choice(("option", "option", "add", "drop", "rename", "type", "field"))
        exists = self._perhaps("IF EXISTS ")
        name = rng.choice(("t", self._known(), self._known(), "nope"))
        if what == "option":
            options = self._options()
            # What changes how long values live changes the answers of the session.
            name = self._known() if "default_time_to_live" in options or "crc" in options else name
            return f"ALTER TABLE {exists}{name} WITH {options}"
        if what == "add":
            return f"ALTER TABLE {exists}{rng.choice((self._known(), self._known(), 'nope'))} ADD {self._perhaps('IF NOT EXISTS ')}{rng.choice(('k', 'v', 'z'))} {self._spelled()}{self._perhaps(' static', 0.1)}"
        if what == "drop":
            return f"ALTER TABLE {exists}{rng.choice((self._known(), 'nope'))} DROP {self._perhaps('IF EXISTS ')}{rng.choice(('k', 'v', 'z', 'nope'))}"
        if what == "rename":
            return f"ALTER TABLE {exists}{name} RENAME {self._perhaps('IF EXISTS ')}{rng.choice(('nope', 'v0', 'v', 'w'))} TO {rng.choice(('y', 'v0', 'p0'))}"
        if what == "type":
            return f"ALTER TABLE {name} ALTER {self._column()} TYPE {self._spelled()}"
        named = self._known()
        change = rng.choice((f"ADD {rng.choice(('a', 'z'))} {self._spelled()}", "RENAME a TO b", "RENAME nope TO b", "RENAME a TO b AND b TO c"))
        return f"ALTER TYPE {exists}{named} {change}"

    def _type(self):
        fields = ", ".join(f"{self.rng.choice('abc')} {self._spelled()}" for _ in range(self.rng.choice((1, 2, 2))))
        return f"CREATE TYPE {self._perhaps('IF NOT EXISTS ')}{self._name()} ({fields})"

    def _function(self):
        rng = self.rng
        name = rng.choice((self._name(), "abs", "nope.x", "max", "system.x", '"Odd"'))
        arguments = ", ".join(f"{rng.choice('ab')} {self._spelled()}" for _ in range(rng.choice((0, 1, 1, 2))))
        returns = self._spelled() if rng.random() < 0.4 else "int"
        directive = rng.choice(("IF NOT EXISTS ", "", "", ""))
        return f"CREATE {self._perhaps('OR REPLACE ', 0.2)}FUNCTION {directive}{name} ({arguments}) {_BODY.format(returns, rng.choice(('null', 'null', '1', 'nope')))}"

    def _aggregate(self):
        rng = self.rng
        initial = self._perhaps(f" INITCOND {rng.choice(_INITIAL)}")
        final = self._perhaps(f" FINALFUNC {self._known()}", 0.2)
        name = rng.choice((self._name(), "max", "nope.x"))
        return f"CREATE {self._perhaps('OR REPLACE ', 0.2)}AGGREGATE {self._perhaps('IF NOT EXISTS ', 0.1)}{name} ({self._spelled()}) SFUNC {rng.choice((self._known(), 'nope', 'plus'))} STYPE {self._spelled()}{final}{initial}"

    def _view(self):
        """Of a table of its own: a view of the session's would change what its writes do."""
        rng = self.rng
        base = rng.choice((self._known(), self._known(), "nope"))
        names = [rng.choice(("k", "c", "v", "w", "k0", "v1", "nope")) for _ in range(2)]
        where = " AND ".join(rng.choice((f"{name} IS NOT NULL", f"{name} IS NOT NULL", f"{name} = 1", f"{name} > null")) for name in names)
        selected = rng.choice(("*", "*", ", ".join(names), f"{names[0]}, writetime({names[1]})", f"count({names[0]})", f"{names[0]} AS z"))
        return f"CREATE MATERIALIZED VIEW {self._perhaps('IF NOT EXISTS ')}{self._name()} AS SELECT {selected} FROM {base} WHERE {where} PRIMARY KEY ({', '.join(names)}){self._perhaps(f' WITH {self._options()}', 0.2)}"

    def _drop(self):
        rng = self.rng
        kind = rng.choice(("TABLE", "TYPE", "FUNCTION", "FUNCTION", "AGGREGATE", "INDEX", "MATERIALIZED VIEW", "TRIGGER", "KEYSPACE"))
        named = self.structs.all[0][0] if self.structs.all and kind == "TYPE" else self._known()
        name = rng.choice((named, self._known(), "nope", "system.local")) if kind != "KEYSPACE" else "nope"
        arguments = self._perhaps(f"({self._spelled()})", 0.5) if kind in ("FUNCTION", "AGGREGATE") else " ON t" if kind == "TRIGGER" else ""
        return f"DROP {kind} {self._perhaps('IF EXISTS ')}{name}{arguments}"

    def _describe(self):
        rng = self.rng
        what = rng.choice(("TABLE t", "TABLE t", f"TABLE {self._known()}", "TYPES", "TABLES", "FUNCTIONS", "AGGREGATES", f"TYPE {self._known()}", f"FUNCTION {self._known()}",
                           f"AGGREGATE {self._known()}", f"INDEX {self._known()}", "t", self._known(), "nope", "ONLY KEYSPACE", "KEYSPACE"))  # fmt: skip
        return f"DESCRIBE {what}"
