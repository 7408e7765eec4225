"""When ingests run, and who is told how they ended. The home's lock is what keeps two of them apart.

No sensor uses the resource `warehouse`: that would lock the home.
"""

import os
from datetime import UTC, datetime

import dagster as dg

from pipelines.aftermath import ingest_ended
from pipelines.alerts import tell
from pipelines.failures import is_busy, why
from pipelines.health import Health
from pipelines.hub import HubClient
from pipelines.hub_session import Patience
from pipelines.jobs import nightly, redo
from pipelines.resources import Upstream
from warehouse.errors import KernelmartError
from warehouse.home import Home

# A quarter of an hour between two looks at the Hub: one small request each.
LOOK_EVERY_SECONDS = 900
WATCH_EVERY_SECONDS = 3600
_KERNELBOT = "gpumode-kernelbot"
_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
# A developer's instance pulls nothing unasked.
_UNATTENDED = bool(os.environ.get("KERNELMART_UNATTENDED"))
_SENSOR = dg.DefaultSensorStatus.RUNNING if _UNATTENDED else dg.DefaultSensorStatus.STOPPED
_SCHEDULE = dg.DefaultScheduleStatus.RUNNING if _UNATTENDED else dg.DefaultScheduleStatus.STOPPED


@dg.schedule(
    name="every_night",
    job=nightly,
    cron_schedule="30 2 * * *",
    execution_timezone="UTC",
    default_status=_SCHEDULE,
    description="Each night at 02:30 UTC, which no change of the clocks doubles or skips.",
)
def every_night(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    """One run a night, however often the night is looked at."""
    return dg.RunRequest(run_key=f"{context.scheduled_execution_time.astimezone(UTC):%Y-%m-%d}")


@dg.sensor(
    name="new_revision",
    job=nightly,
    minimum_interval_seconds=LOOK_EVERY_SECONDS,
    default_status=_SENSOR,
    description="Asks for an ingest when the dataset has a revision that no ingest has seen.",
)
def new_revision(context: dg.SensorEvaluationContext, upstream: Upstream) -> dg.RunRequest | dg.SkipReason:
    """A run for each new revision of KernelBot's dataset."""
    if context.instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED), limit=1):
        return dg.SkipReason("a run is not finished yet; the revision is looked at after it")
    try:
        # The next look comes anyway, so this one is not repeated.
        revision = HubClient(upstream.hub_endpoint, patience=Patience(tries=1)).revision()
    except KernelmartError as error:
        return dg.SkipReason(str(error))
    seen = Health.of(Home.at()).sources.get(_KERNELBOT, {}).get("revision")
    if revision in (seen, context.cursor):
        context.update_cursor(revision)
        return dg.SkipReason(f"revision {revision[:12]} is known")
    context.update_cursor(revision)
    return dg.RunRequest(run_key=revision)


@dg.sensor(
    name="watch",
    minimum_interval_seconds=WATCH_EVERY_SECONDS,
    default_status=_SENSOR,
    description="Alerts when no ingest has ended well, or a source was not read whole, for too long.",
)
def watch() -> dg.SkipReason:
    """What grows old while nothing runs."""
    found = tell(Home.at())
    return dg.SkipReason(f"incidents: {', '.join(found)}" if found else "nothing is too old")


@dg.run_failure_sensor(
    name="run_failed",
    monitored_jobs=[nightly, redo],
    default_status=_SENSOR,
    description="Alerts when an ingest has failed or was killed.",
)
def run_failed(context: dg.RunFailureSensorContext) -> None:
    """A failure, but for a run that gave way to another."""
    data = context.failure_event.event_specific_data
    error = getattr(getattr(data, "first_step_failure_event", None), "event_specific_data", data)
    found = getattr(error, "error", None)
    if not is_busy(found):
        failure = why(found) if found else context.failure_event.message or "its process died"
        ingest_ended(Home.at(), failure, _seconds(context))


@dg.run_status_sensor(
    name="run_succeeded",
    run_status=dg.DagsterRunStatus.SUCCESS,
    monitored_jobs=[nightly, redo],
    default_status=_SENSOR,
    description="Says that what was wrong is over, when an ingest has ended well.",
)
def run_succeeded(context: dg.RunStatusSensorContext) -> None:
    """An ingest that ended well."""
    ingest_ended(Home.at(), None, _seconds(context))


def _seconds(context: dg.RunStatusSensorContext) -> float:
    """How long a run took; 0 where it never started."""
    record = context.instance.get_run_record_by_id(context.dagster_run.run_id)
    if record is None or record.start_time is None:
        return 0.0
    return (record.end_time or datetime.now(UTC).timestamp()) - record.start_time


SCHEDULES = [every_night]
SENSORS = [new_revision, watch, run_failed, run_succeeded]
