"""What changed between two texts: counts of lines, and unified diffs that make the bytes of one those of the other.

Lines end at LF or CRLF only. Counts take no notice of which of the two it is; the diff does, since it is exact.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from assets.submission_sources.artifacts import is_utf8

# Bump when a pair of texts compares otherwise.
VERSION = "diffs-1"
CONTEXT = 3
# Beyond these there are counts alone.
LARGEST_TEXT = 1_000_000
LONGEST_LINE = 10_000
# Beyond this not even counts.
MOST_LINES = 4_000_000
# Pairs of lines that an exact comparison may look at; it keeps a bit for each.
_MOST_PAIRS = 1 << 28
_MOST_ANCHORED = 2_000_000
_DEEPEST = 16

Block = tuple[int, int, int]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Difference:
    """How a text differs from an earlier one. `diff` is None where the two are one, or a limit is passed, or either is
    no UTF-8; the counts are None where there are too many lines to compare."""

    lines_added: int | None
    lines_removed: int | None
    line_endings_changed: bool | None
    diff: str | None


def difference(old: bytes, new: bytes, *, with_diff: bool = True) -> Difference:
    """Compare two texts.

    Lines that differ in nothing but LF and CRLF count as the same line and make `line_endings_changed` true.
    """
    if old == new:
        return Difference(0, 0, False, None)
    if max(old.count(b"\n"), new.count(b"\n")) >= MOST_LINES:
        return Difference(None, None, None, None)
    plain = (old.replace(b"\r\n", b"\n"), new.replace(b"\r\n", b"\n"))
    first, second = _ids(*plain)
    blocks = matching_blocks(first, second)
    same = sum(length for _, _, length in blocks)
    counts = len(second) - same, len(first) - same
    endings = _endings_differ(old, new, blocks) if b"\r\n" in old or b"\r\n" in new else False
    diff = None
    if with_diff and _has_diff(old) and _has_diff(new):
        exact = matching_blocks(*_ids(old, new)) if endings else blocks
        diff = unified(lines(old), lines(new), exact).decode("utf-8")
    return Difference(*counts, endings, diff)


def lines(text: bytes) -> list[bytes]:
    """The lines of a text with their ends."""
    return list(BytesIO(text))


def unified(old: Sequence[bytes], new: Sequence[bytes], blocks: Sequence[Block]) -> bytes:
    """A unified diff that `git apply` takes, of a file named `source`; empty where nothing differs."""
    pieces: list[bytes] = []
    for hunk in _hunks(_edits(len(old), len(new), blocks), len(old), len(new)):
        (old_start, old_end), (new_start, new_end) = hunk[0][0], hunk[0][1]
        old_end, new_end = hunk[-1][0][1], hunk[-1][1][1]
        sizes = (old_end - old_start, new_end - new_start)
        starts = (old_start + bool(sizes[0]), new_start + bool(sizes[1]))
        pieces.append(b"@@ -%d,%d +%d,%d @@\n" % (starts[0], sizes[0], starts[1], sizes[1]))
        for (old_from, old_to), (new_from, new_to), equal in hunk:
            if equal:
                pieces += [_line(b" ", line) for line in old[old_from:old_to]]
            else:
                pieces += [_line(b"-", line) for line in old[old_from:old_to]]
                pieces += [_line(b"+", line) for line in new[new_from:new_to]]
    return b"".join([b"--- a/source\n+++ b/source\n", *pieces]) if pieces else b""


def matching_blocks(first: Ids, second: Ids) -> list[Block]:
    """Runs of equal lines (start in each, length) in order: a longest common subsequence.

    Texts of very many lines are held together by the lines that each has once; between two of those, whatever is still
    too much to compare counts as replaced.
    """
    head, tail = _common_ends(first, second)
    inner = _inner(first[head : len(first) - tail], second[head : len(second) - tail])
    pairs = [(head + i, head + j, 1) for i, j in inner]
    ends = [(len(first) - tail, len(second) - tail, tail)]
    return list(_joined([(0, 0, head), *pairs, *ends]))


def _ids(first: bytes, second: bytes) -> tuple[Ids, Ids]:
    """A number for each line, equal for equal lines."""
    if max(len(first), len(second)) > LARGEST_TEXT:
        # A dictionary of millions of lines would outgrow the texts themselves.
        return tuple(np.fromiter(map(hash, BytesIO(text)), np.int64) for text in (first, second))  # type: ignore[return-value]
    known: dict[bytes, int] = {}
    made = [
        np.fromiter((known.setdefault(line, len(known)) for line in BytesIO(text)), np.int64)
        for text in (first, second)
    ]
    return made[0], made[1]


def _common_ends(first: Ids, second: Ids) -> tuple[int, int]:
    shorter = min(len(first), len(second))
    differs = np.flatnonzero(first[:shorter] != second[:shorter])
    head = int(differs[0]) if len(differs) else shorter
    left = shorter - head
    differs = np.flatnonzero(first[len(first) - left :][::-1] != second[len(second) - left :][::-1])
    return head, int(differs[0]) if len(differs) else left


def _inner(first: Ids, second: Ids, depth: int = 0) -> list[tuple[int, int]]:
    """Pairs of equal lines of two texts, ascending in both."""
    if not len(first) or not len(second):
        return []
    places = np.flatnonzero(np.isin(first, second)), np.flatnonzero(np.isin(second, first))
    first, second = first[places[0]], second[places[1]]
    if len(first) * len(second) <= _MOST_PAIRS:
        pairs = _longest(first.tolist(), second.tolist())
    else:
        pairs = _anchored(first, second, depth)
    return [(int(places[0][i]), int(places[1][j])) for i, j in pairs]


def _longest(first: list[int], second: list[int]) -> list[tuple[int, int]]:
    """A longest common subsequence, with a row of the table as the bits of one number."""
    if len(first) > len(second):
        return [(i, j) for j, i in _longest(second, first)]
    masks: dict[int, int] = {}
    for i, line in enumerate(first):
        masks[line] = masks.get(line, 0) | (1 << i)
    full = state = (1 << len(first)) - 1
    rows = [state]
    for line in second:
        matched = state & masks.get(line, 0)
        state = ((state + matched) | (state - matched)) & full
        rows.append(state)
    pairs = []
    i, j = len(first), len(second)
    while i and j:
        if rows[j] >> (i - 1) & 1:
            i -= 1
        else:
            j -= 1
            if rows[j] >> (i - 1) & 1:
                i -= 1
                pairs.append((i, j))
    return pairs[::-1]


def _anchored(first: Ids, second: Ids, depth: int) -> list[tuple[int, int]]:
    """Pairs of the lines that each has once, in the longest order common to both, and what lies between."""
    if max(len(first), len(second)) > _MOST_ANCHORED or depth > _DEEPEST:
        return []
    once = [_once(ids) for ids in (first, second)]
    _, here, there = np.intersect1d(first[once[0]], second[once[1]], assume_unique=True, return_indices=True)
    order = np.argsort(once[0][here])
    candidates = list(zip(once[0][here][order].tolist(), once[1][there][order].tolist(), strict=True))
    anchors = [candidates[k] for k in _increasing([j for _, j in candidates])]
    pairs: list[tuple[int, int]] = []
    start = (0, 0)
    for anchor in [*anchors, (len(first), len(second))]:
        between = first[start[0] : anchor[0]], second[start[1] : anchor[1]]
        if anchors:
            pairs += [(start[0] + i, start[1] + j) for i, j in _inner(*between, depth + 1)]
        if anchor[0] < len(first) and anchor[1] < len(second):
            pairs.append(anchor)
        start = (anchor[0] + 1, anchor[1] + 1)
    return pairs


def _once(ids: Ids) -> NDArray[np.int64]:
    _, places, counts = np.unique(ids, return_index=True, return_counts=True)
    found: NDArray[np.int64] = places[counts == 1]
    return found


def _increasing(values: list[int]) -> list[int]:
    """Positions of a longest increasing subsequence."""
    ends: list[int] = []
    smallest: list[int] = []
    before = [-1] * len(values)
    for k, value in enumerate(values):
        place = bisect_left(smallest, value)
        before[k] = ends[place - 1] if place else -1
        if place == len(ends):
            ends.append(k)
            smallest.append(value)
        else:
            ends[place], smallest[place] = k, value
    found = []
    k = ends[-1] if ends else -1
    while k >= 0:
        found.append(k)
        k = before[k]
    return found[::-1]


def _joined(blocks: list[Block]) -> Iterator[Block]:
    """Blocks with neighbours made one, empty ones left out."""
    start, other, length = 0, 0, 0
    for i, j, size in blocks:
        if (i, j) == (start + length, other + length):
            length += size
            continue
        if length:
            yield start, other, length
        start, other, length = i, j, size
    if length:
        yield start, other, length


_Edit = tuple[tuple[int, int], tuple[int, int], bool]


def _edits(old: int, new: int, blocks: Sequence[Block]) -> Iterator[_Edit]:
    """Stretches of both texts in order, each equal or replaced."""
    i = j = 0
    for first, second, length in [*blocks, (old, new, 0)]:
        if first > i or second > j:
            yield (i, first), (j, second), False
        if length:
            yield (first, first + length), (second, second + length), True
        i, j = first + length, second + length


def _hunks(edits: Iterator[_Edit], old: int, new: int) -> Iterator[list[_Edit]]:
    """Edits with their context, split where more than twice the context is equal."""
    hunk: list[_Edit] = []
    for (i, i_end), (j, j_end), equal in edits:
        if not equal:
            hunk.append(((i, i_end), (j, j_end), False))
            continue
        size = i_end - i
        last = i_end == old and j_end == new
        if hunk and (size <= 2 * CONTEXT and not last):
            hunk.append(((i, i_end), (j, j_end), True))
            continue
        if hunk:
            kept = min(CONTEXT, size)
            yield [*hunk, ((i, i + kept), (j, j + kept), True)]
        kept = min(CONTEXT, size)
        hunk = [] if last else [((i_end - kept, i_end), (j_end - kept, j_end), True)]
    if any(not equal for *_, equal in hunk):
        yield hunk


def _line(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"


def _endings_differ(old: bytes, new: bytes, blocks: Sequence[Block]) -> bool:
    marks = [np.fromiter((line.endswith(b"\r\n") for line in BytesIO(text)), np.bool_) for text in (old, new)]
    return any(bool((marks[0][i : i + size] != marks[1][j : j + size]).any()) for i, j, size in blocks)


def _has_diff(text: bytes) -> bool:
    if len(text) > LARGEST_TEXT or not is_utf8(text):
        return False
    return max(map(len, text.split(b"\n"))) <= LONGEST_LINE
