"""Snapshots: built beside the old ones, verified, and made the latest in one step. Published files never change."""

from __future__ import annotations

import logging
import os
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from warehouse import files, history
from warehouse.database import connect
from warehouse.errors import SnapshotError
from warehouse.history import SNAPSHOT_ID, Entry
from warehouse.home import Home, read_json
from warehouse.identity import canonical_json, digest
from warehouse.manifests import is_manifest
from warehouse.sealed import is_sealed
from warehouse.verification import require_whole

log = logging.getLogger("kernelmart")

DATABASE = "kernelmart.duckdb"
MANIFEST = "manifest.json"
# Snapshots that this process found to be sound, with the state of their files then.
_found_sound: dict[Path, list[tuple[str, int, int, int]]] = {}
# Tables that say how and when the sources were looked at, and not what they hold.
_OF_THE_LOOK = ("drift", "movements", "snapshot", "source_files", "sources")


@dataclass(frozen=True)
class Snapshot:
    """A published snapshot or a draft, by its folder."""

    folder: Path

    @property
    def manifest(self) -> dict[str, Any]:
        """What the snapshot holds and was made from.

        Raises:
            SnapshotError: where the manifest is not there or damaged.
        """
        manifest = read_json(self.folder / MANIFEST)
        if not is_manifest(manifest):
            raise SnapshotError(f"{self.folder}: there is no snapshot with a manifest that can be read")
        return dict(manifest)

    @property
    def manifest_sha256(self) -> str:
        """SHA-256 of the manifest, which says it of every other file: of all that the snapshot is."""
        return files.sha256(self.folder / MANIFEST)

    @property
    def snapshot_id(self) -> str:
        """Name of the snapshot."""
        return str(self.manifest["snapshot_id"])

    @property
    def results_digest(self) -> str:
        """Digest over the rows of what the sources hold, however they were looked at.

        Raises:
            SnapshotError: where the manifest is damaged.
        """
        tables = self.manifest["tables"].items()
        return digest(canonical_json({name: table["digests"] for name, table in tables if name not in _OF_THE_LOOK}))

    @property
    def database(self) -> Path:
        """The DuckDB file."""
        return self.folder / DATABASE

    def parquet(self, table: str) -> list[Path]:
        """The Parquet files of a table, in order."""
        return sorted((self.folder / "parquet" / table).glob("*.parquet"))

    def open(self, memory: int | None = None, threads: int | None = None) -> duckdb.DuckDBPyConnection:
        """A read-only connection, in UTC, that reaches nothing outside the file.

        Args:
            memory: bytes, where less than the limit will do.
            threads: as of `connect`.
        """
        if not self.database.exists():
            raise SnapshotError(f"{self.database}: the snapshot's DuckDB file is gone; run an ingest")
        # Made when a statement outgrows the memory limit; by default it would lie in the folder that never changes.
        spill = Path(tempfile.gettempdir(), f"kernelmart-{uuid.uuid4().hex}")
        connection = connect(self.database, read_only=True, temporary=spill, memory=memory, threads=threads)
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
        return connection

    def damage(self) -> Iterator[str]:
        """One line for each file that is gone, was never published, or is no longer what the manifest says."""
        try:
            stated = self.manifest["files"]
        except SnapshotError:
            yield f"{self.folder / MANIFEST}: the manifest is gone or cannot be read"
            return
        found = {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if not path.is_dir()}
        expected = sorted(found & stated.keys())
        digests = dict(zip(expected, files.sha256_of_each([self.folder / name for name in expected]), strict=True))
        for name in sorted({*stated, *found} - {MANIFEST}):
            path = self.folder / name
            if name not in found:
                yield f"{path}: the file is gone"
            elif name not in stated:
                yield f"{path}: no such file was published"
            elif (stated[name]["size_bytes"], stated[name]["sha256"]) != (path.stat().st_size, digests[name]):
                yield f"{path}: its bytes are not those that were published"


def latest(home: Home) -> Snapshot | None:
    """The snapshot that the pointer names; None before the first.

    Raises:
        SnapshotError: where the pointer is damaged or gone though there are snapshots.
    """
    if pointer := _pointer(home):
        return Snapshot(home.snapshots / pointer["path"])
    if found := published(home):
        raise SnapshotError(
            f"{_pointer_path(home)}: the pointer to the latest snapshot cannot be read; the next ingest puts it right, "
            f'or put one there that says {{"path": "{found[-1].folder.name}"}}'
        )
    return None


def sound(home: Home) -> Snapshot | None:
    """The latest snapshot if all its files are as they were published; None if not, and before the first.

    Its bytes are read once in a process, for as long as the file system tells of no change.
    """
    snapshot = latest(home)
    if snapshot is None:
        return None
    state = _state(home, snapshot)
    if _found_sound.get(snapshot.folder) == state:
        return snapshot
    if damage := next(damage_of(home, snapshot), None):
        log.warning("damaged: %s; the snapshot is made anew", damage)
        return None
    _found_sound[snapshot.folder] = state
    return snapshot


def damage_of(home: Home, snapshot: Snapshot) -> Iterator[str]:
    """One line for each file of a snapshot that is not as it was published, its manifest too."""
    name = snapshot.folder.name
    manifest = snapshot.folder / MANIFEST
    pointer, (entries, whole) = _pointer(home) or {}, history.read(history_path(home))
    stated = next((entry.manifest_sha256 for entry in entries if entry.snapshot_id == name), None)
    if pointer.get("path") == name and not (stated and whole):
        stated = pointer.get("manifest_sha256")
    if stated is not None and manifest.is_file() and stated != files.sha256(manifest):
        yield f"{manifest}: its bytes are not those that were published"
    yield from snapshot.damage()


def damage_beside(home: Home) -> Iterator[str]:
    """One line for each thing that is wrong with the pointer, its link, its history, and the status."""
    if home.status.exists() and not is_sealed(read_json(home.status)):
        yield f"{home.status}: it no longer says what was written"
    pointer = _pointer(home)
    if pointer is None and published(home):
        yield f"{_pointer_path(home)}: the pointer to the latest snapshot cannot be read"
    elif pointer and not link_leads_to(home, Snapshot(home.snapshots / pointer["path"])):
        yield f"{home.snapshots / 'latest'}: the link does not lead to the snapshot that the pointer names"
    entries, whole = history.read(history_path(home))
    if published(home) and not whole:
        yield f"{history_path(home)}: the history of the pointer is gone or damaged"
        # What is left is the snapshot itself.
        moved = history.moment(pointer.get("published_at")) if pointer else None
        adopted = _adopted(Snapshot(home.snapshots / pointer["path"])) if pointer else []
        entries = [replace(one, latest_at=moved or one.latest_at) for one in adopted]
    if pointer and not points_as_written(home, entries):
        yield f"{_pointer_path(home)}: it does not say what was written"


def required(home: Home) -> Snapshot:
    """The latest snapshot.

    Raises:
        SnapshotError: where the home has none yet.
    """
    snapshot = latest(home)
    if snapshot is None:
        raise SnapshotError(f"{home.root}: there is no snapshot yet; run 'kernelmart ingest' with this home first")
    return snapshot


def published(home: Home) -> list[Snapshot]:
    """All published snapshots, oldest first; drafts and the link to the latest are none."""
    return [
        Snapshot(path)
        for path in sorted(home.snapshots.glob("*Z-*"))
        if SNAPSHOT_ID.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
    ]


def named(home: Home, name: str) -> Snapshot:
    """The published snapshot whose id is, or alone begins with, a name.

    Raises:
        SnapshotError: where there is none, or several.
    """
    found = [snapshot for snapshot in published(home) if name and snapshot.folder.name.startswith(name)]
    found = [snapshot for snapshot in found if snapshot.folder.name == name] or found
    if not found:
        raise SnapshotError(f"{home.root}: there is no snapshot {name}; 'kernelmart snapshots list' lists them")
    if len(found) > 1:
        ids = ", ".join(snapshot.folder.name for snapshot in found)
        raise SnapshotError(f"{home.root}: {name} is the beginning of several snapshots; name one of {ids}")
    return found[0]


def draft_folder(home: Home) -> Path:
    """Where a snapshot is built."""
    return home.snapshots / ".draft"


def draft_of(home: Home) -> Snapshot | None:
    """The snapshot that has been built and not yet published."""
    folder = draft_folder(home)
    return Snapshot(folder) if (folder / MANIFEST).exists() else None


def discard_draft(home: Home) -> None:
    """Remove a draft that is not going to be published."""
    files.remove_tree(draft_folder(home))


def publish(home: Home, draft: Snapshot, *, forced: bool = False) -> Snapshot:
    """Make a draft the latest snapshot, in one step. The caller holds the home's lock.

    Raises:
        SnapshotError: where the draft is not whole, a snapshot of its name is there, or, unless it is forced, its
            content was withdrawn.
    """
    if not forced and (reason := withdrawn_reason(home, draft)):
        raise SnapshotError(f"{draft.folder}: its content was withdrawn ({reason}); ingest with --force to publish it")
    require_whole(draft)
    target = home.snapshots / draft.snapshot_id
    if target.exists():
        raise SnapshotError(f"{target}: a snapshot of this name is there already; run the ingest again")
    for folder, _, names in os.walk(draft.folder, topdown=False):
        for path, mode in (*((Path(folder, name), 0o444) for name in names), (Path(folder), 0o555)):
            path.chmod(mode)
            files.synchronise(path)
    draft.folder.rename(target)
    files.synchronise(home.snapshots)
    snapshot = Snapshot(target)
    point_at(home, snapshot)
    return snapshot


def point_at(home: Home, snapshot: Snapshot) -> None:
    """Move the pointer, and the link for people, to a snapshot; then enter it into the history."""
    sha256 = files.sha256(snapshot.folder / MANIFEST)
    files.write_json(_pointer_path(home), _pointer_to(snapshot.folder.name, sha256, datetime.now(UTC)))
    link_to(home, snapshot)
    history.write(history_path(home), entries_of(home))


def points_as_written(home: Home, entries: Iterable[Entry]) -> bool:
    """Whether the pointer says just what it would of one of the history's entries."""
    pointer = _pointer(home)
    return any(pointer == _pointer_to(one.snapshot_id, one.manifest_sha256, one.latest_at) for one in entries)


def link_to(home: Home, snapshot: Snapshot) -> None:
    """Have the link for people lead to a snapshot."""
    link = home.snapshots / f"{files.ASIDE}{uuid.uuid4().hex}"
    link.symlink_to(snapshot.folder.name, target_is_directory=True)
    link.replace(home.snapshots / "latest")
    files.synchronise(home.snapshots)


def link_leads_to(home: Home, snapshot: Snapshot) -> bool:
    """Whether the link for people leads to a snapshot."""
    link = home.snapshots / "latest"
    return link.is_symlink() and str(link.readlink()) == snapshot.folder.name


def history_path(home: Home) -> Path:
    """Where the history of the pointer lies."""
    return home.snapshots / "history.json"


def manifest_damage(home: Home) -> Iterator[str]:
    """One line for each published snapshot whose manifest is not the one that the history names."""
    named_by_history = {entry.snapshot_id: entry.manifest_sha256 for entry in entries_of(home)}
    for snapshot in published(home):
        stated = named_by_history.get(snapshot.folder.name)
        if stated is not None and files.sha256(snapshot.folder / MANIFEST) != stated:
            yield f"{snapshot.folder / MANIFEST}: it is not the manifest that was published"


def entries_of(home: Home) -> list[Entry]:
    """The history of the pointer, put right: the latest snapshot belongs to it and comes last.

    Where the history is damaged or gone, every snapshot that there is belongs to it.
    """
    entries, whole = history.read(history_path(home))
    pointer = _pointer(home) or {}
    known = {entry.snapshot_id for entry in entries}
    entries += [
        adopted
        for snapshot in published(home)
        if snapshot.folder.name not in known and (not whole or snapshot.folder.name == pointer.get("path"))
        for adopted in _adopted(snapshot)
    ]
    if not whole:
        entries.sort(key=lambda entry: entry.latest_at)
    for entry in entries:
        if entry.snapshot_id == pointer.get("path"):
            moved = history.moment(pointer.get("published_at")) or entry.latest_at
            return [*(one for one in entries if one is not entry), replace(entry, latest_at=moved)]
    return entries


def withdrawn_reason(home: Home, snapshot: Snapshot) -> str | None:
    """Why and when the content of a snapshot or draft was withdrawn; None where it was not, or was published since.

    That a source could not be asked, or was asked again, makes no other content of the same results.
    """
    found = history.withdrawal(entries_of(home), snapshot.manifest["content_digest"], snapshot.results_digest)
    return f"{found.reason} ({found.at:%Y-%m-%d %H:%M} UTC)" if found else None


def _state(home: Home, snapshot: Snapshot) -> list[tuple[str, int, int, int]]:
    """Name, size and times of change of each file of a snapshot, and of the pointer."""
    found = sorted([*snapshot.folder.rglob("*"), _pointer_path(home)])
    stats = [(path, path.lstat()) for path in found]
    return [(str(path), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for path, stat in stats]


def _adopted(snapshot: Snapshot) -> list[Entry]:
    """What a snapshot says of itself as an entry of the history; none where its name is no time."""
    manifest = snapshot.folder / MANIFEST
    try:
        content_digest, results_digest = str(snapshot.manifest["content_digest"]), snapshot.results_digest
    except SnapshotError:
        content_digest = results_digest = ""
    try:
        built = datetime.strptime(snapshot.folder.name.partition("-")[0], "%Y%m%dT%H%M%S%z")
    except ValueError:
        return []
    return [
        Entry(
            snapshot_id=snapshot.folder.name,
            content_digest=content_digest,
            manifest_sha256=files.sha256(manifest) if manifest.is_file() else "",
            published_at=built,
            latest_at=built,
            results_digest=results_digest,
        )
    ]


def _pointer_path(home: Home) -> Path:
    return home.snapshots / "latest.json"


def _pointer_to(name: str, manifest_sha256: str, at: datetime) -> dict[str, str]:
    return {
        "snapshot_id": name,
        "path": name,
        "manifest_sha256": manifest_sha256,
        "published_at": at.isoformat(timespec="milliseconds"),
    }


def _pointer(home: Home) -> dict[str, Any] | None:
    """What the pointer says; None where there is none or it names nothing that can be a snapshot."""
    pointer = read_json(_pointer_path(home))
    path = pointer.get("path") if isinstance(pointer, dict) else None
    return pointer if isinstance(path, str) and SNAPSHOT_ID.fullmatch(path) else None
