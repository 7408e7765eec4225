"""What follows every ingest, however it was started: what `status` says of it, alerts, and figures to monitor."""

from __future__ import annotations

import errno
import logging
from dataclasses import replace
from datetime import UTC, datetime

from warehouse import files
from warehouse.home import Home

log = logging.getLogger("kernelmart")
_OF_THE_DISK = (*files.NO_ROOM, errno.EACCES, errno.EPERM, errno.EROFS)


def ingest_ended(home: Home, failure: str | None, seconds: float) -> None:
    """Tell whoever has to know how an ingest ended. What goes wrong at that is a line in the log and no more.

    Args:
        home: the warehouse.
        failure: why it failed; None where it ended well.
        seconds: how long it took.
    """
    from pipelines.alerts import tell
    from pipelines.health import Health, ended_record, write_ended
    from pipelines.metrics import write_metrics

    now = datetime.now(UTC)
    record = ended_record(home, failure, seconds, now)
    health = replace(Health.of(home), ended=record)
    # A full disk is no reason to be silent.
    for what in (
        lambda: write_ended(home, record),
        lambda: write_metrics(home, health, now),
        lambda: tell(home, now, health),
    ):
        try:
            what()
        except OSError as error:
            # Whoever is told of a failure is not told as well that it cannot be written down.
            told = failure is not None and error.errno in _OF_THE_DISK
            log.log(logging.DEBUG if told else logging.WARNING, "%s: %s", error.filename or home.root, error.strerror)
