"""Sessions that a grammar makes from fixed seeds answer as in Cassandra: differential/ tells how, `cargo x differential` runs others."""

import pytest

from differential.campaign import Campaign
from differential.pair import Pair
from differential.servers import HALCYON
from server import Server

SESSIONS = 12


class Shared:
    """The node that other tests use too, and a server of its own."""

    def __init__(self, node, server):
        self._pair = Pair(node.facts["native_port"], node.jmx, server)

    def pair(self):
        return self._pair

    def close(self):
        self._pair.drop()
        self._pair.close()


@pytest.fixture(scope="module")
def servers(nodes, request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("generated")
    config = folder / "cassandra.yaml"
    config.write_text(HALCYON, encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), folder, "--config", config).start()
    shared = Shared(nodes.get("5.0.9"), server)
    yield shared
    shared.close()
    server.close()


@pytest.mark.timeout(600)
@pytest.mark.seeds(6)
def test_sessions_answer_as_in_cassandra(servers, seed):
    told = []
    campaign = Campaign(servers, seed * SESSIONS, tell=told.append)
    for session in range(seed * SESSIONS, (seed + 1) * SESSIONS):
        campaign.one(session)
    assert not campaign.seen, "\n".join(told)
