"""The Dagster location: it is valid, and tells of every asset what an operator wants to know."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from assets import checks
from pipelines.definitions import definitions
from warehouse.contracts import TABLES

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def specs() -> dict[str, dg.AssetSpec]:
    return {spec.key.to_user_string(): spec for spec in definitions.resolve_all_asset_specs()}


def test_dagster_finds_the_definitions_valid(tmp_path: Path) -> None:
    words = [str(Path(sys.executable).with_name("dagster")), "definitions", "validate"]
    done = subprocess.run(
        words, cwd=PROJECT, env={"DAGSTER_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True,
        text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Validation successful" in done.stdout + done.stderr


def test_there_is_an_asset_for_each_stage_and_table(specs: dict[str, dg.AssetSpec]) -> None:
    stages = {
        "kernelbot/raw_files", "kernelbot/rows", "sol_execbench/raw_answers", "sol_execbench/answers",
        "warehouse/draft", "warehouse/snapshot",
    }  # fmt: skip
    assert stages <= specs.keys()
    for room in ("kernelbot", "sol_execbench"):
        for table in (
            "problems",
            "cases",
            "submissions",
            "runs",
            "implementations",
            "rejects",
            "drift",
            "source_files",
        ):
            assert f"{room}/{table}" in specs
    for table in ("ranks", "cohorts", "records", "standings", "movements"):
        assert f"warehouse/{table}" in specs


def test_every_asset_has_a_group_a_kind_and_a_description(specs: dict[str, dg.AssetSpec]) -> None:
    for name, spec in specs.items():
        assert spec.group_name == name.partition("/")[0]
        assert spec.kinds, name
    nodes = definitions.resolve_asset_graph().asset_nodes
    assert {asset.key.to_user_string() for asset in nodes if asset.description} == specs.keys()


def test_a_table_s_asset_has_the_columns_of_the_contract(specs: dict[str, dg.AssetSpec]) -> None:
    for name, spec in specs.items():
        table = name.partition("/")[2]
        if table in TABLES and name != "warehouse/snapshot":
            schema = spec.metadata["dagster/column_schema"]
            assert [column.name for column in schema.columns] == list(TABLES[table].names)
            assert all(column.description for column in schema.columns)


def test_the_nightly_job_runs_everything_from_the_raw_files_to_the_snapshot(specs: dict[str, dg.AssetSpec]) -> None:
    job = definitions.resolve_job_def("nightly")
    assert {key.to_user_string() for key in job.asset_layer.selected_asset_keys} == specs.keys()
    graph = definitions.resolve_asset_graph()
    upstream = graph.get_ancestor_asset_keys(dg.AssetKey(["warehouse", "snapshot"]))
    assert {key.to_user_string() for key in upstream} == specs.keys() - {"warehouse/snapshot", "warehouse/elsewhere"}


def test_assets_that_are_chosen_on_the_pages_hold_the_home_as_long_as_a_job_does() -> None:
    executors = {job.name: job.executor_def.name for job in definitions.get_repository_def().get_all_jobs()}
    assert executors == dict.fromkeys(("__ASSET_JOB", "nightly", "redo"), "in_process")


def test_every_check_stands_between_the_draft_and_the_snapshot() -> None:
    keys = definitions.resolve_asset_graph().asset_check_keys
    assert {key.name for key in keys} >= {check.name for check in checks.all_checks()}
    assert {key.asset_key.to_user_string() for key in keys} == {"warehouse/draft"}
    blocking = {check.name for check in checks.all_checks() if check.blocking}
    assert {"keys_unique", "references_whole", "conservation", "run_digests", "document_digests"} <= blocking
