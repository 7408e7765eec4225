"""Whether a source or a board has lost more than one night can explain: upstream withdraws single runs, not boards."""

from __future__ import annotations

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
_READ = ("runs", "submissions")


def losses(before: Snapshot, now: Snapshot) -> list[str]:
    """One line for each source, and each of its boards, that lost more than a tenth of its rows or eligible runs.

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
    lines = [_line(*row) for row in rows[:_LINES]]
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


def _line(source: str, problem: str | None, what: str, before: int, now: int) -> str:
    whose = f"{source}, board {problem}," if problem is not None else source
    return f"{whose} has lost {before - now} of its {before} {what}"
