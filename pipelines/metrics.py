"""A home's health as a text file for the collector of Prometheus' node exporter."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from pipelines.health import Health, moment
from warehouse import files
from warehouse.home import Home

NAME = "kernelmart.prom"


def write_metrics(home: Home, health: Health, now: datetime) -> Path:
    """Write `kernelmart.prom` into the folder `KERNELMART_METRICS`, or else into the home; its path.

    Args:
        home: the warehouse.
        health: of it.
        now: the time, in UTC.
    """
    path = Path(os.environ.get("KERNELMART_METRICS") or home.root) / NAME
    with files.writing(path) as aside:
        aside.write_bytes(metrics(health, now))
        # The exporter runs as somebody else.
        aside.chmod(0o644)
    return path


def metrics(health: Health, now: datetime) -> bytes:
    """The text file's content.

    Args:
        health: of the home.
        now: the time, in UTC.
    """
    registry = CollectorRegistry()

    def gauge(name: str, what: str, *labels: str) -> Gauge:
        return Gauge(f"kernelmart_{name}", what, labels, registry=registry)

    if health.ended:
        gauge("ingest_success", "Whether the last ingest ended well.").set(health.ended.get("failure") is None)
        gauge("ingest_duration_seconds", "How long the last ingest took.").set(health.ended.get("seconds", 0))
        _set(gauge("ingest_end_timestamp_seconds", "When the last ingest ended."), health.ended.get("ended_at"))
    gauge("disk_free_bytes", "Free bytes on the disk of the home.").set(health.free_bytes)
    gauge("incidents", "What somebody has to look at.").set(len(health.incidents(now)))
    success = gauge("source_success_timestamp_seconds", "When a source was last read whole.", "source")
    stale = gauge("source_stale", "Whether older content of a source is in use.", "source")
    walked = gauge("source_oldest_walk_timestamp_seconds", "The longest ago that a kernel was looked at.", "source")
    for source, state in health.sources.items():
        _set(success, state.get("last_success_at"), source)
        _set(walked, state.get("oldest_walk_at"), source)
        stale.labels(source).set(bool(state.get("stale")))
    if health.status:
        _set(gauge("check_timestamp_seconds", "When an ingest last ended well."), health.status["checked_at"])
    if health.manifest:
        _set(gauge("snapshot_timestamp_seconds", "When the latest snapshot was made."), health.manifest["created_at"])
        size = sum(file["size_bytes"] for file in health.manifest["files"].values())
        gauge("snapshot_bytes", "Size of the latest snapshot.").set(size)
        rows = gauge("rows", "Rows of a table of the latest snapshot.", "table")
        for table, stated in health.manifest["tables"].items():
            rows.labels(table).set(stated["rows"])
    return generate_latest(registry)


def _set(gauge: Gauge, text: Any, *labels: str) -> None:
    """Set a gauge to an instant, where there is one: an absent figure is not 1970."""
    if instant := moment(text):
        (gauge.labels(*labels) if labels else gauge).set(instant.timestamp())
