"""Without a JVM: our dumps and our compactions against what Cassandra said and did when the golden files were made."""

import json
import os
import shutil

import pytest

from cases import TESTDATA, assert_same, golden_tables, logical

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
    said = halcyon.run("sstable", "verify", "--extended", "--json", *golden.data_files()).stdout
    for verdict in map(json.loads, said.splitlines()):
        assert verdict["sound"] and not verdict["remarks"], verdict


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
        assert halcyon.try_run(*command, missing).returncode != 0, command
    assert halcyon.try_run("no-such-command").returncode == 2


@pytest.fixture
def folder(tmp_path):
    """A copy of a golden table with several SSTables."""
    copy = tmp_path / "sstables"
    shutil.copytree(TESTDATA / "oa/purge/sstables", copy)
    return copy


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_outputs_belong_to_whom_the_inputs_belong(halcyon, folder):
    """Proves that Cassandra can open what root has compacted in its directory."""
    for path in folder.iterdir():
        os.chown(path, 12345, 54321)
        path.chmod(0o640)
    before = {path.name for path in folder.iterdir()}
    halcyon.run("compact", folder)
    written = [path for path in folder.iterdir() if path.name not in before]
    assert len(written) >= 8
    assert {(path.stat().st_uid, path.stat().st_gid, path.stat().st_mode & 0o777) for path in written} == {(12345, 54321, 0o640)}


def test_a_neighbour_that_cannot_be_opened(halcyon, folder, tmp_path):
    """Proves that it does not stop a compaction of others, and that nothing is purged then: it could have what a tombstone deletes."""
    first, second, *_ = sorted(folder.glob("*-Data.db"))
    statistics = second.with_name(second.name.replace("Data.db", "Statistics.db"))
    whole = statistics.read_bytes()
    for damage in ("cut", "old"):
        arguments = ["compact", first, "--output", tmp_path / damage, "--gc-before", "2147483647", "--json"]
        assert purged(halcyon.run(*arguments)) > 0
        shutil.rmtree(tmp_path / damage)
        if damage == "cut":
            statistics.write_bytes(whole[:40])
        else:
            (folder / "ks-t-ka-1-Data.db").write_bytes(b"x")
        done = halcyon.run(*arguments)
        assert purged(done) == 0 and "nothing is purged" in done.stderr, done.stderr
        statistics.write_bytes(whole)


def purged(done):
    return sum(one["tombstones_purged"] for table in json.loads(done.stdout)["tables"] for one in table["compactions"])


def test_sstables_of_before_3_0_are_named(halcyon, folder):
    """Proves that nothing passes over files `….db` of which it cannot tell what they are."""
    (folder / "ks-t-ka-1-Data.db").write_bytes(b"x")
    (folder / "stray.db").write_bytes(b"x")
    refused = halcyon.run("sstable", "verify", folder, status=3).stderr
    assert "version ka was written before Cassandra 3.0" in refused and "stray.db is not named" in refused, refused
