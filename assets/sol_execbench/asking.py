"""What the walk of SOL-ExecBench needs of a client, and how the client says that there is no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from warehouse.errors import UnreachableError, UnreadableError


class AnswerError(UnreadableError):
    """One request has no usable answer; others may have."""


class NotThereError(AnswerError):
    """The service says that there is no such thing."""


class ServiceError(UnreadableError):
    """The service cannot be asked any more in this run."""


class AwayError(ServiceError, UnreachableError):
    """The service cannot be reached now; it may be there in a while."""


class Api(Protocol):
    """A client of the API: polite, bounded in time and size, one request at a time."""

    def get(self, segments: Sequence[str], query: Mapping[str, str]) -> bytes:
        """The body of an answer with status 200, whatever it is.

        Args:
            segments: of the path below the API's own, any text.
            query: any text.

        Raises:
            NotThereError: where there is no such thing.
            AnswerError: where this request has no answer.
            ServiceError: where no further request should be made.
        """
        ...
