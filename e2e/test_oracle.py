"""
Cassandra opens what we compacted: for each golden table, in its own version and converted to others.

1. Our output is dumped by sstabledump: it must say what our own dump says, positions included, and
   have the content of Cassandra's own compaction of the same inputs.
2. A table with the same schema takes our output in (import verifies it, extended) and answers SELECT JSON *
   as the table of the golden files did.
3. `nodetool verify --extended` passes on it; and in the end, the node being stopped, StandaloneVerifier does.

The control tests do the same with files that Cassandra wrote: if they fail, the harness is wrong.
"""

import shutil

import pytest

from cases import CONVERSIONS, NOT_IN_NB, RELEASES, assert_same, golden_tables, load_dump, logical
from oracle.node import KEYSPACE

CASES = [
    (golden, target)
    for source, target in CONVERSIONS
    for golden in golden_tables(source)
    if not (target == "nb" and golden.name in NOT_IN_NB)
]
FEW = {"deletions", "dropped_columns", "user_types", "wide_desc", "vectors", "QuotedTable"}
CONTROLS = [(golden, golden.version) for golden in golden_tables() if golden.name in FEW]


def name(case):
    golden, target = case
    return f"{RELEASES[target]}-{golden.version}-{target}-{golden.name}"


def place(scratch, case):
    """A path of this case alone: pytest uses its own again, and a JVM of Cassandra remembers what a path was."""
    golden, target = case
    return scratch / f"{golden.version}-{target}" / KEYSPACE / golden.name


@pytest.mark.parametrize("case", CONTROLS, ids=name)
def test_control(nodes, case, tmp_path):
    golden, version = case
    node = nodes.get(RELEASES[version])
    folder = place(tmp_path, case)
    shutil.copytree(golden.folder / "compacted", folder)
    for data_file in sorted(folder.glob("*-Data.db")):
        ours = load_dump(node.dump(data_file, tmp_path))
        assert_same(ours, golden.dump_of(golden.folder / "compacted" / data_file.name))
    assert_answers(node, golden, folder)


@pytest.mark.rotates
@pytest.mark.parametrize("case", CASES, ids=name)
def test_cassandra_opens_our_compaction(halcyon, nodes, case, tmp_path):
    golden, target = case
    node = nodes.get(RELEASES[target])
    folder = place(tmp_path, case)
    ours = halcyon.compact(golden, folder, target)
    theirs = golden.data_files("compacted")
    assert len(ours) == len(theirs)
    for our_file, their_file in zip(ours, theirs):
        read_by_cassandra = load_dump(node.dump(our_file, tmp_path))
        assert_same(halcyon.dump(our_file, golden), read_by_cassandra)
        assert_same(logical(read_by_cassandra), logical(golden.dump_of(their_file)))
    if golden.is_table:
        assert_answers(node, golden, folder)


@pytest.mark.stops_the_node
@pytest.mark.parametrize("release", sorted(set(RELEASES.values())))
def test_standalone_verifier(nodes, release):
    """Last of its release: what the tests above left in its tables passes offline verification."""
    node = nodes.get(release)
    node.stop()
    if not node.created:
        pytest.skip("no test above has used this node")
    with node.offline_tools() as tools:
        for table in sorted(node.created):
            tools.verify(KEYSPACE, table)
    status, said = node.standalone_verifier(sorted(node.created)[-1])
    assert status == 0, said


def assert_answers(node, golden, folder):
    """Takes the SSTables of `folder`, and those not compacted, into a table of the golden schema; they are moved."""
    for data_file in golden.left_alone():
        for component in data_file.parent.glob(data_file.name.replace("Data.db", "*")):
            shutil.copyfile(component, folder / component.name)
    node.create(golden.name, golden.schema)
    if list(folder.glob("*-Data.db")):
        node.take_in(golden.name, folder)
    assert node.select(golden.name) == golden.rows()
    node.jmx.verify(KEYSPACE, golden.name)
