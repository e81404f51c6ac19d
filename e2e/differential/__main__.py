"""What `cargo x differential` runs."""

import argparse
import random
import sys
from pathlib import Path

from .campaign import Campaign
from .servers import Servers


def main():
    parser = argparse.ArgumentParser(prog="cargo x differential", description=__doc__)
    parser.add_argument("--halcyon", type=Path, required=True)
    parser.add_argument("--xtask", type=Path, required=True)
    parser.add_argument("--oracle", type=Path, required=True)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--running", type=int, nargs=2)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    seed = random.randrange(1 << 32) if arguments.seed is None else arguments.seed
    print(f"--seed {seed}", flush=True)
    servers = Servers(arguments.halcyon, arguments.xtask, arguments.oracle, arguments.running)
    campaign = Campaign(servers, seed, arguments.out, not arguments.whole, tell=lambda text: print(text, flush=True))
    try:
        campaign.run(arguments.minutes and arguments.minutes * 60, arguments.sessions)
    finally:
        print("\n".join(campaign.report()), flush=True)
        servers.close()
    sys.exit(bool(campaign.seen))


main()
