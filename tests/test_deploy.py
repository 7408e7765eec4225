"""What is deployed fits what is there: programs, settings, files and the instance."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from pipelines.instance import PROJECT

DEPLOY = PROJECT / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
_PROGRAMS = {"kernelmart", "dagster-daemon", "dagster-webserver"}


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def lines_of(path: Path, name: str) -> list[str]:
    """Values of a setting of a unit."""
    return re.findall(rf"^{name}=(.*)$", path.read_text(), re.MULTILINE)


def test_the_instance_on_postgresql_differs_from_the_other_in_its_storage_alone() -> None:
    ours, theirs = read(PROJECT / "dagster.yaml"), read(DEPLOY / "dagster.postgres.yaml")
    assert theirs.pop("storage")["postgres"]["postgres_db"] == {
        "scheme": "postgresql+psycopg2",
        "hostname": {"env": "KERNELMART_PG_HOST"}, "port": {"env": "KERNELMART_PG_PORT"},
        "db_name": {"env": "KERNELMART_PG_DATABASE"}, "username": {"env": "KERNELMART_PG_USER"},
        "password": {"env": "KERNELMART_PG_PASSWORD"},
    }  # fmt: skip
    assert theirs == ours


def test_an_instance_tells_nobody_and_runs_again_what_was_killed_but_nothing_that_failed(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_bytes((PROJECT / "dagster.yaml").read_bytes())
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert not instance.telemetry_enabled
        assert instance.run_monitoring_enabled
        assert (instance.run_retries_enabled, instance.run_retries_max_retries) == (True, 1)
        assert not instance.run_retries_retry_on_asset_or_op_failure


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_programs_and_reads_files_that_there_are(unit: Path) -> None:
    commands = [
        line.split() for name in ("ExecStart", "ExecStartPre", "ExecStartPost") for line in lines_of(unit, name)
    ]
    assert bool(commands) == (unit.suffix == ".service")
    for program, *words in commands:
        assert program.removeprefix("/opt/kernelmart/.venv/bin/") in _PROGRAMS
        for word in words:
            if word.startswith("/opt/kernelmart/"):
                assert (PROJECT / word.removeprefix("/opt/kernelmart/")).is_file()
    if commands:
        assert lines_of(unit, "User") == ["kernelmart"]
        assert lines_of(unit, "EnvironmentFile") == ["/etc/kernelmart.env"]


def test_commands_that_units_and_containers_start_are_commands() -> None:
    from pipelines.cli import main

    found = [line.split()[1:] for unit in UNITS for name in ("ExecStart", "ExecStartPre", "ExecStartPost")
             for line in lines_of(unit, name) if line.split()[0].endswith("/kernelmart")]  # fmt: skip
    found += [service["command"] for service in read(DEPLOY / "compose.yaml")["services"].values()
              if "command" in service and "entrypoint" not in service]  # fmt: skip
    assert {words[0] for words in found} == {"ingest", "prepare", "snapshots", "status"}
    assert {words[0] for words in found} <= main.commands.keys()


def test_the_timer_is_of_utc_and_makes_up_for_a_night_that_was_missed() -> None:
    timer = DEPLOY / "systemd" / "kernelmart-ingest.timer"
    assert lines_of(timer, "OnCalendar") == ["*-*-* 02:30:00 UTC"]
    assert lines_of(timer, "Persistent") == ["true"]


def test_every_setting_that_is_named_is_read_somewhere() -> None:
    naming = ("kernelmart.env", "compose.yaml", "dagster.postgres.yaml")
    named = set(re.findall(r"\b(?:KERNELMART|HF)_[A-Z_]+", "".join((DEPLOY / name).read_text() for name in naming)))
    reading = [*(PROJECT / "pipelines").rglob("*.py"), *(PROJECT / "warehouse").rglob("*.py")]
    text = "".join(path.read_text() for path in (*reading, DEPLOY / "dagster.postgres.yaml"))
    assert {name for name in named if name not in text} == set()


def test_a_container_holds_every_package_and_no_test() -> None:
    packages = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    copied = re.findall(r"^COPY (.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert {package.partition(".")[0] for package in packages} <= names
    assert "tests" not in names
    assert all((PROJECT / name).exists() for name in names)
    allowed = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line[0] == "!"}
    assert allowed == names


def test_services_share_one_home_listen_on_this_machine_alone_and_have_no_secret_written_down() -> None:
    services = read(DEPLOY / "compose.yaml")["services"]
    ours = [services[name] for name in ("prepare", "daemon", "webserver")]
    assert all(service["volumes"] == ["home:/srv/kernelmart"] for service in ours)
    assert services["webserver"]["ports"] == ["127.0.0.1:3000:3000"]
    assert [name for name, service in services.items() if "ports" in service] == ["webserver"]
    for service in services.values():
        for name, value in service["environment"].items():
            if name.endswith(("PASSWORD", "TOKEN", "URL")):
                assert value.startswith("${")
