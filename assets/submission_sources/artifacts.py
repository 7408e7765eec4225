"""What a source text is: its size, lines, language and media type, and what its first lines declare."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import pyarrow as pa

from assets.submission_sources.lexing import Lexed

# Bump when a text is described otherwise.
VERSION = "artifacts-1"
BINARY = "application/octet-stream"
_LONGEST_NAME = 100
_MOST_GPUS = 16
_POPCORN = re.compile(rb"(?:#|//)!POPCORN[ \t]+(leaderboard|gpus?)[ \t]+([^\r\n]*)", re.IGNORECASE)
# What the text is written with: the first that fits, looked for outside comments and docstrings.
# A word that must be there is looked for first, since that costs little.
_PYTHON_LANGUAGES = tuple(
    (name, word, re.compile(pattern, re.MULTILINE))
    for name, word, pattern in (
        ("helion", b"helion", rb"^[ \t]*(?:import|from)[ \t]+helion\b|@helion\.kernel\b"),
        (
            "cute",
            b"cute",
            rb"^[ \t]*(?:(?:import|from)[ \t]+cutlass\.cute\b|from[ \t]+cutlass[ \t]+import[ \t]+[\w, \t]*\bcute\b)"
            rb"|@cute\.(?:kernel|jit)\b",
        ),
        ("gluon", b"gluon", rb"\btriton\.experimental\.gluon\b|\btriton\.experimental[ \t]+import[ \t]+gluon\b"),
        ("triton", b"triton", rb"^[ \t]*(?:import|from)[ \t]+triton\b|@triton\.(?:jit|autotune)\b"),
        ("tilelang", b"tilelang", rb"^[ \t]*(?:import|from)[ \t]+tilelang\b"),
    )
)
_HIP = re.compile(
    rb"\bhip_(?:runtime|bf16|bfloat16|fp16|fp8)\b|\bhip(?:Launch|Stream|Malloc|Memcpy|Func)|\bhipcc\b|__builtin_amdgcn_|__HIP"
)
_MEDIA_TYPES = {"python": "text/x-python", "c++": "text/x-c++src", "cuda": "text/x-cuda", "hip": "text/x-hip"}


@dataclass(frozen=True)
class Artifact:
    """A source text as its bytes show it.

    `lines` end at LF or CRLF; `language` is None where the bytes are no text; `leaderboard` and `gpus` are what
    `#!POPCORN` lines declare.
    """

    size_bytes: int
    lines: int
    language: str | None
    media_type: str
    leaderboard: str | None
    gpus: tuple[str, ...]


def describe(lexed: Lexed) -> Artifact:
    """Describe a text."""
    text = lexed.text
    lines = text.count(b"\n") + (not text.endswith(b"\n") and bool(text))
    leaderboard, gpus = _declared(text)
    language = language_of(lexed) if is_text(text) else None
    media_type = BINARY
    if language is not None:
        media_type = _MEDIA_TYPES["python" if lexed.host == "python" else language]
    return Artifact(len(text), lines, language, media_type, leaderboard, gpus)


def is_utf8(text: bytes) -> bool:
    """Whether bytes are UTF-8."""
    if text.isascii():
        return True
    # In place: decoded, a text may be four times as large.
    bounds = pa.py_buffer(struct.pack("=2q", 0, len(text)))
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, bounds, pa.py_buffer(text)])
    try:
        whole.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def is_text(text: bytes) -> bool:
    """Whether bytes are text: UTF-8 without NUL."""
    return b"\0" not in text and is_utf8(text)


def language_of(lexed: Lexed) -> str:
    """The language that the kernel is written in: what a Python text brings along in strings counts before Python.

    `helion`, `cute` (the Python DSL), `gluon`, `triton`, `tilelang`, `hip`, `cuda`, `c++` or `python`.
    """
    code = lexed.code
    kernel = b"__global__" in code
    if lexed.host == "c":
        return "hip" if _HIP.search(code) else "cuda" if kernel or b"cuda" in code else "c++"
    names = [name for name, word, pattern in _PYTHON_LANGUAGES if word in code and pattern.search(code)]
    # Triton is often imported and not used.
    if kernel and (not names or (names == ["triton"] and b"@triton.jit" not in code)):
        return "hip" if _HIP.search(code) else "cuda"
    return names[0] if names else "python"


def _declared(text: bytes) -> tuple[str | None, tuple[str, ...]]:
    """What the comment lines that a text begins with declare, as the platform reads them; the last of each counts."""
    leaderboard: str | None = None
    gpus: tuple[str, ...] = ()
    start = 0
    while text.startswith((b"#", b"//"), start):
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        if found := _POPCORN.match(text, start, min(end, start + 2000)):
            words = [word[:_LONGEST_NAME] for word in found[2].decode("utf-8", "replace").replace(",", " ").split()]
            if found[1].lower() == b"leaderboard":
                leaderboard = words[0] if words else leaderboard
            else:
                gpus = tuple(words[:_MOST_GPUS])
        start = end + 1
    return leaderboard, gpus
