"""How long a test waits for what happens soon: longer than that takes where other programs keep all cores busy."""

import time

# What hangs is ended and named before, by pytest's own timeout (pytest.ini, or a mark).
PATIENCE_SECONDS = 300
# Of a node that is not asked about them: on a busy host, or beside one that writes gigabytes, the defaults are too short at times.
TIMEOUTS = "".join(f"{kind}_timeout: 60s\n" for kind in ("read_request", "range_request", "write_request", "counter_write_request", "cas_contention"))


def until(is_so, what, pause=0.1):
    """Waits for a condition. `what` is the message if it stays false: a text, or a function that returns one."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(pause)
