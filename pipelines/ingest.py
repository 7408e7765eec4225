"""One ingest: the nightly job, run in this process."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder

import dagster as dg
from sqlalchemy import Engine
from sqlalchemy.event import listen, listens_for, remove

from pipelines.aftermath import ingest_ended
from pipelines.definitions import definitions
from pipelines.failures import why
from pipelines.instance import fail_dead_runs, instance_of
from pipelines.logs import without_lost_events
from pipelines.resources import Request, Upstream, Warehouse
from warehouse.errors import BusyError, KernelmartError
from warehouse.home import Home
from warehouse.life import recover


@dataclass(frozen=True)
class Outcome:
    """How an ingest ended.

    Attributes:
        snapshot_id: the latest snapshot.
        published: whether it is new.
        stale: one line for each file that is older than it should be.
        gone: one line for each file that its source no longer has.
        withheld: why what was made is not published, though it differs from the latest.
    """

    snapshot_id: str
    published: bool
    stale: list[str]
    gone: list[str]
    withheld: list[str]


def ingest(home: Home, request: Request) -> Outcome:
    """Run the nightly job on a home, and tell whoever has to know how it ended.

    Raises:
        KernelmartError: where it failed; nothing was published then.
    """
    started = time.monotonic()
    try:
        with _WithoutPandas():
            outcome = _run(home, request)
    except BusyError:
        # The ingest that holds the home tells how it ends.
        raise
    except KernelmartError as error:
        ingest_ended(home, str(error), time.monotonic() - started)
        raise
    except Exception as error:
        # Its own words may be anything.
        ingest_ended(home, f"{type(error).__name__}, see the log", time.monotonic() - started)
        raise
    ingest_ended(home, None, time.monotonic() - started)
    return outcome


class _WithoutPandas(MetaPathFinder):
    """Has pyarrow, which loads pandas wherever it is installed, do without; nothing here uses its 30 MB."""

    def find_spec(self, fullname: str, *_: object) -> None:
        """Raise for pandas; of others this knows nothing."""
        if fullname == "pandas":
            raise ModuleNotFoundError("an ingest does without pandas", name=fullname)

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)


def _run(home: Home, request: Request) -> Outcome:
    warehouse = Warehouse(folder=str(home.root), held=True)
    # Locked before Dagster's own storage is touched: two ingests of a new home would both make it.
    with home.locked():
        recover(home)
        with _history_held_open(), instance_of(home) as instance, without_lost_events():
            fail_dead_runs(instance)
            result = definitions.resolve_job_def("nightly").execute_in_process(
                instance=instance,
                # Whoever waits at a terminal is told at once, and a timer comes again.
                resources={"warehouse": warehouse, "request": request, "upstream": Upstream(retries=0)},
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
                raise_on_error=False,
            )
    if not result.success:
        raise KernelmartError(_why(result))
    outcome = warehouse.state.read("outcome")
    return Outcome(**outcome)


@listens_for(Engine, "connect")
def _write_without_waiting(connection: object, _: object) -> None:
    """Dagster's history is written some hundred times a run, and waiting for the disk each time takes longer than all
    else on a quiet night. A power failure may cost the end of that history: never all of it, and never a snapshot."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("pragma synchronous = normal")


@contextmanager
def _history_held_open() -> Iterator[None]:
    """Keep a connection of our own to each older database of Dagster's history that is opened meanwhile. Dagster opens
    and closes them for each event, and whoever closes one last has SQLite move all that was logged into its file."""
    held: dict[str, sqlite3.Connection] = {}

    def hold(connection: object, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            [(_, _, path)] = connection.execute("pragma database_list")
            if path not in held:
                held[path] = sqlite3.connect(path, check_same_thread=False)
                # It counts as open once it has read something. A new file, as this run's own, has no log yet and stays
                # as it was: one that is not emptied until the end might lack the room for it.
                held[path].execute("pragma schema_version").fetchall()

    listen(Engine, "connect", hold)
    try:
        yield
    finally:
        remove(Engine, "connect", hold)
        for connection in held.values():
            connection.close()


def _why(result: dg.ExecuteInProcessResult) -> str:
    """The first failure in one line."""
    for event in result.all_events:
        error = getattr(event.event_specific_data, "error", None) if event.is_failure else None
        if error is not None:
            return why(error)
    return "the nightly job failed; see its run in Dagster"
