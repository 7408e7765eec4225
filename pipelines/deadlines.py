"""A deadline for what a client's own timeouts, which run from byte to byte, do not bound: headers that drip."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Protocol, TypeVar


class _Closable(Protocol):
    def close(self) -> object: ...


Response = TypeVar("Response", bound=_Closable)


def within(seconds: float, request: Callable[[], Response]) -> Response:
    """The response to a request whose headers all came before a deadline.

    A request that is late is left to a thread of its own, which no process waits for at its end; should it be answered
    after all, the answer is closed.

    Args:
        seconds: from now to the deadline.
        request: makes the request, and returns when the headers have come.

    Raises:
        TimeoutError: where they have not. The request's own errors go on as they are.
    """
    answered: Future[Response] = Future()

    def ask() -> None:
        try:
            answered.set_result(request())
        except BaseException as error:
            answered.set_exception(error)

    threading.Thread(target=ask, name="request", daemon=True).start()
    if wait([answered], seconds).not_done:
        answered.add_done_callback(_close)
        raise TimeoutError(f"no answer within {seconds:g} s")
    return answered.result()


def _close(answered: Future[Response]) -> None:
    if answered.exception() is None:
        answered.result().close()
