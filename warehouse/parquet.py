"""Parquet files: for publication, where equal rows give equal bytes; and for this warehouse alone, quick to write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.files import writing

ROW_GROUP_ROWS = 32_768
# Of what only this warehouse reads again: each row group is put together in memory several times over.
PART_ROWS = 4_096
# Rows that are held back until there are more of their kind.
CLUSTERED_ROWS = 12_288


def write_part(
    path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, clustered_by: str | None = None
) -> int:
    """Write batches as a Parquet file that only this warehouse reads again: quick to write; the row count.

    Args:
        path: the file.
        batches: rows in any order.
        schema: schema of the file; the batches are cast to it.
        clustered_by: a text column of which each row group has one value alone, so that the rows of a value are found
            without reading the others.
    """
    # Of numbers the smallest and largest leave NaN out, which DuckDB then takes not to be there.
    statistics = [clustered_by] if clustered_by else False
    slices = _slices(batches, schema, PART_ROWS)
    pieces = _clusters(slices, clustered_by) if clustered_by else slices
    return _write(path, pieces, schema, compression="lz4", write_statistics=statistics)


def write_parquet(
    path: Path,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    *,
    sort: tuple[str, ...] = (),
    metadata: dict[str, str] | None = None,
    bloom_filters: tuple[str, ...] = (),
) -> int:
    """Write batches as a Parquet file for publication; the row count. Equal rows give equal bytes.

    Args:
        path: the file.
        batches: rows in the order that `sort` declares.
        schema: schema of the file; the batches are cast to it.
        sort: columns that the rows are sorted by, ascending, nulls last.
        metadata: what the file says of itself.
        bloom_filters: columns that readers look single values up in.
    """
    schema = schema.with_metadata(dict(sorted((metadata or {}).items())))
    return _write(
        path,
        _slices(batches, schema, ROW_GROUP_ROWS),
        schema,
        compression="zstd",
        write_page_index=True,
        sorting_columns=pq.SortingColumn.from_ordering(schema, [(name, "ascending") for name in sort]) or None,
        bloom_filter_options={name: {"ndv": ROW_GROUP_ROWS, "fpp": 0.01} for name in bloom_filters} or None,
    )


def _write(path: Path, pieces: Iterable[pa.Table], schema: pa.Schema, **options: Any) -> int:
    rows = 0
    with writing(path) as aside, pq.ParquetWriter(aside, schema, **options) as writer:
        for piece in pieces:
            writer.write_table(piece, row_group_size=ROW_GROUP_ROWS)
            rows += piece.num_rows
    return rows


def _slices(batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of so many rows in one chunk each, however they came in."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        while batch.num_rows:
            piece = batch.slice(0, rows - count)
            batch = batch.slice(piece.num_rows)
            waiting.append(piece)
            count += piece.num_rows
            if count == rows:
                yield pa.Table.from_batches(waiting).cast(schema).combine_chunks()
                waiting, count = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting).cast(schema).combine_chunks()


def _clusters(tables: Iterable[pa.Table], name: str) -> Iterator[pa.Table]:
    """The same rows in tables that each have one value of a text column; null is a value too.

    They are held back until there are many: whoever reads a file holds what it says of each row group, 32 kB of runs'.
    """
    waiting: dict[str | None, pa.Table] = {}
    for table in tables:
        values = table.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        for number, value in enumerate(values.dictionary.to_pylist()):
            # Copied: a slice would keep all rows that came with it.
            piece = table.filter(pc.equal(values.indices, number))
            waiting[value] = pa.concat_tables([waiting[value], piece]) if value in waiting else piece
        too_many = sum(held.num_rows for held in waiting.values()) - CLUSTERED_ROWS
        for value, held in sorted(waiting.items(), key=lambda entry: -entry[1].num_rows):
            if too_many <= 0:
                break
            too_many -= held.num_rows
            yield waiting.pop(value).combine_chunks()
    for held in waiting.values():
        yield held.combine_chunks()
