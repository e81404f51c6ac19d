"""`cargo x soak crash`: many kills in each `commitlog_sync` mode, and a table of what was done."""

import argparse
import json
import random
import shutil
import sys
import tempfile
import traceback
from dataclasses import asdict
from pathlib import Path

from crash import SETTINGS, SYNC, Campaign
from server import Server

LONGEST_LOAD_SECONDS = 0.5
COLUMNS = ("sync", "kills", "kills_during_start", "starts", "acknowledged", "sstables_written", "compactions", "seconds", "failure")
SHOW_EVERY = 10


def soak(arguments, sync, seed):
    """One mode; the figures, and what was wrong."""
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix=f"soak-{sync}-"))
    config = folder / "cassandra.yaml"
    config.write_text(f"auto_snapshot: false\n{SETTINGS}{SYNC[sync]}", encoding="utf-8")
    server = Server(arguments.halcyon, folder, "--config", config)
    campaign, failure = None, ""
    try:
        campaign = Campaign(server, chance, LONGEST_LOAD_SECONDS)
        while campaign.figures.kills < arguments.kills:
            campaign.kill()
            if campaign.figures.kills % SHOW_EVERY == 0:
                show(sync, campaign.count(), arguments.kills)
        status = server.stop()
        if status != 0:
            failure = f"the drain ended with {status}"
    except Exception as fault:  # what was served last is what explains it
        traceback.print_exc()
        failure = f"{type(fault).__name__}: {fault}; its directory is {folder}"
    finally:
        server.close()
    figures = asdict(campaign.count()) if campaign else {}
    if not failure:
        shutil.rmtree(folder)
    return {"sync": sync, "seed": seed, **figures, "failure": failure}


def show(sync, figures, kills):
    line = f"{sync}: {figures.kills} of {kills} kills, {figures.acknowledged} operations acknowledged, {figures.seconds:.0f} s"
    end = "\r" if sys.stderr.isatty() else "\n"
    print(line, end=end, file=sys.stderr, flush=True)


def table(results):
    lines = [COLUMNS] + [tuple(shown(result.get(column, "")) for column in COLUMNS) for result in results]
    widths = [max(len(line[place]) for line in lines) for place in range(len(COLUMNS) - 1)]
    for line in lines:
        print("  ".join([*(cell.rjust(width) for cell, width in zip(line, widths)), line[-1]]))


def shown(value):
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser(prog="cargo x soak crash", description=__doc__)
    parser.add_argument("--halcyon", type=Path, required=True)
    parser.add_argument("--kills", type=int, required=True)
    parser.add_argument("--sync", choices=SYNC, action="append")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--report", type=Path)
    arguments = parser.parse_args()
    seed = arguments.seed or random.randrange(1 << 32)
    print(f"--seed {seed}", flush=True)
    results = [soak(arguments, sync, seed) for sync in arguments.sync or SYNC]
    table(results)
    if arguments.report:
        arguments.report.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    sys.exit(any(result["failure"] for result in results))


main()
