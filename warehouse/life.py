"""What becomes of snapshots once they are published: what a dead ingest left is put right, old ones go, bad ones are
withdrawn. Every caller holds the home's lock."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from warehouse import files, history, snapshots
from warehouse.errors import SnapshotError
from warehouse.history import Entry, Withdrawal
from warehouse.home import Home
from warehouse.snapshots import Snapshot

log = logging.getLogger("kernelmart")


@dataclass(frozen=True)
class Rollback:
    """The snapshot that is the latest again, and the ids of those that were withdrawn, newest first."""

    snapshot: Snapshot
    withdrawn: tuple[str, ...]


def recover(home: Home) -> None:
    """Put right what an ingest or a rollback that died left behind.

    A pointer that is damaged, or names what is not there or is withdrawn, goes back to the newest sound snapshot; the
    history gets the snapshot that the pointer names; a snapshot that no pointer ever named is removed.
    """
    if not home.snapshots.is_dir():
        return
    stored, whole = history.read(snapshots.history_path(home))
    entries = snapshots.entries_of(home)
    if entries and not whole:
        log.warning("%s: the history of the pointer was gone or damaged, and is made anew", home.snapshots)
    if entries != stored or (entries and not whole):
        history.write(snapshots.history_path(home), entries)
    pointed = _repaired_pointer(home, entries)
    if not whole or pointed is None:
        return
    known = {entry.snapshot_id for entry in entries}
    for snapshot in snapshots.published(home):
        if snapshot.folder.name not in known and snapshot != pointed:
            log.warning("%s: it was never the latest snapshot, and is removed", snapshot.folder)
            _remove(snapshot.folder)


def prune(home: Home, *, daily: int, monthly: int, now: datetime, dry: bool = False) -> list[str]:
    """Remove the snapshots that `history.retained` does not keep; their ids, oldest first.

    Args:
        home: the warehouse.
        daily: how many days keep their newest snapshot.
        monthly: how many months keep theirs.
        now: the moment to count back from.
        dry: only say what would be removed.
    """
    snapshots.required(home)
    entries = [entry for entry in snapshots.entries_of(home) if (home.snapshots / entry.snapshot_id).is_dir()]
    kept = history.retained(entries, now, daily, monthly)
    removed = sorted(entry.snapshot_id for entry in entries if entry.snapshot_id not in kept)
    for snapshot_id in () if dry else removed:
        _remove(home.snapshots / snapshot_id)
    return removed


def roll_back(home: Home, reason: str, to: str | None = None) -> Rollback:
    """Make an earlier snapshot the latest again, and withdraw all that were published after it.

    Args:
        home: the warehouse.
        reason: why; whoever wants to publish the same content again is told.
        to: id, or its beginning, of the snapshot to go back to; by default the last one before the latest that is sound
            and was not withdrawn.

    Raises:
        SnapshotError: where there is no such snapshot.
    """
    latest = snapshots.required(home)
    entries = snapshots.entries_of(home)
    if to is None:
        target = _newest_sound(home, entries[:-1], entries[-1] if entries else None)
        if target is None:
            raise SnapshotError(f"{home.root}: no sound snapshot was published before {latest.folder.name}")
    else:
        target = _entry_of(home, entries, snapshots.named(home, to))
    newer = entries[entries.index(target) + 1 :]
    withdrawal = Withdrawal(datetime.now(UTC), reason)
    marked = [
        replace(entry, withdrawn=withdrawal) if entry in newer and entry.withdrawn is None else entry
        for entry in entries
    ]
    # First, so that a rollback that dies here is finished by the next ingest, and not done twice.
    history.write(snapshots.history_path(home), marked)
    snapshot = Snapshot(home.snapshots / target.snapshot_id)
    snapshots.point_at(home, snapshot)
    withdrawn = tuple(entry.snapshot_id for entry in reversed(newer) if entry.withdrawn is None)
    return Rollback(snapshot, withdrawn)


def _entry_of(home: Home, entries: Sequence[Entry], wanted: Snapshot) -> Entry:
    """The entry of a snapshot that can be gone back to."""
    name = wanted.folder.name
    entry = next((entry for entry in entries if entry.snapshot_id == name), None)
    if entry is None:
        raise SnapshotError(f"{wanted.folder}: it was never the latest; the next ingest removes it")
    if entry is entries[-1]:
        raise SnapshotError(f"{home.root}: {name} is the latest already")
    if entry.withdrawn:
        raise SnapshotError(f"{home.root}: {name} was withdrawn: {entry.withdrawn.reason}")
    if any(later.holds(entry.content_digest, entry.results_digest) for later in entries[entries.index(entry) + 1 :]):
        raise SnapshotError(f"{home.root}: {name} has the same content as one after it; name an earlier one")
    if damage := next(snapshots.damage_of(home, wanted), None):
        raise SnapshotError(f"{damage}; name another snapshot")
    return entry


def _newest_sound(home: Home, entries: Sequence[Entry], unlike: Entry | None = None) -> Entry | None:
    """The last entry that was not withdrawn, has other results, and whose files are as they were published."""
    for entry in reversed(entries):
        snapshot = Snapshot(home.snapshots / entry.snapshot_id)
        if (
            entry.withdrawn is None
            and not (unlike and entry.holds(unlike.content_digest, unlike.results_digest))
            and snapshot.folder.is_dir()
            and next(snapshots.damage_of(home, snapshot), None) is None
        ):
            return entry
    return None


def _repaired_pointer(home: Home, entries: Sequence[Entry]) -> Snapshot | None:
    """The snapshot that the pointer names once it is put right; None where none can be named."""
    try:
        pointed = snapshots.latest(home)
    except SnapshotError:
        pointed = None
    if pointed and pointed.folder.is_dir() and not (entries and entries[-1].withdrawn):
        if not snapshots.points_as_written(home, entries):
            snapshots.point_at(home, pointed)
        elif not snapshots.link_leads_to(home, pointed):
            snapshots.link_to(home, pointed)
        return pointed
    target = _newest_sound(home, entries)
    if target is None:
        return pointed
    log.warning("the pointer to the latest snapshot is put right: it names %s", target.snapshot_id)
    snapshot = Snapshot(home.snapshots / target.snapshot_id)
    snapshots.point_at(home, snapshot)
    return snapshot


def _remove(folder: Path) -> None:
    """Remove a snapshot; whoever is killed at it leaves nothing under its name."""
    aside = folder.with_name(f"{files.ASIDE}{uuid.uuid4().hex}")
    folder.rename(aside)
    files.remove_tree(aside)
