"""Where the comments and docstrings of a text are. Patterns over bytes alone: nothing is parsed by its own language.

Sources of submissions are Python that carries CUDA, HIP or PTX in strings, or C++ on its own. A guess that is wrong
costs a comment taken for code, or the reverse; nothing here fails, and time grows linearly with the text.
"""

from __future__ import annotations

import heapq
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

# Bump when spans come out otherwise: all that is found in texts rests on them.
VERSION = "lexing-2"

Context = Literal["code", "docstring", "comment"]
Span = tuple[int, int]

# All that is neither comment nor triple-quoted, nor a string at the end of a line, is passed over at once. Strings are
# possessive, so that one of 50 MB needs no stack, and end with their line where nothing closes them, so that none of it
# is looked at twice. Lines of comments that follow each other are one comment.
_PYTHON = re.compile(
    rb"""(?:[^"'\#]++|(?!\"{3}|'{3})(?:"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\\\n]++|\\.)*+')(?![\r\n]|\Z))*+
    (?:(?P<triple>\"{3}|'{3})|(?P<comment>\#[^\r\n]*+(?:\r?\n[ \t]*+\#[^\r\n]*+)*+)
    |(?P<string>"(?:[^"\\\n]++|\\.)*+"?|'(?:[^'\\\n]++|\\.)*+'?))""",
    re.VERBOSE | re.DOTALL,
)
_C = re.compile(
    rb"""(?:[^"'/]++|/(?![/*])|"(?:[^"\\\n]++|\\.)*+"?|'(?:(?:[^'\\\n]|\\.){1,4}+')?)*+
    (?:(?P<line>//[^\r\n]*+(?:\r?\n[ \t]*+//[^\r\n]*+)*+)|(?P<block>/\*))""",
    re.VERBOSE | re.DOTALL,
)
_HASH = re.compile(rb"#[^\r\n]*+(?:\r?\n[ \t]*+#[^\r\n]*+)*+")
# Lines that can be only one of the two.
_PYTHON_LINE = re.compile(
    rb"^(?:import[ \t]+\w|from[ \t]+[\w.]+[ \t]+import\b|class[ \t]+\w+(?:\([^\n]*\))?:[ \t\r]*$"
    rb"|[ \t]*(?:async[ \t]+)?def[ \t]+\w+[ \t]*\()",
    re.MULTILINE,
)
_C_LINE = re.compile(
    rb"^[ \t]*(?:#[ \t]*include[ \t]*[<\"]|#(?:define|pragma|ifn?def)\b|template[ \t]*<|extern[ \t]+\"C"
    rb"|using[ \t]+namespace\b|(?:(?:static|inline)[ \t]+)*(?:__global__|__device__)\b|//|/\*)",
    re.MULTILINE,
)
_STRING_PREFIX = b"rRbBuUfF"
_BLANK = b" \t\r\n\f\v"
# White space that is looked at at once.
_STEP = 1 << 12
_LINE_END = (b"", b"\n", b"\r")
# A string after one of these is a value, however it stands on its line.
_OPEN = b"=([{,+%|\\"


class Spans:
    """Spans (start, end) of a text in order, none overlapping; eight bytes each, since there may be millions."""

    def __init__(self) -> None:
        self._bounds = array("I")

    def __len__(self) -> int:
        return len(self._bounds) // 2

    def __getitem__(self, number: int) -> Span:
        return self._bounds[2 * number], self._bounds[2 * number + 1]

    def __iter__(self) -> Iterator[Span]:
        bounds = iter(self._bounds)
        return zip(bounds, bounds, strict=True)

    def add(self, start: int, end: int) -> None:
        """Add a span behind all others."""
        self._bounds.append(start)
        self._bounds.append(end)

    def has(self, offset: int) -> bool:
        """Whether a byte is inside one."""
        return bisect_right(self._bounds, offset) % 2 == 1

    def end_of(self, offset: int) -> int:
        """Where the one ends that a byte is inside."""
        return self._bounds[bisect_right(self._bounds, offset)]

    def first_after(self, offset: int) -> int:
        """Number of the first that ends behind a byte."""
        return bisect_right(self._bounds, offset) // 2


@dataclass(frozen=True)
class Lexed:
    """A text with its comments and its docstrings."""

    text: bytes
    host: Literal["python", "c"]
    comments: Spans
    docstrings: Spans

    def context(self, offset: int) -> Context:
        """What a byte of the text is part of."""
        if self.comments.has(offset):
            return "comment"
        return "docstring" if self.docstrings.has(offset) else "code"

    def is_comment_only(self, start: int, end: int) -> bool:
        """Whether a line has nothing but comments and white space."""
        position = start
        commented = False
        for number in range(self.comments.first_after(start), len(self.comments)):
            first, last = self.comments[number]
            if first >= end:
                break
            if self.text[position : max(first, position)].strip():
                return False
            position, commented = min(last, end), True
        return commented and not self.text[position:end].strip()

    @cached_property
    def code(self) -> bytes | bytearray:
        """The text with a blank in place of each comment and docstring."""
        if not len(self.comments) and not len(self.docstrings):
            return self.text
        spans = heapq.merge(self.comments, self.docstrings) if len(self.docstrings) else self.comments
        kept, position = bytearray(), 0
        for first, last in spans:
            kept += self.text[position:first]
            kept += b" "
            position = last
        kept += self.text[position:]
        return kept


def lex(text: bytes) -> Lexed:
    """Find the comments and docstrings of a text."""
    comments, docstrings = Spans(), Spans()
    if _is_c(text):
        _add_c_comments(text, 0, len(text), comments)
        return Lexed(text, "c", comments, docstrings)
    position = 0
    while token := _PYTHON.match(text, position):
        position = token.end()
        if (kind := token.lastgroup) == "comment":
            comments.add(*token.span("comment"))
        elif kind == "triple":
            start = token.start("triple")
            position = _triple_end(text, token["triple"], position)
            if _is_docstring(text, start, comments):
                docstrings.add(start, position)
            else:
                _add_embedded_comments(text, start + 3, max(position - 3, start + 3), comments)
        elif text[position : position + 1] in _LINE_END:
            start = token.start("string")
            if _is_short_docstring(text, start, comments):
                docstrings.add(start, position)
    return Lexed(text, "python", comments, docstrings)


def _is_c(text: bytes) -> bool:
    return _PYTHON_LINE.search(text) is None and _C_LINE.search(text) is not None


def _add_c_comments(text: bytes, start: int, end: int, comments: Spans) -> None:
    while token := _C.match(text, start, end):
        start = token.end()
        if (kind := token.lastgroup) == "line":
            comments.add(*token.span("line"))
        elif kind == "block":
            close = text.find(b"*/", start, end)
            start = end if close < 0 else close + 2
            comments.add(token.start("block"), start)


def _add_embedded_comments(text: bytes, start: int, end: int, comments: Spans) -> None:
    """Comments of a source that a string holds: in C's manner where it looks like C or PTX, else in Python's."""
    has = (text.find(word, start, end) >= 0 for word in (b"#include", b"__global__", b";"))
    if any(has) and text.find(b"{", start, end) >= 0:
        _add_c_comments(text, start, end, comments)
        return
    for found in _HASH.finditer(text, start, end):
        comments.add(*found.span())


def _triple_end(text: bytes, quotes: bytes, position: int) -> int:
    """End of a triple-quoted string; the text's where it is not closed."""
    while (found := text.find(quotes, position)) >= 0:
        backslashes = found
        while backslashes > position and text[backslashes - 1] == 0x5C:
            backslashes -= 1
        if (found - backslashes) % 2 == 0:
            return found + 3
        position = found + 1
    return len(text)


def _is_docstring(text: bytes, start: int, comments: Spans) -> bool:
    begins, before = _before(text, start, comments)
    return begins and (before is None or before not in _OPEN)


def _is_short_docstring(text: bytes, start: int, comments: Spans) -> bool:
    begins, before = _before(text, start, comments)
    return begins and before in (None, 0x3A)


def _before(text: bytes, start: int, comments: Spans) -> tuple[bool, int | None]:
    """Whether a string begins its line, and the last byte of code before it; None where there is none."""
    position = start
    while position and start - position < 2 and text[position - 1] in _STRING_PREFIX:
        position -= 1
    line = position
    while line and text[line - 1] in b" \t":
        line -= 1
    if line and text[line - 1] != 0x0A:
        return False, None
    number = len(comments) - 1
    position = line
    while position:
        if number >= 0 and comments[number][1] == position:
            position = comments[number][0]
            number -= 1
            continue
        first = max(position - _STEP, comments[number][1] if number >= 0 else 0)
        left = len(text[first:position].rstrip(_BLANK))
        if left:
            return True, text[first + left - 1]
        position = first
    return True, None
