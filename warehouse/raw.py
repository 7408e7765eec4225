"""What upstream said, byte for byte: objects named by their SHA-256, and each source's last good files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from warehouse import files
from warehouse.errors import HomeError, UnreadableError
from warehouse.home import read_json
from warehouse.identity import is_digest
from warehouse.sealed import SEAL, is_sealed, sealed, unsealed
from warehouse.sparse import Range, SparseFile

__all__ = ["Collection", "Range", "RawFile", "RawStore"]

_CHUNK = 1 << 20


@dataclass(frozen=True)
class RawFile:
    """A file of a source: kept whole, or of a fetch record, which keeps some ranges of it.

    Attributes:
        locator: its name relative to the source.
        path: where all of it lies, if it is kept whole.
        content_digest: SHA-256 of all of it; of a record, as the publisher states it.
        size_bytes: size of all of it.
        fetched_at: when it was fetched or read from its folder.
        revision: upstream revision that it is of.
        etag: upstream's own mark of its content.
        ranges: what is kept of it; empty where it is kept whole.
        reader: reader, with its version, that the ranges were chosen for.
    """

    locator: str
    path: Path
    content_digest: str
    size_bytes: int
    fetched_at: datetime
    revision: str | None = None
    etag: str | None = None
    ranges: tuple[Range, ...] = ()
    reader: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every object is there and has the digest that names it."""
        return all(_has_digest(path, digest) for path, digest in self.objects.items())

    @property
    def verified(self) -> bool:
        """Whether the digest was computed here, over all of the file."""
        return not self.ranges

    @property
    def objects(self) -> dict[Path, str]:
        """The objects that hold what is kept of it, with their digests."""
        if not self.ranges:
            return {self.path: self.content_digest}
        return {_object_path(self.path.parent.parent, kept.digest): kept.digest for kept in self.ranges}

    def open(self) -> pa.NativeFile:
        """What is kept, as a file to read from; a read outside the kept ranges is an `UnreadableError`.

        Raises:
            OSError: where a whole file cannot be opened.
        """
        if not self.ranges:
            return pa.OSFile(str(self.path))
        folder = self.path.parent.parent
        kept = [(part, _object_path(folder, part.digest)) for part in self.ranges]
        return pa.PythonFile(SparseFile(self.locator, self.size_bytes, kept), mode="r")

    def require_whole(self) -> None:
        """See that every object still has the digest that names it.

        Raises:
            UnreadableError: where one has not; it is removed then, so that it is fetched anew.
        """
        for path, digest in self.objects.items():
            if not _has_digest(path, digest):
                path.unlink(missing_ok=True)
                raise UnreadableError(
                    f"{self.locator}: its original in the raw store is damaged or gone; ingest it again"
                )

    def as_record(self) -> dict[str, Any]:
        """The file as JSON; its path follows from its digest."""
        stated = {name: value for name, value in vars(self).items() if name != "path"}
        ranges = [asdict(kept) for kept in self.ranges]
        return {**stated, "fetched_at": self.fetched_at.isoformat(), "ranges": ranges}


@dataclass(frozen=True)
class Collection:
    """The files of a source that an ingest uses, those that could not be kept with the reason, and one line for each
    that is older than it should be."""

    source: str
    files: tuple[RawFile, ...]
    stale: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()

    @property
    def revision(self) -> str | None:
        """Upstream revision that all files are of, where there is one."""
        return next((file.revision for file in self.files if file.revision), None)

    def inputs(self) -> list[dict[str, Any]]:
        """What the tables are made from: name and digest of each file, in order of names."""
        return [
            {"locator": file.locator, "content_digest": file.content_digest}
            for file in sorted(self.files, key=lambda file: file.locator)
        ]

    def as_record(self) -> dict[str, Any]:
        """The collection as JSON."""
        return {
            "source": self.source,
            "files": [file.as_record() for file in self.files],
            "stale": list(self.stale),
            "unreadable": [list(entry) for entry in self.unreadable],
        }

    def with_last_good(self, read: Callable[[RawFile], object], last_good: Collection | None) -> Collection:
        """The collection with every file looked at; what cannot be read gives way to its last good content.

        Args:
            read: raises `UnreadableError`, naming the file, where it cannot be read.
            last_good: the files of the last completed ingest.

        Raises:
            UnreadableError: for a file that cannot be read and was never good.
        """
        earlier = {file.locator: file for file in last_good.files} if last_good else {}
        used: list[RawFile] = []
        stale = list(self.stale)
        broken = [(locator, UnreadableError(f"{locator}: {reason}")) for locator, reason in self.unreadable]
        for file in self.files:
            try:
                read(file)
                used.append(file)
            except UnreadableError as error:
                broken.append((file.locator, error))
        for locator, why in broken:
            if locator not in earlier:
                raise why
            read(earlier[locator])
            stale.append(f"{why}; its content of {earlier[locator].fetched_at:%Y-%m-%d %H:%M} is used instead")
            used.append(earlier[locator])
        return Collection(self.source, tuple(used), tuple(stale))


class RawStore:
    """The originals below a home's `raw` folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, content_digest: str) -> Path:
        """Where the object with a digest lies."""
        return _object_path(self.root / "objects", content_digest)

    def keep(self, original: Path, locator: str, fetched_at: datetime) -> RawFile:
        """Copy a file into the store; a file that is there already is only read.

        Raises:
            HomeError: where the original cannot be read or the copy cannot be written.
        """
        try:
            digest = "sha256:" + files.sha256(original)
            # Most nights it is there already.
            if self.is_whole(digest):
                size = self.path(digest).stat().st_size
            else:
                with original.open("rb") as source:
                    digest, size = self.keep_pieces(iter(lambda: source.read(_CHUNK), b""), locator)
        except OSError as error:
            raise HomeError(f"{locator}: cannot be kept in {self.root}: {error.strerror or error}") from error
        return RawFile(locator, self.path(digest), digest, size, fetched_at)

    def keep_bytes(self, data: bytes, locator: str, fetched_at: datetime, revision: str | None = None) -> RawFile:
        """Keep a file's bytes.

        Raises:
            HomeError: where they cannot be written.
        """
        digest, size = self.keep_pieces([data], locator)
        return RawFile(locator, self.path(digest), digest, size, fetched_at, revision)

    def keep_pieces(
        self, pieces: Iterable[bytes], locator: str, accept: Callable[[str, int], None] | None = None
    ) -> tuple[str, int]:
        """Keep the bytes of all pieces together as one object; its digest and size.

        Args:
            pieces: the bytes, in order; what they raise passes through, and nothing is kept then.
            locator: what they are of, for errors.
            accept: told of digest and size before the object is published; what it raises prevents that.

        Raises:
            HomeError: where they cannot be written.
        """
        try:
            with files.writing_object(self.root / "objects") as (aside, publish):
                hasher, size = hashlib.sha256(), 0
                with aside.open("wb") as copy:
                    for piece in pieces:
                        hasher.update(piece)
                        size += len(piece)
                        copy.write(piece)
                digest = "sha256:" + hasher.hexdigest()
                if accept:
                    accept(digest, size)
                if not self.is_whole(digest):
                    publish(self.path(digest))
        except OSError as error:
            raise HomeError(f"{locator}: cannot be kept in {self.root}: {error.strerror or error}") from error
        return digest, size

    def record(self, content_digest: str) -> RawFile | None:
        """The fetch record of a file; None where there is none that can be used."""
        record = read_json(self._record(content_digest))
        try:
            file = self.from_record(unsealed(record))
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
        if SEAL in record and not is_sealed(record):
            return None
        return file if file.content_digest == content_digest and file.ranges else None

    def keep_record(self, file: RawFile) -> None:
        """Write the fetch record of a file, in place of an earlier one.

        Raises:
            HomeError: where it cannot be written.
        """
        try:
            files.write_json(self._record(file.content_digest), sealed(file.as_record()))
        except OSError as error:
            raise HomeError(f"{file.locator}: cannot be kept in {self.root}: {error.strerror or error}") from error

    def keep_now(self, original: Path, locator: str) -> RawFile:
        """Keep a file that is read just now."""
        return self.keep(original, locator, datetime.now(UTC))

    def last_good(self, source: str) -> Collection | None:
        """The files of a source that the last completed ingest used; None for a source never had, or a damaged list."""
        try:
            collection = self.collection(read_json(self._listing(source)))
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
        return collection if collection.source == source else None

    def remember(self, collection: Collection) -> None:
        """Make these the last good files of their source."""
        files.write_json(self._listing(collection.source), sealed(collection.as_record()))

    def from_record(self, record: dict[str, Any]) -> RawFile:
        """A file from its JSON form."""
        return RawFile(
            **{
                **record,
                "fetched_at": datetime.fromisoformat(record["fetched_at"]),
                "path": self.path(record["content_digest"]),
                "ranges": tuple(_range(record["size_bytes"], **kept) for kept in record.get("ranges", ())),
            }
        )

    def collection(self, record: dict[str, Any]) -> Collection:
        """A collection from its JSON form."""
        files = tuple(self.from_record(file) for file in record["files"])
        unreadable = tuple((locator, reason) for locator, reason in record["unreadable"])
        return Collection(record["source"], files, tuple(record["stale"]), unreadable)

    @property
    def sources(self) -> list[str]:
        """The sources that have last good files, in order of names."""
        return sorted(path.stem for path in (self.root / "sources").glob("*.json"))

    def of_snapshot(
        self, inputs: dict[str, dict[str, Any]], source_files: Iterable[dict[str, Any]]
    ) -> tuple[list[Collection], list[str]]:
        """The collections that a snapshot was made from, and one line for each file that is no longer kept.

        Args:
            inputs: of the snapshot's manifest: for each source its `files` and whether it was `stale`.
            source_files: rows of the snapshot's table of that name.
        """
        rows = {(row["source"], row["locator"], row["content_digest"]): row for row in source_files}
        collections: list[Collection] = []
        lacking: list[str] = []
        for source, stated in inputs.items():
            used: list[RawFile] = []
            for entry in stated["files"]:
                locator, digest = entry["locator"], entry["content_digest"]
                row = rows.get((source, locator, digest))
                file = self._as_it_was(digest, row) if row else None
                if file is None:
                    lacking.append(f"{source}: {locator} ({digest})")
                else:
                    used.append(file)
            stale = (f"{source}: it was stale when that snapshot was made",) if stated.get("stale") else ()
            collections.append(Collection(source, tuple(used), stale))
        return collections, lacking

    def _as_it_was(self, content_digest: str, row: dict[str, Any]) -> RawFile | None:
        """A file as it was when a snapshot was made from it; None where that is not kept."""
        if not is_digest(content_digest):
            return None
        whole = RawFile(row["locator"], self.path(content_digest), content_digest, row["size_bytes"], row["fetched_at"])
        file = whole if row["verified"] else self.record(content_digest)
        if file is None or not file.is_whole:
            return None
        return replace(file, locator=row["locator"], fetched_at=row["fetched_at"], revision=row["revision"])

    def collect_folder(self, source: str, folder: Path, patterns: Iterable[str]) -> Collection:
        """Keep the files of a folder that match any of the patterns; locators are paths relative to the folder."""
        now = datetime.now(UTC)
        kept: list[RawFile] = []
        unreadable: list[tuple[str, str]] = []
        for path in sorted({path for pattern in patterns for path in folder.glob(pattern)}):
            locator = path.relative_to(folder).as_posix()
            if not path.is_file():
                unreadable.append((locator, "it is no regular file; put the file itself there"))
            elif not os.access(path, os.R_OK):
                unreadable.append((locator, "it may not be read; change its mode"))
            else:
                kept.append(self.keep(path, locator, now))
        return Collection(source, tuple(kept), unreadable=tuple(unreadable))

    def damaged(self) -> Iterator[tuple[Path, str]]:
        """Objects whose bytes no longer have the digest that names them, with what they have."""
        for path in sorted((self.root / "objects").glob("??/*")):
            if (found := files.sha256(path)) != path.name:
                yield path, found

    def is_whole(self, content_digest: str) -> bool:
        """Whether the object with a digest is there and has it."""
        return _has_digest(self.path(content_digest), content_digest)

    def _listing(self, source: str) -> Path:
        return self.root / "sources" / f"{source}.json"

    def _record(self, content_digest: str) -> Path:
        return self.root / "records" / f"{content_digest.removeprefix('sha256:')}.json"


def _object_path(folder: Path, content_digest: str) -> Path:
    # What stands in a file may be anything; a path is made of a digest alone.
    if not is_digest(content_digest):
        raise ValueError(f"{content_digest!r} is no digest")
    name = content_digest.removeprefix("sha256:")
    return folder / name[:2] / name


def _range(size: int, offset: int, length: int, digest: str) -> Range:
    """A range from its JSON form.

    Raises:
        ValueError: where it is none of a file of that size.
    """
    if type(offset) is not int or type(length) is not int or offset < 0 or length < 1 or offset + length > size:
        raise ValueError("a range lies outside its file")
    if not is_digest(digest):
        raise ValueError(f"{digest!r} is no digest")
    return Range(offset, length, digest)


def _has_digest(path: Path, content_digest: str) -> bool:
    return path.is_file() and "sha256:" + files.sha256(path) == content_digest
