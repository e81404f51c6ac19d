"""Signals end a server only where its operator means that, and then as a stop does: it drains."""

import os
import resource
import signal
import subprocess

import pytest

from native import Client
from patience import PATIENCE_SECONDS, until
from server import Server

HARMLESS = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO, signal.SIGPIPE]
HARMLESS += [signal.SIGXFSZ, signal.SIGQUIT, signal.SIGRTMIN, signal.SIGRTMAX, signal.SIGWINCH, signal.SIGURG, signal.SIGCHLD]
STOPPING = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPWR, signal.SIGXCPU]


@pytest.mark.parametrize("stopping", STOPPING, ids=lambda stopping: stopping.name)
def test_signals_stop_or_do_nothing(request, tmp_path, stopping):
    server = Server(request.config.getoption("--halcyon"), tmp_path).start()
    try:
        for number in HARMLESS:
            os.kill(server.pid, number)
        client = Client(server.port)
        assert client.query("SELECT key FROM system.local")[1]
        client.close()
        assert server.stop(by=stopping) == 0, server.said()
        assert stopping.name in server.said() and "drained" in server.said(), server.said()
        assert "SIGQUIT: this is not a JVM" in server.said(), server.said()
    finally:
        server.close()


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))


def test_files_that_may_not_grow_are_an_error(request, tmp_path):
    """A flush beyond the limit of the process fails, and the server goes on."""
    config = tmp_path / "cassandra.yaml"
    config.write_text("commitlog_segment_size: 1MiB\ndisk_failure_policy: ignore\n", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), tmp_path, "--config", config, before=small_files).start()
    try:
        client = Client(server.port)
        client.query("CREATE KEYSPACE f WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.query("CREATE TABLE f.t (k int PRIMARY KEY, v blob)")
        for k in range(40):
            client.query(f"INSERT INTO f.t (k, v) VALUES ({k}, 0x{os.urandom(200_000).hex()})")
        command = [request.config.getoption("--halcyon"), "nodetool", "-p", str(server.port), "flush"]
        flushed = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert flushed.returncode != 0 and "File too large" in flushed.stderr + flushed.stdout, flushed
        # A thread of its own writes the log.
        until(lambda: "File too large" in server.said(), "the log does not say why")
        assert len(client.query("SELECT k FROM f.t")[1]) == 40
        client.close()
    finally:
        server.close()
