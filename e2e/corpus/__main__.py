"""Writes the corpus of one SSTable version through a running node. `cargo x corpus` starts the node."""

import argparse
import itertools
import shutil
import sys
import time
from pathlib import Path

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

from oracle.desks import Jmx, Tools

from .harvest import Harvest, parts_of
from .table import KEYSPACE
from .tables import all_tables

# Statements without USING TIMESTAMP get these, one after the other: a corpus that is made again has the same timestamps.
FIRST_TIMESTAMP = 1_700_000_000_000_000


def main():
    arguments = parse()
    chosen = [table for table in all_tables() if wanted(table, arguments)]
    cluster = connect(arguments.native_port)
    session = cluster.connect()
    session.execute(
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    session.set_keyspace(KEYSPACE)
    with Jmx(arguments.java, arguments.jmx_port) as jmx, Tools(arguments.java) as tools:
        harvest = Harvest(
            session, jmx, tools, arguments.storage_dir, arguments.out, arguments.release, arguments.version
        )
        for table in chosen:
            attempt(harvest.write, table)
        # Let every TTL of one second run out, and every deletion fall behind a gc_grace of 0.
        time.sleep(3)
        for table in chosen:
            attempt(harvest.keep_flushed, table)
        for table in chosen:
            attempt(harvest.keep_compacted, table)
    cluster.shutdown()
    if arguments.golden_dir:
        keep_golden([table for table in chosen if table.golden], arguments.out, arguments.golden_dir)
    print(f"{len(chosen)} tables of version {arguments.version} in {arguments.out}")


def keep_golden(tables, out, golden_dir):
    """Copies the folders of golden tables, and of the views and indexes that belong to them."""
    for part in (part for table in tables for part in parts_of(table)):
        shutil.rmtree(golden_dir / part.folder, ignore_errors=True)
        shutil.copytree(out / part.folder, golden_dir / part.folder)


def attempt(step, table):
    try:
        step(table)
    except Exception as error:
        sys.exit(f"corpus: {step.__name__} of table {table.name}: {error}")


def connect(port):
    stamps = itertools.count(FIRST_TIMESTAMP)
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=120)
    return Cluster(
        ["127.0.0.1"],
        port=port,
        protocol_version=5,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        timestamp_generator=lambda: next(stamps),
        connect_timeout=30,
        control_connection_timeout=30,
    )


def wanted(table, arguments):
    named = not arguments.only or any(table.name.startswith(prefix) for prefix in arguments.only)
    return named and arguments.version in table.versions


def parse():
    parser = argparse.ArgumentParser(prog="corpus", description=__doc__)
    parser.add_argument("--version", required=True)
    parser.add_argument("--release", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--golden-dir", type=Path)
    parser.add_argument("--native-port", type=int, required=True)
    parser.add_argument("--jmx-port", type=int, required=True)
    parser.add_argument("--storage-dir", required=True)
    parser.add_argument("--java", required=True)
    parser.add_argument("--only", action="append", default=[])
    return parser.parse_args()


main()
