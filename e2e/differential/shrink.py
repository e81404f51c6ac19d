"""The fewest steps after which two servers still differ in the last one: delta debugging, each trial in a keyspace of its own."""

import time

from .step import Act, Session

# Of one difference: each trial makes its tables again.
_LONGEST_SECONDS = 30


class Shrinker:
    """`differs(session)` answers the signature of the difference in the last step, if there is one."""

    def __init__(self, differs):
        self._differs = differs
        self._end = 0.0

    def shrink(self, session, place, signature):
        last = session.steps[place]
        before = session.steps[:place]
        self._end = time.monotonic() + _LONGEST_SECONDS

        def still(steps):
            return self._differs(Session(session.seed, session.schema, [*steps, last])) == signature

        for lighter in ([], [step for step in before if isinstance(step, Act) or not step.is_read]):
            if len(lighter) < len(before) and still(lighter):
                before = lighter
                break
        before = self._fewer(before, still)
        return Session(session.seed, session.schema, [*before, last])

    def _fewer(self, steps, still):
        size = len(steps) // 2
        while size and time.monotonic() < self._end:
            start = 0
            while start < len(steps) and time.monotonic() < self._end:
                rest = steps[:start] + steps[start + size :]
                if still(rest):
                    steps = rest
                else:
                    start += size
            size //= 2
        return steps
