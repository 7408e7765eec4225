"""DuckDB as these stages use it: within what an ingest with one large file of sources may hold."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from warehouse.database import connect

# Of the 512 MB that an ingest of 230,000 sources may have, Python, Dagster and the libraries take three quarters. What
# sorts and joins cannot do without grows with the rows, up to what any connection may have.
_LEAST_BYTES = 96_000_000
_BYTES_A_ROW = 416


def bounded(temporary: Path, of: Iterable[Path] = ()) -> duckdb.DuckDBPyConnection:
    """A connection of `connect` that spills early.

    Args:
        temporary: the folder into which it spills.
        of: Parquet files whose rows are what is worked on.
    """
    rows = sum(pq.read_metadata(path).num_rows for path in of)
    connection = connect(temporary=temporary, threads=1)
    (allowed,) = connection.execute("select parse_formatted_bytes(current_setting('memory_limit'))").fetchall()[0]
    connection.execute(f"set memory_limit = '{min(max(_LEAST_BYTES, _BYTES_A_ROW * rows), allowed)} bytes'")
    return connection
