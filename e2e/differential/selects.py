"""SELECT in its forms."""

from . import conditions, constants, kinds
from .draft import Draft
from .kinds import Scalar
from .schema import CLUSTERING, PARTITION, STATIC
from .step import Statement

_AGGREGATES = ("count", "min", "max", "sum", "avg")
_OF_NUMBERS = ("abs", "exp", "log", "log10", "round")
_OF_COLLECTIONS = ("collection_count", "collection_min", "collection_max", "collection_sum", "collection_avg")
_OF_TIMES = ("toDate", "toTimestamp", "toUnixTimestamp", "dateOf", "unixTimestampOf", "mintimeuuid", "maxtimeuuid")
_MASKS = ("mask_default", "mask_null", "mask_inner", "mask_outer", "mask_replace")
_CASTS = ("text", "ascii", "int", "bigint", "double", "decimal", "varint", "date", "timestamp", "blob", "tinyint")
_PAGES = (None, None, None, 1, 2, 3, 100)
ONE, SERIAL = 1, 8


class Reader:
    """`name`: of the table, or of a view of it."""

    def __init__(self, rng, table, name=None, functions=None):
        self.rng, self.table, self.name, self.functions = rng, table, name or table.name, functions

    def any(self, is_spoiled=False):
        rng, draft = self.rng, Draft(self.rng, is_spoiled, self.functions)
        form = rng.choice(("partition", "partition", "partition", "token", "scan", "filtering", "filtering", "grouped", "distinct", "everything"))
        text = getattr(self, f"_{form}")(draft)
        is_prepared = rng.random() < (0.5 if draft.values else 0.1)
        consistency = SERIAL if rng.random() < 0.02 else ONE
        page_size = self._page_size(form)
        return Statement(
            text, "SELECT", form, tuple(draft.values), page_size=page_size, is_prepared=is_prepared, is_spoiled=is_spoiled, consistency=consistency
        )  # fmt: skip

    def _page_size(self, form):
        """5.0.9 answers the second page of groups without clustering columns by a fault (test_select_differential.py)."""
        if form == "grouped" and not self.table.of(CLUSTERING):
            return None
        return self.rng.choice(_PAGES)

    def _select(self, draft, selection, relations, rest):
        # Markers stand in the order of the text: selection, relations and rest are made in that order.
        relations = relations()
        where = f" WHERE {' AND '.join(relations)}" if relations else ""
        return f"SELECT {selection} FROM {self.name}{where}{rest(draft)}"

    def _everything(self, draft):
        return f"SELECT * FROM {self.name}"

    def _partition(self, draft):
        selection = self._selection(draft)
        return self._select(draft, selection, lambda: conditions.partition(draft, self.table) + conditions.clusterings(draft, self.table), self._rest)

    def _token(self, draft):
        return self._select(draft, self._selection(draft), lambda: conditions.token(draft, self.table), self._rest)

    def _scan(self, draft):
        return self._select(draft, self._selection(draft), lambda: [], self._rest)

    def _filtering(self, draft):
        rng = self.rng

        def relations():
            chance = rng.random()
            found = conditions.partition(draft, self.table) if chance < 0.3 else conditions.token(draft, self.table) if chance < 0.4 else []
            found += conditions.clusterings(draft, self.table, may_be_any=True) if rng.random() < 0.6 else []
            for _ in range(rng.choice((0, 1, 1, 2))):
                found += conditions.filtered(draft, self.table)
            return found

        allow = " ALLOW FILTERING" if rng.random() < (0.5 if self.table.shape == "indexed" else 0.93) else ""
        return self._select(draft, self._selection(draft), relations, lambda draft: self._rest(draft) + allow)

    def _grouped(self, draft):
        rng, table = self.rng, self.table
        columns = [column.name for column in table.of(PARTITION)]
        columns += [column.name for column in table.of(CLUSTERING)][: rng.randrange(4)]
        if rng.random() < 0.04:
            rng.shuffle(columns)
        if rng.random() < 0.04:
            columns.append(self._aggregate(draft))
        selection = ", ".join([*rng.sample(columns, min(len(columns), 2)), *(self._aggregate(draft) for _ in range(rng.choice((1, 2))))])

        def relations():
            if rng.random() < 0.6:
                return []
            return conditions.partition(draft, table) + conditions.clusterings(draft, table)

        return self._select(draft, selection, relations, lambda draft: f" GROUP BY {', '.join(columns)}" + self._rest(draft, may_filter=False))

    def _distinct(self, draft):
        rng, table = self.rng, self.table
        names = [column.name for column in table.of(PARTITION)]
        names += [column.name for column in table.of(STATIC) if rng.random() < 0.5]
        if rng.random() < 0.05:
            names.append(rng.choice(table.columns).name)
        chance = rng.random()

        def relations():
            return conditions.partition(draft, table) if chance < 0.4 else conditions.token(draft, table) if chance < 0.6 else []

        return self._select(draft, "DISTINCT " + ", ".join(names), relations, self._rest)

    def _rest(self, draft, may_filter=True):
        rng, table = self.rng, self.table
        text = ""
        clusterings = table.of(CLUSTERING)
        if clusterings and rng.random() < 0.22:
            reverse = rng.random() < 0.6
            orders = [order if not reverse else {"ASC": "DESC", "DESC": "ASC"}[order] for order in table.orders]
            orders = [rng.choice(("ASC", "DESC")) if rng.random() < 0.05 else order for order in orders]
            named = [f"{column.name} {order}" for column, order in zip(clusterings, orders)]
            named = named[: rng.randrange(1, len(named) + 1)]
            if rng.random() < 0.05:
                named.append(rng.choice(named))
            text += f" ORDER BY {', '.join(named)}"
        text += f" PER PARTITION LIMIT {draft.number(rng.choice((1, 1, 2, 3, 0)))}" if rng.random() < 0.1 else ""
        text += f" LIMIT {draft.number(rng.choice((1, 2, 3, 4, 7, 0)))}" if rng.random() < 0.2 else ""
        return text + (" ALLOW FILTERING" if may_filter and rng.random() < 0.1 else "")

    def _selection(self, draft):
        rng = self.rng
        chance = rng.random()
        if chance < 0.35:
            return "*"
        if chance < 0.45:
            return "JSON *" if rng.random() < 0.6 else f"JSON {self._selector(draft)}, {self._selector(draft)}"
        if chance < 0.55:
            return ", ".join(self._aggregate(draft) for _ in range(rng.choice((1, 2, 3))))
        selectors = [self._selector(draft) for _ in range(rng.choice((1, 2, 3)))]
        return ", ".join(f"{selector} AS a{place}" if rng.random() < 0.08 else selector for place, selector in enumerate(selectors))

    def _aggregate(self, draft):
        rng = self.rng
        if rng.random() < 0.25:
            return rng.choice(("count(*)", "count(1)", "COUNT(*)", "count_rows()", '"countRows"()'))
        of = rng.choice(self.table.columns).name if rng.random() < 0.8 else self._selector(draft)
        return f"{rng.choice(_AGGREGATES)}({of})"

    def _selector(self, draft):
        """Of a column, or something made of one."""
        rng = self.rng
        if rng.random() < 0.03:
            return f"token({', '.join(column.name for column in self.table.of(PARTITION))})"
        if rng.random() < 0.05:
            return constants.selector(draft, self.table.structs.all)
        column = rng.choice(self.table.columns)
        if rng.random() < 0.4:
            return column.name
        if self.functions and rng.random() < 0.3:
            return self.functions.call(column.name if rng.random() < 0.8 else self._selector(draft))
        if column.kind is None:
            return rng.choice((column.name, f"{column.name} + 1", f"CAST({column.name} AS text)", f"writetime({column.name})", f"counterasblob({column.name})", f"tojson({column.name})"))
        return self._made(draft, column.name, column.kind)

    def _made(self, draft, name, kind):
        rng = self.rng
        if not isinstance(kind, Scalar) and rng.random() < 0.25:
            return self._part(draft, name, kind)
        ways = [f"tojson({name})", f"{'typeasblob' if rng.random() < 0.02 else kind.name + 'AsBlob'}({name})"]
        if not name.endswith(")"):
            ways += [f"{function}({name})" for function in ("writetime", "maxwritetime", "ttl")]
        ways.append(f"{rng.choice(_MASKS)}({name})" if rng.random() < 0.7 else lambda: f"mask_replace({name}, {draft.term(kind)})")
        ways += self._of_scalar(name, kind) if isinstance(kind, Scalar) else self._of_composed(draft, name, kind) * 2
        way = rng.choice(ways)
        # Terms are made only of the way that is taken: each leaves values behind.
        return way() if callable(way) else way

    def _part(self, draft, name, kind):
        """A part of a part of a column, or its time."""
        rng = self.rng
        for _ in range(rng.choice((1, 2, 2, 3))):
            if kind.name == "udt":
                field, kind = rng.choice(kind.fields)
                name += f".{field}" if rng.random() < 0.97 else ".nope"
            elif kind.name in ("set", "map"):
                key = kind.key if kind.name == "map" else kind.element
                first = draft.term(key, may_be_null=False)
                if rng.random() < 0.4:
                    name += f"[{first}..{draft.term(key, may_be_null=False)}]"
                else:
                    name, kind = f"{name}[{first}]", kind.element
            elif rng.random() < 0.9:
                break
            else:
                name += rng.choice((".f0", "[1]"))
        return f"{rng.choice(('writetime', 'maxwritetime', 'ttl'))}({name})" if rng.random() < 0.5 else name

    def _of_scalar(self, name, kind):
        rng = self.rng
        cast = rng.choice(_CASTS)
        ways = [f"CAST({name} AS {cast})", rng.choice((f"cast_as_{cast}({name})", f'"castAs{cast.capitalize()}"({name})'))]
        if kind.name == "blob":
            ways.append(f"blob_as_{rng.choice(_CASTS + ('empty', 'uuid', 'timeuuid', 'inet'))}({name})")
        if kind.name in kinds.NUMBERS:
            other = rng.choice(("1", "2", "0", "-1", "0.5", name, rng.choice(self.table.columns).name))
            ways += [f"-{name}", f"{name} {rng.choice('+-*/%')} {other}", f"{rng.choice(_OF_NUMBERS)}({name})", f"({name} + 1) * 2"]
        elif kind.name in kinds.TEXTS:
            ways += [f"{name} + 'x'", f"mask_inner({name}, 1, 1)", f"mask_outer({name}, 1, null)", f"mask_hash({name})"]
            ways += [f"mask_outer({name}, 1, null, {rng.choice(constants.PADDINGS)})", f"mask_hash({name}, {rng.choice(constants.ALGORITHMS)})"]
        elif kind.name in ("date", "timestamp", "timeuuid"):
            ways += [f"{rng.choice(_OF_TIMES)}({name})", f"{name} + {rng.choice(('1d', '2h', '1mo', '1y2mo', '1'))}", f"floor({name}, {rng.choice(('1d', '2h', '1mo'))})"]
        return ways

    def _of_composed(self, draft, name, kind):
        rng = self.rng
        if kind.name == "udt":
            return [f"{name}.{rng.choice(kind.fields)[0]}"]
        if kind.name == "vector":
            similarity = rng.choice(("cosine", "euclidean", "dot_product"))
            is_empty = rng.random() < 0.1
            return [lambda: f"similarity_{similarity}({name}, {'[]' if is_empty else draft.term(kind, may_be_null=False)})"]
        if kind.name == "tuple":
            return [name]
        key = kind.key if kind.name == "map" else kind.element

        def term():
            return draft.term(key, may_be_null=False)

        return [
            f"{rng.choice(_OF_COLLECTIONS)}({name})",
            f"{rng.choice(('map_keys', 'map_values'))}({name})",
            lambda: f"{name}[{term()}]",
            lambda: f"{name}[{term()}..{term()}]",
            lambda: f"{name}[..{term()}]",
            lambda: f"{name}[{term()}..]",
            lambda: f"{rng.choice(('writetime', 'ttl'))}({name}[{term()}])",
        ]
