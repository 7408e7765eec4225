"""What is too old, and since when: of the last completed look, never of the last snapshot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from pipelines.health import Health, ended_record, moment, used_bytes, write_ended
from warehouse.home import Home

NOW = datetime(2028, 2, 29, 12, 0, tzinfo=UTC)
KERNELBOT, SOL = "gpumode-kernelbot", "sol-execbench"


def ago(**length: float) -> str:
    return (NOW - timedelta(**length)).isoformat(timespec="seconds")


def health(checked_at: str, **succeeded: Any) -> Health:
    sources = {source.replace("_", "-"): state for source, state in succeeded.items()}
    return Health({"checked_at": checked_at, "sources": sources})


def test_a_home_that_was_looked_at_yesterday_has_no_incident() -> None:
    fresh = health(ago(hours=35.9), gpumode_kernelbot={"last_success_at": ago(days=6.9)})
    assert fresh.incidents(NOW) == []
    assert Health().incidents(NOW) == []


def test_a_check_older_than_36_hours_is_an_incident_since_it_became_so() -> None:
    [incident] = health(ago(hours=40)).incidents(NOW)
    assert incident.key == "checked"
    assert incident.what == "no ingest has ended well for 40 hours"
    assert incident.since == NOW - timedelta(hours=4)
    assert incident.command == "kernelmart ingest"


def test_a_source_last_read_longer_ago_than_its_freshness_is_an_incident_with_the_reason() -> None:
    stale = {"last_success_at": ago(days=9), "stale": True, "stale_because": ["kernels.json: not JSON"]}
    found = health(ago(hours=1), gpumode_kernelbot={"last_success_at": ago(days=8)}, sol_execbench=stale).incidents(NOW)
    assert [(one.key, one.what, one.since) for one in found] == [
        (f"freshness/{KERNELBOT}", f"{KERNELBOT} was last read whole 8 days ago (it was not asked for)",
         NOW - timedelta(days=1)),
        (f"freshness/{SOL}", f"{SOL} was last read whole 9 days ago (kernels.json: not JSON)", NOW - timedelta(days=2)),
    ]  # fmt: skip
    assert found[1].command == f"kernelmart ingest --source {SOL}"


def test_a_key_does_not_change_while_an_incident_lasts() -> None:
    long = health(ago(days=30))
    first, later = long.incidents(NOW)[0], long.incidents(NOW + timedelta(days=3))[0]
    assert (first.key, first.since) == (later.key, later.since)


def test_a_change_of_the_clocks_neither_makes_nor_hides_an_incident() -> None:
    # 35 hours and 59 minutes across the night in which New York skips an hour, written with its own offsets.
    before = datetime(2028, 3, 11, 1, 0, tzinfo=timezone(timedelta(hours=-5)))
    after = datetime(2028, 3, 12, 13, 59, tzinfo=timezone(timedelta(hours=-4)))
    assert health(before.isoformat()).incidents(after) == []
    assert [one.key for one in health(before.isoformat()).incidents(after + timedelta(hours=2))] == ["checked"]


@pytest.mark.parametrize("text", [None, 3, "", "soon", [], "2028-13-01"])
def test_what_is_no_instant_is_none(text: Any) -> None:
    assert moment(text) is None
    assert health(text, sol_execbench={"last_success_at": text}).incidents(NOW) == []


def test_a_home_without_anything_or_with_a_damaged_pointer_still_has_a_health(tmp_path: Path) -> None:
    nowhere = Health.of(Home(tmp_path / "nowhere"))
    assert (nowhere.status, nowhere.manifest, nowhere.free_bytes, nowhere.served()) == ({}, None, 0, "no snapshot")
    folder = tmp_path / "snapshots" / "20280229T023000Z-01234567"
    folder.mkdir(parents=True)
    damaged = Health.of(Home(tmp_path))
    assert (damaged.manifest, damaged.rows("runs")) == (None, 0)
    assert damaged.free_bytes > 0


def test_an_ingested_home_says_what_is_served(small_home_folder: Path) -> None:
    found = Health.of(Home(small_home_folder))
    assert found.manifest
    assert found.served() == f"snapshot {found.status['snapshot_id']} of {found.manifest['created_at']}"
    assert found.rows("runs") == found.manifest["tables"]["runs"]["rows"] > 100
    assert found.incidents(datetime.now(UTC)) == []


def test_a_file_with_two_names_takes_its_bytes_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_bytes(b"x" * 100_000)
    once = used_bytes(tmp_path)
    assert once >= 100_000
    (tmp_path / "two").hardlink_to(tmp_path / "a" / "one")
    (tmp_path / "link").symlink_to("/")
    assert used_bytes(tmp_path) < once + 10_000


def test_a_failure_is_an_incident_since_the_first_of_a_row_and_until_an_ingest_ends_well(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for night, failure in enumerate(("the disk is full", "check conservation: 3 rows")):
        write_ended(home, ended_record(home, failure, 2.5, NOW + timedelta(days=night)))
    [incident] = Health.of(home).incidents(NOW + timedelta(days=1))
    assert (incident.key, incident.what) == ("ingest", "the ingest failed: check conservation: 3 rows")
    assert (incident.since, incident.command) == (NOW, "kernelmart ingest")
    write_ended(home, ended_record(home, None, 1.0, NOW + timedelta(days=2)))
    assert Health.of(home).incidents(NOW + timedelta(days=2)) == []
    assert Health.of(home).ended == {
        "ended_at": "2028-03-02T12:00:00+00:00", "seconds": 1.0, "failure": None, "failing_since": None
    }  # fmt: skip
