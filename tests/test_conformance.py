"""The whole pipeline over real results: every digest, key, rank and case that they must give."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from assets import checks
from warehouse import snapshots
from warehouse.home import Home

SHARED = os.environ.get("KERNELMART_CONFORMANCE")
pytestmark = pytest.mark.skipif(not SHARED, reason="KERNELMART_CONFORMANCE does not name a folder with real results")

RUN_FIELDS = (
    "implementation_digest", "problem_digest", "workload_digest", "protocol_digest", "environment_digest",
    "comparison_key", "run_digest", "primary_value", "observed_at",
)  # fmt: skip
RANK_FIELDS = ("comparison_key", "primary_value", "rank", "author_best", "author_rank", "cohort_runs", "cohort_authors")
KEY = ("source", "submission_id", "case", "runner", "board")


def dumps() -> Path:
    return Path(SHARED or "") / "data" / "dumps"


def vectors(name: str) -> list[dict[str, Any]]:
    with (dumps() / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def snapshot(real_home: Path) -> snapshots.Snapshot:
    return snapshots.required(Home(real_home))


@pytest.fixture(scope="module")
def connection(snapshot: snapshots.Snapshot) -> Iterator[duckdb.DuckDBPyConnection]:
    with snapshot.open() as opened:
        yield opened


def rows(connection: duckdb.DuckDBPyConnection, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = connection.sql(text).to_arrow_table().to_pylist()
    return found


# The vectors name a runner only where the board has no cases.
RUNS = """
select runs.source, submission_id, case_index as case, case when case_index is null then runs.runner end as runner,
    runs.problem as board, runs.* exclude (source, problem, runner, observed_at),
    instant(runs.observed_at) as observed_at, ranks.* exclude (comparison_key, run_id, policy)
from runs join submissions using (submission_key) left join ranks using (run_id)
"""


def compare(found: list[dict[str, Any]], expected: list[dict[str, Any]], fields: tuple[str, ...]) -> list[str]:
    by_key = {tuple(row[name] for name in KEY): row for row in found}
    assert len(by_key) == len(found)
    return [
        f"{row} but got {other}"
        for row in expected
        if (other := {name: by_key.get(tuple(row[name] for name in KEY), {}).get(name) for name in fields})
        != {name: row[name] for name in fields}
    ]


def test_every_run_has_the_digests_keys_and_value_that_it_must_have(connection: duckdb.DuckDBPyConnection) -> None:
    expected = vectors("expected_runs.jsonl")
    assert len(expected) == 3897
    found = rows(connection, RUNS)
    assert len(found) == 3897
    assert compare(found, expected, RUN_FIELDS) == []
    assert {row["identity"] for row in found} == {"final"}


def test_every_run_has_the_rank_that_it_must_have(connection: duckdb.DuckDBPyConnection) -> None:
    expected = vectors("expected_ranks.jsonl")
    assert len(expected) == 3897
    assert compare(rows(connection, RUNS), expected, RANK_FIELDS) == []


def test_every_case_has_the_digest_and_figures_that_it_must_have(connection: duckdb.DuckDBPyConnection) -> None:
    expected = vectors("expected_cases.jsonl")
    assert len(expected) == 1706
    text = """
        select source, problem, axes, workload_digest, baseline_latency_ms, sol_bound_ms as sol_ms
        from cases where kind = 'case' and source = 'sol-execbench'
    """
    found = sorted(
        json.dumps({**row, "axes": json.loads(row["axes"])}, sort_keys=True) for row in rows(connection, text)
    )
    wanted = sorted(json.dumps({k: v for k, v in row.items() if k != "position"}, sort_keys=True) for row in expected)
    assert found == wanted


def test_a_suite_lists_its_cases_in_upstream_order(connection: duckdb.DuckDBPyConnection) -> None:
    expected: dict[str, list[Any]] = {}
    for row in sorted(vectors("expected_cases.jsonl"), key=lambda row: (row["problem"], row["position"])):
        expected.setdefault(row["problem"], []).append(row["axes"])
    text = "select problem, suite_cases from cases where kind = 'suite' and source = 'sol-execbench'"
    suites = {
        row["problem"]: [case["axes"] for case in json.loads(row["suite_cases"])] for row in rows(connection, text)
    }
    assert suites == expected


def test_every_document_hashes_to_its_digest(connection: duckdb.DuckDBPyConnection) -> None:
    found = {check.name: checks.run(connection, check, every=1) for check in checks.all_checks()}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_the_manifest_of_each_published_record_is_its_document(connection: duckdb.DuckDBPyConnection) -> None:
    records = json.loads((Path(SHARED or "") / "golden" / "published_records.json").read_text(encoding="utf-8"))
    assert len(records) == 3
    for record in records:
        text = "select manifest(run_id) from runs where run_digest = $digest"
        (found,) = connection.execute(text, {"digest": record["expected"]["run_digest"]}).fetchall()
        assert json.loads(found[0]) == record["run"]


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Kolkata"])
def test_manifests_hash_to_their_digests_in_every_zone(snapshot: snapshots.Snapshot, zone: str, tmp_path: Path) -> None:
    # A copy, since this process has the file itself open with other settings.
    shutil.copyfile(snapshot.database, tmp_path / "copy.duckdb")
    with duckdb.connect(str(tmp_path / "copy.duckdb"), read_only=True) as connection:
        connection.execute("set timezone = $zone", {"zone": zone})
        text = "select count(*) from runs where 'sha256:' || sha256(manifest(run_id)) = run_digest"
        assert connection.execute(text).fetchall() == [(3897,)]


def test_the_real_results_raise_no_rejects_and_no_drift(connection: duckdb.DuckDBPyConnection) -> None:
    assert connection.execute("select count(*) from rejects").fetchall() == [(0,)]
    assert connection.execute("select * from drift").fetchall() == []
