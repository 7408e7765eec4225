"""The `code` column of a submissions file, streamed: bytes as they are, whatever type an export has chosen for them."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from assets import columns
from assets.kernelbot.opening import open_parquet
from warehouse.errors import UnreadableError
from warehouse.memory import give_back
from warehouse.raw import RawFile

# Bump when a file's rows come out otherwise.
VERSION = "submission-sources/1"
ROWS = pa.schema(
    [
        ("item", pa.int64()),
        ("submission_id", pa.int64()),
        ("source_digest", pa.string()),
        ("source_bytes", pa.int64()),
    ]
)
COLUMN = "code"
# Text that is decoded at once: texts differ in size by a factor of a million, so rows say little.
_BATCH_BYTES = 2 << 20
_BATCH_ROWS = 1024
# After so large a batch the next is not decoded before it is asked for.
_LARGE_BATCH = 8 << 20
_HEX = re.compile(rb"\\x(?:[0-9a-fA-F]{2})*+")


def has_sources(file: RawFile) -> bool:
    """Whether a file has a column of source texts beside its submissions."""
    with open_parquet(file) as parquet:
        return {COLUMN, "submission_id"} <= set(parquet.schema_arrow.names)


def digests(file: RawFile) -> Iterator[pa.RecordBatch]:
    """Digest and size of each row's source as `ROWS`, both null where there is none; rows without an id are left out.

    Raises:
        UnreadableError: where the file breaks off, is damaged, or is not kept whole.
    """
    first = 0
    for batch in _batches(file, ["submission_id", COLUMN]):
        ids = columns.integer(batch.column("submission_id")).values
        found = contents(batch.column(COLUMN))
        digested = [None if one is None else hashlib.sha256(one).hexdigest() for one in _views(found)]
        made = pa.RecordBatch.from_arrays(
            [
                pa.array(range(first, first + batch.num_rows), pa.int64()),
                ids,
                pc.binary_join_element_wise("sha256:", pa.array(digested, pa.string()), ""),
                pc.binary_length(found),
            ],
            schema=ROWS,
        )
        first += batch.num_rows
        yield made if not ids.null_count else made.filter(pc.is_valid(ids))


def texts(file: RawFile, items: Sequence[int] | pa.Array) -> Iterator[tuple[int, bytes]]:
    """The sources of some rows, in order of the rows: row number and bytes.

    Args:
        file: a submissions file, kept whole.
        items: numbers of rows that have a source, ascending.

    Raises:
        UnreadableError: where the file breaks off, is damaged, or is not kept whole.
    """
    wanted = np.asarray(items, dtype=np.int64)
    first = position = 0
    for batch in _batches(file, [COLUMN]) if len(wanted) else ():
        end = int(np.searchsorted(wanted, first + batch.num_rows))
        if end > position:
            taken = contents(batch.column(COLUMN))
            rows = wanted[position:end].tolist()
            found = deque(taken[row - first].as_buffer().to_pybytes() for row in rows)
            first, position = first + batch.num_rows, end
            # Texts may be large: here and with whoever works on them, none is kept twice.
            del batch, taken
            while found:
                yield rows[-len(found)], found.popleft()
        else:
            first += batch.num_rows
        if position == len(wanted):
            return


def contents(array: pa.Array) -> pa.LargeBinaryArray:
    r"""Sources as bytes: text as its UTF-8, `\x…` text as the bytes it spells, null where nothing stands.

    Numbers and the like are no sources.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_dictionary(kind):
        return contents(array.dictionary).take(array.indices)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    if not (is_text or is_bytes or pa.types.is_fixed_size_binary(kind)):
        return pa.nulls(len(array), pa.large_binary())
    found = array.cast(pa.large_binary())
    if is_text:
        spelled = pc.fill_null(pc.starts_with(found, b"\\x"), False)
        if pc.any(spelled).as_py():
            found = pa.array([None if value is None else _unspelled(value) for value in found.to_pylist()], found.type)
    nothing = pc.fill_null(pc.equal(pc.binary_length(found), 0), False)
    return pc.if_else(nothing, pa.scalar(None, found.type), found) if pc.any(nothing).as_py() else found


def _unspelled(value: bytes) -> bytes:
    return bytes.fromhex(value[2:].decode("ascii")) if _HEX.fullmatch(value) else value


def _views(array: pa.LargeBinaryArray) -> Iterator[memoryview | None]:
    """The values in place, none of them copied."""
    if not len(array):
        return
    _, offsets, values = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1].tolist()
    data = memoryview(values) if values is not None else memoryview(b"")
    valid = [True] * len(array) if not array.null_count else array.is_valid().to_pylist()
    for here, start, end in zip(valid, bounds, bounds[1:], strict=False):
        yield data[start:end] if here else None


def _batches(file: RawFile, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Batches of a few megabytes where texts are of like size; the next is decoded while one is worked on."""
    with open_parquet(file) as parquet:
        if COLUMN not in parquet.schema_arrow.names:
            return
        stream = parquet.iter_batches(batch_size=_batch_rows(parquet.metadata), columns=names, use_threads=False)
        with ThreadPoolExecutor(1) as reader:
            coming = deque([reader.submit(next, stream, None)])

            def following() -> pa.RecordBatch | None:
                batch = (coming.popleft() if coming else reader.submit(next, stream, None)).result()
                if batch is not None and batch.nbytes <= _LARGE_BATCH:
                    coming.append(reader.submit(next, stream, None))
                return batch

            try:
                # Not a loop, whose variable would hold a batch that is done with.
                yield from iter(following, None)
            except (OSError, pa.ArrowException) as error:
                what = " ".join(str(error).split())[:200]
                raise UnreadableError(f"{file.locator}: its sources cannot be read: {what}; fetch it again") from error
            finally:
                # Else Arrow keeps what it decoded into, which is more than all else here.
                give_back()


def _batch_rows(metadata: pq.FileMetaData) -> int:
    """Rows that make about `_BATCH_BYTES` of text."""
    size = 0
    for group in range(metadata.num_row_groups):
        described = metadata.row_group(group)
        for number in range(described.num_columns):
            column = described.column(number)
            if column.path_in_schema == COLUMN:
                size += max(column.total_uncompressed_size, 1)
    mean = max(size // max(int(metadata.num_rows), 1), 1)
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // mean))
