"""The one way to write a file: aside, fsync, rename. A reader sees the whole of it or nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROW_GROUP_ROWS = 32_768
# Of what only this warehouse reads again: each row group is put together in memory several times over.
PART_ROWS = 16_384
# What is being written begins with this; whatever a dead process left behind is found by it.
ASIDE = ".aside-"


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A path to write to; on leaving, the file is fsynced and renamed to `path`. Errors leave no trace.

    In a folder that is itself being written, fsyncing is left to that.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{ASIDE}{uuid.uuid4().hex}")
    alone = not any(part.startswith(ASIDE) for part in path.parts)
    try:
        yield aside
        if alone:
            synchronise(aside)
        aside.rename(path)
        if alone:
            synchronise(path.parent)
    except BaseException as error:
        aside.unlink(missing_ok=True)
        # A disk that is full names no file.
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(aside)):
            error.filename = str(path)
        raise


@contextmanager
def writing_object(folder: Path) -> Iterator[tuple[Path, Callable[[Path], None]]]:
    """A path to write to, and what publishes it under a name that is only known once it is written.

    Without a call of that, nothing is left of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f"{ASIDE}{uuid.uuid4().hex}"

    def publish(path: Path) -> None:
        synchronise(aside)
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.rename(path)
        synchronise(path.parent)

    try:
        yield aside, publish
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def writing_folder(path: Path) -> Iterator[Path]:
    """A folder to fill; on leaving, it is fsynced with all it holds and renamed to `path`. Errors leave no trace."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{ASIDE}{uuid.uuid4().hex}")
    aside.mkdir()
    try:
        yield aside
        for folder, _, files in os.walk(aside):
            for name in files:
                synchronise(Path(folder, name))
            synchronise(Path(folder))
        aside.rename(path)
        synchronise(path.parent)
    except BaseException:
        remove_tree(aside)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole."""
    with writing(path) as aside:
        aside.write_bytes(content)


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON that people can read."""
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True) + "\n").encode())


def ahead(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, the next two of them made in a thread of their own while one is in use."""
    iterator = iter(batches)
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(next, iterator, None) for _ in range(2))
        while (batch := waiting.popleft().result()) is not None:
            waiting.append(thread.submit(next, iterator, None))
            yield batch


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
    """The rows of each table in one table for each value of a text column; null is a value too."""
    for table in tables:
        values = table.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        clustered = table.take(pc.sort_indices(values.indices))
        first = 0
        for number in range(len(values.dictionary)):
            count = pc.sum(pc.equal(values.indices, number)).as_py()
            yield clustered.slice(first, count)
            first += count


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, as 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def link(original: Path, path: Path) -> None:
    """Give a file that never changes a second name, in a folder that is being written; a copy across file systems."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{ASIDE}{uuid.uuid4().hex}")
    try:
        try:
            os.link(original, aside)
        except OSError:
            shutil.copyfile(original, aside)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def synchronise(path: Path) -> None:
    """Have the operating system put a file or folder on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_tree(path: Path) -> None:
    """Remove a folder, also one that was published and so cannot be written to."""
    if not path.exists():
        return
    for folder, _, _ in os.walk(path):
        Path(folder).chmod(0o700)
    shutil.rmtree(path)


def remove_leftovers(root: Path) -> list[Path]:
    """Remove what processes that died were still writing below a folder."""
    left = list(root.rglob(f"{ASIDE}*")) if root.exists() else []
    for path in left:
        # A link to a folder goes alone: what it leads to is no leftover.
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink(missing_ok=True)
    return left
