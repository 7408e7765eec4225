"""The Dagster instance of a home: its settings, and where its storage lies."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.failures import MAKE_ROOM
from warehouse import files
from warehouse.errors import HomeError
from warehouse.home import Home

if TYPE_CHECKING:
    import dagster as dg

# Less is none: a page of SQLite's log would not fit in.
_NO_ROOM_BYTES = 64 << 10
PROJECT = Path(__file__).resolve().parent.parent


def prepare(home: Home) -> Path:
    """Put the instance's settings into a home, and name it in the environment; its folder.

    The settings are those of the file that `KERNELMART_DAGSTER_YAML` names, else the project's own.

    Raises:
        HomeError: where they cannot be read or written.
    """
    settings = Path(os.environ.get("KERNELMART_DAGSTER_YAML") or PROJECT / "dagster.yaml")
    try:
        content = settings.read_bytes()
    except OSError as error:
        raise HomeError(
            f"{settings}: Dagster's settings cannot be read ({error.strerror}); correct KERNELMART_DAGSTER_YAML"
        ) from error
    try:
        target = home.dagster / "dagster.yaml"
        # A daemon may be reading it.
        if not target.is_file() or target.read_bytes() != content:
            files.write_bytes(target, content)
    except OSError as error:
        raise _unusable(home, error) from error
    os.environ["DAGSTER_HOME"] = str(home.dagster)
    return home.dagster


@contextmanager
def instance_of(home: Home) -> Iterator[dg.DagsterInstance]:
    """The Dagster instance of a home.

    Raises:
        HomeError: where its storage cannot be used.
    """
    import dagster as dg
    from sqlalchemy.exc import SQLAlchemyError

    folder = prepare(home)
    try:
        instance = dg.DagsterInstance.from_config(str(folder))
    except Exception as error:
        # Its kind depends on the storage and on the storage's client.
        raise _unusable(home, error) from error
    try:
        with instance:
            yield instance
    except (OSError, SQLAlchemyError) as error:
        raise _unusable(home, error) from error


def fail_dead_runs(instance: dg.DagsterInstance, own: str | None = None) -> None:
    """Mark the runs as failed that a process which died left unfinished, but for one's own. The caller holds the home.

    A run that has begun holds the home or gives way. One that has not begun may be a daemon's, waiting for its process;
    but not where it says nothing that a daemon could start it by: then it was to run in the process that made it.
    """
    import dagster as dg

    status = dg.DagsterRunStatus
    unfinished = [status.NOT_STARTED, status.STARTING, status.STARTED, status.CANCELING]
    for run in instance.get_runs(dg.RunsFilter(statuses=unfinished)):
        begun = run.status in (status.STARTED, status.CANCELING)
        if run.run_id != own and (begun or run.remote_job_origin is None):
            instance.add_run_tags(run.run_id, {"dagster/max_retries": "0"})
            instance.report_run_failed(run, "The process that ran this died; the next ingest did its work.")


def _unusable(home: Home, error: Exception) -> HomeError:
    # SQLite tells of a full disk in several ways, and of none in so many words.
    if home.root.is_dir() and shutil.disk_usage(home.root).free < _NO_ROOM_BYTES:
        return HomeError(f"{home.dagster}: {os.strerror(errno.ENOSPC)}; {MAKE_ROOM}")
    # Behind the first line stand the statement and its parameters.
    what = " ".join(str(getattr(error, "orig", None) or error).split())[:200]
    return HomeError(f"{home.dagster}: Dagster's storage cannot be used ({what}); see to it")
