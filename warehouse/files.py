"""The one way to write a file: aside, fsync, rename. A reader sees the whole of it or nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROW_GROUP_ROWS = 32_768
# What is being written begins with this; whatever a dead process left behind is found by it.
ASIDE = ".aside-"


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A path to write to; on leaving, the file is fsynced and renamed to `path`. Errors leave no trace."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{ASIDE}{uuid.uuid4().hex}")
    try:
        yield aside
        synchronise(aside)
        aside.rename(path)
        synchronise(path.parent)
    except BaseException:
        aside.unlink(missing_ok=True)
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


def write_part(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Write batches as a Parquet file that only this warehouse reads again: quick to write; the row count."""
    return _write(path, batches, schema, compression="lz4", write_statistics=False)


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
        batches,
        schema,
        compression="zstd",
        write_page_index=True,
        sorting_columns=pq.SortingColumn.from_ordering(schema, [(name, "ascending") for name in sort]) or None,
        bloom_filter_options={name: {"ndv": ROW_GROUP_ROWS, "fpp": 0.01} for name in bloom_filters} or None,
    )


def _write(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema, **options: Any) -> int:
    rows = 0
    with writing(path) as aside, pq.ParquetWriter(aside, schema, **options) as writer:
        for piece in _slices(batches, schema):
            writer.write_table(piece, row_group_size=ROW_GROUP_ROWS)
            rows += piece.num_rows
    return rows


def _slices(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The same rows in tables of `ROW_GROUP_ROWS` rows in one chunk each, however they came in."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        while batch.num_rows:
            piece = batch.slice(0, ROW_GROUP_ROWS - count)
            batch = batch.slice(piece.num_rows)
            waiting.append(piece)
            count += piece.num_rows
            if count == ROW_GROUP_ROWS:
                yield pa.Table.from_batches(waiting).cast(schema).combine_chunks()
                waiting, count = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting).cast(schema).combine_chunks()


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, as 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
        if path.is_dir():
            remove_tree(path)
        else:
            path.unlink(missing_ok=True)
    return left
