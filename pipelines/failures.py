"""Why a run failed, in one line: what the pipeline itself said, else what went wrong at the bottom."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from typing import Any

from warehouse import files
from warehouse.errors import NO_ROOM_TO_SPILL, BusyError, KernelmartError

MAKE_ROOM = "make room there ('kernelmart snapshots prune' and 'raw prune' do in a home), and try again"
# DuckDB goes on to say what to do with settings of its own.
_NO_MEMORY = re.compile(r"Out of Memory Error: ([^()]* \([^()]* used\)).*")
_FULL = re.compile("|".join(re.escape(os.strerror(code)) for code in files.NO_ROOM))
_PLACE = re.compile(r"""['"](/[^'"]+)['"]""")


def why(error: Any) -> str:
    """One line for an error as Dagster keeps it, a `SerializableErrorInfo`."""
    found = _bottom(error)
    message = " ".join(found.message.split())
    if found.cls_name in _expected():
        return advised(message.partition(": ")[2])
    # Each library tells of a full disk in its own words.
    full, place = _FULL.search(message), _PLACE.search(message)
    return advised(f"{place[1]}: {full[0]}" if full and place else message)


def advised(message: str) -> str:
    """A line that says what to do, too, where a disk is full or memory was too little."""
    if NO_ROOM_TO_SPILL in message:
        return f"DuckDB's temporary files: {os.strerror(errno.ENOSPC)}; {MAKE_ROOM}"
    if lacking := _NO_MEMORY.search(message):
        return f"DuckDB {lacking[1]}; set KERNELMART_MEMORY_LIMIT to more, as 1GB, and try again"
    return f"{message}; {MAKE_ROOM}" if _FULL.search(message) and "make room" not in message else message


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
