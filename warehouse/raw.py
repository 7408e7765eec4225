"""What upstream said, byte for byte: objects named by their SHA-256, and each source's last good files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from warehouse import files
from warehouse.errors import HomeError
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

    def as_record(self) -> dict[str, Any]:
        """The file as JSON; its path follows from its digest."""
        record = asdict(self)
        del record["path"]
        return {**record, "fetched_at": self.fetched_at.isoformat()}


@dataclass(frozen=True)
class Collection:
    """The files of a source that an ingest uses, and one line for each that is older than it should be."""

    source: str
    files: tuple[RawFile, ...]
    stale: tuple[str, ...] = ()

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
        }


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
                if not self._has(digest, size):
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
        return Collection(record["source"], files, tuple(record["stale"]))

    def collect_folder(self, source: str, folder: Path, patterns: Iterable[str]) -> Collection:
        """Keep the files of a folder that match any of the patterns; locators are paths relative to the folder."""
        now = datetime.now(UTC)
        found = sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
        return Collection(source, tuple(self.keep(path, path.relative_to(folder).as_posix(), now) for path in found))

    def damaged(self) -> Iterator[tuple[Path, str]]:
        """Objects whose bytes no longer have the digest that names them, with what they have."""
        for path in sorted((self.root / "objects").glob("??/*")):
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != path.name:
                yield path, found

    def _has(self, digest: str, size: int) -> bool:
        path = self.path(digest)
        return path.exists() and path.stat().st_size == size

    def _listing(self, source: str) -> Path:
        return self.root / "sources" / f"{source}.json"
