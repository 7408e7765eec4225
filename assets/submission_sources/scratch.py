"""A file of texts for the time of an ingest, found by digest: what has to be looked at twice and in no order."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np
import zstandard

_LEVEL = 1


class Scratch:
    """Texts by digest in one compressed file; an index of some forty bytes a text is all that memory holds.

    Used as a context: the file is gone when it is left.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = path.open("w+b")
        self._names = bytearray()
        self._ends = array("Q", [0])
        self._order: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None
        self._sorted: np.ndarray[tuple[int], np.dtype[np.bytes_]] | None = None
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self._decompressor = zstandard.ZstdDecompressor()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, source_digest: str, text: bytes) -> None:
        """Keep a text; each once."""
        packed = self._compressor.compress(text)
        self._file.seek(self._ends[-1])
        self._file.write(packed)
        self._names += bytes.fromhex(source_digest.removeprefix("sha256:"))
        self._ends.append(self._ends[-1] + len(packed))
        self._order = None

    def get(self, source_digest: str) -> bytes | None:
        """The text with a digest, if it is kept."""
        order, names = self._index()
        # NumPy drops the zeros that a value ends with.
        name = np.bytes_(bytes.fromhex(source_digest.removeprefix("sha256:")).rstrip(b"\0"))
        place = int(np.searchsorted(names, name))
        if place == len(names) or names[place] != name:
            return None
        return self._read(int(order[place]))

    def digests(self) -> Iterator[str]:
        """Digests of all texts, ascending."""
        for number in self._index()[0].tolist():
            yield f"sha256:{bytes(self._names[32 * number : 32 * number + 32]).hex()}"

    def _index(self) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.bytes_]]]:
        if self._order is None or self._sorted is None:
            names = np.frombuffer(bytes(self._names), "S32")
            self._order = np.argsort(names, kind="stable")
            self._sorted = names[self._order]
        return self._order, self._sorted

    def _read(self, number: int) -> bytes:
        start, end = self._ends[number], self._ends[number + 1]
        self._file.seek(start)
        return self._decompressor.decompress(self._file.read(end - start))
