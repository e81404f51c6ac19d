"""
Which cases of a matrix a landing runs: a fifth, so that five landings in a row run all of them.

1. `landing.txt` has the number of the landing. A landing's last commit adds one to it, so the commit decides, and a run can be repeated.
2. `cargo x test` passes `--landing`, which means that number; `--landing=N` means another. Without the option, as in `cargo x e2e` and `cargo x nightly`, every case runs.
3. A parametrized test with the mark `rotates` keeps the cases of the landing, and at least one. A test that loops over a matrix asks the
   fixture `rotation` for the part to loop over.
"""

from collections import defaultdict
from pathlib import Path

from schedule import function

LANDINGS = 5


def landing():
    return int((Path(__file__).resolve().parent / "landing.txt").read_text(encoding="utf-8"))


def part(cases, landing):
    """The cases of a landing: every fifth of them, or one of fewer than five. Without a landing, all of them."""
    cases = list(cases)
    step = min(LANDINGS, len(cases))
    return cases if landing is None or step == 0 else cases[landing % step :: step]


def deselect(items, landing):
    """Leaves in `items` what this landing runs, and answers the others. Cases count in the order of their names."""
    matrices = defaultdict(list)
    for item in items:
        if item.get_closest_marker("rotates") is not None:
            matrices[function(item.nodeid)].append(item)
    others = set()
    for cases in matrices.values():
        cases.sort(key=lambda item: item.nodeid)
        others.update(set(cases) - set(part(cases, landing)))
    deselected = [item for item in items if item in others]
    items[:] = [item for item in items if item not in others]
    return deselected
