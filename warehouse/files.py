"""The one way to write a file: aside, fsync, rename. A reader sees the whole of it or nothing."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warehouse.threads import in_threads

# What the operating system says where a disk is full, or one's share of it.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
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


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, as 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_each(paths: Sequence[Path]) -> list[str]:
    """SHA-256 of the bytes of some files, by all processors together."""
    return [*in_threads(sha256, paths, os.cpu_count() or 1)]


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
