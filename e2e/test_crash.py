"""A few kills in each `commitlog_sync` mode; `cargo x soak crash` makes a thousand."""

import random

import pytest

from crash import SETTINGS, SYNC, Campaign
from server import Server

LONGEST_LOAD_SECONDS = 2.0


@pytest.mark.parametrize("sync", SYNC)
def test_nothing_acknowledged_is_lost(request, tmp_path, sync):
    kills = request.config.getoption("--kills")
    seed = request.config.getoption("--seed") or random.randrange(1 << 32)
    print(f"--seed={seed}")
    chance = random.Random(seed)
    config = tmp_path / "cassandra.yaml"
    config.write_text(f"auto_snapshot: {chance.choice(['true', 'false'])}\n{SETTINGS}{SYNC[sync]}", encoding="utf-8")
    server = Server(request.config.getoption("--halcyon"), tmp_path, "--config", config)
    try:
        campaign = Campaign(server, chance, LONGEST_LOAD_SECONDS)
        while campaign.figures.kills < kills:
            campaign.kill()
        assert campaign.count().acknowledged > 20 * kills, campaign.figures
        assert server.stop() == 0
    finally:
        server.close()
