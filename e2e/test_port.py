"""Nodes that want one port: one of them gets it, from its start on, and nothing of it outlives a kill."""

import time

from native import Client
from server import Server


def test_one_of_two_nodes_gets_the_port(request, tmp_path):
    """Proves that of two nodes started at one time on one port one serves and the other ends with the port and the cure in its message, and
    that after a kill the other one gets the port."""
    servers = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        servers.append(Server(request.config.getoption("--halcyon"), tmp_path / name))
    port = servers[1].port = servers[0].port
    try:
        for _ in range(3):
            for server in servers:
                server.launch()
            end = time.monotonic() + 60
            while all(server.is_running() for server in servers):
                assert time.monotonic() < end, "both run"
                time.sleep(0.02)
            (loser,) = [server for server in servers if not server.is_running()]
            (winner,) = [server for server in servers if server.is_running()]
            assert f"cannot listen on 127.0.0.1:{port}" in loser.said() and "choose another port with --port" in loser.said()
            while not winner._answers():
                assert winner.is_running() and time.monotonic() < end, winner.said()
                time.sleep(0.02)
            Client(port).close()
            winner.kill()
            Client(loser.start().port).close()
            loser.kill()
    finally:
        for server in servers:
            server.close()
