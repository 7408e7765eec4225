"""Parquet files as a source gives them, kept whole or in ranges: opened, or named for what stands in their place."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.errors import UnreadableError
from warehouse.raw import RawFile

# Length of the metadata and magic bytes, at a Parquet file's end.
FOOTER_TAIL = 8
_LONGEST_FOOTER = 1 << 26


def open_parquet(source: RawFile) -> pq.ParquetFile:
    """Open a Parquet file, kept whole or in ranges, for a streaming read.

    Its footer is read first and handed over: left alone, pyarrow reads 64 kB from the end, which a fetch record lacks.
    Further reads stay within the chunks of the columns asked for.

    Raises:
        UnreadableError: naming the file and what it is instead.
    """
    try:
        with source.open() as file:
            metadata = _footer(file)
        return pq.ParquetFile(
            source.open(), metadata=metadata, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True
        )
    except (OSError, pa.ArrowException) as error:
        raise UnreadableError(
            f"{source.locator}: {what_it_is(_head(source), source.size_bytes) or one_line(error)}"
        ) from error


def _footer(file: pa.NativeFile) -> pq.FileMetaData:
    size = file.size()
    file.seek(max(0, size - FOOTER_TAIL))
    length = footer_length(file.read(FOOTER_TAIL), size)
    file.seek(size - length)
    return pq.read_metadata(pa.BufferReader(file.read(length)))


def footer_length(tail: bytes, size: int) -> int:
    """Bytes at the end of a Parquet file that its metadata takes, by the last `FOOTER_TAIL` of its `size` bytes.

    Raises:
        pyarrow.ArrowInvalid: where that cannot be.
    """
    length = int.from_bytes(tail[:4], "little") + FOOTER_TAIL
    if tail[4:] != b"PAR1" or not FOOTER_TAIL < length <= min(size - len(b"PAR1"), _LONGEST_FOOTER):
        raise pa.ArrowInvalid("Its end is not that of a Parquet file")
    return length


def _head(source: RawFile) -> bytes:
    try:
        with source.open() as file:
            return bytes(file.read(256))
    except (OSError, UnreadableError):
        return b"PAR1"


def what_it_is(head: bytes, size: int) -> str | None:
    """What stands in place of a Parquet file, by its first bytes; None where it may be one."""
    if size == 0:
        return "the file is empty; fetch it again"
    if head.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer stands in place of the file; fetch the file itself"
    if head.lstrip()[:1] == b"<":
        return "an HTML page stands in place of the file; fetch it again"
    return None if head.startswith(b"PAR1") else "it is not a Parquet file; fetch it again"


def one_line(error: Exception) -> str:
    """What went wrong, in a line that says what to do."""
    return " ".join(str(error).split())[:200] + "; fetch it again"
