"""What keeps a night going: retries of what may pass, runs that died, shrinkage, and one file fetched again."""

import json
import logging
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from assets.retries import retried, seconds_before_retry
from pipelines.definitions import definitions
from pipelines.instance import fail_dead_runs, instance_of
from pipelines.resources import renewed
from replica.corpus import Corpus
from replica.server import Replica
from tests.commands import as_json, refused, run
from tests.conftest import SmallHome
from tests.webhook import UNSPEAKABLE, Webhook, webhook
from warehouse.errors import UnreachableError, UnreadableError
from warehouse.home import Home
from warehouse.raw import Collection, RawFile

TOLD_TO_THE_HUB = "hf_T0ldT0TheHub"


def settings(replica: Replica) -> dict[str, str]:
    return {
        "HF_ENDPOINT": replica.hub_endpoint,
        "KERNELMART_SOL_URL": replica.sol_url,
        "KERNELMART_SOL_INTERVAL_MS": "0",
    }


# Retries.


def attempts(error: Exception | None, retries: int) -> list[int]:
    """Numbers of the attempts of a step that fails each time."""
    seen: list[int] = []

    @dg.asset
    def pulling(context: dg.AssetExecutionContext) -> None:
        seen.append(context.retry_number)
        with retried(context, retries, 0.001):
            if error:
                raise error

    result = dg.materialize([pulling], raise_on_error=False)
    assert result.success == (error is None)
    return seen


def test_what_cannot_be_reached_is_tried_again_and_what_is_wrong_is_not() -> None:
    assert attempts(UnreachableError("the Hub cannot be reached"), 2) == [0, 1, 2]
    assert attempts(UnreachableError("the Hub cannot be reached"), 0) == [0]
    assert attempts(UnreadableError("a.parquet: not Parquet"), 2) == [0]
    assert attempts(ValueError("a bug"), 2) == [0]
    assert attempts(None, 2) == [0]


def test_waits_grow_and_are_never_the_same_for_all() -> None:
    for number, least in ((0, 10), (1, 20), (2, 40)):
        waits = {seconds_before_retry(number, 10) for _ in range(8)}
        assert all(least <= one <= 2 * least for one in waits)
        assert len(waits) > 1


# Shrinkage.


@pytest.fixture
def shrunk(small_home: SmallHome, tmp_path: Path) -> tuple[Path, Path]:
    """A home, and saved files of which one that is in it is gone."""
    home, saved = tmp_path / "home", tmp_path / "saved"
    shutil.copytree(small_home.home, home, symlinks=True)
    shutil.copytree(small_home.corpus.folder, saved)
    largest = max((saved / "kernelbot").glob("*.parquet"), key=lambda path: path.stat().st_size)
    largest.unlink()
    return home, saved


def test_a_loss_is_published_neither_by_command_nor_by_job_nor_by_the_asset_alone_until_it_is_accepted(
    shrunk: tuple[Path, Path], hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, saved = shrunk
    before = as_json(home, "status")["snapshot"]["snapshot_id"]
    reason = refused(home, "ingest", "--from", str(saved))
    assert re.search(
        r"gpumode-kernelbot.* has lost \d+ of its \d+ .*'kernelmart ingest --accept-loss' takes it", reason
    )

    # As the daemon runs it: the resources of the location, and the config of the launchpad.
    monkeypatch.setenv("KERNELMART_HOME", str(home))

    def made(asset: str | None) -> dg.ExecuteInProcessResult:
        with instance_of(Home(home)) as instance:
            return definitions.resolve_job_def("nightly").execute_in_process(
                run_config={"resources": {"request": {"config": {"folder": str(saved)}}}},
                instance=instance,
                raise_on_error=False,
                asset_selection=[dg.AssetKey(["warehouse", asset])] if asset else None,
            )

    # The draft that was refused is still there.
    alone = made("snapshot")
    assert not alone.success
    assert not alone.get_asset_check_evaluations()
    job = made(None)
    assert not job.success
    [check] = [one for one in job.get_asset_check_evaluations() if one.check_name == "no_losses"]
    assert not check.passed
    assert "gpumode-kernelbot" in str(check.metadata["found"].value)
    assert as_json(home, "status")["snapshot"]["snapshot_id"] == before
    assert hook.states == [("ingest", "open")]

    accepted = run(home, "ingest", "--from", str(saved), "--accept-loss")
    assert accepted.exit_code == 0, accepted.output
    assert as_json(home, "status")["snapshot"]["snapshot_id"] != before
    assert as_json(home, "status")["incidents"] == []
    assert hook.states == [("ingest", "open"), ("ingest", "recovered")]
    # What was accepted once is what the next night is compared with.
    assert run(home, "ingest", "--from", str(saved)).exit_code == 0


def test_an_ingest_leaves_figures_for_the_monitoring_whether_it_ends_well_or_not(shrunk: tuple[Path, Path]) -> None:
    home, saved = shrunk
    assert "kernelmart_ingest_success 1.0" in (home / "kernelmart.prom").read_text()
    refused(home, "ingest", "--from", str(saved))
    assert "kernelmart_ingest_success 0.0" in (home / "kernelmart.prom").read_text()
    assert "has lost" in as_json(home, "status")["last_ingest"]["failure"]


def test_an_ingest_that_gives_way_is_no_incident(small_home: SmallHome, tmp_path: Path, hook: Webhook) -> None:
    home = tmp_path / "home"
    shutil.copytree(small_home.home, home, symlinks=True)
    with Home(home).locked():
        assert "another ingest holds this home" in refused(home, "ingest", "--from", str(small_home.corpus.folder))
    assert as_json(home, "status")["incidents"] == []
    assert hook.messages == []


# Log lines.


def test_each_step_is_one_line_with_counts_and_seconds_and_no_line_or_file_has_a_secret_or_a_row(
    small_corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with webhook() as gone:
        monkeypatch.setenv("KERNELMART_ALERT_URL", gone.url)
    home = tmp_path / "home"
    with Replica(small_corpus.folder, token=TOLD_TO_THE_HUB) as replica, caplog.at_level(logging.INFO):
        for name, value in settings(replica).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("HF_TOKEN", TOLD_TO_THE_HUB)
        # It is told of at an address that nobody listens at any more.
        refused(home, "ingest", "--replay", "20280229T023000Z-01234567")
        done = run(home, "ingest")
    assert done.exit_code == 0, done.output
    lines = [record.getMessage() for record in caplog.records if record.name == "kernelmart"]
    assert any("did not take it: ConnectionError" in line for line in lines)
    steps = [line.split()[1] for line in lines if line.startswith("step ")]
    assert steps == [
        "kernelbot/raw_files", "sol_execbench/raw_answers", "kernelbot/rows", "sol_execbench/answers",
        "kernelbot/tables", "sol_execbench/tables", "warehouse/ranking", "warehouse/draft", "warehouse/checks",
        "warehouse/snapshot",
    ]  # fmt: skip
    for line in lines:
        if line.startswith("step "):
            assert re.fullmatch(r"step [a-z_]+/[a-z_]+( [a-z_]+=\d+)* seconds=\d+\.\d processor_seconds=\d+\.\d", line)
    shown = "\n".join([*(record.getMessage() for record in caplog.records), done.output])
    text = "select author_name from authors where length(author_name) > 4"
    names = [row["author_name"] for row in json.loads(run(home, "sql", text, "--format", "json").stdout)]
    assert len(names) > 5
    for unspeakable in (TOLD_TO_THE_HUB, UNSPEAKABLE, *names):
        assert unspeakable not in shown
    for secret in (TOLD_TO_THE_HUB, UNSPEAKABLE):
        written = [path for path in home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
        assert written == []


# A few files once more.


def test_files_are_fetched_again_and_all_else_stays_as_it_was(
    small_corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    with Replica(small_corpus.folder) as replica:
        for name, value in settings(replica).items():
            monkeypatch.setenv(name, value)
        assert run(home, "ingest").exit_code == 0
        before = as_json(home, "status")
        seen = {source: state["files"] for source, state in before["sources"].items()}
        kernel = next(file["locator"] for file in seen["sol-execbench"] if file["locator"].startswith("kernels/"))
        board = seen["gpumode-kernelbot"][0]["locator"]
        replica.forget_requests()
        assert run(home, "ingest", "--file", kernel, "--file", board).exit_code == 0
        number = re.sub(r"\D", "", kernel)
        paths = [request.path for request in replica.requests]
        about = [path for path in paths if "/sol-execbench/api/kernels/" in path or "/submissions" in path]
        assert any(path.endswith(f"/kernels/{number}") for path in about)
        assert {match[0] for path in about if (match := re.search(r"kernels/\d+", path))} == {f"kernels/{number}"}
        assert any(board in path for path in paths if "/resolve/" in path or "/lfs/" in path)
        after = as_json(home, "status")
        assert after["sources"]["sol-execbench"]["files"] == before["sources"]["sol-execbench"]["files"]
        assert after["snapshot"] == before["snapshot"]
        # A source of which one file was read was not read whole.
        for source, state in after["sources"].items():
            assert state["last_success_at"] == before["sources"][source]["last_success_at"]
        assert "has no kernels/987654321.json" in refused(home, "ingest", "--file", "kernels/987654321.json")
        replica.forget_requests()
        assert "no source has" in refused(home, "ingest", "--file", "nothing.txt", code=2)
        assert replica.requests == []


def collection(*locators: str, stale: tuple[str, ...] = (), unreadable: tuple[tuple[str, str], ...] = ()) -> Collection:
    at = datetime(2028, 2, 29, tzinfo=UTC)
    files = tuple(RawFile(name.partition("@")[0], Path(name), f"sha256:{name}", 1, at) for name in locators)
    return Collection("s", files, stale, unreadable)


def test_what_is_not_named_keeps_its_last_good_content_and_why_it_is_stale() -> None:
    now = collection("a@2", "b@2", "c@2", stale=("x",), unreadable=(("d", "no"), ("a2", "no")))
    found = renewed(now, collection("a@1", "b@1", "d@1"), frozenset({"a"}), str, ["a: HTML", "b: not Parquet"])
    assert [file.content_digest for file in found.files] == ["sha256:b@1", "sha256:d@1", "sha256:a@2"]
    assert (found.stale, found.unreadable) == (("b: not Parquet", "x"), ())


def test_a_file_that_nobody_has_is_named() -> None:
    with pytest.raises(UnreadableError, match=r"^s has no z; name a file as 'stale' lines do$"):
        renewed(collection("a@2"), collection("b@1"), frozenset({"a", "z"}), str, [])
    with pytest.raises(UnreadableError, match="nothing of it is known yet"):
        renewed(collection("a@2"), None, frozenset({"a"}), str, [])


# Runs that died.


def test_who_holds_the_home_marks_the_runs_of_the_dead_and_nobody_runs_those_again(tmp_path: Path) -> None:
    job, status = definitions.resolve_job_def("nightly"), dg.DagsterRunStatus
    queue = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("kernelmart"), "kernelmart")
    with instance_of(Home(tmp_path)) as instance:

        def made(state: dg.DagsterRunStatus, origin: RemoteJobOrigin | None = None) -> str:
            return instance.create_run_for_job(job, status=state, remote_job_origin=origin).run_id

        # Of a process that ran them itself, they are dead in whatever state; of a daemon, if they have begun.
        dead = [made(state) for state in (status.NOT_STARTED, status.STARTED, status.CANCELING)]
        dead += [made(state, queue.get_job_origin("nightly")) for state in (status.STARTED, status.CANCELING)]
        waiting = [
            made(state, queue.get_job_origin("nightly"))
            for state in (status.NOT_STARTED, status.QUEUED, status.STARTING)
        ]
        own = made(status.STARTED)
        fail_dead_runs(instance, own)

        def found(run_ids: list[str]) -> list[tuple[str, str | None]]:
            runs = [instance.get_run_by_id(run_id) for run_id in run_ids]
            return [(run.status.value, run.tags.get("dagster/max_retries")) for run in runs if run]

        assert found(dead) == [("FAILURE", "0")] * 5
        assert found(waiting) == [("NOT_STARTED", None), ("QUEUED", None), ("STARTING", None)]
        assert found([own]) == [("STARTED", None)]
