"""Which files of the Hub's dataset hold data, and which bytes of a file hold the columns that the tables need."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

import pyarrow.parquet as pq
import yaml

from assets.kernelbot.read import is_bulk
from warehouse.errors import UnreadableError

# Bytes that may be fetched for each byte of the chunks that are needed.
OVERHEAD = 1.1
_SUFFIX = ".parquet"
_LONGEST_HEADER = 1 << 17
_MOST_PATTERNS, _LONGEST_PATTERN = 1000, 255
_MOST_ENTRIES = 10 * _MOST_PATTERNS
Span = tuple[int, int]


@dataclass(frozen=True)
class HubFile:
    """A file of the dataset at one commit.

    Attributes:
        path: its path in the dataset: a name, never a place on the disk.
        size_bytes: size of the file itself.
        content_digest: SHA-256 that Git LFS has of it; None for a file that Git itself holds.
        blob_id: Git's own digest of what Git holds: 40 hex digits.
    """

    path: str
    size_bytes: int
    content_digest: str | None
    blob_id: str

    @property
    def etag(self) -> str:
        """The Hub's mark of its content."""
        return self.content_digest.removeprefix("sha256:") if self.content_digest else self.blob_id


def data_files(listing: Iterable[HubFile], card: str | None) -> list[HubFile]:
    """The files that hold data, in order of their paths: those that the card's configs name, and every Parquet file.

    Args:
        listing: all files of the dataset.
        card: the dataset card with its YAML header.
    """
    patterns = card_patterns(card or "")
    found = {
        file.path: file
        for file in listing
        if file.path.lower().endswith(_SUFFIX)
        or ("." not in file.path.rsplit("/", 1)[-1] and any(fnmatchcase(file.path, pattern) for pattern in patterns))
    }
    return [found[path] for path in sorted(found)]


def card_patterns(card: str) -> list[str]:
    """Paths and patterns of paths that the configs of a dataset card name; none where its header cannot be read."""
    match = re.match(r"\ufeff?---\r?\n(.*?\n)---", card[:_LONGEST_HEADER], re.DOTALL)
    # A header that merges mappings can be made to fill any memory.
    if not match or "<<" in match[1]:
        return []
    try:
        header = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return []
    configs = header.get("configs") if isinstance(header, dict) else None
    stated = [
        config.get("data_files")
        for config in (configs if isinstance(configs, list) else [])
        if isinstance(config, dict)
    ]
    return [pattern.removeprefix("./") for pattern in _paths(stated) if len(pattern) <= _LONGEST_PATTERN]


def _paths(stated: list[Any]) -> list[str]:
    """Paths in any of the forms that a card may have: text, a list, a mapping of splits, entries with a path.

    A card may name one list many times over, so only so many of all its entries are looked at.
    """
    found: list[str] = []
    waiting = list(reversed(stated[:_MOST_PATTERNS]))
    for _ in range(_MOST_ENTRIES):
        if not waiting or len(found) == _MOST_PATTERNS:
            break
        match waiting.pop():
            case str() as path:
                found.append(path)
            case {"path": entry}:
                waiting.append(entry)
            case dict() as splits:
                waiting += list(reversed(list(splits.values())[:_MOST_PATTERNS]))
            case list() as entries:
                waiting += reversed(entries[:_MOST_PATTERNS])
    return found


def chunks(metadata: pq.FileMetaData, size: int) -> dict[str, list[Span]]:
    """Where the chunks of each leaf column lie, by its dotted path: first byte and the one behind the last.

    Args:
        metadata: the footer, whose every figure may be anything.
        size: bytes of the file.

    Raises:
        UnreadableError: where a chunk lies outside the file.
    """
    found: dict[str, list[Span]] = {}
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            chunk = row_group.column(number)
            start, length = chunk.data_page_offset, chunk.total_compressed_size
            if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < start:
                start = chunk.dictionary_page_offset
            if chunk.file_path or start < 0 or length < 0 or start + length > size:
                raise UnreadableError("its footer names bytes that it has not; fetch it again")
            found.setdefault(chunk.path_in_schema, []).append((start, start + length))
    return found


def leaves(paths: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Of the leaves of a schema those that are, or are below, the columns."""
    names = set(columns)
    prefixes = tuple(f"{name}." for name in names)
    return [path for path in paths if path in names or path.startswith(prefixes)]


def spans(found: dict[str, list[Span]], wanted: list[Span], spare: int) -> list[Span]:
    """What to fetch for the wanted chunks: adjacent ones together, and the smallest gaps with them.

    Args:
        found: the chunks of every leaf.
        wanted: the chunks to fetch, in any order.
        spare: bytes that may be fetched besides, of which the gaps are. One that has source text or what a program
            printed is never fetched.
    """
    together = joined(wanted)
    bulk = joined(span for path, places in found.items() if is_bulk(path) for span in places)
    gaps = [(end, start) for (_, end), (start, _) in pairwise(together)]
    fetched = list(together)
    for gap in sorted((gap for gap in gaps if not _overlaps(bulk, gap)), key=lambda gap: (gap[1] - gap[0], gap)):
        spare -= gap[1] - gap[0]
        if spare < 0:
            break
        fetched.append(gap)
    return joined(fetched)


def _overlaps(parts: list[Span], span: Span) -> bool:
    """Whether any of the parts, which are in order and apart, has a byte of a span."""
    place = bisect_left(parts, (span[1], 0))
    return place > 0 and parts[place - 1][1] > span[0]


def joined(parts: Iterable[Span]) -> list[Span]:
    """The same bytes in as few spans as possible, in order."""
    found: list[Span] = []
    for start, end in sorted(parts):
        if start == end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
