"""DuckDB connections as the pipeline uses them: bounded, in UTC, closed to the outside, with the macros of `sql/`."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow.parquet as pq

from warehouse.errors import NO_ROOM_TO_SPILL, OUT_OF_MEMORY, HomeError
from warehouse.statements import statement

MOST_BYTES = 300_000_000
# Names the setting of the environment that counts in its place.
LIMIT = "KERNELMART_MEMORY_LIMIT"
# What sorts and joins cannot do without, by which they grow with the rows.
_LEAST_BYTES = 96_000_000
_BYTES_A_ROW = 416
_SIZE = re.compile(r"[0-9]{1,9}(\.[0-9]+)? ?([kmgt]i?b|%)", re.IGNORECASE)
_COUNT = re.compile(r"[1-9][0-9]{0,3}")

log = logging.getLogger("kernelmart")
Made = TypeVar("Made")


def open_files(
    connection: duckdb.DuckDBPyConnection, relation: str, paths: Sequence[Path | str], *, named: bool = False
) -> None:
    """Make a relation of the rows of some Parquet files. A folder's name is no column, whatever it looks like.

    Args:
        connection: where the relation is made.
        relation: its name.
        paths: the files.
        named: with the column `filename`, the path of each row's file as it was given.
    """
    rows = connection.read_parquet([str(path) for path in paths], hive_partitioning=False, filename=named)
    rows.create_view(relation, replace=True)


def connect(
    path: Path | None = None,
    *,
    temporary: Path | None = None,
    read_only: bool = False,
    threads: int | None = None,
    memory: int | None = None,
) -> duckdb.DuckDBPyConnection:
    """Open a database (in memory without a path) with a memory limit, time zone UTC and, unless read-only, the macros.

    Args:
        path: the database file.
        temporary: folder into which a statement that outgrows the memory limit may spill.
        read_only: open for reading alone.
        threads: worker threads; by default `KERNELMART_THREADS` or, where that is not set, one for each processor.
        memory: bytes that it may take, `MOST_BYTES` by default; `KERNELMART_MEMORY_LIMIT`, if set, counts in their
            place.

    Raises:
        HomeError: where a setting of the environment is of another form.
    """
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{memory or MOST_BYTES} bytes",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "preserve_insertion_order": False,
    }
    if limit := os.environ.get(LIMIT):
        settings["memory_limit"] = _stated(LIMIT, limit, _SIZE, "a size, as 300MB")
    if wanted := threads or os.environ.get("KERNELMART_THREADS"):
        settings["threads"] = _stated("KERNELMART_THREADS", str(wanted), _COUNT, "a number, as 2")
    if temporary is not None:
        settings["temp_directory"] = str(temporary)
    connection = duckdb.connect(str(path) if path else ":memory:", read_only=read_only, config=settings)
    # A zoned time must read the same whatever the zone of the host is.
    connection.execute("set timezone = 'UTC'")
    if not read_only:
        connection.execute(statement("macros"))
        connection.execute(statement("normalising"))
    return connection


def rows_of(paths: Iterable[Path]) -> int:
    """Rows of some Parquet files together."""
    return sum(int(pq.read_metadata(path).num_rows) for path in paths)


def memory_for(rows: int) -> int:
    """Bytes that statements over so many rows need as a rule; they spill what does not fit.

    A statement that may have more takes it, and an ingest of some hundred thousand sources is to have 512 MB in all.
    """
    return min(MOST_BYTES, max(_LEAST_BYTES, _BYTES_A_ROW * rows))


def with_enough_memory(memory: int, work: Callable[[int, int | None], Made], threads: int | None = None) -> Made:
    """What `work` makes with connections of so many bytes or, where that is too little, with others.

    By one thread first, which needs less than several; then with the most, then with half of that. How much a statement
    needs depends on what its rows are, too, not only on how many. And one that is given nearly as much as all its rows
    take may fail, where with half of that it would spill early and go through.

    Args:
        memory: bytes, as of `memory_for`.
        work: makes everything anew, given the bytes and the threads that its connections may have, as `connect` has
            them.
        threads: the threads of the first time.

    Raises:
        Exception: what `work` raised, if not for lack of memory, or the last time.
    """
    means = [(memory, threads), (memory, 1)]
    # A limit that is set is every connection's, whatever it is given.
    if not os.environ.get(LIMIT):
        means += [(MOST_BYTES, 1), (MOST_BYTES // 2, 1)]
    *means, last = dict.fromkeys(means)
    for given in means:
        try:
            return work(*given)
        except (duckdb.Error, OSError) as error:
            # Of a result that is read in batches, pyarrow raises an OSError with DuckDB's words.
            if OUT_OF_MEMORY not in str(error) or NO_ROOM_TO_SPILL in str(error):
                raise
            log.warning("DuckDB ran out of its %d bytes of memory; that step is done again", given[0])
    return work(*last)


def _stated(name: str, value: str, form: re.Pattern[str], wanted: str) -> str:
    if not form.fullmatch(value):
        raise HomeError(f"{name} is {value!r}; give {wanted}")
    return value
