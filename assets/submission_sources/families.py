"""Families of sources that are equal up to comments, white space and identifiers, or nearly so.

Two sources are near when they share 90 % of their runs of five tokens. MinHash sketches find the pairs that may be; the
runs themselves decide. A family is whatever is connected by such pairs, so that no order plays a part.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from assets.submission_sources.lexing import Lexed, lex
from assets.submission_sources.signatures import Signatures
from assets.submission_sources.tokens import Numbers, pieces_of_numbers, stirred, token_numbers

if TYPE_CHECKING:
    from datasketch import MinHash

# Bump when a text's sketch, or what makes a family, changes.
VERSION = "families-2"
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
_NORMAL_BYTES = 16
_KEPT_SHINGLES = 2_000_000

SKETCHES = pa.schema(
    [
        ("source_digest", pa.string()),
        ("normal", pa.binary(_NORMAL_BYTES)),
        ("signature", pa.binary(4 * PERMUTATIONS)),
        ("shingles", pa.int64()),
    ]
)
PLACED = pa.schema([("source_digest", pa.string()), ("family", pa.string())])
_FACTOR = np.uint64(stirred(b"place in a run of tokens") | 1)
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
        content, length = hashlib.sha256(), 0
        for numbers in pieces_of_numbers(lexed):
            content.update(numbers.astype("<u8", copy=False).tobytes())
            length += len(numbers)
        return Sketch(content.digest()[:_NORMAL_BYTES], None, 0) if length else None
    tokens = token_numbers(lexed)
    if not len(tokens):
        return None
    normal = hashlib.sha256(tokens.astype("<u8", copy=False).tobytes()).digest()[:_NORMAL_BYTES]
    shingles = _shingles(tokens)
    return Sketch(normal, _signature(shingles), len(shingles))


@cache
def _sketching() -> Callable[[], MinHash]:
    """What makes empty sketches."""
    # datasketch has other classes that integrate with scipy, which takes 40 MB. Nothing here uses them; they would not
    # work, as they find nothing in its place.
    empty = ModuleType("scipy.integrate")
    vars(empty)["quad"] = None
    loaded = sys.modules.setdefault(empty.__name__, empty)
    try:
        from datasketch import MinHash
    finally:
        if loaded is empty:
            del sys.modules[empty.__name__]
    permutations = MinHash(num_perm=PERMUTATIONS, seed=SEED, scheme="affine32").permutations
    return partial(
        MinHash, num_perm=PERMUTATIONS, seed=SEED, hashfunc=_same, scheme="affine32", permutations=permutations
    )


def _signature(shingles: Shingles) -> bytes:
    made = _sketching()()
    halves = (shingles >> np.uint64(32)).astype(np.uint32)
    for first in range(0, len(halves), _AT_ONCE):
        # An array of hashes in place of one, since one call for each would take longer than all else.
        made.update_batch([halves[first : first + _AT_ONCE]])
    return bytes(made.hashvalues.astype("<u4").tobytes())


def _same(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return hashes


class Search:
    """Looks for families among sketches.

    Args:
        sketches: rows of `SKETCHES`, each digest once; of each column but `signature`.
        signatures: those of the same rows, `PERMUTATIONS` numbers each; whatever, where there are no shingles.
        placed: what an earlier search found among some of these, `source_digest` and `family`; no two of those are
            compared again. Nothing by default.
    """

    def __init__(self, sketches: pa.Table, signatures: Signatures, placed: pa.Table | None = None) -> None:
        order = np.asarray(pc.sort_indices(sketches, [("source_digest", "ascending")]))
        self._digests = sketches["source_digest"].take(pa.array(order)).combine_chunks()
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
        root = np.fromiter(map(self._roots.find, range(len(self._leaders))), np.int64)[self._group]
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
            columns = self._signatures.columns(band * _BAND_ROWS, (band + 1) * _BAND_ROWS)[self._rows]
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
        signatures = self._signatures.rows(self._rows[members])
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
            near = signatures[place + 1 :][chosen] == signatures[place]
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


def shingles(lexed: Lexed) -> Shingles:
    """A number for each different run of five tokens; of a shorter text for all of it."""
    return _shingles(token_numbers(lexed))


def jaccard(first: Shingles, second: Shingles) -> float:
    """How many of two sets' elements are in both; 0 for empty ones."""
    if not len(first) or not len(second):
        return 0.0
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / (len(first) + len(second) - shared)


def _shingles(numbers: Numbers) -> Shingles:
    count = max(len(numbers) - SHINGLE_TOKENS + 1, 1)
    if len(numbers) < SHINGLE_TOKENS:
        numbers = np.concatenate([numbers, np.zeros(SHINGLE_TOKENS - len(numbers), np.uint64)])
    mixed = numbers[:count] * _FACTOR
    for place in range(1, SHINGLE_TOKENS):
        mixed += numbers[place : place + count]
        mixed *= _FACTOR
    mixed.sort()
    new = np.ones(count, np.bool_)
    np.not_equal(mixed[1:], mixed[:-1], out=new[1:])
    return mixed[new]


def _fixed(column: pa.ChunkedArray, kind: np.dtype[Any]) -> NDArray[Any]:
    """The values of a column of fixed width in place; what is null is whatever lies there."""
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if not len(array):
        return np.empty(0, kind)
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


class _Roots:
    """Which of many things are connected; each goes by the smallest it is connected with."""

    def __init__(self, count: int) -> None:
        self._parents = array("Q", range(count))

    def find(self, number: int) -> int:
        parents = self._parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    def join(self, first: int, second: int) -> None:
        a, b = sorted((self.find(first), self.find(second)))
        self._parents[b] = a
