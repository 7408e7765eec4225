"""`kernelmart snapshots diff`: what one snapshot says that another did not, as plain data and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from assets.ranks import UnknownPolicyError, movements
from pipelines.board_pages import board_title
from pipelines.pages import Page, counted, figure
from pipelines.record_pages import short
from pipelines.records import Record, rows
from warehouse.contracts import SCHEMA_VERSION, TABLES
from warehouse.database import connect, open_files
from warehouse.errors import SnapshotError
from warehouse.snapshots import Snapshot

MOVEMENTS_SHOWN = 10
# What happened comes before whom it moved up or down.
KINDS = ("record", "entered", "changed", "left", "withdrawn", "rose", "fell")
_READ = ("runs", "ranks", "cohorts", "submissions", "authors", "protocols")
_STATED = ("snapshot_id", "created_at", "content_digest", "schema_version", "ranking_policy")
_BOARD = ("source", "problem", "case_index", "gpu", "runner", "version", "comparison_key", "unit")


def difference(before: Snapshot, after: Snapshot, limit: int | None = None) -> Record:
    """What changed from one snapshot to another, under the later one's ranking policy.

    Args:
        before: the snapshot to start from.
        after: the other.
        limit: movements to name of each board; all unless given. All are counted.

    Returns:
        `before` and `after` as their manifests state them; `counts` of movements of each kind; `tables` whose numbers
        of rows differ, null where a snapshot has no such table; `movements` board by board, values in `unit`.

    Raises:
        SnapshotError: where the two cannot be compared or cannot be read.
    """
    first, second = before.manifest, after.manifest
    _require_comparable(first, second)
    policy = second["ranking_policy"]
    try:
        with TemporaryDirectory() as folder, connect(temporary=Path(folder)) as connection:
            for table in _READ:
                _open(connection, f"previous_{table}", before, table)
                _open(connection, table, after, table)
            connection.register("movements", movements(connection, first["snapshot_id"], policy).read_all())
            counts = {row["kind"]: row["movements"] for row in rows(connection, "movement_kinds")}
            found = rows(connection, "movements", kinds=list(KINDS), limit=limit)
    except UnknownPolicyError as error:
        raise SnapshotError(f"{after.folder}: {error}") from error
    except duckdb.Error as error:
        message = " ".join(str(error).split())
        raise SnapshotError(f"{message}; 'kernelmart snapshots verify' says which snapshot is damaged") from error
    return {
        "kind": "snapshot_diff",
        "before": {name: first[name] for name in _STATED},
        "after": {name: second[name] for name in _STATED},
        "counts": {kind: counts.get(kind, 0) for kind in KINDS},
        "tables": _differing_tables(first, second),
        "movements": found,
    }


def diff_page(page: Page, found: Record) -> None:
    """The difference of two snapshots.

    Args:
        page: where to print.
        found: what `difference` gives.
    """
    before, after, counts = found["before"], found["after"], found["counts"]
    page.line(f"From {before['snapshot_id']} to {after['snapshot_id']}", "bold")
    if before["content_digest"] == after["content_digest"]:
        page.line("the two say the same")
    page.fields([("Policy", after["ranking_policy"]), *((kind.capitalize(), counts[kind]) for kind in KINDS)])
    if found["tables"]:
        page.heading("Rows")
        page.table(
            ("table", "before", "after", "difference"),
            [(row["table"], row["before"], row["after"], _added(row)) for row in found["tables"]],
            numbers=("before", "after", "difference"),
        )
    for board, moved in groupby(found["movements"], key=lambda row: tuple(row[name] for name in _BOARD)):
        _board_section(page, dict(zip(_BOARD, board, strict=True)), list(moved))


def _board_section(page: Page, board: Record, moved: Sequence[Record]) -> None:
    title = board_title(
        {
            "problems": [board["problem"]],
            "case_indices": [] if board["case_index"] is None else [board["case_index"]],
            "gpu": board["gpu"],
            "runners": [board["runner"]] if board["runner"] else [],
            "version": board["version"],
        }
    )
    page.heading(title)
    unit, bests = board["unit"], (moved[0]["best_before"], moved[0]["best_after"])
    page.line(f"best {_change(*(figure(value, unit) for value in bests))}; board {board['comparison_key']}")
    page.table(
        ("movement", "author", "rank", "figure", "run"),
        [
            (
                row["kind"],
                row["author"],
                _change(*("–" if rank is None else str(rank) for rank in (row["rank_before"], row["rank_after"]))),
                _change(*(figure(value, unit) for value in (row["value_before"], row["value_after"]))),
                short(row),
            )
            for row in moved
        ],
    )
    if len(moved) < (total := moved[0]["movements_on_board"]):
        page.line(f"{len(moved)} of {counted(total, 'movement')}; --limit or --json gives more")


def _require_comparable(first: Record, second: Record) -> None:
    """One schema that this program knows, and one policy: ranks of two policies say nothing of who moved."""
    major = SCHEMA_VERSION.partition(".")[0]
    for manifest in (first, second):
        if manifest["schema_version"].partition(".")[0] != major:
            raise SnapshotError(
                f"snapshot {manifest['snapshot_id']} has schema {manifest['schema_version']}, and only snapshots of "
                f"schema {major} can be compared; ingest with this program, or compare with the one that made it"
            )
    if first["ranking_policy"] != second["ranking_policy"]:
        raise SnapshotError(
            f"snapshot {first['snapshot_id']} is ranked by {first['ranking_policy']} and {second['snapshot_id']} by "
            f"{second['ranking_policy']}; compare snapshots of one policy"
        )


def _open(connection: duckdb.DuckDBPyConnection, relation: str, snapshot: Snapshot, table: str) -> None:
    if paths := snapshot.parquet(table):
        open_files(connection, relation, paths)
    else:
        connection.register(relation, TABLES[table].empty())


def _differing_tables(first: Record, second: Record) -> list[Record]:
    sizes = [{name: table["rows"] for name, table in manifest["tables"].items()} for manifest in (first, second)]
    return [
        {"table": name, "before": sizes[0].get(name), "after": sizes[1].get(name)}
        for name in {**sizes[0], **sizes[1]}
        if sizes[0].get(name) != sizes[1].get(name)
    ]


def _added(row: Record) -> str:
    return f"{(row['after'] or 0) - (row['before'] or 0):+}"


def _change(before: str, after: str) -> str:
    """Two texts as a change; one where they are the same."""
    return after if before == after else f"{before} → {after}"
