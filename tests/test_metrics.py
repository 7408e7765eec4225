"""The text file for the node exporter, read with Prometheus' own parser."""

from __future__ import annotations

import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pipelines.health import Health
from pipelines.metrics import metrics, write_metrics
from warehouse.home import Home

NOW = datetime(2028, 2, 29, 12, 0, tzinfo=UTC)


def samples(text: str) -> dict[tuple[str, ...], float]:
    return {
        (sample.name.removeprefix("kernelmart_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_home_s_figures_are_all_there(small_home_folder: Path) -> None:
    health = Health.of(Home(small_home_folder))
    assert health.manifest
    now = datetime.fromisoformat(health.status["checked_at"]) + timedelta(minutes=1)
    ended = {"ended_at": now.isoformat(), "seconds": 12.5, "failure": None}
    found = samples(metrics(replace(health, ended=ended), now).decode())
    assert found["ingest_success",] == 1
    assert found["ingest_duration_seconds",] == 12.5
    assert found["ingest_end_timestamp_seconds",] == now.timestamp()
    assert found["check_timestamp_seconds",] == now.timestamp() - 60
    assert found["incidents",] == 0
    assert found["disk_free_bytes",] == health.free_bytes > 0
    assert found["source_stale", "sol-execbench"] == 0
    assert found["source_success_timestamp_seconds", "gpumode-kernelbot"] == now.timestamp() - 60
    assert found["rows", "runs"] == health.rows("runs") > 0
    assert found["snapshot_timestamp_seconds",] <= now.timestamp()
    assert found["snapshot_bytes",] == sum(file["size_bytes"] for file in health.manifest["files"].values())


def test_what_is_not_known_is_absent_and_not_nought() -> None:
    found = samples(metrics(Health(free_bytes=7), NOW).decode())
    assert found == {("disk_free_bytes",): 7, ("incidents",): 0}


def test_a_failed_ingest_is_an_incident() -> None:
    ended = {"ended_at": NOW.isoformat(), "seconds": 3, "failure": "no", "failing_since": NOW.isoformat()}
    found = samples(metrics(Health(ended=ended), NOW).decode())
    assert (found["ingest_success",], found["incidents",]) == (0, 1)
    assert (found["ingest_duration_seconds",], found["ingest_end_timestamp_seconds",]) == (3, NOW.timestamp())


def test_a_walk_and_a_stale_source_are_told_of() -> None:
    state = {"stale": True, "last_success_at": None, "oldest_walk_at": "2028-02-22T12:00:00+00:00"}
    health = Health({"checked_at": NOW.isoformat(), "sources": {'sol"\nexec': state}})
    found = samples(metrics(health, NOW).decode())
    assert found["source_oldest_walk_timestamp_seconds", 'sol"\nexec'] == NOW.timestamp() - 7 * 86400
    assert found["source_stale", 'sol"\nexec'] == 1
    assert ("source_success_timestamp_seconds", 'sol"\nexec') not in found


def test_the_file_lies_where_the_environment_says_and_others_may_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.root.mkdir()
    monkeypatch.delenv("KERNELMART_METRICS", raising=False)
    assert write_metrics(home, Health(), NOW) == home.root / "kernelmart.prom"
    monkeypatch.setenv("KERNELMART_METRICS", str(tmp_path / "collector"))
    path = write_metrics(home, Health(), NOW)
    assert [entry.name for entry in (tmp_path / "collector").iterdir()] == ["kernelmart.prom"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert samples(path.read_text())["incidents",] == 0
