"""How tests are scheduled (schedule.py)."""

import schedule


def test_slow_tests_have_a_timeout_of_their_own(request):
    assert not schedule.unmarked(request.session.items)
