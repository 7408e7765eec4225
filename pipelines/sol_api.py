"""The client of the SOL-ExecBench API: one request at a time, spaced out, patient within bounds, trusting nobody."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from http.cookiejar import DefaultCookiePolicy
from urllib.parse import quote, urlsplit

import requests
import urllib3

from assets.sol_execbench.asking import AnswerError, AwayError, NotThereError, ServiceError
from pipelines.addresses import is_loopback
from pipelines.deadlines import within
from warehouse.errors import KernelmartError
from warehouse.version import code_version

log = logging.getLogger("kernelmart")

PUBLIC_URL = "https://research.nvidia.com/benchmarks/sol-execbench/api"
INTERVAL_SECONDS = 0.12
_PIECE = 1 << 16
# Before the first retry; doubled before each further one, and up to twice as long by chance.
_FIRST_WAIT_INTERVALS = 10


@dataclass(frozen=True)
class Limits:
    """How long, how often and how much.

    Attributes:
        connect_seconds: for a connection to be made.
        read_seconds: for the next bytes to come.
        total_seconds: for one answer as a whole.
        largest_bytes: of one answer, decompressed.
        attempts: of one request, the first among them.
        retries: of all requests of a run together.
        longest_wait_seconds: before any retry; a service that asks for a longer one is left alone.
    """

    connect_seconds: float = 10.0
    read_seconds: float = 30.0
    total_seconds: float = 120.0
    largest_bytes: int = 8 << 20
    attempts: int = 5
    retries: int = 40
    longest_wait_seconds: float = 120.0


class _Trouble(Exception):  # noqa: N818 - what may pass when one waits
    """An attempt that may go well later: what happened, how long to wait, and whether the service is there at all."""

    def __init__(self, what: str, wait_seconds: float = 0.0, *, away: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.wait_seconds = wait_seconds
        self.away = away


class SolApi:
    """GET requests to the API at `base_url`, at least `interval_seconds` from start to start.

    Waits before retries grow from ten intervals, so that a service of one's own may be asked without any.
    The proxies of the environment are used; credentials of `.netrc` are not, and redirects are not followed.

    Raises:
        KernelmartError: where the address is no HTTPS address outside loopback, or bears a password.
    """

    def __init__(
        self,
        base_url: str = PUBLIC_URL,
        interval_seconds: float = INTERVAL_SECONDS,
        limits: Limits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._base_url = _checked(base_url)
        self._host = urlsplit(self._base_url).hostname or ""
        self._interval = interval_seconds
        self._limits = limits or Limits()
        self._retries_left = self._limits.retries
        self._clock = clock
        self._sleep = sleep
        self._next_start = clock()
        self._session = requests.Session()
        self._session.headers["User-Agent"] = f"kernelmart/{code_version()}"
        self._session.headers["Accept"] = "application/json"
        # Any authentication of the session's own keeps `requests` from looking into .netrc; this one adds nothing.
        self._session.auth = lambda request: request
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    def get(self, segments: Sequence[str], query: Mapping[str, str]) -> bytes:
        """The body of an answer with status 200; see `Api`."""
        url = "/".join([self._base_url, *map(_quoted, segments)])
        for attempt in range(1, self._limits.attempts + 1):
            self._wait_for_turn()
            try:
                return self._once(url, query)
            except _Trouble as trouble:
                self._wait_for_better(trouble, attempt)
        raise AssertionError("the last attempt returns or raises")

    def _wait_for_turn(self) -> None:
        now = self._clock()
        if now < self._next_start:
            self._sleep(self._next_start - now)
        self._next_start = self._clock() + self._interval

    def _wait_for_better(self, trouble: _Trouble, attempt: int) -> None:
        """Wait before the next attempt, or say that there is none."""
        limits = self._limits
        if trouble.wait_seconds > limits.longest_wait_seconds:
            raise ServiceError(
                f"{self._host} {trouble.what} and wants to be left alone for {trouble.wait_seconds:.0f} s; ingest later"
            )
        if attempt >= limits.attempts:
            kind = AwayError if trouble.away else AnswerError
            raise kind(f"{self._host} {trouble.what}, {attempt} times; ingest later")
        if self._retries_left <= 0:
            raise ServiceError(
                f"{self._host} {trouble.what}, and this run has made its {limits.retries} retries; ingest later"
            )
        self._retries_left -= 1
        backoff = _FIRST_WAIT_INTERVALS * self._interval * 2 ** (attempt - 1) * random.uniform(1, 2)  # noqa: S311
        wait = max(trouble.wait_seconds, min(backoff, limits.longest_wait_seconds))
        log.info("sol-execbench: %s %s; asking again in %.1f s", self._host, trouble.what, wait)
        self._sleep(wait)

    def _once(self, url: str, query: Mapping[str, str]) -> bytes:
        limits = self._limits
        deadline = self._clock() + limits.total_seconds
        timeout = (limits.connect_seconds, limits.read_seconds)
        ask = partial(self._session.get, url, params=query, stream=True, allow_redirects=False, timeout=timeout)
        # No error's own text goes on: it may hold a proxy's password.
        try:
            with within(limits.total_seconds, ask) as response:
                if response.status_code == 404:
                    # Read to its end, so that the connection serves the next request too.
                    self._body(response, deadline)
                self._check_status(response)
                return self._body(response, deadline)
        except requests.exceptions.ProxyError as error:
            raise _Trouble("cannot be reached: the proxy of the environment refuses", away=True) from error
        except (requests.exceptions.SSLError, urllib3.exceptions.SSLError) as error:
            raise ServiceError(f"{self._host}: its certificate cannot be trusted; see to the connection") from error
        except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError) as error:
            away = isinstance(error, requests.exceptions.ConnectTimeout)
            raise _Trouble("did not answer in time", away=away) from error
        except TimeoutError as error:
            raise self._too_slow() from error
        except requests.exceptions.ConnectionError as error:
            if _never_connected(error):
                raise _Trouble("cannot be reached", away=True) from error
            raise _Trouble("closed the connection before it had answered") from error
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise _Trouble("broke off its answer") from error

    def _check_status(self, response: requests.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        if status == 404:
            raise NotThereError(f"{self._host} says that there is no such thing (404)")
        if status == 407:
            raise ServiceError("the proxy of the environment wants other credentials (407); see to its setting")
        if status == 429 or status >= 500:
            raise _Trouble(f"answered {status}", _wait_asked_for(response), away=status == 429)
        if 300 <= status < 400:
            target = urlsplit(response.headers.get("Location", "")).hostname or "another address"
            raise AnswerError(
                f"{self._host} redirects to {target[:100]!r}, which is not followed; correct the API's address"
            )
        raise AnswerError(f"{self._host} answered {status}")

    def _body(self, response: requests.Response, deadline: float) -> bytes:
        pieces: list[bytes] = []
        size = 0
        # One read at a time, as much as has come: a slow drip must not hide behind a full buffer.
        while piece := response.raw.read1(_PIECE, decode_content=True):
            pieces.append(piece)
            size += len(piece)
            if size > self._limits.largest_bytes:
                raise AnswerError(f"{self._host} sent more than {self._limits.largest_bytes} bytes in one answer")
            if self._clock() > deadline:
                raise self._too_slow()
        return b"".join(pieces)

    def _too_slow(self) -> _Trouble:
        return _Trouble(f"took longer than {self._limits.total_seconds:g} s for one answer")


def _checked(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        host, password = parts.hostname or "", parts.username is not None or parts.password is not None
    except ValueError as error:
        raise KernelmartError("the address of the SOL-ExecBench API is no URL; correct it") from error
    if password:
        raise KernelmartError("the address of the SOL-ExecBench API must bear no user name or password")
    if not host or parts.query or parts.fragment:
        raise KernelmartError("the address of the SOL-ExecBench API must be a plain URL such as " + PUBLIC_URL)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise KernelmartError(f"the SOL-ExecBench API at {host} must be asked over https; correct its address")
    return base_url.rstrip("/")


def _quoted(segment: str) -> str:
    # A path of these would be another path by the time that it is sent.
    if segment in ("", ".", ".."):
        raise AnswerError(f"{segment!r} cannot be asked for")
    return quote(segment, safe="")


def _never_connected(error: requests.exceptions.ConnectionError) -> bool:
    cause = error.args[0] if error.args else None
    return isinstance(getattr(cause, "reason", None), urllib3.exceptions.NewConnectionError)


def _wait_asked_for(response: requests.Response) -> float:
    """Seconds that Retry-After asks for, as a number or until a date; 0 where it says nothing that one could obey."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return 0.0
    until = until.replace(tzinfo=UTC) if until.tzinfo is None else until
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
