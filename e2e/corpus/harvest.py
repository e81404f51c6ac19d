"""
Lets Cassandra write a table and keeps everything it says about it.

    <out>/<table>/
      schema.cql        what Cassandra describes, with internals (table id, dropped columns)
      table.json        what the table covers; which clock readings the answers depend on
      select.json       the rows of SELECT JSON *, in the order in which Cassandra gives them
      sstables/         as flushed, one SSTable per round
      dumps/            per SSTable: <version>-<id>-<format>.json (sstabledump), .metadata.txt
      compacted/        what Cassandra's own major compaction made of sstables/
      compacted-dumps/  the same for it

1. `write` creates the table, without autocompaction, and flushes after each round.
2. `keep_flushed` copies and dumps, at a time when every TTL of one second has run out.
3. `keep_compacted` compacts and copies again; the rows selected must not change by it.
"""

import json
import shutil
import time
from pathlib import Path

from oracle.desks import DeskError

from .table import KEYSPACE, TrainDictionary


class Harvest:
    def __init__(self, session, jmx, tools, storage_dir, out, release, version):
        self.session = session
        self.jmx = jmx
        self.tools = tools
        self.storage = Path(storage_dir) / "data" / KEYSPACE
        self.out = out
        self.release = release
        self.version = version

    def write(self, table):
        for statement in table.types:
            self.session.execute(statement)
        self.session.execute(table.create())
        for statement in table.setup:
            self.session.execute(statement)
        stored = [_bare(table.name)] + [name for kind, name in table.derived if kind != "INDEX"]
        self.jmx.disable_autocompaction(KEYSPACE, *stored)
        for statements in table.rounds:
            self._execute(table, statements)
            self.jmx.flush(KEYSPACE, *stored)

    def keep_flushed(self, table):
        for part in parts_of(table):
            target = self.out / part.folder
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            (target / "schema.cql").write_text(self._schema(table, part), encoding="utf-8")
            if part.selectable:
                _write_json(target / "select.json", self._select(part))
            self._keep_files(part, target / "sstables", target / "dumps")
            _write_json(target / "table.json", self._describe(table, part))

    def keep_compacted(self, table):
        parts = parts_of(table)
        inputs = {part: self._inputs(table, part) for part in parts}
        before = int(time.time())
        if table.compact_rounds is None:
            self.jmx.compact(KEYSPACE, *[part.folder for part in parts])
        else:
            self.jmx.compact_files([self._directory(parts[0]) / name for name in inputs[parts[0]]])
        after = int(time.time())
        for part in parts:
            self._wait_for_deletion(part, inputs[part])
            self._keep_one_compacted(part, inputs[part], before, after)

    def _inputs(self, table, part):
        names = sorted(path.name for path in (self.out / part.folder / "sstables").glob("*-Data.db"))
        return names if table.compact_rounds is None else [names[i] for i in table.compact_rounds]

    def _keep_one_compacted(self, part, inputs, before, after):
        target = self.out / part.folder
        flushed = {path.name for path in (target / "sstables").iterdir()}
        self._keep_files(part, target / "compacted", target / "compacted-dumps", leave_out=flushed)
        description = json.loads((target / "table.json").read_text())
        description |= {"compacted_inputs": inputs, "compacted_between": [before, after]}
        if part.selectable:
            description["gc_before"] = before - self._gc_grace(part)
            rows = json.loads((target / "select.json").read_text(encoding="utf-8"))
            if rows != self._select(part):
                raise RuntimeError(f"{part.name}: compaction changed what is selected")
        _write_json(target / "table.json", description)

    def _execute(self, table, statements):
        for statement in statements:
            if isinstance(statement, TrainDictionary):
                self.jmx.train_dictionary(KEYSPACE, table.name)
            elif isinstance(statement, tuple):
                self.session.execute(statement[0].replace("$t", table.name), statement[1])
            else:
                self.session.execute(statement.replace("$t", table.name))

    def _schema(self, table, part):
        statements = [self._describe_one("TYPE", statement.split()[2]) for statement in table.types]
        kind, name = (part.kind, part.cql_name) if part.selectable else ("TABLE", part.base)
        if kind != "TABLE":
            statements.append(self._describe_one("TABLE", table.name))
        statements.append(self._describe_one(kind, name))
        return "\n\n".join(statements) + "\n"

    def _describe_one(self, kind, name):
        internals = "" if kind == "TYPE" else " WITH INTERNALS"
        rows = self.session.execute(f"DESCRIBE {kind} {KEYSPACE}.{name}{internals}")
        return "\n\n".join(row.create_statement for row in rows)

    def _select(self, part):
        return [row[0] for row in self.session.execute(f"SELECT JSON * FROM {part.cql_name}")]

    def _gc_grace(self, part):
        return self._schema_row(part).gc_grace_seconds

    def _schema_row(self, part):
        kind = "view" if part.kind == "MATERIALIZED VIEW" else "table"
        name = part.name if part.selectable else part.base
        query = f"SELECT id, gc_grace_seconds FROM system_schema.{kind}s WHERE keyspace_name = %s AND {kind}_name = %s"
        return self.session.execute(query, (KEYSPACE, name)).one()

    def _keep_files(self, part, sstables, dumps, leave_out=frozenset()):
        sstables.mkdir()
        dumps.mkdir()
        for path in sorted(self._directory(part).iterdir()):
            if path.is_file() and path.name not in leave_out:
                shutil.copyfile(path, sstables / path.name)
        for data in sorted(sstables.glob("*-Data.db")):
            descriptor = data.name.removesuffix("-Data.db")
            self._dump(data, dumps / f"{descriptor}.json")
            self._describe_metadata(data, dumps / f"{descriptor}.metadata.txt")

    def _wait_for_deletion(self, part, names):
        """Cassandra deletes the inputs of a compaction, and its log, some time after it has finished."""
        for _ in range(100):
            there = [path.name for path in self._directory(part).iterdir()]
            if not any(name in names or "_txn_" in name for name in there):
                return
            time.sleep(0.1)
        raise RuntimeError(f"{part.name}: inputs of its compaction still there")

    def _dump(self, data, output):
        """sstabledump itself dies on some files that Cassandra serves well; then there is no dump."""
        try:
            self.tools.dump(data, output)
        except DeskError as error:
            print(f"corpus: no dump of {data}: {error}")
            output.unlink()

    def _describe_metadata(self, data, output):
        """sstablemetadata names the file by its whole path; keep only the part below the corpus."""
        self.tools.metadata(data, output)
        text = output.read_text(encoding="utf-8")
        output.write_text(text.replace(f"{self.out.resolve()}/", ""), encoding="utf-8")

    def _directory(self, part):
        name = part.name if part.selectable else part.base
        directory = self.storage / f"{name}-{self._schema_row(part).id.hex}"
        return directory if part.selectable else directory / f".{part.name}"

    def _describe(self, table, part):
        return {
            "keyspace": KEYSPACE,
            "table": part.name,
            "kind": part.kind,
            "covers": table.covers,
            "cassandra": self.release,
            "version": self.version,
            "flushes": len(table.rounds),
            "golden": table.golden,
            "dumped_at": int(time.time()),
        }


class Part:
    """A table, or a view or an index that belongs to it."""

    def __init__(self, name, kind, base):
        self.cql_name = name
        self.name = _bare(name)
        self.kind = kind
        self.base = base
        self.folder = f"{base}.{name}" if kind == "INDEX" else self.name
        self.selectable = kind != "INDEX"


def parts_of(table):
    main = Part(table.name, "TABLE", _bare(table.name))
    return [main] + [Part(name, kind, table.name) for kind, name in table.derived]


def _bare(name):
    return name.strip('"')


def _write_json(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
