"""Snapshots: built beside the old ones, verified, and made the latest in one step. Published files never change."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from warehouse import files
from warehouse.database import connect
from warehouse.errors import SnapshotError
from warehouse.home import Home, read_json

log = logging.getLogger("kernelmart")

DATABASE = "kernelmart.duckdb"
_MANIFEST_KEYS = {"snapshot_id", "created_at", "content_digest", "inputs", "inputs_key", "tables", "files"}


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
        manifest = read_json(self.folder / "manifest.json")
        if not isinstance(manifest, dict) or not manifest.keys() >= _MANIFEST_KEYS:
            raise SnapshotError(f"{self.folder}: there is no snapshot with a manifest that can be read")
        return manifest

    @property
    def snapshot_id(self) -> str:
        """Name of the snapshot."""
        return str(self.manifest["snapshot_id"])

    @property
    def database(self) -> Path:
        """The DuckDB file."""
        return self.folder / DATABASE

    def parquet(self, table: str) -> list[Path]:
        """The Parquet files of a table, in order."""
        return sorted((self.folder / "parquet" / table).glob("*.parquet"))

    def open(self) -> duckdb.DuckDBPyConnection:
        """A read-only connection, in UTC, that reaches nothing outside the file."""
        if not self.database.exists():
            raise SnapshotError(f"{self.database}: the snapshot's DuckDB file is gone; run an ingest")
        connection = connect(self.database, read_only=True)
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
        return connection

    def damage(self) -> Iterator[str]:
        """One line for each file that is gone or no longer what the manifest says."""
        for name, stated in self.manifest["files"].items():
            path = self.folder / name
            if not path.is_file():
                yield f"{path}: the file is gone"
            elif path.stat().st_size != stated["size_bytes"] or files.sha256(path) != stated["sha256"]:
                yield f"{path}: its bytes are not those that were published"


def latest(home: Home) -> Snapshot | None:
    """The snapshot that the pointer names; None before the first.

    Raises:
        SnapshotError: where the pointer is damaged or gone though there are snapshots.
    """
    pointer = read_json(home.snapshots / "latest.json")
    if isinstance(pointer, dict) and isinstance(pointer.get("path"), str):
        return Snapshot(home.snapshots / pointer["path"])
    if found := published(home):
        raise SnapshotError(
            f"{home.snapshots / 'latest.json'}: the pointer to the latest snapshot cannot be read; put one there that "
            f'says {{"path": "{found[-1].folder.name}"}}'
        )
    return None


def sound(home: Home) -> Snapshot | None:
    """The latest snapshot if all its files are as they were published; None if not, and before the first."""
    snapshot = latest(home)
    try:
        damage = next(damage_of(home, snapshot), None) if snapshot else None
    except SnapshotError as error:
        damage = str(error)
    if damage is None:
        return snapshot
    log.warning("damaged: %s; the snapshot is made anew", damage)
    return None


def damage_of(home: Home, snapshot: Snapshot) -> Iterator[str]:
    """One line for each file of a snapshot that is not as it was published; of the latest, its manifest too."""
    pointer = read_json(home.snapshots / "latest.json")
    manifest = snapshot.folder / "manifest.json"
    if (
        isinstance(pointer, dict)
        and pointer.get("path") == snapshot.folder.name
        and manifest.is_file()
        and pointer.get("manifest_sha256") != files.sha256(manifest)
    ):
        yield f"{manifest}: it is not the manifest that the pointer names"
    yield from snapshot.damage()


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
    folders = sorted(path.parent for path in home.snapshots.glob("[!.]*/manifest.json"))
    return [Snapshot(folder) for folder in folders if not folder.is_symlink()]


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
    return Snapshot(folder) if (folder / "manifest.json").exists() else None


def discard_draft(home: Home) -> None:
    """Remove a draft that is not going to be published."""
    files.remove_tree(draft_folder(home))


def publish(home: Home, draft: Snapshot) -> Snapshot:
    """Make a draft the latest snapshot, in one step.

    Raises:
        SnapshotError: where a file of the draft is not what its manifest says.
    """
    if damage := next(draft.damage(), None):
        raise SnapshotError(f"{damage}; run the ingest again")
    target = home.snapshots / draft.snapshot_id
    for folder, _, found in os.walk(draft.folder, topdown=False):
        for name in found:
            Path(folder, name).chmod(0o444)
        Path(folder).chmod(0o555)
    draft.folder.rename(target)
    files.synchronise(home.snapshots)
    point_at(home, Snapshot(target))
    return Snapshot(target)


def point_at(home: Home, snapshot: Snapshot) -> None:
    """Move the pointer, and the link for people, to a snapshot."""
    files.write_json(
        home.snapshots / "latest.json",
        {
            "snapshot_id": snapshot.snapshot_id,
            "path": snapshot.folder.name,
            "manifest_sha256": files.sha256(snapshot.folder / "manifest.json"),
            "published_at": datetime.now(UTC).isoformat(timespec="seconds"),
        },
    )
    link = home.snapshots / f"{files.ASIDE}{uuid.uuid4().hex}"
    link.symlink_to(snapshot.folder.name, target_is_directory=True)
    link.replace(home.snapshots / "latest")
