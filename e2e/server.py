"""`halcyon serve` as tests start, stop, kill and ask it."""

import random
import signal
import socket
import subprocess
import time

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

from patience import PATIENCE_SECONDS, until

HOST = "127.0.0.1"


def free_port():
    """Not one that the kernel gives to clients: a client that connects to a port before its listener is bound could meet itself."""
    while True:
        port = random.randrange(15000, 30000)
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) != 0:
                return port


def flush_statement(keyspace, table=""):
    """What `nodetool flush` sends; without a table, of the whole keyspace."""
    return f"INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) VALUES ('flush', '{keyspace}', '{table}', '')"


class Server:
    """One data directory and the process that serves it, if one runs."""

    def __init__(self, binary, folder, *options, before=None):
        """`before` is called in the new process before it becomes the server."""
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self._binary = binary
        self._options = options
        self._before = before
        self._process = None
        self._clusters = []

    def launch(self):
        """Without waiting until it listens."""
        command = [self._binary, "serve", "--data-dir", self.data, "--port", str(self.port), *self._options]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, preexec_fn=self._before)

    def start(self):
        self.launch()
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise AssertionError(f"the server ended with {self._process.returncode}:\n{self.said()}")
            if self._answers():
                return self
            time.sleep(0.02)
        self.kill()
        raise AssertionError(f"the server does not listen after {PATIENCE_SECONDS} s:\n{self.said()}")

    @property
    def pid(self):
        return self._process.pid

    def is_running(self):
        return self._process.poll() is None

    def said(self):
        return (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")

    def connect(self, protocol_version=5, **options):
        """A session of the Python driver; closed with the server."""
        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=PATIENCE_SECONDS)
        cluster = Cluster(
            [HOST], port=self.port, protocol_version=protocol_version, connect_timeout=PATIENCE_SECONDS,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile}, **options,
        )
        self._clusters.append(cluster)
        return cluster.connect()

    def stop(self, by=signal.SIGTERM):
        """Drains and answers the exit status."""
        self._disconnect()
        self._process.send_signal(by)
        status = self._process.wait(timeout=PATIENCE_SECONDS)
        self._process = None
        return status

    def kill_process(self):
        """SIGKILL, with drivers still connected."""
        self._process.kill()

    def kill(self):
        self._disconnect()
        self.kill_process()
        self._process.wait(timeout=PATIENCE_SECONDS)
        self._process = None
        # The kernel closes the sockets of an io_uring some time after its process: until then it still lets clients connect.
        until(lambda: not self._listens(), f"port {self.port} is still open", pause=0.02)

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0

    def _answers(self):
        """To OPTIONS: a socket of the process before it, which the kernel has not closed yet, only lets clients connect."""
        try:
            with socket.create_connection((HOST, self.port), timeout=PATIENCE_SECONDS) as probe:
                probe.sendall(bytes([4, 0, 0, 0, 5, 0, 0, 0, 0]))
                return bool(probe.recv(1))
        except OSError:
            return False

    def close(self):
        self._disconnect()
        if self._process is not None:
            self.kill()

    def _disconnect(self):
        for cluster in self._clusters:
            cluster.shutdown()
        self._clusters.clear()
