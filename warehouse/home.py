"""Where things lie below `KERNELMART_HOME`, and the lock that keeps two ingests apart."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from warehouse import files
from warehouse.errors import BusyError, HomeError
from warehouse.sealed import sealed, unsealed


@dataclass(frozen=True)
class Home:
    """A warehouse's folder."""

    root: Path

    @classmethod
    def at(cls, root: str | Path | None = None) -> Home:
        """The home at a path, by default at `KERNELMART_HOME` or `./data`."""
        return cls(Path(root or os.environ.get("KERNELMART_HOME") or "data").absolute())

    @property
    def raw(self) -> Path:
        """Originals, content-addressed."""
        return self.root / "raw"

    @property
    def tables(self) -> Path:
        """Normalised parts."""
        return self.root / "tables"

    @property
    def snapshots(self) -> Path:
        """Published snapshots and the pointer to the latest."""
        return self.root / "snapshots"

    @property
    def status(self) -> Path:
        """What the last ingest saw."""
        return self.root / "status.json"

    @property
    def dagster(self) -> Path:
        """Storage of the Dagster instance."""
        return self.root / "dagster"

    @property
    def temporary(self) -> Path:
        """Where statements that outgrow the memory limit spill."""
        return self.root / "tables" / ".temporary"

    def read_status(self) -> dict[str, Any]:
        """The last ingest's status; empty before the first, and where it is of another form than was written."""
        status = read_json(self.status)
        sources = status.get("sources") if isinstance(status, dict) else None
        wellformed = isinstance(sources, dict) and all(isinstance(source, dict) for source in sources.values())
        return unsealed(status) if wellformed and isinstance(status.get("checked_at"), str) else {}

    def write_status(self, status: dict[str, Any]) -> None:
        """Say what an ingest saw."""
        files.write_json(self.status, sealed(status))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the home for one ingest. The operating system frees the lock when its holder dies.

        Raises:
            BusyError: where another process holds it, naming that process.
            HomeError: where it cannot be locked.
        """
        holder = self.root / "lock.json"
        lock = FileLock(self.root / "lock", timeout=0)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout as error:
            said = read_json(holder)
            who = said if isinstance(said, dict) else {}
            raise BusyError(
                f"{self.root}: another ingest holds this home (process {who.get('process', 'unknown')} on "
                f"{who.get('host', 'this host')}, since {who.get('since', 'an unknown time')}); wait for it to end"
            ) from error
        except OSError as error:
            raise HomeError(f"{self.root}: the home cannot be locked: {error.strerror or error}") from error
        try:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            with _room_or_none():
                files.write_json(holder, {"process": os.getpid(), "host": socket.gethostname(), "since": now})
            files.remove_leftovers(self.root)
            files.remove_tree(self.temporary)
            with _room_or_none():
                self.temporary.mkdir(parents=True)
            yield
        finally:
            files.remove_tree(self.temporary)
            holder.unlink(missing_ok=True)
            lock.release()


def read_json(path: Path) -> Any:
    """A JSON file's value; None where there is no such file or it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


@contextmanager
def _room_or_none() -> Iterator[None]:
    """Go on where the disk is full: whoever wants to make room needs none."""
    try:
        yield
    except OSError as error:
        if error.errno not in files.NO_ROOM:
            raise
