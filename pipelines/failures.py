"""Why a run failed, in one line: what the pipeline itself said, else what went wrong at the bottom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warehouse.errors import BusyError, KernelmartError


def why(error: Any) -> str:
    """One line for an error as Dagster keeps it, a `SerializableErrorInfo`."""
    found = _bottom(error)
    message = " ".join(found.message.split())
    return message.partition(": ")[2] if found.cls_name in _expected() else message


def is_busy(error: Any) -> bool:
    """Whether a run gave way to another that held the home; that is no failure that anybody has to look at."""
    return error is not None and _bottom(error).cls_name == BusyError.__name__


def _bottom(error: Any) -> Any:
    expected = _expected()
    while error.cls_name not in expected and error.cause is not None:
        error = error.cause
    return error


def _expected() -> set[str]:
    return set(_names(KernelmartError))


def _names(kind: type[Exception]) -> Iterator[str]:
    yield kind.__name__
    for below in kind.__subclasses__():
        yield from _names(below)
