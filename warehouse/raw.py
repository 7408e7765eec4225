"""What upstream said, byte for byte: objects named by their SHA-256, and each source's last good files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from warehouse import files
from warehouse.errors import HomeError, UnreadableError
from warehouse.home import read_json

_CHUNK = 1 << 20


@dataclass(frozen=True)
class RawFile:
    """A file of a source: `locator` is its name relative to the source, `content_digest` the SHA-256 of all of it."""

    locator: str
    path: Path
    content_digest: str
    size_bytes: int
    fetched_at: datetime
    revision: str | None = None

    def require_whole(self) -> None:
        """See that the object still has the digest that names it.

        Raises:
            UnreadableError: where it has not.
        """
        if not self.path.is_file() or "sha256:" + files.sha256(self.path) != self.content_digest:
            raise UnreadableError(f"{self.locator}: its original in the raw store is damaged or gone; ingest it again")

    def as_record(self) -> dict[str, Any]:
        """The file as JSON; its path follows from its digest."""
        record = asdict(self)
        del record["path"]
        return {**record, "fetched_at": self.fetched_at.isoformat()}


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
        name = content_digest.removeprefix("sha256:")
        return self.root / "objects" / name[:2] / name

    def keep(self, original: Path, locator: str, fetched_at: datetime) -> RawFile:
        """Copy a file into the store; a file that is there already is only read.

        Raises:
            HomeError: where the original cannot be read or the copy cannot be written.
        """
        try:
            with files.writing_object(self.root / "objects") as (aside, publish):
                hasher, size = hashlib.sha256(), 0
                with original.open("rb") as source, aside.open("wb") as copy:
                    while chunk := source.read(_CHUNK):
                        hasher.update(chunk)
                        size += len(chunk)
                        copy.write(chunk)
                digest = "sha256:" + hasher.hexdigest()
                if not self.is_whole(digest):
                    publish(self.path(digest))
        except OSError as error:
            raise HomeError(f"{locator}: cannot be kept in {self.root}: {error.strerror or error}") from error
        return RawFile(locator, self.path(digest), digest, size, fetched_at)

    def keep_now(self, original: Path, locator: str) -> RawFile:
        """Keep a file that is read just now."""
        return self.keep(original, locator, datetime.now(UTC))

    def last_good(self, source: str) -> Collection | None:
        """The files of a source that the last completed ingest used; None for a source never had."""
        record = read_json(self._listing(source))
        return self.collection(record) if record else None

    def remember(self, collection: Collection) -> None:
        """Make these the last good files of their source."""
        files.write_json(self._listing(collection.source), collection.as_record())

    def from_record(self, record: dict[str, Any]) -> RawFile:
        """A file from its JSON form."""
        fetched_at = datetime.fromisoformat(record["fetched_at"])
        return RawFile(**{**record, "fetched_at": fetched_at, "path": self.path(record["content_digest"])})

    def collection(self, record: dict[str, Any]) -> Collection:
        """A collection from its JSON form."""
        files = tuple(self.from_record(file) for file in record["files"])
        unreadable = tuple((locator, reason) for locator, reason in record["unreadable"])
        return Collection(record["source"], files, tuple(record["stale"]), unreadable)

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
        path = self.path(content_digest)
        return path.is_file() and "sha256:" + files.sha256(path) == content_digest

    def _listing(self, source: str) -> Path:
        return self.root / "sources" / f"{source}.json"
