"""Digest of a table's rows in order, the same however the rows were chunked, compressed or computed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc


class RowsDigest:
    """SHA-256 over columns: fed batch by batch, in the order of the rows.

    Args:
        schema: columns of the batches.
        without: columns that take no part.
    """

    def __init__(self, schema: pa.Schema, without: Iterable[str] = ()) -> None:
        left_out = set(without)
        self._columns = [name for name in schema.names if name not in left_out]
        self._streams: dict[tuple[str, int], hashlib._Hash] = {}
        self.rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Take the next rows."""
        if not batch.num_rows:
            return
        self.rows += batch.num_rows
        for name in self._columns:
            for position, content in enumerate(_contents(batch.column(name))):
                self._streams.setdefault((name, position), hashlib.sha256()).update(content)

    def digest(self) -> str:
        """`sha256:<64 hex>` of all rows so far."""
        streams = {f"{name}/{position}": hasher.hexdigest() for (name, position), hasher in self._streams.items()}
        text = json.dumps({"rows": self.rows, "columns": streams}, sort_keys=True)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _contents(array: pa.Array) -> Iterator[memoryview | bytes]:
    """The array's validity, lengths and values as bytes, with nothing left of its offset or of what nulls hide."""
    kind = array.type
    yield _bytes(pc.is_valid(array).cast(pa.uint8()))
    if pa.types.is_list(kind):
        yield _bytes(pc.fill_null(pc.list_value_length(array), 0))
        yield from _contents(pc.list_flatten(array))
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        yield _bytes(pc.fill_null(pc.binary_length(array), 0))
        packed = pa.concat_arrays([pc.drop_null(array)])
        first, last = (packed.offset, len(packed)) if len(packed) else (0, 0)
        _, offsets, values = packed.buffers()
        if last and values is not None:
            bounds = memoryview(offsets).cast("i")
            yield memoryview(values)[bounds[first] : bounds[first + last]]
        else:
            yield b""
    elif pa.types.is_boolean(kind):
        yield _bytes(pc.fill_null(array, False).cast(pa.uint8()))
    elif pa.types.is_timestamp(kind):
        yield _bytes(pc.fill_null(array.cast(pa.int64()), 0))
    else:
        yield _bytes(pc.fill_null(array, 0))


def _bytes(array: pa.Array) -> memoryview | bytes:
    """Values of a fixed-width array without nulls."""
    if not len(array):
        return b""
    width = array.type.bit_width // 8
    return memoryview(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]
