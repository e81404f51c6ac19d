"""Cassandra and `halcyon serve` for a campaign. Both begin anew now and then: with each keyspace that was made, a node has less memory."""

import tempfile
from collections import Counter
from pathlib import Path

from native import ASKED
from oracle.desks import Jmx
from oracle.node import Node
from patience import TIMEOUTS
from server import Server

from .pair import Pair

RELEASE = "5.0.9"
# As those of the nodes beside it (oracle/src/config.rs).
HALCYON = f"""storage_compatibility_mode: NONE
sasi_indexes_enabled: true
materialized_views_enabled: true
dynamic_data_masking_enabled: true
user_defined_functions_enabled: true
{TIMEOUTS}"""
_MOST_KEYSPACES = 300


class Servers:
    """`running`: the ports of a Cassandra that `cargo x oracle start` left running, native and JMX, instead of one that is started here."""

    def __init__(self, halcyon, xtask, oracle, running=None):
        self._halcyon, self._xtask, self._oracle, self._running = halcyon, xtask, oracle, running
        self._spent = {"Cassandra": Counter(), "Halcyon": Counter()}
        self._folder = self._node = self._jmx = self._server = self._pair = None

    def pair(self):
        if self._pair is not None and len(self._pair.keyspaces) >= _MOST_KEYSPACES:
            self.close()
        if self._pair is None:
            self._start()
        return self._pair

    def _start(self):
        self._folder = tempfile.TemporaryDirectory(prefix="differential-")
        folder = Path(self._folder.name)
        config = folder / "cassandra.yaml"
        config.write_text(HALCYON, encoding="utf-8")
        self._server = Server(self._halcyon, folder, "--config", config).start()
        if self._running:
            native, jmx = self._running
            self._jmx = Jmx(self._oracle / RELEASE / "java", jmx)
        else:
            self._node = Node(self._xtask, self._oracle, RELEASE, folder / "node")
            native, self._jmx = self._node.facts["native_port"], self._node.jmx
        self._pair = Pair(native, self._jmx, self._server)

    def seconds(self):
        """By server: what its time went for."""
        lanes = {} if self._pair is None else {"Cassandra": self._pair.cassandra, "Halcyon": self._pair.halcyon}
        return {name: spent + (lanes[name].seconds if lanes else Counter()) for name, spent in self._spent.items()}

    def close(self):
        if self._pair is None:
            return
        self._spent = self.seconds()
        if self._running:
            self._pair.drop()
            self._jmx.close()
        self._pair.close()
        self._pair = None
        self._server.close()
        if self._node:
            self._node.close()
        self._folder.cleanup()
        # Which statements were asked is of no use beyond a session, and grows.
        ASKED.clear()
