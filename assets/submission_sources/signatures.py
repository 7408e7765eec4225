"""MinHash signatures of many texts, in a file for the time of an ingest: memory holds only those that are looked at."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_AT_ONCE = 16_384

Signature = NDArray[np.uint32]


class Signatures:
    """Signatures of `width` numbers, by row from 0.

    Used as a context: the file is gone when it is left.

    Args:
        batches: columns of signatures as bytes, four for each number; a null one is all zeros.
        width: numbers of each.
        temporary: the folder that the file is in.
    """

    def __init__(self, batches: Iterable[pa.FixedSizeBinaryArray], width: int, temporary: Path) -> None:
        self._width = width
        self._bytes = 4 * width
        self._count = 0
        temporary.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=temporary)  # noqa: SIM115
        for batch in batches:
            filled = batch.fill_null(bytes(self._bytes)) if batch.null_count else batch
            start = filled.offset * self._bytes
            self._file.write(memoryview(filled.buffers()[1])[start : start + len(filled) * self._bytes])
            self._count += len(filled)
        self._file.flush()

    def __enter__(self) -> Signatures:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def columns(self, first: int, last: int) -> Signature:
        """Some numbers of every signature, a row each."""
        found = np.empty((self._count, last - first), "<u4")
        for row in range(0, self._count, _AT_ONCE):
            block = os.pread(self._file.fileno(), _AT_ONCE * self._bytes, row * self._bytes)
            found[row : row + _AT_ONCE] = np.frombuffer(block, "<u4").reshape(-1, self._width)[:, first:last]
        return found

    def rows(self, numbers: NDArray[np.int64]) -> Signature:
        """Whole signatures of some rows, in the same order."""
        read = (os.pread(self._file.fileno(), self._bytes, row * self._bytes) for row in numbers.tolist())
        return np.frombuffer(b"".join(read), "<u4").reshape(-1, self._width)
