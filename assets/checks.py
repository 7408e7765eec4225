"""Checks of a snapshot: run on every draft before it is published, and whenever somebody asks.

A check finds what is wrong, one line each; a blocking one that finds anything keeps the draft from being published.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import duckdb

from assets.sol_execbench.leaderboards import Leaderboard, leaderboard_table, read_leaderboards
from assets.sol_execbench.read import Answer, UnreadableAnswer
from warehouse.contracts import TABLES
from warehouse.errors import SnapshotError
from warehouse.raw import RawStore
from warehouse.snapshots import Snapshot
from warehouse.statements import names, statement

# Of so many rows one is looked at where looking at all takes long.
SAMPLE = 100
_WARNINGS = {"score_matches_cases", "standings_match_leaderboards"}
_LINES = 20


@dataclass(frozen=True)
class Subject:
    """What is checked: an open snapshot, and the originals that it was made from, where they are at hand.

    One row in `every` is recomputed where that takes long.
    """

    connection: duckdb.DuckDBPyConnection
    originals: RawStore | None
    every: int


@dataclass(frozen=True)
class Check:
    """A named check; `find` gives at most `_LINES` lines, and one that says so where there are more."""

    name: str
    description: str
    blocking: bool
    find: Callable[[Subject], list[str]]


def all_checks() -> list[Check]:
    """Every check, those of the contract first."""
    found = [
        Check("keys_unique", "The key of each table is unique and none of it is null.", True, _repeated_keys),
        Check("references_whole", "What a column refers to is there.", True, _broken_references),
    ]
    for name in names("checks"):
        text = statement(name)
        short = name.removeprefix("checks/")
        description = " ".join(line.removeprefix("-- ") for line in text.splitlines() if line.startswith("--"))
        found.append(Check(short, description, short not in _WARNINGS, _statement_check(text)))
    return found


def run(
    connection: duckdb.DuckDBPyConnection, check: Check, originals: RawStore | None = None, *, every: int = SAMPLE
) -> list[str]:
    """What a check finds wrong, one line each.

    Args:
        connection: an open snapshot.
        check: the check.
        originals: the raw store of the snapshot's home; without it nothing is compared with what upstream said.
        every: of so many rows one is recomputed where that takes long.
    """
    return check.find(Subject(connection, originals, every))


def require(snapshot: Snapshot) -> None:
    """Nothing that a blocking check finds.

    Raises:
        SnapshotError: naming the check and what it found first.
    """
    with snapshot.open() as connection:
        for check in all_checks():
            if check.blocking and (found := run(connection, check)):
                raise SnapshotError(refusal(check, found))


def refusal(check: Check, found: list[str]) -> str:
    """Why what a check finds is not published, in one line."""
    return f"check {check.name}: {found[0]}; nothing was published, see 'kernelmart check'"


def _statement_check(text: str) -> Callable[[Subject], list[str]]:
    """Each row of a statement is a line; it may read `$every`, and the relation `leaderboards`."""

    def find(subject: Subject) -> list[str]:
        unread = _show_leaderboards(subject) if "from leaderboards" in text else []
        parameters = {"every": subject.every} if "$every" in text else None
        return unread + _lines(subject.connection.execute(text, parameters))

    return find


def _show_leaderboards(subject: Subject) -> list[str]:
    """Make the saved leaderboards that a snapshot was made from a relation; a line for each that cannot be read."""
    shown: list[Leaderboard] = []
    unread: list[str] = []
    if subject.originals is not None:
        text = "select locator, content_digest, size_bytes from source_files where locator like 'leaderboards/%'"
        for locator, content_digest, size in subject.connection.execute(text).fetchall():
            path = subject.originals.path(content_digest)
            try:
                shown += read_leaderboards(Answer(locator, content_digest, size, path.read_bytes))
            except OSError as error:
                unread.append(f"{locator}: {path} cannot be read ({error.strerror}); nothing was compared with it")
            except UnreadableAnswer as error:
                unread.append(str(error))
    subject.connection.register("leaderboards", leaderboard_table(shown))
    return unread


def _repeated_keys(subject: Subject) -> list[str]:
    found: list[str] = []
    for table in TABLES.values():
        key = ", ".join(f'"{name}"' for name in table.key)
        # Keys whose hashes differ differ: only those that share one are compared, and most often there are none.
        text = (
            f'with shared as (select hash({key}) as hashed from "{table.name}" group by hashed having count(*) > 1) '
            f'select {key}, count(*) from "{table.name}" where hash({key}) in (from shared) '
            f"group by {key} having count(*) > 1"
        )
        rows = subject.connection.execute(text).fetchmany(_LINES - len(found))
        found += [f"{table.name}: {row[-1]} rows have the key {row[:-1]}" for row in rows]
    return found


def _broken_references(subject: Subject) -> list[str]:
    found: list[str] = []
    for table in TABLES.values():
        for columns, target, target_columns in _references(table.name):
            own = ", ".join(f'"{name}"' for name in columns)
            there = ", ".join(f'"{name}"' for name in target_columns)
            present = " and ".join(f'"{name}" is not null' for name in columns)
            lacking = f'from "{table.name}" where {present} except select'
            # Hashes of millions of keys take a third of the time; one that lacks has another's hash once in 10^12.
            text = f'select hash({own}) {lacking} hash({there}) from "{target}" limit 1'
            if subject.connection.execute(text).fetchone():
                rows = subject.connection.execute(f'select {own} {lacking} {there} from "{target}"')
                found += [f"{table.name}: {target} has no row for {row}" for row in rows.fetchmany(_LINES - len(found))]
    return found


def _references(name: str) -> list[tuple[tuple[str, ...], str, tuple[str, ...]]]:
    """References of a table: its columns, the other table, and the columns there."""
    own = [column.name for column in TABLES[name].columns]
    found: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = []
    for column in TABLES[name].columns:
        if column.references == "source_files":
            if column.name == "content_digest":
                pair = ("content_digest", "locator")
                found.append((pair, "source_files", pair))
        elif column.references == "cases":
            key = ("source", "problem", "workload_digest")
            found.append((key, "cases", key))
        elif column.references:
            target = TABLES[column.references]
            key_name = target.key[0] if len(target.key) == 1 else column.name
            found.append(((column.name,), column.references, (key_name,)))
    if "problem" in own and "source" in own and name != "problems":
        found.append((("source", "problem"), "problems", ("source", "problem")))
    return found


def _lines(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    lines = [row[0] for row in cursor.fetchmany(_LINES + 1)]
    return lines if len(lines) <= _LINES else [*lines[:_LINES], f"there are more than these {_LINES}"]
