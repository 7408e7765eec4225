"""An HTTP proxy that lets nothing through."""

from __future__ import annotations

from typing import Self

from replica.answers import Answer, json_answer
from replica.serving import Request, Server


class RefusingProxy:
    """A context in which a proxy on loopback answers every request with the same refusal.

    Args:
        answer: the refusal, by default a status 403.
    """

    def __init__(self, answer: Answer | None = None) -> None:
        refusal = answer or json_answer({"error": "this proxy refuses"}, 403)
        self._server = Server(lambda _: refusal)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def url(self) -> str:
        """What goes into a proxy setting."""
        return self._server.urls[0]

    @property
    def requests(self) -> list[Request]:
        """What the proxy was asked for; a path is the whole address, or host and port of a CONNECT."""
        return self._server.requests
