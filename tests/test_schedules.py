"""When ingests run by themselves, and what a run that ended badly leads to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from pipelines import schedules
from pipelines.definitions import definitions
from pipelines.jobs import CONFIG
from pipelines.resources import Upstream
from replica import faults
from replica.corpus import Corpus
from replica.server import Replica
from tests.webhook import Webhook
from warehouse.home import Home


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def replica(small_corpus: Corpus) -> Iterator[Replica]:
    with Replica(small_corpus.folder) as serving:
        yield serving


@pytest.mark.parametrize("around", [datetime(2028, 2, 28), datetime(2028, 3, 11), datetime(2028, 10, 28)])
def test_there_is_one_night_a_day_across_leap_days_and_changes_of_the_clocks(
    around: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dagster._utils.schedules import schedule_execution_time_iterator

    monkeypatch.setenv("TZ", "America/New_York")
    start = around.replace(tzinfo=UTC)
    ticks = schedule_execution_time_iterator(
        start.timestamp(), schedules.every_night.cron_schedule, schedules.every_night.execution_timezone
    )
    nights = [next(ticks) for _ in range(5)]
    assert nights == [start + timedelta(days=day, hours=2, minutes=30) for day in range(5)]


def test_a_night_that_is_looked_at_twice_asks_for_one_run(instance: dg.DagsterInstance) -> None:
    keys = []
    for minute in (30, 30, 31):
        context = dg.build_schedule_context(instance, datetime(2028, 2, 29, 2, minute, tzinfo=UTC))
        [request] = schedules.every_night.evaluate_tick(context).run_requests or []
        keys.append(request.run_key)
    assert keys == ["2028-02-29"] * 3


def looked(instance: dg.DagsterInstance, replica: Replica, cursor: str | None = None) -> tuple[list[str | None], str]:
    """Keys of the runs that the sensor asks for, and its new cursor or why it asks for none."""
    context = dg.build_sensor_context(
        instance, cursor, resources={"upstream": Upstream(hub_endpoint=replica.hub_endpoint)}
    )
    ticked = schedules.new_revision.evaluate_tick(context)
    requests = ticked.run_requests or []
    return [request.run_key for request in requests], (ticked.skip_message or ticked.cursor or "")


def test_a_new_revision_asks_for_one_run_with_one_small_request(
    instance: dg.DagsterInstance, replica: Replica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELMART_HOME", str(tmp_path))
    assert looked(instance, replica) == ([replica.revision], replica.revision)
    assert [request.path for request in replica.requests] == ["/api/datasets/GPUMODE/kernelbot-data/revision/main"]
    assert looked(instance, replica, replica.revision) == ([], f"revision {replica.revision[:12]} is known")
    assert looked(instance, replica, "0" * 40)[0] == [replica.revision]
    assert schedules.new_revision.minimum_interval_seconds == 900


def test_a_revision_that_an_ingest_has_seen_asks_for_nothing(
    instance: dg.DagsterInstance, replica: Replica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELMART_HOME", str(tmp_path))
    seen = {"gpumode-kernelbot": {"revision": replica.revision}}
    Home(tmp_path).write_status({"checked_at": "2028-02-29T02:30:00+00:00", "sources": seen})
    assert looked(instance, replica) == ([], f"revision {replica.revision[:12]} is known")


def test_while_a_run_is_going_on_the_hub_is_not_asked(instance: dg.DagsterInstance, replica: Replica) -> None:
    job = definitions.resolve_job_def("nightly")
    instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    assert looked(instance, replica) == ([], "a run is not finished yet; the revision is looked at after it")
    assert replica.requests == []


def test_a_hub_that_fails_is_asked_once_and_again_at_the_next_look(
    instance: dg.DagsterInstance, replica: Replica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELMART_HOME", str(tmp_path))
    replica.faults.add("/api/datasets/", faults.server_error(503), times=1)
    assert looked(instance, replica) == (
        [],
        "the Hub answers 503 Service Unavailable, 1 times in a row; ingest again later",
    )
    assert len(replica.requests) == 1
    assert looked(instance, replica)[0] == [replica.revision]


def test_an_address_of_the_hub_that_is_not_safe_is_a_reason_too(instance: dg.DagsterInstance) -> None:
    context = dg.build_sensor_context(instance, resources={"upstream": Upstream(hub_endpoint="http://example.org")})
    assert "must begin with https://" in (schedules.new_revision.evaluate_tick(context).skip_message or "")


def test_what_grows_old_while_nothing_runs_is_told(
    instance: dg.DagsterInstance, hook: Webhook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELMART_HOME", str(tmp_path))
    for age, says in ((1, "nothing is too old"), (40, "incidents: checked"), (40, "incidents: checked")):
        at = datetime.now(UTC) - timedelta(hours=age)
        Home(tmp_path).write_status({"checked_at": at.isoformat(), "sources": {}})
        assert schedules.watch.evaluate_tick(dg.build_sensor_context(instance)).skip_message == says
    assert hook.states == [("checked", "open")]


def test_a_run_that_failed_is_told_with_its_own_words_unless_it_gave_way_and_so_is_the_next_good_one(
    instance: dg.DagsterInstance, hook: Webhook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELMART_HOME", str(tmp_path))
    home = Home(tmp_path)

    def failed() -> None:
        # A folder without any source.
        config = {"resources": {"request": {"config": {"folder": str(tmp_path)}}}}
        job = definitions.resolve_job_def("nightly")
        result = job.execute_in_process(run_config=config, instance=instance, raise_on_error=False)
        schedules.run_failed(
            dg.build_run_status_sensor_context(
                "run_failed", result.get_run_failure_event(), instance, result.dagster_run
            ).for_run_failure()
        )

    with home.locked():
        failed()
    assert hook.messages == []
    failed()
    failed()
    [message] = hook.messages
    assert message["what"] == (
        f"the ingest failed: {tmp_path}: no source has any run; name a folder or a source that has"
    )

    @dg.job
    def nothing() -> None:
        pass

    result = nothing.execute_in_process(instance=instance)
    schedules.run_succeeded(
        dg.build_run_status_sensor_context(
            "run_succeeded", result.get_run_success_event(), instance, result.dagster_run
        )
    )
    assert hook.states == [("ingest", "open"), ("ingest", "recovered")]
    assert (tmp_path / "kernelmart.prom").exists()


def test_nothing_runs_unasked_unless_the_environment_says_so() -> None:
    assert schedules.every_night.default_status == dg.DefaultScheduleStatus.STOPPED
    assert {sensor.default_status for sensor in schedules.SENSORS} == {dg.DefaultSensorStatus.STOPPED}
    text = (
        "from pipelines import schedules; "
        "print({one.default_status.value for one in (*schedules.SCHEDULES, *schedules.SENSORS)})"
    )
    environment = {**os.environ, "KERNELMART_UNATTENDED": "1"}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "{'RUNNING'}\n"


@pytest.mark.parametrize("name", ["nightly", "redo"])
def test_a_job_takes_sources_and_files(name: str) -> None:
    job = definitions.resolve_job_def(name)
    asked = {"sources": ["sol-execbench"], "files": ["kernels/12.json"], "accept_loss": True}
    assert dg.validate_run_config(job, {"resources": {"request": {"config": asked}}})


def test_the_launchpad_of_redo_begins_with_what_is_to_be_filled_in() -> None:
    assert definitions.resolve_job_def("redo").run_config == CONFIG
