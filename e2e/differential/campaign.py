"""Sessions one after the other until the time is over: what ran, what differed, where the time went."""

import re
import time
from collections import Counter, defaultdict
from typing import NamedTuple

from . import known, session as sessions
from .shrink import Shrinker
from .step import Act, Session

# Of differences that look alike, so many are shrunk.
_SHRUNK_OF_ONE_SIGNATURE = 1
_WORDS = re.compile(r"0x[0-9a-fA-F]*|'[^']*'|\b\w*\d\w*\b|frozen<.*>|\w+<.*>|[\[{(].*[\])}]|[\u0080-\uffff]")


class Difference(NamedTuple):
    place: int
    signature: tuple
    expected: object
    found: object


class Finding(NamedTuple):
    session: object
    difference: Difference


def _words(refused):
    """A message without what is of one statement only."""
    return _WORDS.sub("_", refused)[:80]


def _how(expected, found):
    """In which way answers differ that are no refusals."""
    for ours, theirs in zip(expected.lines, found.lines):
        if ours == theirs:
            continue
        if ours[0] != theirs[0] or ours[0] != "page":
            return ours[0]
        names = ("columns", "rows", "warnings", "page end")
        at = next(name for name, one, other in zip(names, ours[1:], theirs[1:]) if one != other)
        return "more rows here" if at == "rows" and len(theirs[2]) > len(ours[2]) else "fewer rows here" if at == "rows" and len(theirs[2]) < len(ours[2]) else at
    return "pages"


def signature(step, expected, found):
    """What two differences have in common that are one defect, most likely."""
    if expected.refused or found.refused:
        return tuple(_words(answer.refused) if answer.refused else "accepted" for answer in (expected, found))
    return step.verb, step.form, _how(expected, found)


class Campaign:
    """`servers.pair()` answers both servers as they are now; `folder` is where what differs is written."""

    def __init__(self, servers, seed, folder=None, is_shrinking=True, tell=print):
        self._servers, self._folder, self._is_shrinking, self._tell = servers, folder, is_shrinking, tell
        self._first = seed
        self.sessions = 0
        self.findings = defaultdict(list)
        self.seen = Counter()
        self.explained = Counter()
        self.forms = defaultdict(Counter)
        self.shrinking = self.seconds = 0.0

    def run(self, seconds=None, count=None):
        """The seeds of sessions follow each other, so that one of them can be run alone."""
        began = time.monotonic()
        while (count is None or self.sessions < count) and (seconds is None or time.monotonic() - began < seconds):
            self.one(self._first + self.sessions)
            self.sessions += 1
        self.seconds = time.monotonic() - began

    def one(self, seed):
        made = sessions.make(seed)
        expected, found = self._servers.pair().run(made)
        for step, answer in zip(made.steps, expected[len(made.schema) :]):
            if not isinstance(step, Act):
                form = f"{step.form}, spoiled" if step.is_spoiled else step.form
                self.forms[step.verb, form][answer.code is None] += 1
        if len(made.schema) < len(expected) < len(found):
            self.explained["Cassandra fails: the session ends where it flushes or compacts"] += 1
        for difference in self._differences(made, expected, found):
            self.seen[difference.signature] += 1
            if len(self.findings[difference.signature]) < _SHRUNK_OF_ONE_SIGNATURE:
                self._find(made, difference)

    def _differences(self, made, expected, found, count=True):
        """Up to the first step that changes data in one way here and in another there; of rows that differ, the first."""
        are_alike = True
        pairs = list(zip(expected, found))
        defined = made.schema + [step.text for step in made.steps if not isinstance(step, Act) and step.verb in ("CREATE", "ALTER")]
        for place, step in enumerate(made.schema):
            theirs, ours = pairs[place]
            if known.comparable(theirs) != known.comparable(ours):
                yield Difference(place - len(made.schema), ("schema", _words(str(theirs.refused)), _words(str(ours.refused))), theirs, ours)
                return
        for place, (theirs, ours) in enumerate(pairs[len(made.schema) :]):
            step = made.steps[place]
            if isinstance(step, Act) or known.comparable(theirs) == known.comparable(ours):
                continue
            reason = known.explained(defined, step, theirs, ours)
            are_rows = not theirs.refused and not ours.refused
            if reason is None and (are_alike or not are_rows):
                are_alike = are_alike and not are_rows
                yield Difference(place, signature(step, theirs, ours), theirs, ours)
            elif reason and count:
                self.explained[reason] += 1
            if not step.is_read and (theirs.refused is None or ours.refused is None or reason and "fails" in reason):
                return

    def _find(self, made, difference):
        began = time.monotonic()
        shrunk, difference = self._shrunk(made, difference)
        self.shrinking += time.monotonic() - began
        self.findings[difference.signature].append(Finding(shrunk, difference))
        text = told(shrunk, difference)
        self._tell(f"{text}\n")
        if self._folder:
            self._folder.mkdir(parents=True, exist_ok=True)
            name = f"{made.seed}-{difference.place}-{len(self.findings)}.txt"
            (self._folder / name).write_text(text, encoding="utf-8")

    def _shrunk(self, made, difference):
        if difference.place < 0:
            return Session(made.seed, made.schema[: len(made.schema) + difference.place + 1]), difference
        if not self._is_shrinking:
            return Session(made.seed, made.schema, made.steps[: difference.place + 1]), difference
        last = {}

        def differs(session):
            expected, found = self._servers.pair().run(session)
            for one in self._differences(session, expected, found, count=False):
                if one.place == len(session.steps) - 1:
                    last["found"] = one
                    return one.signature
            return None

        shrunk = Shrinker(differs).shrink(made, difference.place, difference.signature)
        if differs(shrunk) == difference.signature:
            return shrunk, last["found"]
        return Session(made.seed, made.schema, made.steps[: difference.place + 1]), difference

    def report(self):
        asked = sum(sum(counts.values()) for counts in self.forms.values())
        yield f"{self.sessions} sessions from seed {self._first}, {asked} statements in {self.seconds:.0f} s, {self.shrinking:.0f} of them for shrinking"
        for (verb, form), counts in sorted(self.forms.items()):
            yield f"  {verb:8} {form:28} {counts[True]:7} accepted {counts[False]:7} refused"
        for name, seconds in self._servers.seconds().items():
            yield f"  {name}: " + ", ".join(f"{kind} {spent:.1f} s" for kind, spent in seconds.most_common())
        for reason, times in self.explained.most_common():
            yield f"  {times} explained: {reason}"
        for signature, times in self.seen.most_common():
            yield f"  {times} differ: {' | '.join(signature)}"


def told(session, difference):
    """As a session file of `record_sessions.py` has it, so that it can become a test; the answers are comments."""
    lines = [f"# --seed {session.seed} --sessions 1"]
    lines += [f"! {text}" for text in session.schema]
    for place, step in enumerate(session.steps):
        if isinstance(step, Act):
            lines.append(f"# {step.name}")
            continue
        mark = ">" if place == difference.place else "!" if not step.values and not step.is_prepared else ">"
        page = f"{step.page_size}" if step.page_size else ""
        if step.values or step.is_prepared:
            lines.append(f">p {step.text}")
            lines.append(f">b {' '.join(map(_bound, step.values))}")
        else:
            lines.append(f"{mark} {step.text}")
        if page:
            lines.append(f"# in pages of {page}")
    lines += [f"# C {_shown(difference.expected)}", f"# H {_shown(difference.found)}"]
    return "\n".join(lines) + "\n"


def _bound(value):
    return "null" if value is None else "''" if value == b"" else value.hex() if isinstance(value, bytes) else "unset"


def _shown(answer):
    if answer.refused:
        return f"! {answer.refused}" + ("  (once prepared)" if answer.lines else "")
    return "\n#   ".join(_line(line) for line in answer.lines)


def _line(line):
    if line[0] != "page":
        return " ".join(map(str, line))
    _, columns, rows, warnings, more = line
    shown = ["(" + ", ".join("null" if value is None else value.hex() or "''" for value in row) + ")" for row in rows]
    return f"{', '.join(f'{name} {kind}' for name, kind in columns)}: {' '.join(shown)}{' ~' if more else ''}{' w ' + str(warnings) if warnings else ''}"
