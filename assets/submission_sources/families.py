"""Families of sources that are equal up to comments, white space and identifiers, or nearly so.

Two sources are near when they share 90 % of their runs of five tokens. MinHash sketches find the pairs that may be; the
runs themselves decide. A family is whatever is connected by such pairs, so that no order plays a part.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasketch import MinHash
from numpy.typing import NDArray

from assets.submission_sources.lexing import Lexed, lex

# Bump when a text's sketch, or what makes a family, changes.
VERSION = "families-1"
SEED = 20_250_601
SHINGLE_TOKENS = 5
NEAR = 0.9
PERMUTATIONS = 64
# With 12 bands of 5, one pair in 40,000 at exactly 0.9 is missed, fewer above.
_BANDS, _BAND_ROWS = 12, 5
# Five standard errors of the sketches' estimate below `NEAR`: such pairs need no closer look.
_ESTIMATE = 0.7
# Larger texts belong together only where they are equal.
LARGEST_TEXT = 1_000_000
_AT_ONCE = 4096
# Bytes whose tokens are numbered at once; bytes of a token that are told from each other by their place.
_PIECE = 1 << 20
_NORMAL_BYTES = 16
_LONGEST_TOKEN = 256
_BLANK, _WORD, _OTHER = range(3)
_KEPT_SHINGLES = 2_000_000

# Words (names, numbers, what is no ASCII) and single other characters.
_TOKEN = re.compile(rb"[\w\x80-\xff]++|[^\s\w]")
_KEYWORDS = frozenset(
    b"""False None True and as assert async await break class continue def del elif else except finally for from global
    if import in is lambda nonlocal not or pass raise return try while with yield
    auto bool case char const constexpr default do double enum extern float goto inline int long namespace new operator
    private public register short signed sizeof static struct switch template this typedef typename union unsigned using
    virtual void volatile __global__ __device__ __shared__ __host__ asm""".split()
)
_IDENTIFIER = b"identifier"
SKETCHES = pa.schema(
    [
        ("source_digest", pa.string()),
        ("normal", pa.binary(_NORMAL_BYTES)),
        ("signature", pa.binary(4 * PERMUTATIONS)),
        ("shingles", pa.int64()),
    ]
)
PLACED = pa.schema([("source_digest", pa.string()), ("family", pa.string())])
_PERMUTATIONS = MinHash(num_perm=PERMUTATIONS, seed=SEED, scheme="affine32").permutations
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
Numbers = NDArray[np.uint64]
Shingles = NDArray[np.uint64]


@dataclass(frozen=True)
class Sketch:
    """What is kept of a text to find its like by.

    `normal` is a digest of its tokens, equal for texts that are equal up to comments, white space and identifiers;
    `signature` the MinHash of its shingles (None for one that is too large); `shingles` how many different ones it has.
    """

    normal: bytes
    signature: bytes | None
    shingles: int


def sketch(lexed: Lexed) -> Sketch | None:
    """The sketch of a text; None where nothing is left of it but comments and white space."""
    if len(lexed.text) > LARGEST_TEXT:
        # Of such a text nothing is kept but the digest, a piece at a time.
        content, length = hashlib.blake2b(digest_size=_NORMAL_BYTES), 0
        for numbers in _pieces(lexed):
            content.update(numbers.astype("<u8").tobytes())
            length += len(numbers)
        return Sketch(content.digest(), None, 0) if length else None
    tokens = token_numbers(lexed)
    if not len(tokens):
        return None
    normal = hashlib.blake2b(tokens.astype("<u8").tobytes(), digest_size=_NORMAL_BYTES).digest()
    shingles = _shingles(tokens)
    made = MinHash(num_perm=PERMUTATIONS, seed=SEED, hashfunc=int, scheme="affine32", permutations=_PERMUTATIONS)
    halves = (shingles >> np.uint64(32)).tolist()
    for first in range(0, len(halves), _AT_ONCE):
        made.update_batch(halves[first : first + _AT_ONCE])
    return Sketch(normal, made.hashvalues.astype("<u4").tobytes(), len(shingles))


class Search:
    """Looks for families among sketches.

    Args:
        sketches: rows of `SKETCHES`, each digest once; of each column but `signature`.
        signatures: the signatures of the same rows, `PERMUTATIONS` numbers each; whatever, where there are no shingles.
        placed: what an earlier search found among some of these, `source_digest` and `family`; no two of those are
            compared again. Nothing by default.
    """

    def __init__(self, sketches: pa.Table, signatures: NDArray[np.uint32], placed: pa.Table | None = None) -> None:
        order = np.asarray(pc.sort_indices(sketches, [("source_digest", "ascending")]))
        self._digests = sketches["source_digest"].combine_chunks().take(pa.array(order))
        normals = _fixed(sketches["normal"], np.dtype((np.void, _NORMAL_BYTES)))[order]
        # Of texts that are equal up to what does not count, the one with the smallest digest stands for all.
        _, leaders, self._group = np.unique(normals, return_index=True, return_inverse=True)
        self._leaders = leaders
        self._roots = _Roots(len(leaders))
        self._old = np.zeros(len(leaders), np.bool_)
        if placed is not None:
            self._place(placed)
        sizes = np.asarray(sketches["shingles"])[order[leaders]]
        self._sized = np.flatnonzero(sizes)
        self._sizes = sizes[self._sized]
        # By row, where they lie: there may be hundreds of thousands.
        self._rows = order[leaders][self._sized]
        self._signatures = signatures

    def in_question(self) -> list[str]:
        """Digests of the texts that may have to be looked at."""
        asked = np.zeros(len(self._leaders), np.bool_)
        for a, b in self._candidates():
            asked[a] = asked[b] = True
        return [self._digest(number) for number in np.flatnonzero(asked).tolist()]

    def decide(self, text_of: Callable[[str], bytes | None]) -> None:
        """Compare the texts in question; a text that cannot be had is near to none."""
        kept = _Kept(lambda number: text_of(self._digest(number)))
        for a, b in self._candidates():
            if jaccard(kept.shingles(a), kept.shingles(b)) >= NEAR:
                self._roots.join(a, b)

    def placed(self) -> pa.Table:
        """Every text with its family, the smallest digest in it; null where it is alone in it."""
        root = np.array([self._roots.find(number) for number in range(len(self._leaders))], np.int64)[self._group]
        _, first, inverse, counts = np.unique(root, return_index=True, return_inverse=True, return_counts=True)
        alone = counts[inverse] == 1
        families = self._digests.take(pa.array(first[inverse], mask=alone))
        return pa.table([self._digests, families], schema=PLACED)

    def _place(self, placed: pa.Table) -> None:
        numbers = pc.index_in(placed["source_digest"], self._digests).to_pylist()
        families = pc.index_in(placed["family"], self._digests, skip_nulls=True).to_pylist()
        for number, family in zip(numbers, families, strict=True):
            self._old[self._group[number]] = True
            if family is not None:
                self._roots.join(int(self._group[number]), int(self._group[family]))

    def _digest(self, leader: int) -> str:
        return str(self._digests[int(self._leaders[leader])])

    def _candidates(self) -> Iterator[tuple[int, int]]:
        """Pairs of leaders that may be near and that nothing connects yet."""
        for band in range(_BANDS):
            place = slice(band * _BAND_ROWS, (band + 1) * _BAND_ROWS)
            columns = np.ascontiguousarray(self._signatures[:, place][self._rows])
            keys = columns.view(np.dtype((np.void, 4 * _BAND_ROWS))).ravel()
            order = np.argsort(keys, kind="stable")
            start = 0
            for end in (np.flatnonzero(np.append(keys[order][1:] != keys[order][:-1], len(order) > 0)) + 1).tolist():
                if end - start > 1:
                    yield from self._alike(order[start:end])
                start = end

    def _alike(self, members: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Pairs of a bucket that are of like size and whose sketches are alike."""
        leaders = self._sized[members]
        find = self._roots.find
        for place in range(len(members) - 1):
            i, a = members[place], int(leaders[place])
            others, those = members[place + 1 :], leaders[place + 1 :]
            smaller, larger = (
                np.minimum(self._sizes[others], self._sizes[i]),
                np.maximum(self._sizes[others], self._sizes[i]),
            )
            chosen = smaller >= NEAR * larger
            if self._old[a]:
                chosen &= ~self._old[those]
            near = self._signatures[self._rows[others[chosen]]] == self._signatures[self._rows[i]]
            chosen[chosen] = near.mean(axis=1) >= _ESTIMATE
            for b in those[chosen].tolist():
                if find(a) != find(b):
                    yield a, b


class _Kept:
    """Shingles of the texts looked at last, up to a number of them."""

    def __init__(self, text_of: Callable[[int], bytes | None]) -> None:
        self._text_of = text_of
        self._kept: dict[int, Shingles] = {}
        self._count = 0

    def shingles(self, number: int) -> Shingles:
        if (found := self._kept.get(number)) is None:
            text = self._text_of(number)
            found = shingles(lex(text)) if text is not None else np.empty(0, np.uint64)
            if self._count + len(found) > _KEPT_SHINGLES:
                self._kept.clear()
                self._count = 0
            self._kept[number] = found
            self._count += len(found)
        return found


def signatures_of(batches: Iterable[pa.RecordBatch], count: int) -> NDArray[np.uint32]:
    """The signatures of rows of `SKETCHES`, a row each, in one place."""
    found = np.zeros((count, PERMUTATIONS), "<u4")
    first = 0
    for batch in batches:
        column = batch.column(batch.schema.get_field_index("signature"))
        values = _fixed(pa.chunked_array([column]), np.dtype(("<u4", PERMUTATIONS)))
        found[first : first + len(column)] = values
        first += len(column)
    return found


def shingles(lexed: Lexed) -> Shingles:
    """A number for each different run of five tokens; of a shorter text for all of it."""
    return _shingles(token_numbers(lexed))


def jaccard(first: Shingles, second: Shingles) -> float:
    """How many of two sets' elements are in both; 0 for empty ones."""
    if not len(first) or not len(second):
        return 0.0
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / (len(first) + len(second) - shared)


def tokens(lexed: Lexed) -> Iterator[bytes]:
    """The tokens of a text without comments and docstrings, every identifier as the same one."""
    for token in _TOKEN.finditer(lexed.without_comments()):
        word = token[0]
        is_name = word[0] >= 0x80 or word[0] == 0x5F or chr(word[0]).isalpha()
        yield _IDENTIFIER if is_name and word not in _KEYWORDS else word


def token_numbers(lexed: Lexed) -> Numbers:
    """A number for each of `tokens`, in order."""
    return np.concatenate([np.empty(0, np.uint64), *_pieces(lexed)])


def _pieces(lexed: Lexed) -> Iterator[Numbers]:
    text = lexed.without_comments()
    start = 0
    while start < len(text):
        end = min(start + _PIECE, len(text))
        # Pieces end between tokens, or else inside one that is longer than they are.
        blank = text.rfind(b"\n", start, end) + 1 if end < len(text) else end
        end = blank if blank > start else end
        yield _numbers(text[start:end])
        start = end


def _numbers(text: bytes) -> Numbers:
    """A number for each token of a text: the sum of its bytes' numbers, each times a power for its place."""
    codes = np.frombuffer(text, np.uint8)
    kinds = _KINDS[codes]
    words = kinds == _WORD
    begins = kinds == _OTHER
    begins[0] |= words[0]
    begins[1:] |= words[1:] & ~words[:-1]
    starts = np.flatnonzero(begins)
    if not len(starts):
        return np.empty(0, np.uint64)
    lengths = np.diff(np.append(starts, len(codes)))
    places = np.arange(starts[0], len(codes)) - np.repeat(starts, lengths)
    values = _VALUES[codes[starts[0] :]] * _POWERS[np.minimum(places, len(_POWERS) - 1)]
    sums = np.add.reduceat(values, starts - starts[0])
    known = _KEYWORD_NUMBERS[np.minimum(np.searchsorted(_KEYWORD_NUMBERS, sums), len(_KEYWORD_NUMBERS) - 1)] == sums
    sums[_NAMES[codes[starts]] & ~known] = 0
    return sums


def _tables() -> tuple[NDArray[np.uint8], NDArray[np.bool_], Numbers, Numbers]:
    """What each byte is, whether it may begin a name, its number, and the powers of places."""
    kinds = np.full(256, _OTHER, np.uint8)
    kinds[list(b" \t\r\n\f\v")] = _BLANK
    letters = [*range(0x41, 0x5B), *range(0x61, 0x7B), 0x5F, *range(0x80, 0x100)]
    kinds[[*letters, *range(0x30, 0x3A)]] = _WORD
    names = np.zeros(256, np.bool_)
    names[letters] = True
    values = np.array([_stirred(code) for code in range(256)], np.uint64)
    # White space adds nothing to the token before it.
    values[kinds == _BLANK] = 0
    powers = np.cumprod(np.full(_LONGEST_TOKEN, _MULTIPLIER), dtype=np.uint64)
    return kinds, names, values, powers


def _stirred(code: int) -> int:
    return int.from_bytes(hashlib.blake2b(bytes([code]), digest_size=8).digest(), "little")


_KINDS, _NAMES, _VALUES, _POWERS = _tables()
_KEYWORD_NUMBERS = np.sort(
    np.array([(_VALUES[list(word)] * _POWERS[: len(word)]).sum() for word in _KEYWORDS], np.uint64)
)


def _shingles(numbers: Numbers) -> Shingles:
    count = max(len(numbers) - SHINGLE_TOKENS + 1, 1)
    if len(numbers) < SHINGLE_TOKENS:
        numbers = np.concatenate([numbers, np.zeros(SHINGLE_TOKENS - len(numbers), np.uint64)])
    mixed = np.zeros(count, np.uint64)
    for place in range(SHINGLE_TOKENS):
        mixed = (mixed ^ numbers[place : place + count]) * _MULTIPLIER
        mixed ^= mixed >> np.uint64(29)
    return np.unique(mixed)


def _fixed(column: pa.ChunkedArray, kind: np.dtype[Any]) -> NDArray[Any]:
    """The values of a column of fixed width in place; what is null is whatever lies there."""
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if not len(array):
        return np.empty(0, kind)
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


class _Roots:
    """Which of many things are connected; each goes by the smallest it is connected with."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def find(self, number: int) -> int:
        parents = self._parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    def join(self, first: int, second: int) -> None:
        a, b = sorted((self.find(first), self.find(second)))
        self._parents[b] = a
