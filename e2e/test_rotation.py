"""Which cases of a matrix a landing runs."""

from itertools import chain

from rotation import LANDINGS, part


def test_five_landings_in_a_row_run_every_case():
    for length in range(30):
        for first in range(7):
            parts = [part(range(length), landing) for landing in range(first, first + LANDINGS)]
            assert set(chain(*parts)) == set(range(length))
            assert all(parts) or length == 0


def test_without_a_landing_every_case_runs():
    assert part(range(9), None) == list(range(9))
