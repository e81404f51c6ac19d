"""A small file system under a node, filled up, and made read-only by its kernel. Needs root, to mount it."""

import os
import subprocess
from contextlib import contextmanager

import pytest
from cassandra import DriverException
from cassandra.cluster import NoHostAvailable

from server import Server

MIB = 1 << 20
CONFIG = """
commitlog_segment_size: 1MiB
commitlog_total_space: 8MiB
memtable_heap_space: 4MiB
memtable_offheap_space: 4MiB
"""
POLICIES = {
    "goes_on": "disk_failure_policy: best_effort\ncommit_failure_policy: ignore\n",
    "stops": "disk_failure_policy: stop\ncommit_failure_policy: stop\n",
}


@contextmanager
def file_system(tmp_path, mib):
    image, place = tmp_path / "image", tmp_path / "mounted"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(mib * MIB)
    try:
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True, capture_output=True)
        mount(image, place)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    try:
        yield image, place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def mount(image, place):
    subprocess.run(["mount", "-o", "loop", image, place], check=True, capture_output=True)


def node(request, tmp_path, place, policy):
    config = tmp_path / "cassandra.yaml"
    config.write_text(CONFIG + POLICIES[policy], encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), tmp_path, "--config", config)
    server.data = place / "data"
    return server


def create(session):
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v text) WITH compression = {'enabled': 'false'}")
    return session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")


def write(session, insert, keys, until_refused=False):
    """Those that were acknowledged."""
    acknowledged = set()
    for k in keys:
        try:
            session.execute(insert, (k, str(k).ljust(4096, ".")))
            acknowledged.add(k)
        except (DriverException, NoHostAvailable):
            if until_refused:
                return acknowledged
    return acknowledged


def keys(session):
    return {row.k for row in session.execute("SELECT k FROM ks.t")}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a file system")
@pytest.mark.parametrize("policy", POLICIES)
def test_a_full_disk(request, tmp_path, policy):
    """Nothing acknowledged is lost; where the policies say so, writes resume when there is room again."""
    with file_system(tmp_path, 96) as (_, place):
        server = node(request, tmp_path, place, policy)
        try:
            session = server.start().connect()
            insert = create(session)
            acknowledged = write(session, insert, range(200))
            free = os.statvfs(place)
            ballast = place / "ballast"
            with ballast.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - 6 * MIB)
            full = write(session, insert, range(1000, 30_000), until_refused=True)
            assert len(full) < 29_000, "it was never full"
            acknowledged |= full
            if policy == "goes_on":
                assert keys(session) >= acknowledged
            ballast.unlink()
            if policy == "goes_on":
                end = write(session, insert, range(50_000, 50_300))
                assert end, server.said()
                acknowledged |= end
                assert keys(session) >= acknowledged
            server.kill()
            session = server.start().connect()
            assert keys(session) >= acknowledged
            assert server.stop() == 0, server.said()
        finally:
            server.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a file system")
@pytest.mark.parametrize("policy", POLICIES)
def test_a_disk_becomes_read_only(request, tmp_path, policy):
    """As after an error of the device: ext4 aborts its journal and refuses every write. It is repaired, and mounted again."""
    with file_system(tmp_path, 96) as (image, place):
        server = node(request, tmp_path, place, policy)
        try:
            session = server.start().connect()
            insert = create(session)
            acknowledged = write(session, insert, range(200))
            subprocess.run(["mount", "-o", "remount,abort", place], check=True)
            acknowledged |= write(session, insert, range(1000, 1100))
            assert server.is_running(), server.said()
            if policy == "goes_on":
                assert keys(session) >= acknowledged
            server.kill()
            # A start that fails says why, and changes nothing.
            with pytest.raises(AssertionError, match="the server ended with 3"):
                server.start()
            subprocess.run(["umount", place], check=True)
            repaired = subprocess.run(["e2fsck", "-fy", image], capture_output=True, text=True)
            assert repaired.returncode in (0, 1), repaired
            mount(image, place)
            session = server.start().connect()
            assert keys(session) >= acknowledged
            assert server.stop() == 0, server.said()
        finally:
            server.close()
