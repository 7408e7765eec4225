"""One ingest: the nightly job, run in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError

from pipelines.definitions import definitions
from pipelines.resources import Request, Warehouse
from warehouse import files
from warehouse.errors import HomeError, KernelmartError
from warehouse.home import Home

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
    warehouse = Warehouse(folder=str(home.root), held=True)
    # Locked before Dagster's own storage is touched: two ingests of a new home would both make it.
    with home.locked(), _instance_of(home) as instance:
        result = definitions.resolve_job_def("nightly").execute_in_process(
            instance=instance,
            resources={"warehouse": warehouse, "request": request},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            raise_on_error=False,
        )
    if not result.success:
        raise KernelmartError(_why(result))
    outcome = warehouse.state.read("outcome")
    return Outcome(outcome["snapshot_id"], outcome["published"], outcome["stale"], outcome["gone"])


@contextmanager
def _instance_of(home: Home) -> Iterator[dg.DagsterInstance]:
    """The Dagster instance that lies in a home.

    Raises:
        HomeError: where its storage cannot be used.
    """
    settings = Path(__file__).resolve().parent.parent / "dagster.yaml"
    try:
        files.write_bytes(home.dagster / "dagster.yaml", settings.read_bytes())
        os.environ["DAGSTER_HOME"] = str(home.dagster)
        with dg.DagsterInstance.from_config(str(home.dagster)) as instance:
            yield instance
    except (OSError, SQLAlchemyError) as error:
        what = " ".join(str(error).split())[:200]
        raise HomeError(
            f"{home.dagster}: Dagster's storage cannot be used ({what}); make room, or remove it"
        ) from error


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
