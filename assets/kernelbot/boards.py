"""The small files beside KernelBot's submissions: the list of boards, and digests of sources known unread."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from assets import columns
from assets.kernelbot.normalise import BoardListing
from assets.kernelbot.read import SubmissionsFile, raw_json

KNOWN_SOURCES = pa.schema([("submission_id", pa.int64()), ("source_digest", pa.string()), ("source_bytes", pa.int64())])


@dataclass
class SmallFile:
    """What a small file says: its rows, and what became of those that say nothing usable."""

    rows_read: int = 0
    duplicate: int = 0
    rejects: list[dict[str, Any]] = field(default_factory=list)
    conflicts: Counter[str] = field(default_factory=Counter)

    @property
    def kept(self) -> int:
        """Rows that count."""
        return self.rows_read - self.duplicate - len(self.rejects)

    def reject(self, row: int, reason: str, detail: str, raw: dict[str, Any]) -> None:
        """Set a row aside."""
        self.rejects.append({"item": str(row), "reason": reason, "detail": detail, "raw": raw_json(raw)})


def read_boards(file: SubmissionsFile) -> tuple[list[BoardListing], SmallFile]:
    """The platform's list of boards in order of their ids. Of an id listed twice the first name by spelling counts."""
    table = file.table(file.columns)
    ids = columns.integer(table["id"]).values
    names, name_unusable = columns.text(table["name"])
    deadlines = columns.instant(table["deadline"]) if "deadline" in table.column_names else None
    account = SmallFile(rows_read=table.num_rows)
    found: dict[int, list[BoardListing]] = {}
    for row, (number, name) in enumerate(zip(ids.to_pylist(), names.to_pylist(), strict=True)):
        raw = {"id": number, "name": name}
        if number is None:
            account.reject(row, "BAD_ID", "id is no 64-bit integer", raw)
        elif not name:
            reason = "BAD_TEXT" if name_unusable[row].as_py() else "NO_BOARD"
            account.reject(row, reason, "the board has no name that can be read", raw)
        elif deadlines and deadlines.unusable[row].as_py():
            account.reject(row, "BAD_TIME", "deadline is no time between the years 1 and 9999", raw)
        else:
            deadline = deadlines.values[row].as_py() if deadlines else None
            found.setdefault(number, []).append(BoardListing(str(number), name, deadline))
    for number, listings in found.items():
        listings.sort(key=lambda listing: (listing.name, str(listing.deadline_at)))
        account.duplicate += len(listings) - 1
        if any(listing != listings[0] for listing in listings):
            account.conflicts[f"board {number} is listed with several names or deadlines"] += 1
    return [found[number][0] for number in sorted(found)], account


def read_known_sources(file: SubmissionsFile) -> tuple[pa.Table, SmallFile]:
    """Digests and sizes by submission, as `KNOWN_SOURCES`. Of several for one submission the smallest digest counts."""
    table = file.table(file.columns)
    ids = columns.integer(table["submission_id"]).values
    digests = columns.text(table["content_digest"]).values
    sizes = columns.integer(table["size_bytes"]).values
    wellformed = pc.fill_null(pc.match_substring_regex(digests, "^sha256:[0-9a-f]{64}$"), False)
    usable = pc.and_(pc.and_(pc.is_valid(ids), wellformed), pc.fill_null(pc.greater_equal(sizes, 0), False))
    account = SmallFile(rows_read=table.num_rows)
    for row in pc.indices_nonzero(pc.invert(usable)).to_pylist():
        raw = {
            "submission_id": ids[row].as_py(),
            "content_digest": digests[row].as_py(),
            "size_bytes": sizes[row].as_py(),
        }
        account.reject(row, "BAD_DIGEST", "needs a submission id, a digest sha256:<64 hex> and a size", raw)
    rows = pa.table([ids, digests, sizes], schema=KNOWN_SOURCES).filter(usable)
    first = merge_known_sources([rows])
    several = rows.group_by("submission_id").aggregate([("source_digest", "count_distinct")])
    for number in several.filter(pc.greater(several["source_digest_count_distinct"], 1))["submission_id"].to_pylist():
        account.conflicts[f"submission {number} has several digests, the smallest counts"] += 1
    account.duplicate = rows.num_rows - first.num_rows
    return first, account


def merge_known_sources(tables: list[pa.Table]) -> pa.Table:
    """Digests and sizes of several tables as `KNOWN_SOURCES`, each submission once, with its smallest digest."""
    rows = pa.concat_tables(tables).sort_by(
        [("submission_id", "ascending"), ("source_digest", "ascending"), ("source_bytes", "ascending")]
    )
    first = rows.group_by("submission_id", use_threads=False).aggregate(
        [("source_digest", "first"), ("source_bytes", "first")]
    )
    kept = first.select(["submission_id", "source_digest_first", "source_bytes_first"])
    return kept.rename_columns(KNOWN_SOURCES.names).cast(KNOWN_SOURCES)
