"""Whether a source or a board has lost more than one night can explain: upstream withdraws single runs, not boards."""

from __future__ import annotations

import pyarrow.parquet as pq

from warehouse.contracts import TABLES
from warehouse.database import connect, open_files
from warehouse.errors import SnapshotError
from warehouse.snapshots import Snapshot
from warehouse.statements import statement

NAME = "no_losses"
DESCRIPTION = (
    "No source and no board has lost more than a tenth of its submissions, runs or eligible runs since the latest "
    "snapshot, unless losses are accepted."
)
_LINES = 20
# Pages and leaderboards come and go with what is on them; a kernel goes by its definition.
PASSING = ("submissions/", "leaderboards/")
_READ = ("runs", "submissions")


def losses(before: Snapshot, now: Snapshot) -> list[str]:
    """One line for each source, and each of its boards, that lost more than a tenth of its rows or eligible runs.

    It names a file that the source no longer has.

    Args:
        before: the latest snapshot.
        now: the draft of the next one.
    """
    with connect() as connection:
        for when, snapshot in (("before", before), ("now", now)):
            for name in _READ:
                if paths := snapshot.parquet(name):
                    open_files(connection, f"{name}_{when}", paths)
                else:
                    connection.register(f"{name}_{when}", TABLES[name].empty())
        rows = connection.execute(statement("losses")).fetchmany(_LINES + 1)
    gone = _files_of(before) - _files_of(now) if rows else set()
    lines = [_line(*row, gone=sorted(file for source, file in gone if source == row[0])) for row in rows[:_LINES]]
    return lines if len(rows) <= _LINES else [*lines, f"there are more than these {_LINES}"]


def require_no_losses(before: Snapshot | None, now: Snapshot) -> None:
    """See that nothing has shrunk.

    Raises:
        SnapshotError: saying what has, and how to publish it all the same.
    """
    if before and (found := losses(before, now)):
        raise SnapshotError(refusal(found))


def refusal(found: list[str]) -> str:
    """Why losses are not published, in one line."""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{found[0]}{more}; nothing was published, 'kernelmart ingest --accept-loss' takes it as it is"


def _files_of(snapshot: Snapshot) -> set[tuple[str, str]]:
    """Source and locator of each file, or each answer that stays, that a snapshot was made from."""
    found: set[tuple[str, str]] = set()
    for path in snapshot.parquet("source_files"):
        columns = pq.read_table(path, columns=["source", "locator"], partitioning=None)
        found |= set(zip(*(columns[name].to_pylist() for name in ("source", "locator")), strict=True))
    return {(source, locator) for source, locator in found if not locator.startswith(PASSING)}


def _line(source: str, problem: str | None, what: str, before: int, now: int, *, gone: list[str]) -> str:
    whose = f"{source}, board {problem}," if problem is not None else source
    more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
    because = f": {source} no longer has {gone[0]}{more}" if gone else ""
    return f"{whose} has lost {before - now} of its {before} {what}{because}"
