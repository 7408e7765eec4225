"""Log lines on standard error: one a step from this project, warnings from everybody else."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any, TextIO, cast

# What Dagster says of an event that it cannot store: it fails then, or tries once more.
_OF_EVENTS = (
    "Exception while writing logger call to event log",
    "Exception while storing event batch",
    "Falling back to",
)


def configure() -> None:
    """Write lines as the command line does, unless somebody has seen to it already."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("kernelmart").setLevel(logging.INFO)


@contextmanager
def without_lost_events() -> Iterator[None]:
    """Have what Dagster writes to standard error of events that it cannot store be lines of the log, for debugging."""
    with redirect_stderr(cast(TextIO, _WithoutLostEvents(sys.stderr))):
        yield


class _WithoutLostEvents:
    """A stream that is another one but for some lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    # There are handlers of logs that close every stream but standard error, and know that by comparing.
    def __eq__(self, other: object) -> bool:
        return other is self or other is self._stream

    def __hash__(self) -> int:
        return hash(self._stream)

    def write(self, text: str) -> int:
        if not text.startswith(_OF_EVENTS):
            return self._stream.write(text)
        logging.getLogger("kernelmart").debug(" ".join(text.split()))
        return len(text)
