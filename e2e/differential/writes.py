"""INSERT, UPDATE, DELETE, batches and counters."""

import json

from . import conditions, kinds
from .draft import Draft
from .schema import CLUSTERING, PARTITION, REGULAR, STATIC
from .step import Statement

# Longer than a run takes.
_TTL_SECONDS = 100_000
_INT = kinds.Scalar("int")


class Writer:
    """`is_stamped`: writes have times of the client, few and not in order. Those of the server are in order and not comparable."""

    def __init__(self, rng, table, is_stamped, functions=None):
        self.rng, self.table, self.is_stamped, self.functions = rng, table, is_stamped, functions
        self._last = 1000
        # Of a counter, columns or rows: below both, 5.0.9 counts again only when the first tombstone has been flushed.
        self._deletes_columns = rng.random() < 0.5
        # In a batch; `None` outside: either may come.
        self._deletes = None

    def any(self, is_spoiled=False):
        chance = self.rng.random()
        draft = Draft(self.rng, is_spoiled, self.functions)
        if chance < 0.14:
            text, verb, form = self._batch(draft)
        else:
            text, verb, form = self._one(draft, self.rng.random() < 0.22)
        is_prepared = self.rng.random() < (0.5 if draft.values else 0.1)
        return Statement(text, verb, form, tuple(draft.values), is_prepared=is_prepared, is_spoiled=is_spoiled)

    def _one(self, draft, is_conditional):
        if self.table.is_counter:
            return self._count(draft)
        chance = self.rng.random()
        if chance < 0.42:
            return self._insert(draft, is_conditional)
        if chance < 0.72:
            return self._update(draft, is_conditional)
        return self._delete(draft, is_conditional)

    def _using(self, draft, may_expire=True, is_conditional=False, word=" USING "):
        rng = self.rng
        parts = []
        if self.is_stamped and (not is_conditional or rng.random() < 0.02):
            self._last += rng.choice((0, 1, 1, 1, 2))
            parts.append(f"TIMESTAMP {draft.long(self._last - rng.choice((0, 0, 0, 1, 2, 5)))}")
        if may_expire and rng.random() < 0.07:
            parts.append(f"TTL {draft.number(rng.choice((_TTL_SECONDS, _TTL_SECONDS, 0)))}")
        return word + " AND ".join(parts) if parts else ""

    def _insert(self, draft, is_conditional):
        rng, table = self.rng, self.table
        if rng.random() < 0.06:
            return self._insert_json(draft, is_conditional)
        columns = table.of(PARTITION, CLUSTERING)
        if table.of(STATIC) and rng.random() < 0.12:
            columns = table.of(PARTITION)
            columns += [column for column in table.of(STATIC) if rng.random() < 0.7]
        else:
            columns = columns + [column for column in table.values if rng.random() < 0.6]
        if draft.is_spoiled and rng.random() < 0.3:
            columns = rng.sample(columns, len(columns) - 1) if rng.random() < 0.6 else [*columns, rng.choice(columns)]
        terms = [self._value(draft, column) for column in columns]
        exists = " IF NOT EXISTS" if is_conditional else ""
        names = ", ".join(column.name for column in columns)
        text = f"INSERT INTO {table.name} ({names}) VALUES ({', '.join(terms)}){exists}{self._using(draft, is_conditional=is_conditional)}"
        return text, "INSERT", "if not exists" if is_conditional else "values"

    def _value(self, draft, column):
        if column.role in (PARTITION, CLUSTERING):
            return conditions.key(draft, self.table, column)
        return draft.term(column.kind)

    def _insert_json(self, draft, is_conditional):
        rng, table = self.rng, self.table
        members = {column.name: _json(rng, column.kind) for column in table.columns if column.role in (PARTITION, CLUSTERING) or rng.random() < 0.6}
        if draft.is_spoiled:
            members[rng.choice(("nope", "v0", "P0", '"p0"'))] = rng.choice((1, "x", None, [1], {"a": 1}, 1.5, True))
        text = json.dumps(members, ensure_ascii=False)
        value = draft.marker(text.encode()) if rng.random() < draft.bound else "'" + text.replace("'", "''") + "'"
        default = rng.choice(("", "", " DEFAULT UNSET", " DEFAULT NULL"))
        exists = " IF NOT EXISTS" if is_conditional else ""
        return f"INSERT INTO {table.name} JSON {value}{default}{exists}{self._using(draft, is_conditional=is_conditional)}", "INSERT", "json"

    def _update(self, draft, is_conditional):
        rng, table = self.rng, self.table
        using = self._using(draft, is_conditional=is_conditional)
        columns = table.values
        if table.of(STATIC) and rng.random() < 0.15:
            columns = table.of(STATIC)
        chosen = rng.sample(columns, min(len(columns), rng.choice((1, 1, 2))))
        changes = ", ".join(self._change(draft, column) for column in chosen)
        is_static = all(column.role == STATIC for column in chosen)
        where = self._where(draft, is_static and rng.random() < 0.9, is_conditional)
        condition = f" IF {conditions.conditions(draft, table)}" if is_conditional else ""
        form = "conditional" if is_conditional else "static" if is_static else "row"
        return f"UPDATE {table.name}{using} SET {changes} WHERE {where}{condition}", "UPDATE", form

    def _where(self, draft, is_partition, is_conditional):
        rng, table = self.rng, self.table
        relations = conditions.partition(draft, table, may_be_many=not is_conditional or rng.random() < 0.1)
        if not is_partition:
            relations += conditions.row(draft, table) if rng.random() < 0.92 else conditions.clusterings(draft, table, may_be_any=True)
        if draft.is_spoiled and rng.random() < 0.4:
            relations = relations[:-1] if rng.random() < 0.5 and len(relations) > 1 else relations + [rng.choice(relations)]
        return " AND ".join(relations)

    def _change(self, draft, column):
        rng, kind, name = self.rng, column.kind, column.name
        if rng.random() < (0.35 if not kind.is_frozen else 0.97):
            return f"{name} = {draft.term(kind)}"
        if kind.name == "udt":
            field, inner = rng.choice(kind.fields)
            return f"{name}.{field} = {draft.term(inner)}"
        if kind.name == "list":
            if rng.random() < 0.6:
                return self._added(draft, column)
            return f"{name}[{draft.term(_INT, rng.choice(_INT.usual))}] = {draft.term(kind.element)}"
        if kind.name == "map" and rng.random() < 0.5:
            return f"{name}[{draft.term(kind.key)}] = {draft.term(kind.element)}"
        return self._added(draft, column)

    def _added(self, draft, column):
        """`c = c + …`, `c -= …`; of a map keys are taken away."""
        rng, kind, name = self.rng, column.kind, column.name
        operator = rng.choice("++-")
        other = kinds.Set(kind.key, True) if kind.name == "map" and operator == "-" else kind
        if kind.name == "list" and rng.random() < 0.3:
            return f"{name} = {draft.term(kind)} + {name}"
        if rng.random() < 0.4:
            return f"{name} {operator}= {draft.term(other)}"
        return f"{name} = {name} {operator} {draft.term(other)}"

    def _delete(self, draft, is_conditional):
        rng, table = self.rng, self.table
        of_columns = self._deletes_columns if table.is_counter else rng.random() < 0.45
        targets, form, of_static = self._targets(draft) if of_columns else ("", "row", False)
        using = self._using(draft, may_expire=False, is_conditional=is_conditional)
        relations = conditions.partition(draft, table, may_be_many=not is_conditional or rng.random() < 0.1)
        chance = rng.random()
        if of_static and chance < 0.9:
            pass
        elif targets or chance < 0.55:
            relations += conditions.row(draft, table)
        else:
            more = conditions.clusterings(draft, table, may_be_any=draft.is_spoiled)
            form = "range" if more else "partition"
            relations += more
        condition = f" IF {conditions.conditions(draft, table)}" if is_conditional else ""
        form = f"conditional {form}" if is_conditional else form
        return f"DELETE {targets}FROM {table.name}{using} WHERE {' AND '.join(relations)}{condition}", "DELETE", form

    def _targets(self, draft):
        rng, table = self.rng, self.table
        columns = table.of(STATIC) if table.of(STATIC) and rng.random() < 0.3 else table.of(REGULAR)
        column = rng.choice(columns)
        kind = column.kind
        is_static = column.role == STATIC
        if kind is not None and kind.is_multicell and rng.random() < 0.7:
            if kind.name == "udt":
                return f"{column.name}.{rng.choice(kind.fields)[0]} ", "field", is_static
            key = _INT if kind.name == "list" else kind.key if kind.name == "map" else kind.element
            value = rng.choice(key.usual) if isinstance(key, kinds.Scalar) else None
            return f"{column.name}[{draft.term(key, value)}] ", "element", is_static
        return f"{', '.join(column.name for column in rng.sample(columns, min(len(columns), rng.choice((1, 1, 2)))))} ", "column", is_static

    def _count(self, draft):
        rng, table = self.rng, self.table
        column = rng.choice(table.values)
        is_static = column.role == STATIC
        if rng.random() < 0.3 if self._deletes is None else self._deletes:
            return self._delete(draft, rng.random() < 0.03)
        if rng.random() < 0.04:
            return self._insert_json(draft, False) if rng.random() < 0.2 else self._insert_counter(draft)
        using = self._using(draft) if rng.random() < 0.03 else ""
        amount = draft.long(rng.choice((1, 1, 2, 5, -3, 2**62, 0)))
        change = rng.choice((f"{column.name} = {column.name} + ", f"{column.name} += ", f"{column.name} -= ", f"{column.name} = {column.name} - "))
        return f"UPDATE {table.name}{using} SET {change}{amount} WHERE {self._where(draft, is_static, False)}", "UPDATE", "counter"

    def _insert_counter(self, draft):
        table = self.table
        columns = [*table.of(PARTITION, CLUSTERING), table.values[0]]
        terms = [conditions.key(draft, table, column) if column.kind else "1" for column in columns]
        return f"INSERT INTO {table.name} ({', '.join(column.name for column in columns)}) VALUES ({', '.join(terms)})", "INSERT", "counter"

    def _batch(self, draft):
        rng = self.rng
        is_conditional = rng.random() < 0.3 and not self.table.is_counter
        kind = rng.choice(("COUNTER ", "COUNTER ", "UNLOGGED ", "")) if self.table.is_counter else rng.choice(("", "UNLOGGED ", "UNLOGGED ", "COUNTER " if draft.is_spoiled else ""))
        using = ""
        was_stamped = self.is_stamped
        if self.is_stamped and not self.table.is_counter and not is_conditional and rng.random() < 0.3:
            using = f" USING TIMESTAMP {draft.long(self._last)}"
            self.is_stamped = False
        keys = self.table.keys
        if is_conditional:
            # Of one partition, else they are refused.
            self.table.keys = keys | {column.name: [rng.choice(keys[column.name])] for column in self.table.of(PARTITION)}
        # Where a batch deletes and counts, 5.0.9 answers now this and now that.
        self._deletes = rng.random() < 0.3
        ones = [self._one(draft, is_conditional and rng.random() < 0.7)[0] for _ in range(rng.choice((1, 2, 2, 3)))]
        self._deletes = None
        self.table.keys, self.is_stamped = keys, was_stamped
        form = "conditional" if is_conditional else (kind.strip().lower() or "logged")
        return f"BEGIN {kind}BATCH{using} {'; '.join(ones)}; APPLY BATCH", "BATCH", form


def _json(rng, kind):
    """A value as JSON has it, often in another form than the one that is usual."""
    if rng.random() < 0.05:
        return rng.choice((None, 1, "x", [], {}, 1.5))
    if kind is None:
        return 1
    if kind.name in ("list", "set", "vector"):
        return [_json(rng, kind.element) for _ in range(getattr(kind, "dimension", rng.randrange(3)))]
    if kind.name == "tuple":
        return [_json(rng, element) for element in kind.elements]
    if kind.name == "udt":
        return {name: _json(rng, field) for name, field in kind.fields}
    if kind.name == "map":
        pairs = [(_json(rng, kind.key), _json(rng, kind.element)) for _ in range(rng.randrange(3))]
        # Not one key in two forms: Cassandra decides by addresses in memory which of its values stays.
        return {_text(key): value for key, value in {_plain(key): (key, value) for key, value in pairs}.values()}
    literal = kind.value(rng).literal
    if literal.startswith("'"):
        return literal[1:-1].replace("''", "'")
    if rng.random() < 0.2 or kind.name not in (*kinds.NUMBERS, "boolean"):
        return literal
    return literal if literal.strip("-") in ("NaN", "Infinity") else json.loads(literal)


def _plain(value):
    """What the forms of a value have in common."""
    if isinstance(value, dict):
        return tuple((name, _plain(of)) for name, of in value.items())
    return tuple(map(_plain, value)) if isinstance(value, list) else _text(value).lower()


def _text(value):
    return value if isinstance(value, str) else json.dumps(value)
