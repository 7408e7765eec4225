"""One ingest: the nightly job, run in this process."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from pipelines.definitions import definitions
from pipelines.resources import Request, Warehouse
from warehouse import files
from warehouse.errors import HomeError, KernelmartError
from warehouse.home import Home

log = logging.getLogger("kernelmart")

_EXPECTED = {KernelmartError.__name__, *(kind.__name__ for kind in KernelmartError.__subclasses__())}


@dataclass(frozen=True)
class Outcome:
    """How an ingest ended: the latest snapshot, whether it is new, and one line for each file that is stale or gone."""

    snapshot_id: str
    published: bool
    stale: list[str]
    gone: list[str]


def ingest(home: Home, request: Request) -> Outcome:
    """Run the nightly job on a home.

    Raises:
        KernelmartError: where it failed; nothing was published then.
    """
    warehouse = Warehouse(folder=str(home.root))
    with instance_of(home) as instance:
        job = definitions.resolve_job_def("nightly")
        result = job.execute_in_process(
            instance=instance,
            resources={"warehouse": warehouse, "request": request},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            raise_on_error=False,
        )
    if not result.success:
        raise KernelmartError(_why(result))
    outcome = warehouse.state.read("outcome")
    return Outcome(outcome["snapshot_id"], outcome["published"], outcome["stale"], outcome["gone"])


def instance_of(home: Home) -> dg.DagsterInstance:
    """The Dagster instance that lies in a home."""
    try:
        home.dagster.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HomeError(f"{home.root}: the home cannot be made: {error.strerror}; name another") from error
    settings = Path(__file__).resolve().parent.parent / "dagster.yaml"
    files.write_bytes(home.dagster / "dagster.yaml", settings.read_bytes())
    os.environ["DAGSTER_HOME"] = str(home.dagster)
    return dg.DagsterInstance.from_config(str(home.dagster))


def _why(result: dg.ExecuteInProcessResult) -> str:
    """The first failure in one line: what the pipeline itself said, else what went wrong at the bottom."""
    for event in result.all_events:
        error = getattr(event.event_specific_data, "error", None) if event.is_failure else None
        while error is not None and error.cls_name not in _EXPECTED and error.cause is not None:
            error = error.cause
        if error is not None:
            message = " ".join(error.message.split())
            return message.partition(": ")[2] if error.cls_name in _EXPECTED else message
    return "the nightly job failed; see its run in Dagster"
