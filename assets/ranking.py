"""Parts of the tables that rank: made of the runs of all sources, and only anew when one of those changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from assets.ranks import RANKED, movements, ranked, standings
from warehouse.contracts import SCHEMA_VERSION, SCORES, TABLES
from warehouse.database import connect, memory_for, open_files, rows_of, with_enough_memory
from warehouse.parts import PartStore, part_key
from warehouse.snapshots import Snapshot

VERSION = "ranking/1"
TABLE_NAMES = (*RANKED, "standings")


def build_ranks(
    store: PartStore, parts: Mapping[str, Sequence[str]], policy: str, temporary: Path
) -> dict[str, list[str]]:
    """Ranks, cohorts, records and standings of all runs; for each table its Parquet files relative to the store.

    Args:
        store: where parts are kept.
        parts: files of `runs`, `submissions` and `scores`, relative to the store.
        policy: the ranking policy.
        temporary: folder to spill into.
    """
    key = part_key(sorted(parts["runs"]), sorted(parts["submissions"]), policy, VERSION, SCHEMA_VERSION)

    def make(memory: int, threads: int | None) -> None:
        with (
            store.making("ranks", key, {"policy": policy}) as writer,
            connect(temporary=temporary, memory=memory, threads=threads) as connection,
        ):
            for name in ("runs", "submissions"):
                open_parts(connection, name, store.root, parts[name])
            open_parts(connection, "results", store.root, parts["scores"], schema="scores")
            for name in RANKED:
                writer.write(name, ranked(connection, name, policy), TABLES[name].arrow_schema())
            writer.write("standings", standings(connection), TABLES["standings"].arrow_schema())

    if store.find("ranks", key) is None:
        with_enough_memory(_memory(store, parts), make)
    return {name: [f"ranks/{key}/{name}.parquet"] for name in TABLE_NAMES}


def build_movements(
    store: PartStore, parts: Mapping[str, Sequence[str]], previous: Snapshot | None, policy: str, temporary: Path
) -> list[str]:
    """Movements since a snapshot, as files relative to the store; none where there is no snapshot before."""
    if previous is None:
        return []
    key = part_key(sorted(parts["runs"]), sorted(parts["ranks"]), previous.snapshot_id, policy, VERSION, SCHEMA_VERSION)

    def make(memory: int, threads: int | None) -> None:
        with (
            store.making("movements", key, {"policy": policy}) as writer,
            connect(temporary=temporary, memory=memory, threads=threads) as connection,
        ):
            for name in ("runs", "ranks", "cohorts"):
                open_parts(connection, name, store.root, parts[name])
            for name in ("runs", "ranks"):
                open_files(connection, f"previous_{name}", previous.parquet(name))
            rows = movements(connection, previous.snapshot_id, policy)
            writer.write("movements", rows, TABLES["movements"].arrow_schema())

    if store.find("movements", key) is None:
        with_enough_memory(_memory(store, parts), make)
    return [f"movements/{key}/movements.parquet"]


def open_parts(
    connection: duckdb.DuckDBPyConnection, relation: str, root: Path, files: Sequence[str], schema: str | None = None
) -> None:
    """Make a relation of the rows of some files of a store; without files it has none."""
    if files:
        open_files(connection, relation, [root / file for file in files])
    else:
        table = SCORES if schema == "scores" else TABLES[relation]
        connection.register(relation, table.empty())


def _memory(store: PartStore, parts: Mapping[str, Sequence[str]]) -> int:
    return memory_for(rows_of(store.root / file for file in parts["runs"]))
