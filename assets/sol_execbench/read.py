"""Answers of the SOL-ExecBench leaderboard as rows: strict in form, but one bad row never takes the others along.

An answer is JSON of the form `{"data": …}`. Its rows are a listing's kernels, a definition, or a page's submissions.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from warehouse.identity import MAXIMUM_INTEGER, CanonicalError, canonical_json, digest

Kind = Literal["listing", "definition", "submissions", "leaderboard", "unknown"]

# Below this many digits Python reads an integer exactly; a longer one is beyond every range anyhow.
_LONGEST_INTEGER = 400
_LONGEST_TEXT = 2000
_DEEPEST = 40
_KINDS: tuple[tuple[Kind, str], ...] = (
    ("listing", r"kernels\.json"),
    ("definition", r"kernels/([0-9]{1,18})\.json"),
    ("submissions", r"submissions/([0-9]{1,18})(?:\.[0-9]+)?\.json"),
    ("leaderboard", r"leaderboards/(?:([0-9]{1,18})\..+|.+)\.json"),
)
_ENVELOPES = {"listing": {"kernels"}, "submissions": {"submissions", "total", "offset", "limit"}}
# Six characters that may begin half of a surrogate pair.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Source text is never repeated where a row is shown; error logs may hold anything and go nowhere.
_SOURCE_TEXTS = frozenset({"baseline", "reference"})
_UNTOLD = "error_log"


class UnreadableAnswer(ValueError):  # noqa: N818 - what it is, not that it is an error
    """An answer without rows that one could read: truncated, a web page, an error, not JSON. `locator` names it."""

    def __init__(self, locator: str, detail: str) -> None:
        super().__init__(f"{locator}: {detail}; pull it again")
        self.locator = locator
        self.detail = detail


class Rejected(ValueError):  # noqa: N818
    """A row that cannot be normalised: `reason` is a code of the table `rejects`, `detail` says what is wrong."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, eq=False)
class Answer:
    """One saved answer: its address relative to the source, the digest and size of its bytes, and how to get them.

    `fetched_at` is when it was fetched, where it says so itself.
    """

    locator: str
    content_digest: str
    size_bytes: int
    load: Callable[[], bytes]
    fetched_at: datetime | None = None

    @classmethod
    def of(cls, locator: str, data: bytes) -> Answer:
        """An answer whose bytes are at hand."""
        return cls(locator, digest(data), len(data), lambda: data)

    @cached_property
    def kind(self) -> Kind:
        """What the answer's address says it is."""
        return next((kind for kind, pattern in _KINDS if re.fullmatch(pattern, self.locator)), "unknown")

    @cached_property
    def page(self) -> int:
        """Which of several pages the answer is, from 1."""
        match = re.search(r"\.(\d+)\.json$", self.locator)
        return int(match[1]) if self.kind == "submissions" and match else 1

    @property
    def kernel_id(self) -> int:
        """The kernel that was asked about.

        Raises:
            ValueError: where the answer is about no single kernel.
        """
        kernel_id = about(self.locator)
        if kernel_id is None:
            raise ValueError(f"{self.locator} is about no single kernel")
        return kernel_id


def about(locator: str) -> int | None:
    """The kernel that the answer at an address is about, where it is one."""
    for _, pattern in _KINDS:
        if match := re.fullmatch(pattern, locator):
            return int(match[1]) if match.groups() and match[1] else None
    return None


@dataclass(frozen=True)
class Content:
    """What an answer says.

    `rows` are pairs of the row's path inside the answer and its value; `total` is what a page reports of rows in all;
    `unknown` names fields of the envelope that nobody knows. Where `suspect` is false, no row can have a repeated key
    or broken text.
    """

    rows: list[tuple[str, Any]]
    total: Any
    unknown: list[str]
    suspect: bool


class RepeatedKeys(dict[str, Any]):
    """An object that gave one of its keys more than once; it holds the last value of each."""


def read(answer: Answer) -> Content:
    """The rows of a listing, a definition or a page of submissions.

    Raises:
        UnreadableAnswer: where there are no rows to be had, or the envelope contradicts itself.
    """
    envelope, suspect = parse(answer)
    if not isinstance(envelope, dict) or "data" not in envelope:
        error = envelope.get("error") if isinstance(envelope, dict) else None
        said = "" if error is None else f", but an error: {str(error)[:100]!r}"
        raise UnreadableAnswer(answer.locator, f"the answer has no 'data'{said}")
    data = envelope["data"]
    unknown = sorted(envelope.keys() - {"data"})
    if answer.kind == "definition":
        if isinstance(envelope, RepeatedKeys):
            raise UnreadableAnswer(answer.locator, "the answer names one key twice")
        return Content([("definition", data)], None, unknown, suspect)
    member = "kernels" if answer.kind == "listing" else "submissions"
    if not isinstance(data, dict) or not isinstance(data.get(member), list):
        raise UnreadableAnswer(answer.locator, f"the answer has no list '{member}'")
    if isinstance(envelope, RepeatedKeys) or isinstance(data, RepeatedKeys):
        raise UnreadableAnswer(answer.locator, "the answer names one key twice")
    rows = [(f"{member}/{index}", row) for index, row in enumerate(data[member])]
    unknown += sorted(data.keys() - _ENVELOPES[answer.kind])
    return Content(rows, data.get("total"), unknown, suspect)


def parse(answer: Answer) -> tuple[Any, bool]:
    """The whole of an answer, and whether anything in it may have a repeated key or broken text.

    Raises:
        UnreadableAnswer: where it is not JSON.
    """
    data = answer.load()
    suspect = False
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Bytes that are no UTF-8 become lone surrogates, so that only the rows that hold them are lost.
        text = data.decode("utf-8-sig", errors="surrogateescape")
        suspect = True
    suspect = suspect or bool(_SURROGATE_ESCAPE.search(text))

    def pairs_to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal suspect
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        suspect = True
        return RepeatedKeys(found)

    try:
        return json.loads(text, object_pairs_hook=pairs_to_object, parse_int=_integer), suspect
    except RecursionError as error:
        raise UnreadableAnswer(answer.locator, "the answer is nested too deeply") from error
    except ValueError as error:
        raise UnreadableAnswer(answer.locator, _what_it_is(text) or f"the answer is not JSON ({error})") from error


def check_form(row: Any, suspect: bool) -> dict[str, Any]:
    """The row, if it is an object of sound text in which no key is repeated.

    Raises:
        Rejected: `NOT_AN_OBJECT`, `DUPLICATE_KEYS` or `BAD_TEXT`.
    """
    if not isinstance(row, dict):
        raise Rejected("NOT_AN_OBJECT", f"an object was expected, not {type_name(row)}")
    waiting: list[Any] = [row] if suspect else []
    broken = False
    while waiting:
        value = waiting.pop()
        if isinstance(value, RepeatedKeys):
            raise Rejected("DUPLICATE_KEYS", "an object names one of its keys twice, so its value is uncertain")
        if isinstance(value, dict):
            waiting += value.keys()
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            broken = broken or bool(_SURROGATE.search(value))
    if broken:
        raise Rejected("BAD_TEXT", "a text is not valid Unicode")
    return row


def type_name(value: Any) -> str:
    """What JSON calls the type of a value."""
    if isinstance(value, bool):
        return "boolean"
    names = {dict: "object", list: "list", str: "text", int: "number", float: "number"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "null")


def sound_text(text: str) -> str:
    """The text with halves of surrogate pairs replaced, so that it has a UTF-8 form."""
    return _SURROGATE.sub("\ufffd", text)


def content(row: Any) -> str:
    """Canonical text of a row, by which copies are told apart; numbers without a canonical form are text in it."""
    try:
        return canonical_json(row)
    except CanonicalError:
        return canonical_json(_presentable(row, longest=None))


def raw(row: Any) -> str:
    """Canonical JSON of a row for `rejects`: long text cut, source text as its digest, no error log."""
    return canonical_json(_presentable(row, longest=_LONGEST_TEXT))


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < _LONGEST_INTEGER else float(digits)


def _what_it_is(text: str) -> str | None:
    start = text[:200].lstrip().lower()
    if not start:
        return "the answer is empty"
    if start.startswith("<"):
        return "the answer is a web page, not JSON"
    if start.startswith("version https://git-lfs"):
        return "the answer is a Git LFS pointer, not the file itself"
    return None


def _presentable(value: Any, longest: int | None, depth: int = 0) -> Any:
    """A value that has a canonical form, as near to the original as can be."""
    if depth > _DEEPEST and isinstance(value, dict | list):
        return "…"
    if isinstance(value, dict):
        shown = {}
        for key, member in value.items():
            if longest is not None and key == _UNTOLD:
                continue
            if longest is not None and key in _SOURCE_TEXTS and isinstance(member, str):
                member = digest(sound_text(member))
            shown[str(_presentable(key, longest))] = _presentable(member, longest, depth + 1)
        return shown
    if isinstance(value, list):
        return [_presentable(member, longest, depth + 1) for member in value]
    if isinstance(value, str):
        text = sound_text(value)
        return text if longest is None or len(text) <= longest else text[:longest] + "…"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and abs(value) > MAXIMUM_INTEGER:
        return str(value)
    return value
