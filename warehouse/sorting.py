"""Rows of Parquet files in order, however many they are, in the memory of some ten thousand.

Rows that do not fit are divided among buckets first, each of them a range of the order, and sorted bucket by bucket. A
database's sort merges all that it has spilled at once, which takes memory for each of the pieces.
"""

from __future__ import annotations

import math
import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# Of the widest table, runs, these are 40 MB.
ROWS_AT_ONCE = 32_768
# Of what is in order so much is handed on at once.
TAKEN_BYTES = 4_000_000
# More would cut what is sorted at once into slivers, each of which takes a millisecond or two.
_BUCKETS = 128
# Rows looked at to divide a bucket's worth of rows from the next: buckets differ by a few hundredths then.
_SAMPLE = 256
_SPILLED = pa.ipc.IpcWriteOptions(compression="lz4")


# Where the rows of a range lie in a file: from and to.
_Bucket = list[tuple[int, int]]


class Piece(NamedTuple):
    """Rows of a Parquet file: a row group, or those of it that a filter lets through.

    Attributes:
        path: the file.
        group: the row group's number.
        rows: how many rows are meant, at most.
        where: the filter, over columns that are asked for.
    """

    path: Path
    group: int
    rows: int
    where: pc.Expression | None = None


def pieces_of(paths: Iterable[Path | str], where: pc.Expression | None = None) -> list[Piece]:
    """All row groups of some files, filtered alike."""
    found = []
    for path in map(Path, paths):
        metadata = pq.read_metadata(path)
        found += [
            Piece(path, group, metadata.row_group(group).num_rows, where) for group in range(metadata.num_row_groups)
        ]
    return found


def in_order(
    pieces: Sequence[Piece], columns: Sequence[str], keys: Sequence[str], temporary: Path
) -> Iterator[pa.Table]:
    """The rows of some pieces, ascending by some columns with nulls last, in tables of about `TAKEN_BYTES`.

    Args:
        pieces: where the rows are.
        columns: the columns asked for, those that the pieces' filters are over among them.
        keys: what to sort by, of those columns. Rows that are equal in all of these come in any order.
        temporary: folder for what does not fit into memory.
    """
    rows = sum(piece.rows for piece in pieces)
    if rows <= ROWS_AT_ONCE:
        for table in _tables(pieces, columns, rows):
            yield from _in_order(table, keys)
        return
    temporary.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=temporary) as file:
        buckets = _divided(pieces, columns, keys, file.name)
        with pa.OSFile(file.name, "rb") as spilled:
            for bucket in filter(None, buckets):
                yield from _in_order(_whole(_spilled(spilled, *place) for place in bucket), keys)


def _divided(pieces: Sequence[Piece], columns: Sequence[str], keys: Sequence[str], path: str) -> list[_Bucket]:
    """Write the pieces' rows to a file, and say where those of each range of the order lie; ranges ascend."""
    rows = sum(piece.rows for piece in pieces)
    # As many rows as a bucket has, and as few buckets that each gets some hundreds of these.
    at_once = max(ROWS_AT_ONCE, math.ceil(rows / _BUCKETS))
    bounds = _bounds(pieces, columns, keys, math.ceil(rows / at_once))
    buckets: list[_Bucket] = [[] for _ in range(len(bounds) + 1)]
    with pa.OSFile(path, "wb") as spilled:
        for table in _tables(pieces, columns, at_once):
            order = _order(table, keys)
            compared = _Keys(table.select(list(keys)).take(order), keys)
            ends = [bisect_left(compared, bound) for bound in bounds]
            for bucket, (first, last) in zip(buckets, pairwise([0, *ends, len(compared)]), strict=True):
                if first < last:
                    bucket.append(_spill(spilled, table.take(order.slice(first, last - first))))
    return buckets


def _tables(pieces: Iterable[Piece], columns: Sequence[str], at_once: int) -> Iterator[pa.Table]:
    """The pieces' rows as they come, in tables of about so many rows."""
    waiting: list[pa.Table] = []
    count = 0
    for path, of_file in groupby(pieces, attrgetter("path")):
        with pq.ParquetFile(path) as file:
            for piece in of_file:
                table = file.read_row_group(piece.group, columns=list(columns)).select(list(columns))
                if piece.where is not None:
                    table = table.filter(piece.where)
                if waiting and count + table.num_rows > at_once:
                    yield _whole(waiting)
                    waiting, count = [], 0
                waiting.append(table)
                count += table.num_rows
    if waiting:
        yield _whole(waiting)


def _whole(tables: Iterable[pa.Table]) -> pa.Table:
    """Tables as one, in one chunk."""
    return pa.concat_tables(tables).combine_chunks()


def _order(table: pa.Table, keys: Sequence[str]) -> pa.Array:
    return pc.sort_indices(table, sort_keys=[(key, "ascending", "at_end") for key in keys])


def _in_order(table: pa.Table, keys: Sequence[str]) -> Iterator[pa.Table]:
    """A table's rows in order, a few at a time: it need not be there twice."""
    order = _order(table, keys)
    rows = max(1, TAKEN_BYTES * table.num_rows // max(1, table.nbytes))
    for first in range(0, len(order), rows):
        yield table.take(order.slice(first, rows))


def _bounds(pieces: Sequence[Piece], columns: Sequence[str], keys: Sequence[str], buckets: int) -> list[Any]:
    """Where one bucket ends and the next begins: the keys of rows that divide a sample evenly."""
    every = max(1, sum(piece.rows for piece in pieces) // (buckets * _SAMPLE))
    # Filters may be over columns that are no keys.
    needed = columns if any(piece.where is not None for piece in pieces) else keys
    sample = _whole(
        table.select(list(keys)).take(pa.array(range(0, table.num_rows, every), pa.int64()))
        for table in _tables(pieces, needed, ROWS_AT_ONCE)
    )
    compared = _Keys(sample.take(_order(sample, keys)), keys)
    count = min(buckets, len(compared))
    return [compared[len(compared) * place // count] for place in range(1, count)]


def _spill(file: pa.NativeFile, table: pa.Table) -> tuple[int, int]:
    """Write rows at a file's end; where they lie."""
    first = file.tell()
    with pa.ipc.new_stream(file, table.schema, options=_SPILLED) as stream:
        stream.write_table(table)
    return first, file.tell()


def _spilled(file: pa.NativeFile, first: int, last: int) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(file.read_at(last - first, first))).read_all()


class _Keys(Sequence[Any]):
    """What each row of a table goes by in the order, so that any two compare as the rows do."""

    def __init__(self, table: pa.Table, keys: Sequence[str]) -> None:
        self._columns = [_plain(table[key].combine_chunks()) for key in keys]

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, row: Any) -> Any:
        return tuple(_place(column[row].as_py()) for column in self._columns)


def _plain(column: pa.Array) -> pa.Array:
    """A column whose values Python compares as Arrow does, whatever year or text they are."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.binary()) if pa.types.is_string(column.type) else column


def _place(value: Any) -> tuple[int, Any]:
    """A value after the rank of its kind: what is no number comes after all numbers, and null last."""
    if value is None:
        return 2, 0
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)
