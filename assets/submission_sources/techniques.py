"""Techniques that a text proves, each with the first line that proves it.

The detectors are data (`detectors.toml`). A compiled search for the literals that their patterns begin with finds the
few places that can prove anything; only those are looked at closely.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from assets.submission_sources.artifacts import is_utf8
from assets.submission_sources.lexing import Context, Lexed

EVIDENCE_LENGTH = 200
# Letters and digits (and what base64 adds to them) in one run of so many are data: no evidence.
LONG_RUN = 64
# A pattern is tried on so many bytes of its line.
_REACH = 300
_BATCH_BYTES = 2 << 20
# A text beyond this is searched so much at a time.
LARGE_TEXT = 1 << 20
_BATCH_TEXTS = 4096
_ASCII = bytes(number if number < 128 else 0x3F for number in range(256))
_SHORTEST_LITERAL = 3
# After what must or must not stand before it.
_LITERAL = re.compile(r"(?:\(\?<[=!](?:\[[^]]*\]|[^()])*\))*((?:[A-Za-z0-9_ :/=\-\"<,]|\\[.(])+)([?*{]?)")
_RUN_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_RUN = re.compile(rb"[A-Za-z0-9+/=]*+")
_ENDS_RUN = np.array([code not in _RUN_CHARACTERS for code in range(256)])


@dataclass(frozen=True)
class Technique:
    """A trait and what proves it: line from 1, the value where it has one, and the line's text cut to a length."""

    trait: str
    line: int
    value: str | None
    context: Context
    evidence: str


@dataclass(frozen=True)
class _Detector:
    trait: str
    pattern: re.Pattern[bytes]
    without: frozenset[str]
    value: str | None


@dataclass(frozen=True)
class Detectors:
    """The table of detectors: its traits, the literals (in lower case) that texts are searched for, and by the first
    bytes of a literal what may begin there."""

    traits: tuple[str, ...]
    literals: tuple[str, ...]
    by_start: dict[bytes, tuple[tuple[bytes, _Detector], ...]]


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("detectors.toml").read_text(encoding="utf-8"))


def version() -> str:
    """Version of the detectors."""
    return str(_table()["version"])


@cache
def detectors() -> Detectors:
    """The detectors that texts are read with.

    Raises:
        ValueError: for a pattern that does not begin with a literal, naming it.
    """
    table = _table()
    literals: set[str] = set()
    by_start: dict[bytes, list[tuple[bytes, _Detector]]] = defaultdict(list)
    for entry in table["detector"]:
        without = frozenset(entry.get("without", ()))
        for kind, before, flags in (("words", r"(?<![A-Za-z0-9])", re.IGNORECASE), ("parts", "", re.NOFLAG)):
            for pattern in chain.from_iterable(_written_out(text, table) for text in entry.get(kind, ())):
                literal = _literal(pattern).encode("ascii")
                literals.add(literal.decode("ascii"))
                compiled = re.compile((before + pattern).encode("ascii"), flags)
                detector = _Detector(entry["trait"], compiled, without, entry.get("value"))
                by_start[literal[:_SHORTEST_LITERAL]].append((literal, detector))
    traits = tuple(dict.fromkeys(entry["trait"] for entry in table["detector"]))
    kept = {start: tuple(entries) for start, entries in by_start.items()}
    return Detectors(traits, tuple(sorted(literals)), kept)


Places = Iterable[NDArray[np.uint32]]


def located(texts: Iterable[bytes]) -> Iterator[tuple[bytes, Places]]:
    """Each text with the places (offsets in bytes, ascending) where a trait may be; the next are searched meanwhile.

    A large text is searched a window at a time, as its places are asked for, and nothing is read ahead of it.
    """
    stream = iter(texts)
    with ThreadPoolExecutor(1) as search:
        batch = _batch(stream)
        coming = search.submit(_locate, batch)
        while batch:
            is_large = len(batch[-1]) > LARGE_TEXT
            following = [] if is_large else _batch(stream)
            places = coming.result()
            coming = search.submit(_locate, following)
            yield from zip(batch, places, strict=True)
            if is_large:
                batch.clear()
                following = _batch(stream)
                coming = search.submit(_locate, following)
            batch = following


def proven(lexed: Lexed, language: str | None, places: Places) -> list[Technique]:
    """The techniques of a text in order of their lines, each where it is first proven.

    Args:
        lexed: the text.
        language: what it is written in.
        places: where a trait may be, as `located` gives them.
    """
    text, by_start = lexed.text, detectors().by_start
    found: dict[str, Technique] = {}
    line, counted = 1, 0
    start = end = -1
    # Up to here nothing more is proven: the rest of a comment, or of a long run.
    barren = 0
    for place in _numbers(text, places, found):
        if place < barren:
            continue
        for literal, detector in by_start.get(text[place : place + _SHORTEST_LITERAL].lower(), ()):
            trait = detector.trait
            if trait in found or language in detector.without:
                continue
            if text[place : place + len(literal)].lower() != literal:
                continue
            reach = text.find(b"\n", place, place + _REACH)
            match = detector.pattern.match(text, place, reach if reach >= 0 else place + _REACH)
            if match is None:
                continue
            if place >= end:
                start = text.rfind(b"\n", max(end, 0), place) + 1
                end = text.find(b"\n", place)
                end = len(text) if end < 0 else end
                if lexed.is_comment_only(start, end):
                    # So are the lines below that the same comment goes on over.
                    barren = max(end, text.rfind(b"\n", place, lexed.comments.end_of(place)))
            if place >= barren:
                barren = _long_run_end(text, start, end, place)
            if place < barren:
                break
            line, counted = line + text.count(b"\n", counted, start), start
            value = match.groupdict().get("value")
            evidence = _evidence(
                text[start:end] if end - start <= EVIDENCE_LENGTH else _around(text, start, end, place)
            )
            context = lexed.context(place)
            found[trait] = Technique(trait, line, value.decode("ascii") if value else detector.value, context, evidence)
    return sorted(found.values(), key=lambda technique: (technique.line, technique.trait))


def _numbers(text: bytes, places: Places, found: Collection[str]) -> Iterator[int]:
    """The places as numbers, a few at a time: a large text may have millions. Later ones that can prove nothing new are
    left out."""
    for window in places:
        for first in range(0, len(window), _BATCH_TEXTS):
            some = window[first : first + _BATCH_TEXTS]
            yield from (_of_use(text, some, found) if first else some).tolist()


def _of_use(text: bytes, places: NDArray[np.uint32], found: Collection[str]) -> NDArray[np.uint32]:
    """The places outside long runs where a literal is one of whose traits is not found yet."""
    first, last = int(places[0]), int(places[-1])
    begin, beyond = max(first - LONG_RUN, 0), last + LONG_RUN
    codes = np.frombuffer(text[begin:beyond].lower().ljust(beyond - begin, b"\n"), np.uint8)
    there = places.astype(np.int64) - begin
    use = np.zeros(len(places), np.bool_)
    starts = np.zeros(len(places), np.uint32)
    for place in range(_SHORTEST_LITERAL):
        starts = starts << np.uint32(8) | codes.take(there + place)
    for number in np.unique(starts).tolist():
        entries = detectors().by_start.get(number.to_bytes(_SHORTEST_LITERAL, "big"), ())
        for literal in {literal for literal, detector in entries if detector.trait not in found}:
            use |= _has(codes, there, literal)
    # Where runs end: what a place is in lies between the last of these before it and the first behind it.
    ends = np.concatenate(([-1], np.flatnonzero(_ENDS_RUN.take(codes)), [len(codes)]))
    after = np.searchsorted(ends, there, "right")
    use &= ends[np.minimum(after, len(ends) - 1)] - ends[after - 1] <= LONG_RUN
    return places[use]


def _has(codes: NDArray[np.uint8], places: NDArray[np.int64], literal: bytes) -> NDArray[np.bool_]:
    """At which places a literal is."""
    same = np.ones(len(places), np.bool_)
    for place, code in enumerate(literal):
        same &= codes.take(places + place) == code
    return same


def _batch(stream: Iterator[bytes]) -> list[bytes]:
    batch: list[bytes] = []
    size = 0
    for text in islice(stream, _BATCH_TEXTS):
        batch.append(text)
        size += len(text)
        if size >= _BATCH_BYTES:
            break
    return batch


def _locate(texts: list[bytes]) -> list[Places]:
    """The places of some texts, of which only the last may be a large one."""
    if texts and len(texts[-1]) > LARGE_TEXT:
        return [*_locate(texts[:-1]), _windows(texts[-1])]
    return [(places,) for places in _search(texts)]


def _windows(text: bytes) -> Iterator[NDArray[np.uint32]]:
    beyond = max(map(len, detectors().literals)) - 1
    for first in range(0, len(text), LARGE_TEXT):
        (places,) = _search([text[first : first + LARGE_TEXT + beyond]])
        yield places[places < LARGE_TEXT] + np.uint32(first)


def _search(texts: list[bytes]) -> list[NDArray[np.uint32]]:
    if not texts:
        return []
    readable = [text if is_utf8(text) else _readable(text) for text in texts]
    frame = pl.DataFrame({"text": pl.from_arrow(pa.array(readable, pa.large_binary()).cast(pa.large_string()))})
    search = pl.col("text").str.find_many(list(detectors().literals), ascii_case_insensitive=True, overlapping=True)
    # Sorted, since of overlapping literals the one that ends first is given first.
    return [np.unique(places.to_numpy()) for places in frame.select(search)["text"]]


def _readable(text: bytes) -> bytes:
    """Text of the same length in which every byte that is no ASCII is a question mark."""
    return text.translate(_ASCII)


def _long_run_end(text: bytes, start: int, end: int, place: int) -> int:
    """Where the run of at least `LONG_RUN` letters and digits ends that a place on a line is in; 0 without one."""
    before = text[max(start, place - LONG_RUN) : place]
    after = text[place : min(end, place + LONG_RUN)]
    run = len(before) - len(before.rstrip(_RUN_CHARACTERS)) + len(after) - len(after.lstrip(_RUN_CHARACTERS))
    if run < LONG_RUN:
        return 0
    rest = _RUN.match(text, place, end)
    return max(rest.end() if rest else place, place + 1)


def _around(text: bytes, start: int, end: int, place: int) -> bytes:
    """The part of a long line that a place is in."""
    first = max(start, min(place - EVIDENCE_LENGTH // 2, end - EVIDENCE_LENGTH))
    return text[first : min(end, first + EVIDENCE_LENGTH)]


def _evidence(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return "".join(max(character, " ") for character in text)[:EVIDENCE_LENGTH]


def _written_out(text: str, table: dict[str, str]) -> Iterator[str]:
    """The patterns that an entry of the table stands for."""
    text = text.replace("{is}", table["is"]).replace("{number}", table["number"])
    for separator in ("", "_", "-", " ") if "{_}" in text else ("",):
        yield text.replace("{_}", separator)


def _literal(pattern: str) -> str:
    """The literal that a pattern begins with, in lower case."""
    found = _LITERAL.match(pattern)
    literal = re.sub(r"\\(.)", r"\1", found[1]) if found else ""
    # What may be there or not is no part of it.
    literal = literal[:-1] if found and found[2] else literal
    if len(literal) < _SHORTEST_LITERAL:
        raise ValueError(f"detectors.toml: {pattern!r} does not begin with {_SHORTEST_LITERAL} characters of text")
    return literal.lower()
