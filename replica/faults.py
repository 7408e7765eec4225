"""What can go wrong upstream: each fault makes of a good answer what a client sees instead.

    replica.faults.add(r"^GET /lfs/", faults.short_body())
    replica.faults.add(r"/submissions\\?", faults.server_error(503), times=3)

A large file of the Hub is asked for at `/resolve/`, which redirects to `/lfs/`; and first with HEAD.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from replica.answers import Answer, Delivery, json_answer
from replica.hub_files import lfs_pointer

Fault = Callable[[Answer], Answer]

_PAGE = b"<!DOCTYPE html>\n<html><head><title>Maintenance</title></head><body>Back soon.</body></html>\n"
_VALUE = r'"{}"\s*:\s*(?:-?[\d.]+(?:[eE][+-]?\d+)?|null|true|false|"(?:[^"\\]|\\.)*")'


@dataclass
class Rule:
    """A fault for requests whose method, path and query match; `used` counts those that it was applied to."""

    pattern: re.Pattern[str]
    fault: Fault
    skip: int
    times: int | None
    used: int = 0


class Faults:
    """The faults of a replica, in the order in which they were added; the first that matches is applied."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._lock = threading.Lock()

    def add(self, pattern: str, fault: Fault, *, times: int | None = 1, skip: int = 0) -> Rule:
        """Lets a fault happen.

        Args:
            pattern: searched for in "METHOD /path?query".
            fault: one of this module's functions makes it.
            times: how often it happens; None for always.
            skip: how many matching requests are answered well before.
        """
        rule = Rule(re.compile(pattern), fault, skip, times)
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """Lets all be well again."""
        with self._lock:
            self._rules.clear()

    def apply(self, request: str, answer: Answer) -> Answer:
        """The answer to a request, as the faults make it."""
        fault = self._take(request)
        return fault(answer) if fault else answer

    def _take(self, request: str) -> Fault | None:
        with self._lock:
            for rule in self._rules:
                if not rule.pattern.search(request) or (rule.times is not None and rule.used >= rule.times):
                    continue
                if rule.skip > 0:
                    rule.skip -= 1
                    continue
                rule.used += 1
                return rule.fault
        return None


def refused() -> Fault:
    """The connection is closed before anything is answered."""
    return lambda answer: replace(answer, delivery=Delivery(refused=True))


def reset_midway() -> Fault:
    """The connection is reset after half of the content."""
    return lambda answer: replace(answer, delivery=Delivery(stop_after=answer.size // 2, reset=True))


def short_body(missing: int = 1) -> Fault:
    """Content-Length promises `missing` bytes more than come before the connection ends."""
    return lambda answer: replace(answer, delivery=Delivery(stop_after=max(0, answer.size - missing)))


def slow_drip(pause: float = 0.05, piece: int = 1) -> Fault:
    """`piece` bytes come every `pause` seconds, until the client gives up or the replica ends."""
    return lambda answer: replace(answer, delivery=Delivery(piece=piece, pause=pause))


def endless_headers(pause: float = 0.05) -> Fault:
    """A header comes byte by byte, one every `pause` seconds, until the client gives up or the replica ends."""
    return lambda answer: replace(answer, delivery=Delivery(pause=pause, endless_headers=True))


def truncated() -> Fault:
    """Half of the content is all of it: a file of the wrong length, or JSON that ends too early."""
    return lambda answer: answer.with_content(answer.content_bytes()[: answer.size // 2])


def wrong_bytes() -> Fault:
    """The length is right, but every bit of the byte in the middle is wrong."""

    def fault(answer: Answer) -> Answer:
        content = bytearray(answer.content_bytes())
        if content:
            content[len(content) // 2] ^= 0xFF
        return answer.with_content(bytes(content))

    return fault


def web_page() -> Fault:
    """A page in HTML with status 200."""
    return lambda _: Answer(200, {"Content-Type": "text/html; charset=utf-8"}, _PAGE)


def pointer_file() -> Fault:
    """What Git holds in place of a large file, with the headers of the file itself."""

    def fault(answer: Answer) -> Answer:
        sha256 = answer.headers.get("ETag", "").strip('"')
        headers = {name: value for name, value in answer.headers.items() if name != "Content-Range"}
        return Answer(200, headers, lfs_pointer(sha256, int(answer.headers.get("X-Linked-Size", "0"))))

    return fault


def empty_listing() -> Fault:
    """Every list in the answer, or right below it or its `data`, is empty."""

    def emptied(value: Any) -> Any:
        if isinstance(value, list):
            return []
        if isinstance(value, dict):
            return {k: emptied(v) if isinstance(v, list) or k == "data" else v for k, v in value.items()}
        return value

    return lambda answer: answer.with_content(json.dumps(emptied(json.loads(answer.content_bytes()))).encode())


def too_many_requests(retry_after: float | None = None, *, as_date: bool = False) -> Fault:
    """Status 429; `retry_after` in seconds, sent as such or as the date on which they will have passed."""

    def fault(_: Answer) -> Answer:
        answer = json_answer({"error": "too many requests"}, 429)
        if retry_after is None:
            return answer
        then = format_datetime(datetime.now(UTC) + timedelta(seconds=retry_after), usegmt=True)
        return answer.with_headers(Retry_After=then if as_date else f"{retry_after:g}")

    return fault


def server_error(status: int = 500) -> Fault:
    """A status of 500 or more."""
    return lambda _: json_answer({"error": "internal error"}, status)


def not_a_number(name: str) -> Fault:
    """The first value of that name in the JSON is NaN."""
    return _rewritten(name, lambda name, _: f'"{name}": NaN')


def key_twice(name: str) -> Fault:
    """The first object of the JSON with that name has it twice, the second time with another value."""
    return _rewritten(name, lambda name, member: f'{member}, "{name}": 9.5')


def _rewritten(name: str, write: Callable[[str, str], str]) -> Fault:
    pattern = re.compile(_VALUE.format(re.escape(name)))

    def fault(answer: Answer) -> Answer:
        text = answer.content_bytes().decode("utf-8", "surrogateescape")
        changed = pattern.sub(lambda match: write(name, match[0]), text, count=1)
        return answer.with_content(changed.encode("utf-8", "surrogateescape"))

    return fault


def redirect(location: str, status: int = 302) -> Fault:
    """The answer is said to be elsewhere."""
    return lambda _: Answer(status, {"Location": location})


def meanwhile(change: Callable[[], object]) -> Fault:
    """The answer is good, but upstream changes before the next: `replica.changes` has some changes."""

    def fault(answer: Answer) -> Answer:
        change()
        return answer

    return fault
