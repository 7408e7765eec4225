"""Work of several threads, its results in order. Arrow, Parquet and hashes let threads run at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Event
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items, the next two of them made in a thread of their own while one is in use."""
    iterator = iter(items)
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(_next, iterator) for _ in range(2))
        while found := waiting.popleft().result():
            waiting.append(thread.submit(_next, iterator))
            yield from found


def in_threads(work: Callable[[Item], Made], items: Iterable[Item], threads: int) -> Iterator[Made]:
    """What becomes of each item, in order. Where one fails, what was begun is ended, and no other is begun."""
    stopped = Event()

    def one(item: Item) -> Made:
        # Items are begun in order: whoever waits for this one comes to the one that failed before.
        if stopped.is_set():
            raise CancelledError
        try:
            return work(item)
        except BaseException:
            stopped.set()
            raise

    with ThreadPoolExecutor(threads) as pool:
        begun = deque(pool.submit(one, item) for item in items)
        try:
            while begun:
                yield begun.popleft().result()
        finally:
            stopped.set()


def _next(iterator: Iterator[Item]) -> tuple[Item, ...]:
    """The next item alone, or nothing."""
    return next(((item,) for item in iterator), ())
