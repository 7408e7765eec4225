"""What is known of the walk over SOL-ExecBench's kernels, kept so that a run that dies goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from assets.sol_execbench.terms import SOURCE
from assets.sol_execbench.walk import FilterValues
from warehouse import files
from warehouse.errors import HomeError
from warehouse.home import read_json
from warehouse.raw import RawFile, RawStore
from warehouse.sealed import sealed

NIGHTS = 7
# A walk that was broken off longer ago than this is no longer gone on with: another night has begun.
_UNFINISHED = timedelta(hours=24)


@dataclass(frozen=True)
class ListedKernel:
    """A kernel as the listing has it; `submission_count` is whatever stands there."""

    id: int
    submission_count: Any
    gpu_types: tuple[str, ...] = ()


@dataclass(frozen=True)
class Walked:
    """A kernel's last walk: when it began (UTC), the count that the listing had then, and the answers."""

    at: datetime
    submission_count: Any
    files: tuple[RawFile, ...]


@dataclass
class Walks:
    """The last walk of each kernel, and since when one over all of them is unfinished."""

    kernels: dict[int, Walked]
    failed: set[int]
    values: FilterValues
    begun_at: datetime | None = None

    @classmethod
    def of(cls, raw: RawStore) -> Walks:
        """What is known; nothing where it was never written or is damaged.

        Kernels of which an answer is no longer kept are as never walked.
        """
        record = read_json(_path(raw))
        try:
            kernels = {int(name): _walked(raw, one) for name, one in record["kernels"].items()}
            begun_at = datetime.fromisoformat(record["begun_at"]) if record["begun_at"] else None
            known = {name: [str(value) for value in values] for name, values in record["values"].items()}
            failed = {int(name) for name in record["failed"]}
        except (AttributeError, KeyError, TypeError, ValueError):
            return cls({}, set(), FilterValues())
        kept = {
            number: walked for number, walked in kernels.items() if all(file.path.is_file() for file in walked.files)
        }
        return cls(kept, failed, FilterValues(known), begun_at)

    def write(self, raw: RawStore) -> None:
        """Keep what is known.

        Raises:
            HomeError: where it cannot be written.
        """
        record = {
            "begun_at": self.begun_at.isoformat() if self.begun_at else None,
            "failed": sorted(self.failed),
            "values": self.values.as_record(),
            "kernels": {
                str(number): {
                    "at": walked.at.isoformat(),
                    "submission_count": walked.submission_count,
                    "files": [[file.locator, file.content_digest, file.size_bytes] for file in walked.files],
                }
                for number, walked in sorted(self.kernels.items())
            },
        }
        path = _path(raw)
        try:
            files.write_bytes(path, (json.dumps(sealed(record)) + "\n").encode())
        except OSError as error:
            raise HomeError(f"{path}: cannot be written: {error.strerror or error}") from error

    def begin(self, now: datetime) -> datetime:
        """Begin a walk, or go on with one that was broken off; when it began."""
        if self.begun_at is None or not timedelta() <= now - self.begun_at < _UNFINISHED:
            self.begun_at = now
        return self.begun_at

    def done(self, kernel: ListedKernel, now: datetime, kept: tuple[RawFile, ...]) -> None:
        """Note that a kernel was walked."""
        self.kernels[kernel.id] = Walked(now, kernel.submission_count, kept)
        self.failed.discard(kernel.id)

    def due(self, listed: Iterable[ListedKernel], now: datetime) -> list[ListedKernel]:
        """Kernels to walk in the walk that has begun.

        Those never walked, those whose count changed, the night's seventh, and those not walked for seven nights;
        nothing but a change has one walked twice in a UTC day or in one walk. What failed the last time comes last, so
        that it never keeps others from their turn.
        """
        begun = self.begun_at or now
        wanted: list[ListedKernel] = []
        for position, kernel in enumerate(sorted(listed, key=lambda kernel: kernel.id)):
            walked = self.kernels.get(kernel.id)
            if walked is None or walked.submission_count != kernel.submission_count:
                wanted.append(kernel)
            elif walked.at < begun and walked.at.date() < now.date():
                nights = (now.date() - walked.at.date()).days
                if nights >= NIGHTS or position % NIGHTS == begun.toordinal() % NIGHTS:
                    wanted.append(kernel)
        return sorted(wanted, key=lambda kernel: (kernel.id in self.failed, kernel.id))


def oldest_walk(raw: RawStore) -> datetime | None:
    """When the kernel whose last walk is the longest ago was walked; None where none was."""
    return min((walked.at for walked in Walks.of(raw).kernels.values()), default=None)


def _path(raw: RawStore) -> Path:
    return raw.root / "walks" / f"{SOURCE}.json"


def _walked(raw: RawStore, record: Mapping[str, Any]) -> Walked:
    at = datetime.fromisoformat(record["at"])
    kept = tuple(RawFile(locator, raw.path(digest), digest, int(size), at) for locator, digest, size in record["files"])
    return Walked(at, record["submission_count"], kept)
