"""Ingests whose clock passes midnight of a leap day, or skips an hour, while they run."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import pytest

from tests.commands import ingested_apart
from tests.conftest import SmallHome
from tests.system.conftest import required
from warehouse import snapshots
from warehouse.home import Home


@pytest.fixture(scope="session")
def faketime() -> Path:
    return required(shutil.which("faketime"), "faketime", "faketime")


@pytest.mark.parametrize(
    ("zone", "begins", "not_before"),
    [
        ("Asia/Kathmandu", "2028-02-29 05:44:58", "2028-02-29T00:00"),
        ("America/New_York", "2028-02-29 23:59:58", "2028-03-01T05:00"),
        ("America/New_York", "2028-03-12 01:59:58", "2028-03-12T07:00"),
    ],
    ids=["midnight of UTC", "midnight after a leap day", "the clocks go forward"],
)
def test_an_ingest_across_a_change_of_the_date_or_the_clocks_gives_the_same(
    faketime: Path, small_home: SmallHome, tmp_path: Path, zone: str, begins: str, not_before: str
) -> None:
    home = tmp_path / "home"
    made = ingested_apart(small_home.corpus.folder, home, str(faketime), "-f", f"@{begins}", TZ=zone, LC_ALL="C")
    expected = snapshots.required(Home(small_home.home))
    assert made.manifest["content_digest"] == expected.manifest["content_digest"]
    status = Home(home).read_status()
    assert status["checked_at"] >= not_before
    assert datetime.fromisoformat(status["checked_at"]).year == 2028
    [snapshot] = [path.name for path in (home / "snapshots").glob("*Z-*")]
    assert snapshot == status["snapshot_id"]
