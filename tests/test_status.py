"""`kernelmart status`: how a home is, in one page or as JSON, and with exit code 0 however it is."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipelines.health import ended_record, write_ended
from tests.commands import as_json, fields, printed
from tests.webhook import webhook
from warehouse.home import Home


@pytest.fixture
def home(known_home: Path, tmp_path: Path) -> Path:
    """A home that was last looked at 40 hours ago, whose one source is stale and has waited for nine days."""
    shutil.copytree(known_home, tmp_path / "home", symlinks=True)
    now = datetime.now(UTC)

    def ago(**length: float) -> str:
        return (now - timedelta(**length)).isoformat(timespec="seconds")

    Home(tmp_path / "home").write_status({
        "checked_at": ago(hours=40),
        "sources": {
            "sol-execbench": {
                "stale": True, "stale_because": ["kernels.json: not JSON\\x1b[2J"], "last_success_at": ago(days=9),
                "last_changed_at": ago(days=20), "oldest_walk_at": ago(days=12), "files": [1, 2], "revision": None,
            }
        },
    })  # fmt: skip
    write_ended(
        Home(tmp_path / "home"),
        ended_record(Home(tmp_path / "home"), "the disk is full", 61.5, now - timedelta(hours=3)),
    )
    return tmp_path / "home"


def test_a_page_says_what_was_seen_what_is_served_and_what_is_wrong(home: Path) -> None:
    page = printed(home, "status")
    found = fields(page)
    assert found["Checked"].endswith(", 40 hours ago")
    assert found["Last ingest"].startswith("failed, ")
    assert found["Rejects"] == "0"
    assert found["Drift"] == "0"
    assert found["Incidents"] == "3"
    assert found["State"] == "stale"
    assert found["Oldest walk"].endswith(", 12 days ago")
    assert found["Last success"].endswith(", 9 days ago")
    assert found["Disk"].endswith(" free")
    assert page.count("Incident: ") == 3
    assert "the ingest failed: the disk is full" in page


def test_json_has_the_same_and_all_of_it(home: Path) -> None:
    found = as_json(home, "status")
    assert [incident["incident"] for incident in found["incidents"]] == [
        "ingest", "checked", "freshness/sol-execbench"
    ]  # fmt: skip
    assert found["incidents"][0]["command"] == "kernelmart ingest"
    assert found["last_ingest"]["failure"] == "the disk is full"
    assert found["last_ingest"]["seconds"] == 61.5
    assert found["rows"]["runs"] == 12
    assert (found["rejects"], found["drift"]) == (0, 0)
    assert found["disk"]["used_bytes"] > 10_000
    assert found["disk"]["free_bytes"] > 0
    assert found["sources"]["sol-execbench"]["oldest_walk_at"] < found["checked_at"]
    assert found["snapshot"]["snapshot_id"] in printed(home, "path")


def test_a_home_whose_first_ingest_failed_says_so(tmp_path: Path) -> None:
    write_ended(Home(tmp_path), ended_record(Home(tmp_path), "the Hub cannot be reached", 3, datetime.now(UTC)))
    found = as_json(tmp_path, "status")
    assert found["snapshot"] is None
    assert [incident["what"] for incident in found["incidents"]] == ["the ingest failed: the Hub cannot be reached"]
    assert "failed" in fields(printed(tmp_path, "status"))["Last ingest"]


def test_what_is_due_is_told_on_request_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook() as hook:
        monkeypatch.setenv("KERNELMART_ALERT_URL", hook.url)
        printed(home, "status")
        assert hook.messages == []
        printed(home, "status", "--tell")
        printed(home, "status", "--tell")
    assert [message["incident"] for message in hook.messages] == ["ingest", "checked", "freshness/sol-execbench"]


def test_a_pointer_that_cannot_be_read_is_an_incident(home: Path) -> None:
    (home / "snapshots" / "latest.json").write_text("{")
    found = as_json(home, "status")
    assert found["snapshot"] is None
    assert "snapshot" in {incident["incident"] for incident in found["incidents"]}
    assert "the pointer to the latest snapshot cannot be read" in printed(home, "status")
