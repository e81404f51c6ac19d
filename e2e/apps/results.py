"""
What a suite's own report says of each test: passed, failed or skipped. A test that only
contains others counts where it fails and none of them does: what comes before or after them failed.
"""

from xml.etree import ElementTree

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_OF_GO = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}


def of_go(label, events):
    """Of `go test -json`. A test that a panic or a limit of time ended has no verdict: it failed."""
    verdicts = {}
    for event in events:
        if "Test" in event:
            name = f"{label} {event['Test']}"
            verdicts[name] = _OF_GO.get(event["Action"], verdicts.get(name, FAILED))
    return {name: verdict for name, verdict in verdicts.items() if not _is_told_by_its_parts(name, verdict, verdicts)}


def _is_told_by_its_parts(name, verdict, verdicts):
    parts = {other for part, other in verdicts.items() if part.startswith(name + "/")}
    return bool(parts) and (verdict != FAILED or FAILED in parts)


def of_junit(files):
    """Of JUnit's XML, which pytest and Maven write."""
    return {
        f"{case.get('classname', '').rsplit('.', 1)[-1]} {case.get('name')}": _of_case(case)
        for file in files for case in ElementTree.parse(file).getroot().iter("testcase")
    }


def _of_case(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return FAILED
    return SKIPPED if case.find("skipped") is not None else PASSED
