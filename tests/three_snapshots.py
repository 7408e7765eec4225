"""A home with three small snapshots that differ in every table that a reader counts, and what each of them has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.small_snapshot import case_result, draft, publish, small_results
from tests.tables import Row
from warehouse import snapshots
from warehouse.home import Home
from warehouse.snapshots import Snapshot

# Tables of which each snapshot has another number of rows.
COUNTED = ("runs", "ranks", "run_lookup")


@dataclass(frozen=True)
class Three:
    """The home, and its snapshots, oldest first; the third is the latest."""

    home: Home

    @property
    def snapshots(self) -> list[Snapshot]:
        return snapshots.published(self.home)

    @property
    def ids(self) -> list[str]:
        return [snapshot.folder.name for snapshot in self.snapshots]

    def counts(self) -> dict[str, tuple[int, ...]]:
        """Rows of the counted tables, by snapshot."""
        return {
            snapshot.folder.name: tuple(snapshot.manifest["tables"][name]["rows"] for name in COUNTED)
            for snapshot in self.snapshots
        }


def results(more: int) -> list[Row]:
    """The small snapshot's results and some more."""
    added = [case_result(60_000 + number, 0, 5e6 + number, "2025-07-01T00:00:00") for number in range(more)]
    return [*small_results(), *added]


def publish_three(folder: Path) -> Three:
    """Publish the three in a folder."""
    for more in range(3):
        publish(folder, results(more))
    return Three(Home(folder))


def publish_more(home: Home, more: int) -> Snapshot:
    """Publish a snapshot with so many more results."""
    return snapshots.publish(home, draft(home, results(more)))
