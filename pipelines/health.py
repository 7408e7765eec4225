"""How a warehouse is: what it last saw, how old that is, and what somebody has to look at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from assets.kernelbot.terms import TERMS as KERNELBOT
from assets.sol_execbench.terms import TERMS as SOL_EXECBENCH
from warehouse import files
from warehouse.errors import SnapshotError
from warehouse.home import Home, read_json
from warehouse.snapshots import latest

# A night and a half: one missed ingest is no alarm, two are.
CHECKED_WITHIN = timedelta(hours=36)
FRESHNESS = {terms["source"]: timedelta(days=terms["freshness_days"]) for terms in (KERNELBOT, SOL_EXECBENCH)}


@dataclass(frozen=True)
class Incident:
    """Something that somebody has to look at.

    Attributes:
        key: what it is about; the same for as long as it lasts.
        what: one line.
        since: when it began, in UTC, as far as that is known.
        command: what to try.
    """

    key: str
    what: str
    since: datetime
    command: str

    def as_record(self) -> dict[str, str]:
        """As JSON has it."""
        since = self.since.isoformat(timespec="seconds")
        return {"incident": self.key, "what": self.what, "since": since, "command": self.command}


@dataclass(frozen=True)
class Health:
    """What is known of a home.

    Attributes:
        status: what the last ingest saw, as `status.json` has it; empty before the first.
        ended: how the last ingest ended, as `ended` writes it; empty where that is not known.
        manifest: of the latest snapshot; None where there is none that can be read.
        damage: why it cannot be read.
        free_bytes: on the disk of the home; 0 where that is not known.
    """

    status: Mapping[str, Any] = field(default_factory=dict)
    ended: Mapping[str, Any] = field(default_factory=dict)
    manifest: Mapping[str, Any] | None = None
    damage: str | None = None
    free_bytes: int = 0

    @classmethod
    def of(cls, home: Home) -> Health:
        """The health of a home."""
        manifest, damage = None, None
        try:
            snapshot = latest(home)
            manifest = snapshot.manifest if snapshot else None
        except SnapshotError as error:
            damage = str(error)
        try:
            free = shutil.disk_usage(home.root).free
        except OSError:
            free = 0
        ended = read_json(_ended_path(home))
        return cls(home.read_status(), ended if isinstance(ended, dict) else {}, manifest, damage, free)

    @property
    def sources(self) -> Mapping[str, Mapping[str, Any]]:
        """What the last ingest saw of each source."""
        return self.status.get("sources") or {}

    def rows(self, table: str) -> int:
        """Rows of a table in the latest snapshot; 0 without one."""
        return int(self.manifest["tables"].get(table, {}).get("rows", 0)) if self.manifest else 0

    def served(self) -> str:
        """What readers have in the meantime."""
        if self.manifest is None:
            return "no snapshot"
        return f"snapshot {self.manifest['snapshot_id']} of {self.manifest['created_at']}"

    def incidents(self, now: datetime) -> list[Incident]:
        """What has failed, is damaged, or is too old at an instant (UTC)."""
        found: list[Incident] = []
        if failure := self.ended.get("failure"):
            since = moment(self.ended.get("failing_since")) or now
            found.append(Incident("ingest", f"the ingest failed: {failure}", since, "kernelmart ingest"))
        if self.damage:
            since = moment(self.status.get("checked_at")) or now
            found.append(Incident("snapshot", self.damage, since, "kernelmart ingest"))
        checked_at = moment(self.status.get("checked_at"))
        if checked_at and now - checked_at > CHECKED_WITHIN:
            hours = int((now - checked_at) / timedelta(hours=1))
            what = f"no ingest has ended well for {hours} hours"
            found.append(Incident("checked", what, checked_at + CHECKED_WITHIN, "kernelmart ingest"))
        for source, state in sorted(self.sources.items()):
            succeeded, within = moment(state.get("last_success_at")), FRESHNESS.get(source)
            if succeeded and within and now - succeeded > within:
                because = "; ".join(map(str, state.get("stale_because") or [])) or "it was not asked for"
                what = f"{source} was last read whole {(now - succeeded).days} days ago ({because})"
                command = f"kernelmart ingest --source {source}"
                found.append(Incident(f"freshness/{source}", what, succeeded + within, command))
        return found


def ended_record(home: Home, failure: str | None, seconds: float, now: datetime) -> dict[str, Any]:
    """How an ingest ended, as `last_ingest.json` has it.

    Args:
        home: the warehouse.
        failure: why it failed; None where it ended well.
        seconds: how long it took.
        now: when it ended, in UTC.
    """
    text = now.isoformat(timespec="seconds")
    since = (Health.of(home).ended.get("failing_since") or text) if failure is not None else None
    return {"ended_at": text, "seconds": round(seconds, 3), "failure": failure, "failing_since": since}


def write_ended(home: Home, record: Mapping[str, Any]) -> None:
    """Say how an ingest ended."""
    files.write_json(_ended_path(home), record)


def moment(text: Any) -> datetime | None:
    """An instant as the status has it, in UTC; None where it has none that can be read."""
    try:
        instant = datetime.fromisoformat(text)
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def used_bytes(folder: Path) -> int:
    """Bytes on the disk of all files below a folder; one with several names counts once, one that goes not at all."""
    seen: dict[tuple[int, int], int] = {}
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(where, name))  # noqa: PTH118 - many files, and no links followed
            except OSError:
                continue
            seen[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(seen.values())


def _ended_path(home: Home) -> Path:
    return home.root / "last_ingest.json"
