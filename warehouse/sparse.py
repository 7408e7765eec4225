"""A file of which only some ranges are kept, opened as if it were all there."""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from warehouse.errors import UnreadableError


@dataclass(frozen=True)
class Range:
    """Bytes of a file that are kept as an object of their own: where they begin, how many, and their digest."""

    offset: int
    length: int
    digest: str

    @property
    def end(self) -> int:
        """Offset behind the last byte."""
        return self.offset + self.length


class SparseFile(io.RawIOBase):
    """The kept ranges of a file, each read where the file has it.

    A read within kept ranges, also across adjacent ones, gives their bytes; any other is an `UnreadableError`.

    Args:
        name: the file's name, for errors.
        size: bytes of the whole file.
        kept: the ranges, none of them empty, with the file that each lies in.
    """

    def __init__(self, name: str, size: int, kept: Sequence[tuple[Range, Path]]) -> None:
        self._name, self._size, self._position = name, size, 0
        self._kept = sorted(kept, key=lambda entry: (entry[0].offset, entry[0].end))
        self._offsets = [kept_range.offset for kept_range, _ in self._kept]
        self._descriptors: dict[Path, int] = {}
        self._opened = ExitStack()

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset from the beginning, from here, or from the end."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int = -1) -> bytes:
        """The next bytes, fewer than asked for only at the end.

        Raises:
            UnreadableError: where any of them is not kept.
        """
        left = self._size - self._position
        wanted = max(0, left if size < 0 else min(size, left))
        pieces = []
        while wanted:
            piece = self._piece(self._position, wanted)
            pieces.append(piece)
            self._position += len(piece)
            wanted -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Close what was opened."""
        self._opened.close()
        super().close()

    def _piece(self, start: int, wanted: int) -> bytes:
        """Bytes from `start` on, as many as one kept range has of those wanted."""
        place = bisect_right(self._offsets, start) - 1
        # Ranges may overlap: an earlier and longer one may have what the nearest has not.
        while place >= 0 and self._kept[place][0].end <= start:
            place -= 1
        if place < 0:
            raise UnreadableError(
                f"{self._name}: bytes {start} to {start + wanted - 1} of it are not kept; pull it again"
            )
        kept, path = self._kept[place]
        try:
            if path not in self._descriptors:
                self._descriptors[path] = os.open(path, os.O_RDONLY)
                self._opened.callback(os.close, self._descriptors[path])
            piece = os.pread(self._descriptors[path], min(wanted, kept.end - start), start - kept.offset)
        except OSError as error:
            raise UnreadableError(
                f"{self._name}: a kept range of it is gone ({error.strerror}); pull it again"
            ) from error
        if not piece:
            raise UnreadableError(f"{self._name}: a kept range of it is cut short; pull it again")
        return piece
