"""The tokens of a text as numbers: equal ones for equal tokens, the same for all identifiers, none for comments."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from assets.submission_sources.lexing import Lexed

Numbers = NDArray[np.uint64]

# Bytes whose tokens are numbered at once.
_PIECE = 1 << 16
_BLANK, _WORD, _OTHER = range(3)
KEYWORDS = frozenset(
    b"""False None True and as assert async await break class continue def del elif else except finally for from global
    if import in is lambda nonlocal not or pass raise return try while with yield
    auto bool case char const constexpr default do double enum extern float goto inline int long namespace new operator
    private public register short signed sizeof static struct switch template this typedef typename union unsigned using
    virtual void volatile __global__ __device__ __shared__ __host__ asm""".split()
)


def token_numbers(lexed: Lexed) -> Numbers:
    """A number for each token of a text without comments and docstrings, in order.

    Tokens are words (names, numbers, what is no ASCII) and single other characters; every identifier is the same one.
    """
    pieces = list(pieces_of_numbers(lexed))
    return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, np.uint64), *pieces])


def pieces_of_numbers(lexed: Lexed) -> Iterator[Numbers]:
    """The same, some thousand tokens at a time."""
    text = lexed.code
    start = 0
    while start < len(text):
        piece = text[start : start + _PIECE]
        if len(piece) == _PIECE:
            # Pieces end between tokens, or else inside one that is longer than they are.
            piece = piece.rstrip(_WORD_BYTES) or piece
        yield _numbers(piece)
        start += len(piece)


def stirred(content: bytes) -> int:
    """64 bits that depend on some bytes alone."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def _numbers(text: bytes | bytearray) -> Numbers:
    """A number for each token of a piece: the sum of its bytes' numbers, each times a power for its place in it."""
    codes = np.frombuffer(text, np.uint8)
    kinds = np.frombuffer(text.translate(_KINDS), np.uint8)
    # A word begins where none was before, any other character always.
    begins = np.empty(len(codes), np.bool_)
    begins[0] = kinds[0] != _BLANK
    np.greater(kinds[1:], kinds[:-1] == _WORD, out=begins[1:])
    starts = np.flatnonzero(begins)
    # Sums up to each byte, by its place in the text; what is before a token is taken off, and then its place.
    values, sums = _VALUES.take(codes), np.zeros(len(codes) + 1, np.uint64)
    values *= _POWERS[: len(values)]
    np.add.accumulate(values, out=sums[1:])
    found = np.diff(sums.take(starts), append=sums[-1:])
    found *= _INVERSES.take(starts)
    names = _NAMES.take(codes.take(starts))
    names &= _KEYWORD_NUMBERS.take(found >> _KEYWORD_SHIFT) != found
    return np.where(names, _IDENTIFIER_NUMBER, found)


def _tables() -> tuple[bytes, NDArray[np.bool_], Numbers]:
    """What each byte is, whether it may begin a name, and its number."""
    kinds = np.full(256, _OTHER, np.uint8)
    kinds[list(b" \t\r\n\f\v")] = _BLANK
    kinds[list(_WORD_BYTES)] = _WORD
    names = np.zeros(256, np.bool_)
    names[[code for code in _WORD_BYTES if not 0x30 <= code < 0x3A]] = True
    values = np.array([stirred(bytes([code])) for code in range(256)], np.uint64)
    # White space adds nothing to the token before it.
    values[kinds == _BLANK] = 0
    return kinds.tobytes(), names, values


def _powers(factor: int) -> Numbers:
    """1 and its products with a factor, for each place in a piece."""
    powers = np.full(_PIECE, factor, np.uint64)
    powers[0] = 1
    return np.cumprod(powers, dtype=np.uint64)


def _keyword_numbers() -> Numbers:
    """The numbers of all keywords, each at its first bits; 0 elsewhere."""
    found = np.zeros(1 << (64 - int(_KEYWORD_SHIFT)), np.uint64)
    for word in KEYWORDS:
        number = np.sum(_VALUES[list(word)] * _POWERS[: len(word)])
        place = int(number >> _KEYWORD_SHIFT)
        if found[place]:
            raise ValueError(f"tokens.py: {word!r} has the same first bits as another keyword; choose another base")
        found[place] = number
    return found


_WORD_BYTES = bytes(code for code in range(256) if code >= 0x80 or code == 0x5F or chr(code).isalnum())
_KINDS, _NAMES, _VALUES = _tables()
# Odd, so that each power has an inverse.
_BASE = stirred(b"powers") | 1
_POWERS, _INVERSES = _powers(_BASE), _powers(pow(_BASE, -1, 1 << 64))
_IDENTIFIER_NUMBER = np.uint64(0)
_KEYWORD_SHIFT = np.uint64(64 - 12)
_KEYWORD_NUMBERS = _keyword_numbers()
