"""A disk that is full from a step of an ingest on: a small file system of its own, filled to the last byte."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from warehouse import files, snapshots
from warehouse.home import Home
from warehouse.snapshots import Snapshot

# Where each step writes, below the home, or a file's name alone; publishing itself begins with no file.
STEPS = {
    "raw": "raw",
    "state": "tables/state",
    "parts": "tables/gpumode-kernelbot",
    "draft": "snapshots/.draft",
    "description": "datapackage.json",
    "manifest": "manifest.json",
    "publish": None,
    "pointer": "snapshots/latest.json",
    "history": "snapshots/history.json",
    "status": "status.json",
    "dagster": "dagster",
    "lock": "lock.json",
}
_WRITERS = ("writing", "writing_folder", "writing_object")


@contextmanager
def small_disk(place: Path, megabytes: int = 64) -> Iterator[Path | None]:
    """A file system of so many megabytes at a place; None where this user may not make one."""
    place.mkdir()
    mount = shutil.which("mount")
    words = [str(mount), "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    if mount is None or subprocess.run(words, capture_output=True, check=False).returncode != 0:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(ballast: Path) -> None:
    """Take all the room that there is."""
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def full_from(step: str, home: Path, ballast: Path) -> None:
    """Have this process fill the disk just before a step begins to write."""
    below = STEPS[step]
    if below is None:
        publish = snapshots.publish

        def publish_without_room(home: Home, draft: Snapshot, *, forced: bool = False) -> Snapshot:
            fill(ballast)
            return publish(home, draft, forced=forced)

        snapshots.publish = publish_without_room
        return
    place = home / below

    def without_room(writer: Callable[[Path], AbstractContextManager[Any]]) -> Callable[..., Any]:
        @contextmanager
        def write(path: Path) -> Iterator[Any]:
            if path.is_relative_to(place) or path.name == below:
                fill(ballast)
            with writer(path) as aside:
                yield aside

        return write

    for name in _WRITERS:
        if hasattr(files, name):
            setattr(files, name, without_room(getattr(files, name)))


def without_privileges() -> None:
    """Have this process obey the modes of files and folders, also where it is root's."""
    if os.geteuid() == 0:
        # No capability is left: header of version 3 for this process, and three empty sets of 64 bits.
        header, none = struct.pack("Ii", 0x20080522, 0), bytes(24)
        assert ctypes.CDLL(None, use_errno=True).capset(header, none) == 0, os.strerror(ctypes.get_errno())
