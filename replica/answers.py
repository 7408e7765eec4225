"""What the replica answers: a status, headers, a content and the way in which its bytes go out."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True)
class FilePart:
    """`length` bytes of a file from `offset` on."""

    path: Path
    offset: int
    length: int


@dataclass(frozen=True)
class Delivery:
    """How an answer's bytes go out: by default all of them, as fast as they can.

    `refused` closes the connection before anything is sent; `stop_after` ends it after so many bytes of the content,
    with a reset where `reset` is set; `pause` is the time in seconds between pieces of `piece` bytes, or between bytes
    of a header that never ends where `endless_headers` is set.
    """

    refused: bool = False
    stop_after: int | None = None
    reset: bool = False
    piece: int = 1 << 18
    pause: float = 0.0
    endless_headers: bool = False


@dataclass(frozen=True)
class Answer:
    """An HTTP answer. Content-Length follows from the content."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | FilePart = b""
    delivery: Delivery = Delivery()

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return len(self.content) if isinstance(self.content, bytes) else self.content.length

    def content_bytes(self) -> bytes:
        """The content, in memory."""
        if isinstance(self.content, bytes):
            return self.content
        with self.content.path.open("rb") as file:
            file.seek(self.content.offset)
            return file.read(self.content.length)

    def with_content(self, content: bytes) -> Answer:
        """The answer with other content."""
        return replace(self, content=content)

    def with_headers(self, **headers: str) -> Answer:
        """The answer with more headers; underscores in their names stand for hyphens."""
        return replace(self, headers={**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}})

    def ranged(self, wanted: str | None) -> Answer:
        """The part of the content that a Range header asks for, where the answer offers ranges.

        As HTTP allows, a header with several ranges or of another form is as none.
        """
        match = _RANGE.fullmatch(wanted or "")
        if not match or self.status != 200 or self.headers.get("Accept-Ranges") != "bytes" or match[0] == "bytes=-":
            return self
        first, last = match[1], match[2]
        start = int(first) if first else max(0, self.size - int(last))
        end = min(int(last) + 1 if first and last else self.size, self.size)
        if start >= end:
            return Answer(416, {"Content-Range": f"bytes */{self.size}"})
        if isinstance(self.content, bytes):
            content: bytes | FilePart = self.content[start:end]
        else:
            content = FilePart(self.content.path, self.content.offset + start, end - start)
        headers = {**self.headers, "Content-Range": f"bytes {start}-{end - 1}/{self.size}"}
        return replace(self, status=206, headers=headers, content=content)


def json_answer(value: Any, status: int = 200, **headers: str) -> Answer:
    """An answer whose content is `value` as JSON; underscores in header names stand for hyphens."""
    content = json.dumps(value, ensure_ascii=False).encode()
    return Answer(status, {"Content-Type": "application/json; charset=utf-8"}, content).with_headers(**headers)
