"""KernelBot's dataset pulled from the Hub: what is new of it, as few bytes as the tables need, or whole files."""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from assets.kernelbot.hub_files import OVERHEAD, HubFile, Span, chunks, data_files, joined, leaves, spans
from assets.kernelbot.opening import FOOTER_TAIL, footer_length
from assets.kernelbot.read import PARSER, SubmissionsFile
from assets.kernelbot.terms import SOURCE
from warehouse.errors import HomeError, UnreadableError
from warehouse.raw import Collection, Range, RawFile, RawStore

log = logging.getLogger("kernelmart")

__all__ = ["Hub", "HubFile", "pull"]

_CARD = "README.md"
_LONGEST_CARD = 1 << 20
# A name that may be a path below the folder of downloads.
_PLAIN_NAME = re.compile(r"(?!.*(^|/)\.{1,2}(/|$))[\w.+-][\w.+ -]{0,99}(/[\w.+-][\w.+ -]{0,99}){0,9}", re.ASCII)


class Hub(Protocol):
    """A dataset's repository. What goes wrong is an `UnreadableError` without the file's name."""

    def revision(self) -> str:
        """The commit that `main` is at now."""

    def files(self, revision: str) -> list[HubFile]:
        """All files of a commit."""

    def read(self, file: HubFile, revision: str, offset: int, length: int) -> Iterator[bytes]:
        """So many bytes of a file from an offset on, in pieces."""

    def download(self, file: HubFile, revision: str, folder: Path) -> Path:
        """A file, whole, somewhere below a folder."""


class _ContentError(UnreadableError):
    """What was fetched is not what it should be."""


def pull(
    hub: Hub,
    raw: RawStore,
    last_good: Collection | None,
    *,
    whole: bool = False,
    again: frozenset[str] | None = None,
) -> Collection:
    """The dataset's files as the Hub has them now; nothing is fetched that is kept already.

    `main` is looked at once; all files are of the commit that it was at.

    Args:
        hub: the dataset.
        raw: where files and fetch records are kept.
        last_good: the files of the last completed ingest.
        whole: fetch files whole; else only the leaf columns that the tables need.
        again: names of the files to fetch, once more if they are known, and no others; None for all that are new.

    Returns:
        The collection. A file that could not be had is in its `unreadable`. If the Hub itself could not be asked, it is
        the last good one, stale.

    Raises:
        UnreadableError: where the Hub could not be asked and there is no last good collection.
        HomeError: where the store cannot be written.
    """
    try:
        revision = hub.revision()
        if last_good and again is None and _is_current(raw, last_good, revision, whole):
            return replace(last_good, stale=(), unreadable=())
        listing = hub.files(revision)
        wanted = data_files(listing, _card(hub, listing, revision))
        if not wanted:
            raise UnreadableError("the Hub lists no Parquet file, which cannot be; ingest again later")
    except UnreadableError as error:
        if last_good is None:
            raise type(error)(f"{SOURCE}: {error}") from error
        return replace(last_good, stale=(f"{SOURCE}: {error}; what was pulled before is used",), unreadable=())
    earlier = {file.content_digest: file for file in last_good.files} if last_good else {}
    pulled: list[RawFile] = []
    unreadable: list[tuple[str, str]] = []
    for file in wanted:
        if again is not None and file.path not in again:
            continue
        try:
            kept = _kept(raw, file, earlier, whole) if again is None else None
            kept = kept or _fetched(hub, raw, file, revision, whole, anew=again is not None)
        except UnreadableError as error:
            unreadable.append((file.path, str(error).removeprefix(f"{file.path}: ")))
        else:
            pulled.append(replace(kept, locator=file.path, revision=revision, etag=file.etag))
    return Collection(SOURCE, tuple(pulled), unreadable=tuple(unreadable))


# What is kept already.


def _is_current(raw: RawStore, last_good: Collection, revision: str, whole: bool) -> bool:
    """Whether the last good files are all of this commit, and kept as they are wanted now."""
    of_hub = [file for file in last_good.files if file.etag]
    return bool(of_hub) and all(file.revision == revision and _serves(raw, file, whole) for file in of_hub)


def _kept(raw: RawStore, file: HubFile, earlier: dict[str, RawFile], whole: bool) -> RawFile | None:
    """The file as it is kept, if that is what is wanted."""
    if file.content_digest is None:
        known = next((kept for kept in earlier.values() if kept.etag == file.blob_id), None)
        return known if known and _serves(raw, known, whole) else None
    complete = _whole_file(raw, file, file.content_digest, earlier.get(file.content_digest))
    for candidate in (complete, raw.record(file.content_digest)):
        if candidate and candidate.size_bytes == file.size_bytes and _serves(raw, candidate, whole):
            return candidate
    return None


def _serves(raw: RawStore, file: RawFile, whole: bool) -> bool:
    """Whether what is kept of a file is there and enough.

    A whole file can be large: whether it is damaged is seen when it is read. A record is small.
    """
    if not file.ranges:
        path = raw.path(file.content_digest)
        return path.is_file() and path.stat().st_size == file.size_bytes
    return not whole and file.reader == PARSER and file.is_whole


def _whole_file(raw: RawStore, file: HubFile, digest: str, known: RawFile | None) -> RawFile | None:
    path = raw.path(digest)
    if not path.is_file():
        return None
    kept_at = known.fetched_at if known and not known.ranges else datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return RawFile(file.path, path, digest, path.stat().st_size, kept_at)


# What is fetched.


def _card(hub: Hub, listing: list[HubFile], revision: str) -> str | None:
    """The dataset card; None where it cannot be had: the list of files says enough."""
    card = next((file for file in listing if file.path == _CARD and file.size_bytes <= _LONGEST_CARD), None)
    if card is None:
        return None
    try:
        return b"".join(hub.read(card, revision, 0, card.size_bytes)).decode("utf-8", errors="replace")
    except UnreadableError as error:
        log.warning("kernelbot: the dataset card is not used: %r", str(error))
        return None


def _fetched(hub: Hub, raw: RawStore, file: HubFile, revision: str, whole: bool, *, anew: bool) -> RawFile:
    try:
        kept = _fetch(hub, raw, file, revision, whole, anew=anew)
    except _ContentError as error:
        # What was only wrong on its way is right the next time.
        log.warning("kernelbot: %r is fetched once more: %r", file.path, str(error))
        kept = _fetch(hub, raw, file, revision, whole, anew=True)
    size = sum(part.length for part in kept.ranges) if kept.ranges else kept.size_bytes
    log.info("kernelbot: fetched %r: %d of %d bytes", file.path, size, file.size_bytes)
    return kept


def _fetch(hub: Hub, raw: RawStore, file: HubFile, revision: str, whole: bool, *, anew: bool) -> RawFile:
    if whole or file.content_digest is None or file.size_bytes <= FOOTER_TAIL:
        return _fetch_whole(hub, raw, file, revision)
    return _fetch_columns(hub, raw, file, file.content_digest, revision, anew=anew)


def _fetch_whole(hub: Hub, raw: RawStore, file: HubFile, revision: str) -> RawFile:
    """All of a file, kept once its digest is seen to be the published one."""
    now = datetime.now(UTC)
    if file.content_digest is None or not _PLAIN_NAME.fullmatch(file.path):
        digest, size = _keep_checked(raw, file, hub.read(file, revision, 0, file.size_bytes))
        return RawFile(file.path, raw.path(digest), digest, size, now)
    downloads = raw.root / "downloads"
    try:
        path = hub.download(file, revision, downloads)
        with path.open("rb") as content:
            digest, size = _keep_checked(raw, file, iter(lambda: content.read(1 << 20), b""))
    except OSError as error:
        raise HomeError(f"{file.path}: cannot be kept in {raw.root}: {error.strerror or error}") from error
    except _ContentError:
        shutil.rmtree(downloads, ignore_errors=True)
        raise
    shutil.rmtree(downloads, ignore_errors=True)
    return RawFile(file.path, raw.path(digest), digest, size, now)


def _keep_checked(raw: RawStore, file: HubFile, pieces: Iterator[bytes]) -> tuple[str, int]:
    git = hashlib.sha1(b"blob %d\0" % file.size_bytes, usedforsecurity=False)

    def watched() -> Iterator[bytes]:
        for piece in pieces:
            git.update(piece)
            yield piece

    def accept(digest: str, size: int) -> None:
        same = digest == file.content_digest if file.content_digest else git.hexdigest() == file.blob_id
        if size != file.size_bytes or not same:
            raise _ContentError("what the Hub sent has not the digest that the Hub lists; ingest again later")

    return raw.keep_pieces(watched(), file.path, accept)


def _fetch_columns(hub: Hub, raw: RawStore, file: HubFile, digest: str, revision: str, *, anew: bool) -> RawFile:
    """The footer and the leaf columns that the tables need, as a fetch record; the whole file where that is no more.

    Args:
        hub: the dataset.
        raw: the store.
        file: the file.
        digest: its digest.
        revision: its commit.
        anew: keep nothing of an earlier record.
    """
    earlier = None if anew else raw.record(digest)
    if earlier is None or earlier.size_bytes != file.size_bytes or not earlier.is_whole:
        record = RawFile(file.path, raw.path(digest), digest, file.size_bytes, datetime.now(UTC))
        record = replace(record, ranges=(_fetch_footer(hub, raw, file, revision),))
    else:
        record = replace(earlier, locator=file.path, fetched_at=datetime.now(UTC))
    with _content():
        reader = SubmissionsFile(record)
        found = chunks(reader.metadata, file.size_bytes)
    record = _with_columns(hub, raw, file, revision, record, found, reader.key_columns)
    with _content():
        columns = SubmissionsFile(record).columns
    footer = max(part.length for part in record.ranges if part.end == file.size_bytes)
    keys = sum(part.length for part in record.ranges) - footer
    rest = file.size_bytes - footer
    if rest + keys <= OVERHEAD * sum(end - start for start, end in joined(_places(found, columns))):
        # Hardly more than the columns, and the digest can be checked.
        content = chain(hub.read(file, revision, 0, rest), _pieces(record, rest))
        kept, size = _keep_checked(raw, file, content)
        return RawFile(file.path, raw.path(kept), kept, size, record.fetched_at)
    record = _with_columns(hub, raw, file, revision, record, found, columns, spare=OVERHEAD - 1, besides=footer)
    with _content():
        SubmissionsFile(record).require_readable()
    record = replace(record, reader=PARSER, revision=revision, etag=file.etag)
    raw.keep_record(record)
    return record


def _fetch_footer(hub: Hub, raw: RawStore, file: HubFile, revision: str) -> Range:
    end = file.size_bytes - FOOTER_TAIL
    tail = b"".join(hub.read(file, revision, end, FOOTER_TAIL))
    with _content():
        length = footer_length(tail, file.size_bytes)
    start = file.size_bytes - length
    digest, size = raw.keep_pieces(chain(hub.read(file, revision, start, end - start), [tail]), file.path)
    return Range(start, size, digest)


def _with_columns(
    hub: Hub,
    raw: RawStore,
    file: HubFile,
    revision: str,
    record: RawFile,
    found: dict[str, list[Span]],
    columns: list[str],
    *,
    spare: float = 0.0,
    besides: int = 0,
) -> RawFile:
    """A record with the chunks of some columns, of which those that it lacks are fetched.

    Args:
        hub: the dataset.
        raw: the store.
        file: the file.
        revision: its commit.
        record: what is kept of it.
        found: where the chunks of each leaf lie.
        columns: the columns.
        spare: bytes that may be fetched besides, for each byte that is lacking.
        besides: how many of them are spent.
    """
    missing = [span for span in _places(found, columns) if not _holds(record, span)]
    extra = int(spare * sum(end - start for start, end in joined(missing))) - besides
    ranges = list(record.ranges)
    for start, end in spans(found, missing, extra):
        digest, size = raw.keep_pieces(hub.read(file, revision, start, end - start), file.path)
        ranges.append(Range(start, size, digest))
    return replace(record, ranges=tuple(sorted(ranges, key=lambda part: (part.offset, part.length))))


def _places(found: dict[str, list[Span]], columns: list[str]) -> list[Span]:
    return [span for path in leaves(found, columns) for span in found[path]]


def _pieces(record: RawFile, start: int) -> Iterator[bytes]:
    """What a record has from a byte on."""
    with record.open() as content:
        content.seek(start)
        while piece := content.read(1 << 20):
            yield piece


def _holds(record: RawFile, span: Span) -> bool:
    start, end = span
    return any(part.offset <= start and end <= part.end for part in record.ranges)


@contextmanager
def _content() -> Iterator[None]:
    """What is wrong with the content, told apart from what is wrong with the Hub."""
    try:
        yield
    except UnreadableError as error:
        raise _ContentError(str(error)) from error
    except pa.ArrowException as error:
        raise _ContentError(" ".join(str(error).split())[:200] + "; ingest again later") from error
