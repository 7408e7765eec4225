"""Snapshots elsewhere: put into a store as files that never change, the pointer last, and read from there.

A store has the layout of a home: `snapshots/latest.json`, and all files of a snapshot below `snapshots/<id>/`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from warehouse import files
from warehouse.errors import SnapshotError, StoreError
from warehouse.home import Home
from warehouse.snapshots import DATABASE, Snapshot, damage_of
from warehouse.stores import Store

log = logging.getLogger("kernelmart")

POINTER = "snapshots/latest.json"
MANIFEST = "manifest.json"
# A file that nobody has asked for so long is removed from the cache; it can be had again.
CACHED_DAYS = 7
_POINTER_LIMIT = 64 << 10
_MANIFEST_LIMIT = 256 << 20
# Files on their way at once; more would only wait for the same network.
_AT_ONCE = 4
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,200}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Publication:
    """What a publication did: how many files were sent, copied inside the store, and found there already."""

    address: str
    snapshot_id: str
    sent: int
    sent_bytes: int
    copied: int
    present: int
    pointer_moved: bool


@dataclass(frozen=True)
class Published:
    """The latest snapshot of a store, as its pointer says: the manifest is the one that the pointer names."""

    store: Store
    snapshot_id: str
    folder: str
    manifest_sha256: str
    files: Mapping[str, tuple[str, int]]

    @property
    def address(self) -> str:
        """URL of the snapshot's folder, without secrets."""
        return self.store.address(self.folder)

    def cached(self) -> Snapshot:
        """The snapshot with its DuckDB file alone, in the cache: fetched where it is not there or damaged.

        Raises:
            SnapshotError: where the store has another file than the manifest says.
            StoreError: where the store cannot be used.
        """
        return Snapshot(self.file(DATABASE).parent)

    def file(self, name: str) -> Path:
        """One of its files, in the cache: fetched where it is not there or damaged.

        Raises:
            SnapshotError: where the store has another file than the manifest says, or the manifest names no such file.
            StoreError: where the store cannot be used.
        """
        if name not in self.files:
            raise SnapshotError(f"{self.address}: its manifest names no {name}; publish a snapshot anew")
        sha256, size = self.files[name]
        path = cache_folder() / sha256 / PurePosixPath(name).name
        if not _is(path, sha256, size):
            self._fetch(name, path)
            _forget_unused(cache_folder())
        with suppress(OSError):
            os.utime(path)
        return path

    def _fetch(self, name: str, path: Path) -> None:
        sha256, size = self.files[name]
        digest, count = hashlib.sha256(), 0
        with files.writing(path) as aside:
            with aside.open("wb") as file:
                for piece in self.store.pieces(f"{self.folder}/{name}"):
                    count += len(piece)
                    # What goes on and on is not waited for.
                    if count > size:
                        break
                    digest.update(piece)
                    file.write(piece)
            if count != size or digest.hexdigest() != sha256:
                raise SnapshotError(
                    f"{self.store.address(f'{self.folder}/{name}')}: its bytes are not those that the manifest names; "
                    "publish the snapshot again"
                )
            aside.chmod(0o444)


def publish_to(url: str, snapshot: Snapshot) -> Publication:
    """Copy a snapshot into a store, and make it the store's latest once all of it is there and verified.

    A file that is there with the size and digest of the manifest is left alone; one that the store's latest snapshot
    has under another name is copied inside the store; all others are sent. Each is read back. Until the pointer is
    put, readers see the snapshot before, so that a publication that dies can simply be run again.

    Raises:
        SnapshotError: where the snapshot is damaged, or a source of it may not be republished.
        StoreError: where the store cannot be used, is the warehouse itself, or does not keep what it is given.
    """
    # Reading does not need what exports do.
    from warehouse.exports import not_redistributable

    store, home = Store(url), Home(snapshot.folder.parent.parent)
    if store.is_within(home.root):
        raise StoreError(f"{store}: this is the warehouse itself; name a folder elsewhere")
    if damage := next(damage_of(home, snapshot), None):
        raise SnapshotError(f"{damage}; nothing is published elsewhere; ingest again, or restore")
    if closed := not_redistributable(snapshot):
        raise SnapshotError(
            f"{snapshot.folder}: the terms of {', '.join(closed)} do not let it be republished; nothing is published "
            "elsewhere"
        )
    manifest = (snapshot.folder / MANIFEST).read_bytes()
    snapshot_id, listed = _read_manifest(manifest, str(snapshot.folder))
    listed[MANIFEST] = (hashlib.sha256(manifest).hexdigest(), len(manifest))
    before = _before(store)
    if before and before.snapshot_id == snapshot_id and before.manifest_sha256 != listed[MANIFEST][0]:
        raise SnapshotError(f"{before.address}: another snapshot of that name is published there; ingest again")
    target = _Target(store, f"snapshots/{snapshot_id}", snapshot.folder, listed, before)
    done = target.fill()
    moved = before is None or before.snapshot_id != snapshot_id
    if moved:
        pointer = {
            "snapshot_id": snapshot_id,
            "path": snapshot_id,
            "manifest_sha256": listed[MANIFEST][0],
            "published_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        content = (json.dumps(pointer, indent=2, sort_keys=True) + "\n").encode()
        store.put_bytes(POINTER, content)
        if store.read(POINTER, _POINTER_LIMIT) != content:
            raise StoreError(f"{store.address(POINTER)}: it does not read back as it was put; publish again")
    sent = [name for name, how in done.items() if how == "sent"]
    return Publication(
        address=store.address(f"snapshots/{snapshot_id}"),
        snapshot_id=snapshot_id,
        sent=len(sent),
        sent_bytes=sum(listed[name][1] for name in sent),
        copied=sum(how == "copied" for how in done.values()),
        present=sum(how == "present" for how in done.values()),
        pointer_moved=moved,
    )


def latest_of(store: Store) -> Published:
    """The latest snapshot of a store. The pointer is read once; what is read later belongs to what it named.

    Raises:
        SnapshotError: where there is none, or the pointer or the manifest is not to be trusted.
        StoreError: where the store cannot be used.
    """
    published = _latest(store)
    if published is None:
        raise SnapshotError(f"{store.address(POINTER)}: no snapshot is published there; 'kernelmart publish' does it")
    return published


def _latest(store: Store) -> Published | None:
    content = store.read(POINTER, _POINTER_LIMIT)
    if content is None:
        return None
    pointer = _json_object(content, store.address(POINTER))
    name, sha256 = pointer.get("path"), pointer.get("manifest_sha256")
    if not (isinstance(name, str) and _NAME.fullmatch(name) and isinstance(sha256, str) and _SHA256.fullmatch(sha256)):
        raise SnapshotError(f"{store.address(POINTER)}: it names no snapshot and manifest; publish a snapshot anew")
    folder = f"snapshots/{name}"
    where = store.address(f"{folder}/{MANIFEST}")
    manifest = store.read(f"{folder}/{MANIFEST}", _MANIFEST_LIMIT)
    if manifest is None:
        raise SnapshotError(f"{where}: the manifest that the pointer names is gone; publish a snapshot anew")
    if hashlib.sha256(manifest).hexdigest() != sha256:
        raise SnapshotError(f"{where}: it is not the manifest that the pointer names; publish a snapshot anew")
    snapshot_id, listed = _read_manifest(manifest, where)
    if snapshot_id != name:
        raise SnapshotError(f"{where}: it is the manifest of another snapshot; publish a snapshot anew")
    return Published(store, snapshot_id, folder, sha256, listed)


def cache_folder() -> Path:
    """Where DuckDB files of stores are kept: `KERNELMART_CACHE`, by default in the platform's folder for caches."""
    if chosen := os.environ.get("KERNELMART_CACHE"):
        return Path(chosen).absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kernelmart"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "kernelmart" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernelmart"


@dataclass(frozen=True)
class _Target:
    """A snapshot's folder in a store, to be filled."""

    store: Store
    folder: str
    source: Path
    files: Mapping[str, tuple[str, int]]
    before: Published | None

    def fill(self) -> dict[str, str]:
        """Have all files there, the manifest last; how each came to be there: sent, copied or present."""
        there = self.store.sizes(self.folder)
        others = [name for name in self.files if name != MANIFEST]
        done: dict[str, str] = {}
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="publish") as pool:
            waiting = {name: pool.submit(self._bring, name, there.get(name)) for name in others}
            try:
                done = {name: future.result() for name, future in waiting.items()}
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return {**done, MANIFEST: self._bring(MANIFEST, there.get(MANIFEST))}

    def _bring(self, name: str, size_there: int | None) -> str:
        there = f"{self.folder}/{name}"
        if size_there == self.files[name][1] and (self._published or self._is_whole(there, name)):
            return "present"
        if other := self._copies.get(self.files[name]):
            # Of no use where the store cannot copy, or no longer has what its latest manifest names.
            with suppress(StoreError):
                self.store.copy(other, there)
                if self._is_whole(there, name):
                    return "copied"
        self.store.put(self.source / name, there)
        if not self._is_whole(there, name):
            raise StoreError(f"{self.store.address(there)}: it does not read back as it was put; publish again")
        return "sent"

    def _is_whole(self, there: str, name: str) -> bool:
        return self.store.sha256(there) == self.files[name][0]

    @property
    def _published(self) -> bool:
        """Whether it is the store's latest, all of which was read back before it became so."""
        return self.before is not None and self.before.folder == self.folder

    @cached_property
    def _copies(self) -> dict[tuple[str, int], str]:
        if self.before is None or self._published:
            return {}
        return {stated: f"{self.before.folder}/{name}" for name, stated in self.before.files.items()}


def _before(store: Store) -> Published | None:
    """The latest snapshot of a store; None where it has none that can be trusted, which publishing puts right."""
    try:
        return _latest(store)
    except SnapshotError as error:
        log.warning("%s", error)
        return None


def _read_manifest(content: bytes, where: str) -> tuple[str, dict[str, tuple[str, int]]]:
    """Name of the snapshot, and (SHA-256, size in bytes) of each of its files.

    Raises:
        SnapshotError: where it is no such manifest, or a name in it leads out of the snapshot's folder.
    """
    manifest = _json_object(content, where)
    snapshot_id, listed = manifest.get("snapshot_id"), manifest.get("files")
    if not (isinstance(snapshot_id, str) and _NAME.fullmatch(snapshot_id) and isinstance(listed, dict)):
        raise SnapshotError(f"{where}: it is no manifest of a snapshot; publish a snapshot anew")
    return snapshot_id, dict(_read_files(listed.items(), where))


def _read_files(listed: Iterable[tuple[str, Any]], where: str) -> Iterator[tuple[str, tuple[str, int]]]:
    for name, stated in listed:
        size = stated.get("size_bytes") if isinstance(stated, dict) else None
        sha256 = stated.get("sha256") if isinstance(stated, dict) else None
        plain = PurePosixPath(name).as_posix() == name and ".." not in name.split("/") and not name.startswith("/")
        if not plain or name in ("", ".") or "\\" in name or ":" in name or not name.isprintable():
            raise SnapshotError(f"{where}: it names a file {name!r} outside its snapshot; do not use that store")
        if not (isinstance(sha256, str) and _SHA256.fullmatch(sha256) and type(size) is int and size >= 0):
            raise SnapshotError(f"{where}: it states no digest and size of {name}; publish a snapshot anew")
        yield name, (sha256, size)


def _json_object(content: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise SnapshotError(f"{where}: it is no JSON object; publish a snapshot anew")
    return value


def _is(path: Path, sha256: str, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size and files.sha256(path) == sha256


def _forget_unused(cache: Path) -> None:
    oldest = time.time() - CACHED_DAYS * 86_400
    for path in cache.glob("*/*"):
        if _SHA256.fullmatch(path.parent.name) and path.stat().st_mtime < oldest:
            files.remove_tree(path.parent)
