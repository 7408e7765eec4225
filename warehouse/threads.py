"""Work of several threads, its results in order. Arrow, Parquet and hashes let threads run at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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
    """What becomes of each item, in order. What was begun is ended where one fails; no other is begun then."""
    with ThreadPoolExecutor(threads) as pool:
        begun: deque[Future[Made]] = deque(pool.submit(work, item) for item in items)
        try:
            while begun:
                yield begun.popleft().result()
        finally:
            for future in begun:
                future.cancel()


def _next(iterator: Iterator[Item]) -> tuple[Item, ...]:
    """The next item alone, or nothing."""
    return next(((item,) for item in iterator), ())
