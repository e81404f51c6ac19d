"""
`halcyon sstable verify --extended` beside Cassandra's own verification: what Cassandra finds a problem in, we do; what is sound has none.

Cassandra runs without a node: its offline verification, on a copy of a directory that a drained one left. Each SSTable that is damaged gets an
identifier of its own, because a JVM of Cassandra remembers what a path was.
"""

import json
import random
import re
import shutil

import pytest

from conftest import REPOSITORY
from oracle.desks import DeskError, Tools

TABLES = ["t", "cnt"]
COMPONENTS = ["Data.db", "Index.db", "Summary.db", "Filter.db", "Statistics.db", "CompressionInfo.db", "Digest.crc32"]
# Where Cassandra decodes a component, and compares it with nothing: we compare it with the rows.
UNCOMPARED = {"Index.db", "Summary.db", "Filter.db", "CompressionInfo.db"}
# What a node of Cassandra makes again when it opens the SSTable, as ours does; the offline tool opens nothing, and takes another summary than the
# table's options ask for as damage.
REMADE = {"Summary.db"}
FLIPS = 8


@pytest.fixture(scope="module")
def verdicts(halcyon, cassandra_options, tmp_path_factory):
    home = tmp_path_factory.mktemp("verified")
    shutil.copytree(REPOSITORY / "testdata/nodes/5.0.9-drained/data", home / "data")
    release = cassandra_options.oracle / "5.0.9"
    config = home / "cassandra.yaml"
    config.write_text(_config(release / "tool-conf/cassandra.yaml", home), encoding="utf-8")
    properties = [f"-Dcassandra.storagedir={home}", f"-Dcassandra.config=file://{config}", f"-XX:ErrorFile={home}/crash.log"]
    verdicts = Verdicts(halcyon, lambda: Tools(release / "java", *properties), home / "data/ks")
    yield verdicts
    verdicts.close()


def _config(of_tools, home):
    """The settings of the offline tools, with directories of this test alone."""
    moved = re.sub(r"(_directory: ).*/", rf"\g<1>{home}/", of_tools.read_text(encoding="utf-8"))
    return re.sub(r"(data_file_directories: ).*", rf"\g<1>[{home}/data]", moved)


class Verdicts:
    """Two verdicts of one SSTable, which is alone in its table."""

    def __init__(self, halcyon, start, keyspace):
        self._halcyon, self._start, self._tools = halcyon, start, start()
        self._id = 100
        self._folders = {folder.name.split("-")[0]: folder for folder in keyspace.iterdir()}
        self._sound = {}
        for table, folder in self._folders.items():
            self._sound[table] = {path.name.split("-")[-1]: path.read_bytes() for path in folder.glob("oa-1-big-*")}
            for path in folder.glob("oa-*"):
                path.unlink()

    def close(self):
        self._tools.close()

    def files(self, table):
        return dict(self._sound[table])

    def of(self, table, files):
        """Whether each finds a problem, and what we say."""
        self._id += 1
        folder = self._folders[table]
        paths = {folder / f"oa-{self._id}-big-{component}": data for component, data in files.items()}
        for path, data in paths.items():
            path.write_bytes(data)
        try:
            theirs, said = self._theirs(table)
            ours = json.loads(self._ours(folder))
        finally:
            for path in paths:
                path.unlink(missing_ok=True)
        return theirs, not ours["sound"], f"{ours['problems']}; Cassandra: {said}"

    def _theirs(self, table):
        try:
            assert self._tools.verify("ks", table) == 1
            return False, "sound"
        except DeskError as refused:
            return True, str(refused)
        except RuntimeError as died:
            # Chunks of an impossible length end the JVM itself.
            self._tools = self._start()
            return True, str(died)

    def _ours(self, folder):
        done = self._halcyon.try_run("sstable", "verify", "--extended", "--json", folder)
        assert done.returncode == (0 if json.loads(done.stdout)["sound"] else 1), done
        return done.stdout


@pytest.mark.parametrize("table", TABLES)
def test_what_is_sound_and_what_is_missing(verdicts, table):
    """Proves that nothing is a problem of a sound SSTable, nor of one that lacks what can be made again."""
    assert verdicts.of(table, verdicts.files(table))[:2] == (False, False)
    for component in ("Summary.db", "Filter.db", "Digest.crc32", "TOC.txt"):
        files = verdicts.files(table)
        del files[component]
        theirs, ours, said = verdicts.of(table, files)
        # A node of Cassandra makes the summary before it verifies; its offline tool does not.
        assert (theirs, ours) == (component == "Summary.db", False), f"without {component}: {said}"
    files = verdicts.files(table)
    files["TOC.txt"] = b"\n".join(reversed(files["TOC.txt"].splitlines())) + b"\n"
    assert verdicts.of(table, files)[:2] == (False, False), "lines of TOC.txt in another order"


@pytest.mark.parametrize("component", COMPONENTS)
def test_damaged(verdicts, request, component):
    """Proves of flipped bytes that we find each problem that Cassandra finds, but of what is made again, and others only where it does not look."""
    seed = request.config.getoption("--seed") or 14092
    places = random.Random(f"{seed} {component}")
    missed, stricter = [], []
    for table in TABLES:
        for _ in range(FLIPS):
            files = verdicts.files(table)
            damaged = bytearray(files[component])
            at, flip = places.randrange(len(damaged)), places.randrange(1, 256)
            damaged[at] ^= flip
            files[component] = bytes(damaged)
            theirs, ours, said = verdicts.of(table, files)
            told = f"seed {seed}: {table}, {component}, byte {at} flipped by {flip:#x}: {said}"
            if theirs and not ours:
                missed.append(told)
            if ours and not theirs:
                stricter.append(told)
    assert component in REMADE or not missed, "\n".join(missed)
    assert component in UNCOMPARED or not stricter, "\n".join(stricter)
