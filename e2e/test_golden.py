"""Without a JVM: our dumps and our compactions against what Cassandra said and did when the golden files were made."""

import subprocess

import pytest

from cases import assert_same, golden_tables, logical
from patience import PATIENCE_SECONDS

SSTABLES = [
    (golden, data_file)
    for golden in golden_tables()
    for part in ("sstables", "compacted")
    for data_file in golden.data_files(part)
]


@pytest.mark.parametrize("golden, data_file", SSTABLES, ids=lambda value: getattr(value, "name", None))
def test_dump_is_sstabledump(halcyon, golden, data_file):
    """Every name, value, order and position of Cassandra's own dump."""
    theirs = golden.dump_of(data_file)
    if theirs is None:
        pytest.skip("sstabledump itself fails on this file")
    assert_same(halcyon.dump(data_file, golden), theirs)


@pytest.mark.parametrize("golden", golden_tables(), ids=repr)
def test_verify_accepts_cassandras_files(halcyon, golden):
    halcyon.run("sstable", "verify", "--extended", *golden.data_files())


@pytest.mark.parametrize("golden", golden_tables(), ids=repr)
def test_compaction_is_cassandras(halcyon, golden, tmp_path):
    """The same inputs and the same bound for purging leave the same logical content."""
    ours = halcyon.compact(golden, tmp_path / "out", golden.version)
    theirs = golden.data_files("compacted")
    assert len(ours) == len(theirs)
    for our_file, their_file in zip(ours, theirs):
        dump = golden.dump_of(their_file)
        if dump is not None:
            assert_same(logical(halcyon.dump(our_file, golden)), logical(dump))


def test_exit_codes(halcyon, tmp_path):
    """The exit status reports a failure, never a text alone."""
    missing = tmp_path / "oa-1-big-Data.db"
    for command in (("sstable", "dump"), ("sstable", "verify"), ("sstable", "describe"), ("compact",)):
        done = halcyon_status(halcyon, *command, missing)
        assert done != 0, command
    assert halcyon_status(halcyon, "no-such-command") == 2


def halcyon_status(halcyon, *arguments):
    assert halcyon.path.exists(), f"no binary at {halcyon.path}"
    return subprocess.run([str(halcyon.path), *map(str, arguments)], capture_output=True, timeout=PATIENCE_SECONDS).returncode
