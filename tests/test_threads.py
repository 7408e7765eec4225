"""What is made by other threads: in order, with its errors, and with nothing begun in vain."""

from __future__ import annotations

import itertools
import operator
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from warehouse.threads import ahead, in_threads


def test_what_is_made_ahead_comes_in_order_and_with_its_error() -> None:
    assert list(ahead(range(9))) == list(range(9))
    assert list(ahead([])) == []
    # What counts as nothing is an item like any other.
    assert list(ahead([None, 0, "", None])) == [None, 0, "", None]
    # Whoever stops early is not kept waiting.
    assert list(itertools.islice(ahead(itertools.count()), 2)) == [0, 1]

    def broken() -> Iterator[int]:
        yield from range(3)
        raise ValueError("broken off")

    got: list[int] = []
    with pytest.raises(ValueError, match="broken off"):
        got.extend(ahead(broken()))
    assert got == [0, 1, 2]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_of_threads_come_in_order(threads: int) -> None:
    assert list(in_threads(partial(operator.mul, 2), range(50), threads)) == [2 * number for number in range(50)]
    assert list(in_threads(partial(operator.mul, 2), [], threads)) == []


def test_two_threads_work_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=30)
    assert sorted(in_threads(lambda _: both.wait(), range(2), 2)) == [0, 1]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_where_one_fails_what_was_begun_is_ended_and_nothing_else_begun(threads: int) -> None:
    begun: list[int] = []
    ended: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        if number == 1:
            # All threads have begun something by now.
            time.sleep(0.05)
            raise ValueError("no second one")
        time.sleep(0.2 if number else 0.2 * (threads > 1))
        ended.append(number)

    with pytest.raises(ValueError, match="no second one"):
        list(in_threads(work, range(100), threads))
    assert set(begun) == set(range(threads + (threads == 1)))
    assert set(ended) == set(begun) - {1}
