"""Techniques that a text proves, each with the first line that proves it.

The detectors are data (`detectors.toml`). A compiled search for the literals that their patterns begin with finds the
few places that can prove anything; only those are looked at closely.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from pathlib import Path

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
_BATCH_TEXTS = 4096
_ASCII = bytes(number if number < 128 else 0x3F for number in range(256))
_SHORTEST_LITERAL = 3
# After what must or must not stand before it.
_LITERAL = re.compile(r"(?:\(\?<[=!](?:\[[^]]*\]|[^()])*\))*((?:[A-Za-z0-9_ :/=\-\"<]|\\[.(])+)([?*{]?)")
_RUN_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="


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


@dataclass(frozen=True)
class Detectors:
    """The table of detectors: its version, its traits, the literals (in lower case) that texts are searched for, and by
    the first bytes of a literal what may begin there."""

    version: str
    traits: tuple[str, ...]
    literals: tuple[str, ...]
    by_start: dict[bytes, tuple[tuple[bytes, _Detector], ...]]


@cache
def detectors() -> Detectors:
    """The detectors that texts are read with.

    Raises:
        ValueError: for a pattern that does not begin with a literal, naming it.
    """
    table = tomllib.loads(Path(__file__).with_name("detectors.toml").read_text(encoding="utf-8"))
    literals: set[str] = set()
    by_start: dict[bytes, list[tuple[bytes, _Detector]]] = defaultdict(list)
    for entry in table["detector"]:
        without = frozenset(entry.get("without", ()))
        for kind, before, flags in (("words", r"(?<![A-Za-z0-9])", re.IGNORECASE), ("parts", "", re.NOFLAG)):
            for pattern in chain.from_iterable(_written_out(text, table) for text in entry.get(kind, ())):
                literal = _literal(pattern).encode("ascii")
                literals.add(literal.decode("ascii"))
                detector = _Detector(entry["trait"], re.compile((before + pattern).encode("ascii"), flags), without)
                by_start[literal[:_SHORTEST_LITERAL]].append((literal, detector))
    traits = tuple(entry["trait"] for entry in table["detector"])
    kept = {start: tuple(entries) for start, entries in by_start.items()}
    return Detectors(table["version"], traits, tuple(sorted(literals)), kept)


def located(texts: Iterable[bytes]) -> Iterator[tuple[bytes, NDArray[np.uint32]]]:
    """Each text with the places (offsets in bytes, ascending) where a trait may be; the next are searched meanwhile."""
    stream = iter(texts)
    with ThreadPoolExecutor(1) as search:
        batch = _batch(stream)
        coming = search.submit(_locate, batch)
        while batch:
            following = _batch(stream)
            places = coming.result()
            coming = search.submit(_locate, following)
            yield from zip(batch, places, strict=True)
            batch = following


def proven(lexed: Lexed, language: str | None, places: NDArray[np.uint32]) -> list[Technique]:
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
    skipped = False
    for place in _numbers(places):
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
                skipped = lexed.is_comment_only(start, end)
            if skipped or _in_long_run(text, start, end, place):
                continue
            line, counted = line + text.count(b"\n", counted, start), start
            value = match.groupdict().get("value")
            evidence = _evidence(
                text[start:end] if end - start <= EVIDENCE_LENGTH else _around(text, start, end, place)
            )
            context = lexed.context(place)
            found[trait] = Technique(trait, line, value.decode("ascii") if value else None, context, evidence)
    return sorted(found.values(), key=lambda technique: (technique.line, technique.trait))


def _numbers(places: NDArray[np.uint32]) -> Iterator[int]:
    """The places as numbers, a few at a time: a large text may have millions."""
    for first in range(0, len(places), _BATCH_TEXTS):
        yield from places[first : first + _BATCH_TEXTS].tolist()


def _batch(stream: Iterator[bytes]) -> list[bytes]:
    batch: list[bytes] = []
    size = 0
    for text in islice(stream, _BATCH_TEXTS):
        batch.append(text)
        size += len(text)
        if size >= _BATCH_BYTES:
            break
    return batch


def _locate(texts: list[bytes]) -> list[NDArray[np.uint32]]:
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


def _in_long_run(text: bytes, start: int, end: int, place: int) -> bool:
    """Whether a place on a line is inside a run of `LONG_RUN` letters and digits or more."""
    before = text[max(start, place - LONG_RUN) : place]
    after = text[place : min(end, place + LONG_RUN)]
    run = len(before) - len(before.rstrip(_RUN_CHARACTERS)) + len(after) - len(after.lstrip(_RUN_CHARACTERS))
    return run >= LONG_RUN


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
