"""The history of the pointer: which snapshots were the latest and when, and which of them were withdrawn and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from warehouse import files
from warehouse.home import read_json
from warehouse.sealed import SEAL, seal_of

# `<UTC time>-<8 hex digits of the content digest>`; a folder of another name is nobody's snapshot.
SNAPSHOT_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
# A reader that took the pointer so long ago may still be reading.
READERS = timedelta(hours=48)


@dataclass(frozen=True)
class Withdrawal:
    """When a snapshot was withdrawn, and why."""

    at: datetime
    reason: str


@dataclass(frozen=True)
class Entry:
    """A snapshot that the pointer named: first from `published_at` on, last from `latest_at` on.

    Its `results_digest` is of the rows of what the sources hold, however they were looked at.
    """

    snapshot_id: str
    content_digest: str
    manifest_sha256: str
    published_at: datetime
    latest_at: datetime
    withdrawn: Withdrawal | None = None
    results_digest: str = ""

    def holds(self, content_digest: str, results_digest: str) -> bool:
        """Whether it has a content, or the same results."""
        return self.content_digest == content_digest or self.results_digest == results_digest != ""

    def as_record(self) -> dict[str, Any]:
        """The entry as JSON."""
        record = asdict(self)
        record["published_at"] = self.published_at.isoformat()
        record["latest_at"] = self.latest_at.isoformat()
        if self.withdrawn:
            record["withdrawn"]["at"] = self.withdrawn.at.isoformat()
        return record


def read(path: Path) -> tuple[list[Entry], bool]:
    """The entries of a history in the order in which the pointer named them last, and whether the file is whole.

    Of a damaged file, the entries that can still be read.
    """
    value = read_json(path)
    value = value if isinstance(value, dict) else {}
    records = value.get("snapshots")
    records = records if isinstance(records, list) else []
    entries = [entry for record in records if (entry := _entry(record))]
    return entries, len(entries) == len(records) and value.get(SEAL) == seal_of(records)


def write(path: Path, entries: Sequence[Entry]) -> None:
    """Write a history, with a digest by which damage is seen."""
    records = [entry.as_record() for entry in entries]
    files.write_json(path, {"snapshots": records, SEAL: seal_of(records)})


def withdrawal(entries: Iterable[Entry], content_digest: str, results_digest: str) -> Withdrawal | None:
    """The withdrawal of a content, or of the same results; None where there was none, or they were published since."""
    found = [entry.withdrawn for entry in entries if entry.holds(content_digest, results_digest)]
    return found[-1] if found else None


def retained(entries: Sequence[Entry], now: datetime, daily: int, monthly: int) -> set[str]:
    """Ids of the snapshots to keep.

    Kept are the latest, whatever was the latest within `READERS`, and the newest that was not withdrawn of each of
    the last `daily` days and `monthly` months that have one, in UTC.

    Args:
        entries: the snapshots that there are, in the order in which the pointer named them last.
        now: the moment to count back from.
        daily: a number of days.
        monthly: a number of months.
    """
    kept = {entry.snapshot_id for entry in entries[-1:]}
    kept |= {entry.snapshot_id for entry, after in pairwise(entries) if after.latest_at >= now - READERS}
    for form, count in (("%Y-%m-%d", daily), ("%Y-%m", monthly)):
        newest: dict[str, str] = {}
        for entry in sorted(entries, key=lambda entry: entry.published_at):
            if entry.withdrawn is None:
                newest[entry.published_at.astimezone(UTC).strftime(form)] = entry.snapshot_id
        kept |= {newest[period] for period in sorted(newest, reverse=True)[:count]}
    return kept


def moment(text: Any) -> datetime | None:
    """An instant with its zone from its ISO form; None where it is of another form, or so far off that none is near."""
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo and datetime.min.year < found.year < datetime.max.year else None


def _entry(record: Any) -> Entry | None:
    """An entry from its JSON form; None where it is of another form."""
    try:
        gone = record["withdrawn"]
        entry = Entry(
            snapshot_id=record["snapshot_id"],
            content_digest=record["content_digest"],
            manifest_sha256=record["manifest_sha256"],
            published_at=_required_moment(record["published_at"]),
            latest_at=_required_moment(record["latest_at"]),
            withdrawn=Withdrawal(_required_moment(gone["at"]), str(gone["reason"])) if gone else None,
            results_digest=record.get("results_digest", ""),
        )
        texts = (entry.content_digest, entry.manifest_sha256, entry.results_digest)
        return entry if SNAPSHOT_ID.fullmatch(entry.snapshot_id) and all(isinstance(x, str) for x in texts) else None
    except (KeyError, TypeError, ValueError):
        return None


def _required_moment(text: Any) -> datetime:
    found = moment(text)
    if found is None:
        raise ValueError(f"{text!r} is no instant")
    return found
