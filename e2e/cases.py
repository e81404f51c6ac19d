"""Golden tables as test cases, the binary, and how dumps are compared."""

import json
import subprocess
from pathlib import Path

from patience import PATIENCE_SECONDS

TESTDATA = Path(__file__).resolve().parent.parent / "testdata"

# Which release of Cassandra opens a version, and which format a version belongs to.
RELEASES = {"nb": "5.0.9", "oa": "5.0.9", "da": "5.0.9", "pa": "6.0-alpha2", "ea": "6.0-alpha2"}
FORMATS = {"nb": "big", "oa": "big", "pa": "big", "da": "bti", "ea": "bti"}
# Compacted from the first version to the second.
CONVERSIONS = [
    ("nb", "nb"), ("oa", "oa"), ("da", "da"), ("nb", "oa"), ("nb", "da"), ("oa", "nb"), ("oa", "da"), ("da", "oa"),
    ("pa", "pa"), ("ea", "ea"), ("oa", "pa"), ("da", "ea"), ("pa", "ea"), ("ea", "pa"),
]  # fmt: skip
# Expirations after 2038 cannot be written in nb.
NOT_IN_NB = {"ttl_beyond_2038"}


class Golden:
    """One table under testdata/<version>/."""

    def __init__(self, folder):
        self.folder = folder
        self.version = folder.parent.name
        self.name = folder.name
        self.facts = json.loads((folder / "table.json").read_text(encoding="utf-8"))
        self.schema = folder / "schema.cql"

    def __repr__(self):
        return f"{self.version}/{self.name}"

    @property
    def is_table(self):
        return self.facts["kind"] == "TABLE"

    def data_files(self, part="sstables"):
        return sorted((self.folder / part).glob("*-Data.db"))

    def compacted_inputs(self):
        """The table's folder, or the SSTables that were compacted while others stayed there."""
        names = self.facts["compacted_inputs"]
        everything = len(names) == len(self.data_files())
        return [self.folder / "sstables"] if everything else [self.folder / "sstables" / name for name in names]

    def left_alone(self):
        return [path for path in self.data_files() if path.name not in self.facts["compacted_inputs"]]

    def schema_options(self):
        """The schema of a view holds its base table too. That of an index's table is not in any file."""
        which = () if self.facts["kind"] == "INDEX" else ("--table", self.name)
        return ("--schema", self.schema, *which)

    def dump_of(self, data_file):
        """Cassandra's own dump, or None where sstabledump itself had failed."""
        dumps = {"sstables": "dumps", "compacted": "compacted-dumps"}[data_file.parent.name]
        path = self.folder / dumps / (data_file.name.removesuffix("-Data.db") + ".json")
        return load_dump(path.read_text(encoding="utf-8")) if path.exists() else None

    def rows(self):
        return json.loads((self.folder / "select.json").read_text(encoding="utf-8"))


def golden_tables(*versions):
    folders = (path.parent for path in sorted(TESTDATA.glob("*/*/table.json")))
    return [Golden(folder) for folder in folders if not versions or folder.parent.name in versions]


class Binary:
    """The program under test. A command that fails is a failed test that shows what was said."""

    def __init__(self, path):
        self.path = path

    def try_run(self, *arguments):
        """What it said and how it ended, whatever that is."""
        assert self.path.exists(), f"no binary at {self.path}: cargo build --package halcyon"
        command = [str(self.path), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=PATIENCE_SECONDS)

    def run(self, *arguments, status=0):
        done = self.try_run(*arguments)
        shown = f"{' '.join(done.args)}\nstatus {done.returncode}\n{done.stderr[-4000:]}"
        assert done.returncode == status, shown
        return done

    def dump(self, data_file, golden):
        done = self.run("sstable", "dump", data_file, *golden.schema_options(), "--format", "json")
        assert done.stdout.strip(), f"`halcyon sstable dump {data_file}` printed nothing"
        return load_dump(done.stdout)

    def compact(self, golden, output, version):
        """What Cassandra's own major compaction did, by us: same inputs, same bound for purging."""
        output.mkdir(parents=True)
        bound = ("--gc-before", golden.facts["gc_before"]) if "gc_before" in golden.facts else ()
        self.run(
            "compact", *golden.compacted_inputs(), "--output", output, *golden.schema_options(),
            "--version", version, "--format", FORMATS[version], *bound,
        )  # fmt: skip
        written = sorted(output.rglob("*-Data.db"))
        wrong = [path.name for path in written if not path.name.startswith(f"{version}-")]
        assert not wrong, f"asked for version {version}, got {wrong}"
        return written


class _Number(str):
    """A JSON number by its spelling: 1.0 is not 1, and -0.0 is not 0.0."""


def load_dump(text):
    # sstabledump prints cell values without quotes, NaN and Infinity among them.
    return json.loads(text, parse_float=_Number, parse_int=_Number, parse_constant=_Number)


def logical(dump):
    """A dump without the positions, which say where in the file a thing lies."""
    if isinstance(dump, list):
        return [logical(item) for item in dump]
    if isinstance(dump, dict):
        is_place = "partition" in dump or "type" in dump or "key" in dump
        return {
            name: logical(value) for name, value in dump.items() if not (is_place and name == "position")
        }
    return dump


def difference(ours, theirs):
    """The first place where two dumps differ, for a message that fits a screen."""

    def walk(path, a, b):
        if type(a) is not type(b):
            return f"{path}: ours {_short(a)}, Cassandra's {_short(b)}"
        if isinstance(a, dict):
            for name in list(a) + [name for name in b if name not in a]:
                if name not in a or name not in b:
                    return f"{path}.{name}: only in {'ours' if name in a else 'Cassandra’s'}: {_short(a.get(name, b.get(name)))}"
                found = walk(f"{path}.{name}", a[name], b[name])
                if found:
                    return found
            if list(a) != list(b):
                return f"{path}: order of names {list(a)}, Cassandra's {list(b)}"
        elif isinstance(a, list):
            for i, (left, right) in enumerate(zip(a, b)):
                found = walk(f"{path}[{i}]", left, right)
                if found:
                    return found
            if len(a) != len(b):
                longer = a if len(a) > len(b) else b
                return f"{path}: {len(a)} items, Cassandra has {len(b)}; first extra {_short(longer[min(len(a), len(b))])}"
        elif a != b:
            return f"{path}: ours {_short(a)}, Cassandra's {_short(b)}"
        return None

    return walk("$", ours, theirs)


def _short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else text[:300] + "…"


def assert_same(ours, theirs):
    found = difference(ours, theirs)
    assert found is None, found
