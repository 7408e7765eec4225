"""SOL-ExecBench against what the registry publishes: real answers, and whole documents."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assets.sol_execbench import environment as machines
from assets.sol_execbench.normalise import normalise
from assets.sol_execbench.read import Answer

SHARED = Path(os.environ.get("KERNELMART_CONFORMANCE") or ".")

pytestmark = pytest.mark.skipif(
    not os.environ.get("KERNELMART_CONFORMANCE"),
    reason="KERNELMART_CONFORMANCE does not name the folder with the reference dumps and documents",
)
Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def tables() -> Rows:
    folder = SHARED / "data" / "dumps" / "sol_execbench"
    answers = [
        Answer.of(path.relative_to(folder).as_posix(), path.read_bytes()) for path in sorted(folder.rglob("*.json"))
    ]
    made = normalise(answers, datetime(2026, 11, 30, tzinfo=UTC), None)
    return {name: table.to_pylist() for name, table in made.items()}


def expected(name: str) -> list[dict[str, Any]]:
    lines = (SHARED / "data" / "dumps" / name).read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["source"] == "sol-execbench"]


def golden(what: str) -> dict[str, Any]:
    documents = json.loads((SHARED / "golden" / "documents.json").read_text(encoding="utf-8"))
    (found,) = [entry for entry in documents if entry["what"] == what]
    assert isinstance(found, dict)
    return found


def test_the_clean_dumps_lose_nothing_and_surprise_nobody(tables: Rows) -> None:
    assert tables["rejects"] == []
    assert tables["drift"] == []
    assert sum(row["rows_read"] for row in tables["source_files"]) == 97 + 97 + 293
    assert sum(row["rows_kept"] for row in tables["source_files"]) == 97 + 97 + 293


def test_every_case_is_the_expected_one(tables: Rows) -> None:
    # In order of position: the dump lists a repeated case again, with another baseline.
    made: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in tables["cases"]:
        if row["kind"] == "case":
            made[row["problem"], row["workload_digest"]].append(row)
    rows = sorted(expected("expected_cases.jsonl"), key=lambda row: (row["problem"], row["position"]))
    assert len(rows) == 1706
    seen: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        key = row["problem"], row["workload_digest"]
        case = made[key][seen[key]]
        assert case["occurrence"] == seen[key]
        assert json.loads(case["axes"]) == row["axes"]
        assert case["baseline_latency_ms"] == row["baseline_latency_ms"]
        assert case["sol_bound_ms"] == row["sol_ms"]
        seen[key] += 1
    assert sum(seen.values()) == sum(map(len, made.values()))


def test_every_run_has_the_expected_identities_and_value(tables: Rows) -> None:
    made = {row["submission_id"]: row for row in tables["results"]}
    rows = expected("expected_runs.jsonl")
    assert len(rows) == len(made) == 293
    for row in rows:
        result = made[row["submission_id"]]
        for column in ("problem", "workload", "protocol", "environment", "implementation"):
            assert result[f"{column}_digest"] == row[f"{column}_digest"], (row["submission_id"], column)
        assert result["primary_value"] == row["primary_value"]
        assert result["problem"] == row["board"]
        assert result["runner"] == row["runner"]
        moment = result["observed_at"].replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
        assert moment == row["observed_at"]
        assert result["passed"]
        assert result["leaderboard_mode"]
        assert not result["below_floor"]
        assert not result["below_sol_bound"]


@pytest.mark.parametrize(
    ("what", "table", "key"),
    [
        ("SOL-ExecBench, suite: problem", "problems", "problem_digest"),
        ("SOL-ExecBench, suite: workload", "cases", "workload_digest"),
        ("SOL-ExecBench, suite: implementation", "implementations", "implementation_digest"),
        ("SOL-ExecBench, suite: protocol", "protocols", "protocol_digest"),
        ("SOL-ExecBench, suite: environment", "environments", "environment_digest"),
        ("SOL-ExecBench: problem with a scalar input and derived axes", "problems", "problem_digest"),
        ("SOL-ExecBench: one of its cases", "cases", "workload_digest"),
    ],
)
def test_golden_documents_are_made_whole(tables: Rows, what: str, table: str, key: str) -> None:
    entry = golden(what)
    (row,) = [row for row in tables[table] if row[key] == entry["digest"]]
    assert json.loads(row["document"]) == entry["document"]


def test_the_golden_run_has_its_figures_and_its_correctness(tables: Rows) -> None:
    spec = golden("SOL-ExecBench, suite: run")["document"]["spec"]
    (row,) = [row for row in tables["results"] if str(row["submission_id"]) == spec["sourceNative"]["externalId"]]
    assert json.loads(row["native_metrics"]) == spec["sourceNative"]["metrics"]
    assert row["problem"] == spec["sourceNative"]["benchmark"]
    assert row["primary_value"] == spec["timing"]["latencyNs"]["mean"]
    keys = golden("SOL-ExecBench, suite: keys")
    assert row["correctness_key"] == keys["correctness_key"]


def test_published_records_have_their_labels_and_names(tables: Rows) -> None:
    records = json.loads((SHARED / "golden" / "published_records.json").read_text(encoding="utf-8"))
    made = {str(row["submission_id"]): row for row in tables["results"]}
    seen = 0
    for record in records:
        native = record["run"]["spec"]["sourceNative"]
        row = made.get(native["externalId"])
        if native["source"] != "sol-execbench" or row is None:
            continue
        seen += 1
        assert json.loads(row["labels"]) == record["labels"]
        assert json.loads(row["native_metrics"]) == native["metrics"]
        environment = machines.environment(row["runner"], row["version_label"])
        assert json.loads(environment["document"]) == record["environment"]
        assert json.loads(machines.protocol(row["version_label"])["document"]) == record["protocol"]
    assert seen > 0
