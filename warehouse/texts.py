"""Parquet files of texts: sorted by key, in row groups so small that one text is fetched with little else."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse import files
from warehouse.contracts import LOOKED_UP

_GROUP_BYTES = 1 << 20
_GROUP_ROWS = 1024


def write_texts(
    path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema, metadata: dict[str, str] | None = None
) -> int:
    """Write batches, each as a row group, sorted by their first column; the row count. Equal batches give equal bytes.

    The first column has statistics for each group, so that a reader who knows a key reads the footer and one group.
    """
    looked_up = [name for name in schema.names if name in LOOKED_UP]
    schema = schema.with_metadata(dict(sorted((metadata or {}).items())))
    rows = 0
    with (
        files.writing(path) as aside,
        pq.ParquetWriter(
            aside,
            schema,
            compression="zstd",
            use_dictionary=False,
            write_statistics=[schema.names[0]],
            write_page_checksum=True,
            write_page_index=True,
            bloom_filter_options={name: {"ndv": _GROUP_ROWS, "fpp": 0.01} for name in looked_up} or None,
            sorting_columns=[pq.SortingColumn(0)],
        ) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch.cast(schema), row_group_size=max(batch.num_rows, 1))
            rows += batch.num_rows
    return rows


def merged(paths: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    """The rows of files of `write_texts`, in order of their keys, one row group of each in memory at a time.

    Where several have a key, the first file's row is taken.

    Args:
        paths: at least one file; all of one schema.
    """
    rows = heapq.merge(*(_rows(path, place) for place, path in enumerate(paths)), key=lambda row: row[:2])
    schema = pq.read_schema(paths[0]).remove_metadata()

    def once() -> Iterator[tuple[Any, ...]]:
        last = None
        for key, _, values, size in rows:
            if key != last:
                last = key
                yield (*values, size)

    return grouped(once(), schema)


def find_text(paths: Iterable[Path], key: str, column: str) -> pa.Scalar | None:
    """One value of a column by the first column's key, from files of `write_texts`; one row group is read."""
    for path in paths:
        with pq.ParquetFile(path, page_checksum_verification=True) as parquet:
            for group in range(parquet.metadata.num_row_groups):
                bounds = parquet.metadata.row_group(group).column(0).statistics
                if bounds is not None and bounds.min <= key <= bounds.max:
                    rows = parquet.read_row_group(group, [parquet.schema_arrow.names[0], column])
                    keys = rows.column(0).to_pylist()
                    if key in keys:
                        return rows[column][keys.index(key)]
    return None


def _rows(path: Path, place: int) -> Iterator[tuple[str, int, tuple[Any, ...], int]]:
    with pq.ParquetFile(path, page_checksum_verification=True) as parquet:
        for group in range(parquet.metadata.num_row_groups):
            table = parquet.read_row_group(group)
            for row in zip(*(table[name].to_pylist() for name in table.column_names), strict=True):
                size = sum(len(value) for value in row[1:] if value is not None)
                yield row[0], place, row, size


def grouped(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows, each followed by its size in bytes, in batches of what a row group may hold."""
    waiting: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        waiting.append(row[:-1])
        size += row[-1]
        if size >= _GROUP_BYTES or len(waiting) == _GROUP_ROWS:
            yield _batch(waiting, schema)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting, schema)


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
