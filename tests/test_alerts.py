"""Alerts, sent to a real server: once when something begins, once when it is over, and nothing secret anywhere."""

from __future__ import annotations

import json
import logging
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipelines.aftermath import ingest_ended
from pipelines.alerts import tell
from pipelines.health import ended_record, write_ended
from tests.webhook import UNSPEAKABLE, Webhook, webhook
from warehouse.home import Home

NOW = datetime(2028, 2, 29, 23, 59, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    checked(home, NOW)
    return home


def told(home: Home, failure: str | None, at: datetime) -> list[str]:
    write_ended(home, ended_record(home, failure, 1, at))
    return tell(home, at)


def checked(home: Home, at: datetime) -> None:
    state = {"last_success_at": at.isoformat(), "stale": False}
    home.write_status({"checked_at": at.isoformat(), "sources": {"sol-execbench": state}})


def test_a_failure_is_told_once_and_so_is_that_it_is_over(home: Home, hook: Webhook) -> None:
    for night in range(3):
        assert told(home, "the disk is full; make room", NOW + timedelta(days=night)) == [
            *(["checked"] if night > 1 else []), "ingest"
        ]  # fmt: skip
    assert hook.states == [("ingest", "open"), ("checked", "open")]
    checked(home, NOW + timedelta(days=3))
    assert told(home, None, NOW + timedelta(days=3)) == []
    assert told(home, None, NOW + timedelta(days=3)) == []
    assert sorted(hook.states[2:]) == [("checked", "recovered"), ("ingest", "recovered")]


def test_a_message_says_what_since_when_what_is_served_and_what_to_try(home: Home, hook: Webhook) -> None:
    told(home, "the disk is full", NOW)
    assert hook.messages == [{
        "incident": "ingest", "state": "open", "what": "the ingest failed: the disk is full",
        "since": "2028-02-29T23:59:00+00:00", "served": "no snapshot", "command": "kernelmart ingest",
        "text": "kernelmart: the ingest failed: the disk is full, since 2028-02-29T23:59:00+00:00. "
                "Served: no snapshot. Try: kernelmart ingest",
    }]  # fmt: skip
    told(home, None, NOW + timedelta(hours=1))
    assert hook.messages[1]["text"] == (
        "kernelmart: recovered: the ingest failed: the disk is full, since 2028-02-29T23:59:00+00:00. "
        "Served: no snapshot"
    )


def test_what_is_served_is_the_latest_snapshot(small_home_folder: Path, hook: Webhook, tmp_path: Path) -> None:
    (tmp_path / "snapshots").symlink_to(small_home_folder / "snapshots")
    told(Home(tmp_path), "no", NOW)
    snapshot_id = json.loads((small_home_folder / "status.json").read_text())["snapshot_id"]
    assert hook.messages[0]["served"].startswith(f"snapshot {snapshot_id} of 20")


def test_a_source_that_is_too_old_is_told_of_and_named(home: Home, hook: Webhook) -> None:
    now = NOW + timedelta(days=8)
    home.write_status({
        "checked_at": now.isoformat(),
        "sources": {"sol-execbench": {"last_success_at": NOW.isoformat(), "stale_because": ["no listing"]}},
    })  # fmt: skip
    assert told(home, None, now) == ["freshness/sol-execbench"]
    assert hook.messages[0]["what"] == "sol-execbench was last read whole 8 days ago (no listing)"
    assert hook.messages[0]["since"] == "2028-03-07T23:59:00+00:00"


def test_looking_without_an_ingest_ends_no_failure(home: Home, hook: Webhook) -> None:
    told(home, "no", NOW)
    assert tell(home, NOW + timedelta(hours=1)) == ["ingest"]
    assert hook.states == [("ingest", "open")]


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_the_server_does_not_take_is_told_when_it_has_recovered(home: Home, hook: Webhook, status: int) -> None:
    hook.status, hook.headers = status, {"location": hook.url + "/elsewhere"}
    told(home, "no", NOW)
    told(home, "no", NOW)
    hook.status, hook.headers = 204, {}
    told(home, "no", NOW)
    told(home, "no", NOW)
    assert hook.states == [("ingest", "open")] * 3
    hook.status = status
    told(home, None, NOW)
    hook.status = 200
    told(home, None, NOW)
    told(home, None, NOW)
    assert hook.states[3:] == [("ingest", "recovered")] * 2


def test_a_server_whose_headers_never_end_holds_nobody(
    home: Home, hook: Webhook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pipelines.alerts._TIMEOUT_SECONDS", (0.1, 0.2))
    hook.drips = True
    told(home, "no", NOW)
    assert "alert ingest: the webhook of KERNELMART_ALERT_URL did not take it: TimeoutError" in caplog.text
    hook.drips = False
    told(home, "no", NOW)
    assert hook.states == [("ingest", "open")] * 2


def test_a_server_that_is_gone_stops_nobody_and_the_address_is_in_no_line(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with webhook() as gone:
        pass
    monkeypatch.setenv("KERNELMART_ALERT_URL", gone.url)
    with caplog.at_level(logging.DEBUG):
        assert told(home, "no", NOW) == ["ingest"]
    assert "alert ingest: the webhook of KERNELMART_ALERT_URL did not take it: ConnectionError" in caplog.text
    assert UNSPEAKABLE not in "".join(record.getMessage() for record in caplog.records if record.name == "kernelmart")
    assert not (home.root / "incidents.json").exists()


@pytest.mark.parametrize("url", ["http://example.org/T0PS3CRET", "ftp://127.0.0.1/T0PS3CRET", "T0PS3CRET", "https://["])
def test_an_address_that_is_not_safe_is_not_asked(
    home: Home, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KERNELMART_ALERT_URL", url)
    told(home, "no", NOW)
    assert "the webhook of KERNELMART_ALERT_URL did not take it: " in caplog.text
    assert UNSPEAKABLE not in caplog.text


def test_nothing_of_netrc_is_sent(
    home: Home, hook: Webhook, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    netrc = tmp_path_factory.mktemp("user") / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password secret\n")
    netrc.chmod(stat.S_IRUSR)
    monkeypatch.setenv("NETRC", str(netrc))
    told(home, "no", NOW)
    assert "authorization" not in {name.lower() for name in hook.headers_sent[0]}


def test_upstream_s_words_command_no_chat(home: Home, hook: Webhook) -> None:
    told(home, "<!channel>\x1b[2J\n\u202e" + "x" * 5_000, NOW)
    text = hook.messages[0]["text"]
    assert text.startswith(r"kernelmart: the ingest failed: ‹!channel›\x1b[2J\n\u202exxx")
    assert len(text) < 1_100


def test_without_a_webhook_nothing_is_remembered(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELMART_ALERT_URL", raising=False)
    assert told(home, "no", NOW) == ["ingest"]
    assert not (home.root / "incidents.json").exists()


def test_a_damaged_memory_is_begun_anew(home: Home, hook: Webhook) -> None:
    (home.root / "incidents.json").write_text("[")
    told(home, "no", NOW)
    (home.root / "incidents.json").write_text('{"ingest": 3, "checked": null}')
    told(home, None, NOW)
    assert hook.states == [("ingest", "open"), ("checked", "recovered"), ("ingest", "recovered")]


def test_a_disk_without_room_is_told_of_all_the_same(home: Home, hook: Webhook) -> None:
    # A folder stands where each of the files would be written.
    for name in ("last_ingest.json", "kernelmart.prom", "incidents.json"):
        (home.root / name / "in the way").mkdir(parents=True)
    ingest_ended(home, "no room", 1)
    assert hook.states[0] == ("ingest", "open")
    assert hook.messages[0]["what"] == "the ingest failed: no room"
