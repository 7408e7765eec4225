"""The Dagster instance on a PostgreSQL server of this machine, with the settings that are deployed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from pipelines.ingest import ingest
from pipelines.instance import PROJECT, fail_dead_runs, instance_of
from pipelines.resources import Request
from replica.corpus import write_corpus
from warehouse.errors import HomeError
from warehouse.home import Home

# Nobody but this machine can reach the server; the password is there to be asked for.
SAID_TO_THE_SERVER = "p@ss:w/ord"
# The server refuses to run as root.
_NOBODY_SPECIAL = ("runuser", "-u", "postgres", "--") if os.geteuid() == 0 else ()


@pytest.fixture(scope="module")
def postgres(postgres_programs: Path) -> Iterator[dict[str, str]]:
    """Settings for a database on a server that is gone afterwards."""
    # pytest's own folder is closed to the server's user.
    folder = Path(subprocess.run([*_NOBODY_SPECIAL, "mktemp", "--directory", "--tmpdir", "kernelmart.XXXXXX"],
                                 capture_output=True, text=True, check=True, cwd="/").stdout.strip())  # fmt: skip
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])

    def run(program: str, *words: str, text: str | None = None) -> None:
        subprocess.run([*_NOBODY_SPECIAL, str(postgres_programs / program), *words], input=text, text=True, check=True,
                       stdout=subprocess.DEVNULL, cwd="/", timeout=120)  # fmt: skip

    try:
        subprocess.run(
            [*_NOBODY_SPECIAL, "sh", "-c", f'printf %s "$0" > {folder}/password', SAID_TO_THE_SERVER],
            check=True,
            cwd="/",
        )
        run("initdb", "--no-sync", "--username=kernelmart", "--auth=scram-sha-256", f"--pwfile={folder}/password",
            f"--pgdata={folder}/data")  # fmt: skip
        options = f"-c fsync=off -c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories="
        run("pg_ctl", "start", "--wait", f"--pgdata={folder}/data", f"--log={folder}/log", f"--options={options}")
        try:
            yield {
                "KERNELMART_PG_HOST": "127.0.0.1", "KERNELMART_PG_PORT": port, "KERNELMART_PG_DATABASE": "postgres",
                "KERNELMART_PG_USER": "kernelmart", "KERNELMART_PG_PASSWORD": SAID_TO_THE_SERVER,
                "KERNELMART_DAGSTER_YAML": str(PROJECT / "deploy" / "dagster.postgres.yaml"),
            }  # fmt: skip
        finally:
            run("pg_ctl", "stop", "--wait", "--mode=immediate", f"--pgdata={folder}/data")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def settings(postgres: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in postgres.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DAGSTER_HOME", "")


@pytest.mark.usefixtures("settings")
def test_an_ingest_leaves_its_run_in_the_database_and_no_file_of_sqlite(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "saved", seed=1, scale=0.001)
    home = Home(tmp_path / "home")
    assert ingest(home, Request(folder=str(corpus.folder))).published
    with instance_of(home) as instance:
        assert type(instance.run_storage).__name__ == "PostgresRunStorage"
        [run] = instance.get_runs()
        assert (run.job_name, run.status) == ("nightly", dg.DagsterRunStatus.SUCCESS)
        assert instance.get_latest_materialization_event(dg.AssetKey(["warehouse", "snapshot"]))
    assert list(home.dagster.rglob("*.db")) == []


@pytest.mark.usefixtures("settings")
def test_a_run_that_died_is_put_right_there_too(tmp_path: Path) -> None:
    with instance_of(Home(tmp_path)) as instance:
        dead, own = (instance.create_run_for_job(_job(), status=dg.DagsterRunStatus.STARTED) for _ in range(2))
        fail_dead_runs(instance, own.run_id)
        found = [instance.get_run_by_id(run.run_id) for run in (dead, own)]
        assert [run.status for run in found if run] == [
            dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.STARTED
        ]  # fmt: skip


@pytest.mark.usefixtures("settings")
def test_a_database_that_cannot_be_reached_is_one_line_without_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setenv("KERNELMART_PG_PORT", str(listening.getsockname()[1]))
    with pytest.raises(HomeError) as refusal, instance_of(Home(tmp_path)):
        pass
    assert "Dagster's storage cannot be used" in str(refusal.value)
    assert SAID_TO_THE_SERVER not in str(refusal.value)


def _job() -> dg.JobDefinition:
    @dg.job
    def nothing() -> None:
        pass

    return nothing
