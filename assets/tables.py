"""How Dagster and the log are told: one asset a table, with its columns and rows, and one log line a step."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow.parquet as pq

from warehouse.contracts import PARQUET_ONLY, SCORES, TABLES, Table
from warehouse.memory import give_back

log = logging.getLogger("kernelmart")


@contextmanager
def step(name: str) -> Iterator[dict[str, Any]]:
    """Log one line when a step has ended: its name, what it counted into the given dict, and its seconds.

    The seconds, and those of processor time, are in the dict then, too.
    """
    counts: dict[str, Any] = {}
    started, busy = time.monotonic(), time.process_time()
    yield counts
    give_back()
    counts["seconds"] = round(time.monotonic() - started, 1)
    counts["processor_seconds"] = round(time.process_time() - busy, 1)
    log.info(" ".join(["step", name, *(f"{what}={number}" for what, number in counts.items())]))


def contract(name: str) -> Table:
    """The contract of a published or internal table."""
    return SCORES if name == "scores" else {**TABLES, **PARQUET_ONLY}[name]


def column_schema(table: Table) -> dg.TableSchema:
    """The columns as Dagster shows them."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                column.name,
                column.type,
                description=column.description,
                constraints=dg.TableColumnConstraints(nullable=column.nullable),
            )
            for column in table.columns
        ]
    )


def table_specs(group: str, names: Iterable[str], deps: Sequence[dg.AssetKey], kinds: set[str]) -> list[dg.AssetSpec]:
    """An asset `<group>/<table>` for each table."""
    return [
        dg.AssetSpec(
            dg.AssetKey([group, name]),
            deps=deps,
            group_name=group,
            kinds=kinds,
            description=contract(name).description,
            metadata={"dagster/column_schema": column_schema(contract(name))},
        )
        for name in names
    ]


def row_counts(root: Path, files: Mapping[str, Sequence[str]], names: Iterable[str]) -> dict[str, int]:
    """Rows of some tables whose files are given relative to a folder."""
    return {name: sum(pq.read_metadata(root / file).num_rows for file in files.get(name, [])) for name in names}


def table_results(
    group: str,
    names: Iterable[str],
    root: Path,
    files: Mapping[str, Sequence[str]],
    more: Mapping[str, Any] | None = None,
) -> Iterator[dg.MaterializeResult[Any]]:
    """What was made of each table: the number of its rows and of its files, and whatever else is worth a look."""
    for name in names:
        found = files.get(name, [])
        [rows] = row_counts(root, files, [name]).values()
        size = sum((root / file).stat().st_size for file in found)
        yield dg.MaterializeResult(
            asset_key=dg.AssetKey([group, name]),
            metadata={"dagster/row_count": rows, "files": len(found), "bytes": size, **(more or {})},
        )
