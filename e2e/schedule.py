"""
How long tests take, and in which order they run: what takes longest begins first.

`durations.json` has for each test function how often it runs, the seconds of all and of the slowest. `--record-durations` writes it.
A test that takes more than `UNMARKED_SECONDS` needs a mark `timeout`: the others are ended after the `timeout` of pytest.ini, which leaves
room for a host that is four times as slow (test_schedule.py).
"""

import json
from collections import defaultdict
from pathlib import Path

DURATIONS = Path(__file__).resolve().parent / "durations.json"
UNMARKED_SECONDS = 30
UNKNOWN_SECONDS = 5

_took = defaultdict(float)


def function(nodeid):
    """Without parameters and without the group, which stands behind an @."""
    return nodeid.split("[")[0].split("@")[0]


def _known():
    return json.loads(DURATIONS.read_text(encoding="utf-8")) if DURATIONS.exists() else {}


def _group(item):
    mark = item.get_closest_marker("xdist_group")
    return mark.args[0] if mark else item.nodeid


def sort(items):
    known = _known()
    seconds = defaultdict(float)
    for item in items:
        found = known.get(function(item.nodeid))
        seconds[_group(item)] += found["all"] / found["count"] if found else UNKNOWN_SECONDS

    def place(item):
        group = _group(item)
        return -seconds[group], group, item.get_closest_marker("stops_the_node") is not None

    items.sort(key=place)


def unmarked(items):
    """Tests that take long and have no mark `timeout`."""
    slow = {name for name, found in _known().items() if found["slowest"] > UNMARKED_SECONDS}
    return {function(item.nodeid) for item in items if item.get_closest_marker("timeout") is None} & slow


def add(report):
    _took[report.nodeid] += report.duration


def record():
    functions = defaultdict(list)
    for nodeid, seconds in _took.items():
        functions[function(nodeid)].append(seconds)
    facts = {name: {"count": len(took), "all": round(sum(took), 1), "slowest": round(max(took), 1)} for name, took in functions.items()}
    lines = [f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in sorted((_known() | facts).items())]
    DURATIONS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
