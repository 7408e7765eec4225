"""The HTTP session of the Hub's client: bounded in time, size and retries, and careful whom it tells a token."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from typing import Any

import httpx2
from huggingface_hub.utils._http import hf_request_event_hook, parse_ratelimit_headers

from pipelines.deadlines import within
from warehouse.errors import UnreachableError, UnreadableError

_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_ETAG = r'(W/)?"?[\w+=-]+"?'
_MARKS = {"etag": _ETAG, "x-linked-etag": _ETAG, "x-repo-commit": r"[0-9a-f]{40}"}


@dataclass
class Patience:
    """How long a run bears with the Hub.

    Attributes:
        tries: of one request, the first among them.
        retries: of all requests of a run together.
        first_wait: seconds before the second try; each further wait is twice as long, and a random part of that.
        longest_wait: seconds of one wait; whoever asks for a longer one is not asked again.
        timeout: seconds without a byte.
        headers: seconds in which the headers of an answer must have come, a connection made anew included.
        window: seconds of waiting in which `window_bytes` of an answer must come.
        answer_bytes: most bytes of an answer that is no file.
        answers: most answers of a run that are no files: a list of files may have pages without end.
    """

    tries: int = 5
    retries: int = 60
    first_wait: float = 1.0
    longest_wait: float = 120.0
    timeout: float = 30.0
    headers: float = 90.0
    window: float = 60.0
    window_bytes: int = 1 << 16
    answer_bytes: int = 1 << 26
    answers: int = 1_000
    used: int = field(default=0, init=False)
    begun: int = field(default=0, init=False)

    def begin(self, *, stream: bool) -> None:
        """Count a request that is about to be made; those for files are bounded by the files.

        Raises:
            UnreadableError: where it is one too many.
        """
        if not stream:
            self.begun += 1
            if self.begun > self.answers:
                raise UnreadableError(
                    f"the Hub takes more than {self.answers} answers to list its files; check HF_ENDPOINT"
                )

    def wait(self, tried: int, why: str, asked: float | None = None) -> None:
        """Wait before the next try.

        Args:
            tried: how often it was tried in vain.
            why: what happened the last time.
            asked: seconds that the server asks for.

        Raises:
            UnreadableError: where there is to be no further try.
            UnreachableError: where there may be one in a while.
        """
        if asked is not None and asked > self.longest_wait:
            raise UnreadableError(f"the Hub {why} and asks to be left alone for {asked:.0f} s; ingest again after that")
        if tried >= self.tries or self.used >= self.retries:
            raise UnreachableError(f"the Hub {why}, {tried} times in a row; ingest again later")
        self.used += 1
        backoff = min(self.longest_wait, self.first_wait * 2 ** (tried - 1)) * random.uniform(0.5, 1)  # noqa: S311
        time.sleep(max(backoff, asked or 0))


class HubSession(httpx2.Client):
    """A session that the Hub's client uses in place of its own.

    Every request is tried several times. Answers of the API come from the endpoint alone; contents of files may be
    elsewhere, over HTTPS. The Authorization header goes to the endpoint alone. Proxies are those of the environment.

    Raises:
        UnreadableError: from every request that fails for good, as one line without an address or a token.
    """

    def __init__(self, endpoint: str, patience: Patience) -> None:
        # Ranges and sizes are of the bytes as they are.
        super().__init__(headers={"Accept-Encoding": "identity"}, event_hooks={"request": [hf_request_event_hook]})
        self._endpoint = httpx2.URL(endpoint)
        self._patience = patience

    def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """Send a request, and again where that may help; the answer, read unless `stream`."""
        follow = options.pop("follow_redirects", True) is not False
        self._patience.begin(stream=stream)
        # The Hub's client asks without a timeout here and there.
        request.extensions = {**request.extensions, "timeout": httpx2.Timeout(self._patience.timeout).as_dict()}
        tried = 0
        while True:
            tried += 1
            asked = None
            try:
                response = self._followed(request, stream, follow, options)
                if response.status_code not in _AGAIN:
                    if not stream:
                        response.read()
                    return response
                response.close()
                why, asked = f"answers {status_text(response.status_code)}", _wait_asked(response)
            except httpx2.TransportError as error:
                why = transport_problem(error)
            self._patience.wait(tried, why, asked)

    def _followed(
        self, request: httpx2.Request, stream: bool, follow: bool, options: dict[str, Any]
    ) -> httpx2.Response:
        for _ in range(5):
            self._admit(request, is_file=stream or request.method == "HEAD")
            response = self._once(request, options)
            if request.method == "HEAD":
                _require_plain_marks(response)
            if not follow or response.next_request is None:
                is_encoded = response.headers.get("content-encoding", "identity") != "identity"
                if is_encoded and request.method != "HEAD":
                    response.close()
                    raise UnreadableError(
                        "the Hub sends its answer encoded, which it was asked not to; check the proxy"
                    )
                response.stream = _Watched(
                    response.stream, self._patience, None if stream else self._patience.answer_bytes
                )
                return response
            response.close()
            request = response.next_request
        raise UnreadableError("the Hub redirects in a circle; ingest again later")

    def _once(self, request: httpx2.Request, options: dict[str, Any]) -> httpx2.Response:
        send = partial(super().send, request, stream=True, follow_redirects=False, **options)
        try:
            return within(self._patience.headers, send)
        except TimeoutError as error:
            raise httpx2.ReadTimeout("the headers come too slowly") from error

    def _admit(self, request: httpx2.Request, *, is_file: bool) -> None:
        """Refuse a request that goes where it should not, and take the token from one that leaves the endpoint."""
        if not is_safe(request.url, beside=self._endpoint):
            raise UnreadableError("the Hub redirects to an address without HTTPS; ingest again later")
        if not _same_origin(request.url, self._endpoint):
            if not is_file:
                raise UnreadableError("the Hub's API redirects to another host; check HF_ENDPOINT")
            request.headers.pop("authorization", None)


class _Watched(httpx2.SyncByteStream):
    """An answer's bytes, as long as they come fast enough and are not too many."""

    def __init__(self, stream: Any, patience: Patience, most: int | None) -> None:
        self._stream, self._patience, self._most = stream, patience, most

    def __iter__(self) -> Iterator[bytes]:
        waited, recent, total = 0.0, 0, 0
        pieces = iter(self._stream)
        try:
            while True:
                # Only the wait for bytes counts, not what is done with them.
                asked = time.monotonic()
                piece = next(pieces, None)
                waited += time.monotonic() - asked
                if piece is None:
                    return
                recent += len(piece)
                total += len(piece)
                if self._most is not None and total > self._most:
                    raise UnreadableError(
                        f"the Hub sends an answer of more than {self._most} bytes; ingest again later"
                    )
                yield piece
                if waited > self._patience.window:
                    if recent < self._patience.window_bytes:
                        raise httpx2.ReadTimeout("the bytes come too slowly")
                    waited, recent = 0.0, 0
        except httpx2.ReadError as error:
            # The one that makes the Hub's client go on with a download where it was cut.
            raise httpx2.RemoteProtocolError("the connection was cut") from error

    def close(self) -> None:
        self._stream.close()


def _require_plain_marks(response: httpx2.Response) -> None:
    """Refuse marks that the Hub never has: the client's cache makes file names of them."""
    for name, form in _MARKS.items():
        if name in response.headers and not re.fullmatch(form, response.headers[name], re.ASCII):
            response.close()
            raise UnreadableError(f"the Hub sends a header {name} that it never would; check HF_ENDPOINT")


def is_safe(url: httpx2.URL, *, beside: httpx2.URL | None = None) -> bool:
    """Whether an address has HTTPS, or is on this machine; with `beside`, only if that one is on it as well."""
    local = url.host in _LOOPBACK and (beside is None or beside.host in _LOOPBACK)
    return bool(url.scheme == "https" or (url.scheme == "http" and local))


def status_text(status: int) -> str:
    """A status as people read it."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def transport_problem(error: Exception) -> str:
    """What became of a request, in words of this program: those of the libraries may name addresses."""
    match error:
        case httpx2.ProxyError():
            return "is not reached, since the proxy refuses"
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return "is not reached"
        case httpx2.TimeoutException():
            return "answers too slowly"
        case _:
            return "breaks off its answer"


def _wait_asked(response: httpx2.Response) -> float | None:
    """Seconds that an answer asks to wait."""
    stated = response.headers.get("retry-after", "").strip()
    if stated.isdecimal():
        return float(stated[:9])
    try:
        when = parsedate_to_datetime(stated)
        return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        limit = parse_ratelimit_headers(response.headers)
        return float(limit.reset_in_seconds) if limit and not limit.remaining else None


def _same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    ports = {"http": 80, "https": 443}
    return (one.scheme, one.host, one.port or ports.get(one.scheme)) == (
        other.scheme, other.host, other.port or ports.get(other.scheme),
    )  # fmt: skip
