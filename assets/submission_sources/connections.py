"""DuckDB as these stages use it: within what an ingest with one large file of sources may hold."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb

from warehouse.database import connect, memory_for, rows_of


def memory_of(files: Iterable[Path]) -> int:
    """Bytes that a statement over the rows of some Parquet files needs as a rule: one thread needs less than two."""
    return memory_for(rows_of(files)) * 2 // 3


def bounded(temporary: Path, of: Iterable[Path] = ()) -> duckdb.DuckDBPyConnection:
    """A connection of `connect` that spills early, with one thread.

    Args:
        temporary: the folder into which it spills.
        of: Parquet files whose rows are what is worked on.
    """
    return connect(temporary=temporary, threads=1, memory=memory_of(of))
