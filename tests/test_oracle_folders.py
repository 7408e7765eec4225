"""What the oracle makes of whole folders, by rules that no vector shows."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests import oracle
from tests.kernelbot_folder import board
from tests.oracle import Json


def write_rows(folder: Path, name: str, rows: list[Json]) -> None:
    target = folder / "kernelbot"
    target.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), target / f"{name}.parquet")


def case_row(submission_id: int, run_id: int | None = 1, score: float = 0.5, **other: Json) -> Json:
    figures = {"spec": "size: 4", "mean": "1000.5", "runs": "3"}
    return {
        "submission_id": submission_id,
        "leaderboard_id": 7,
        "user_id": 3,
        "submission_time": datetime(2025, 1, 1),
        "run_id": run_id,
        "run_mode": "leaderboard",
        "run_score": score,
        "run_passed": True,
        "run_result": {f"benchmark.0.{name}": value for name, value in figures.items()},
        "run_system_info": {"gpu": "MI300", "torch": "2.8"},
    } | other


def score_row(submission_id: int, score: float | None, **other: Json) -> Json:
    return {
        "submission_id": submission_id,
        "leaderboard_id": 7,
        "problem_name": "sum",
        "user_id": "3",
        "submission_time": datetime(2025, 1, 1),
        "status": "succeeded",
        "score": score,
        "passed": True,
        "mode": "leaderboard",
        "runner": "B200",
    } | other


def test_a_run_in_several_files_counts_once_and_a_stray_one_is_kept(tmp_path: Path) -> None:
    write_rows(tmp_path, "successful_submissions", [case_row(1), case_row(2), case_row(2)])
    write_rows(tmp_path, "submissions", [case_row(1, user_id=9), case_row(3, score=0.7), case_row(3, score=0.6)])
    tables = oracle.read(tmp_path, {"boards": [board("sum", "per_case")]})
    assert sorted(run["submission_id"] for run in tables["runs"]) == [1, 2, 3]
    assert tables["files"]["submissions.parquet"] == {"read": 3, "kept": 2, "duplicate": 1, "rejected": 0}
    assert tables["files"]["successful_submissions.parquet"] == {"read": 3, "kept": 1, "duplicate": 2, "rejected": 0}
    conflicts = [(entry["locator"], entry["submission_id"]) for entry in tables["conflicts"]]
    assert conflicts == [("submissions.parquet", 3), ("successful_submissions.parquet", 2)]
    first = {run["submission_id"]: run for run in tables["runs"]}[1]
    assert (first["locator"], first["author_key"][-2:]) == ("submissions.parquet", "/9")


def test_a_run_without_an_id_is_named_by_its_mode_and_content(tmp_path: Path) -> None:
    write_rows(tmp_path, "submissions", [case_row(1, run_id=None)])
    (run,) = oracle.read(tmp_path, {"boards": [board("sum", "per_case")]})["runs"]
    content = (
        '{"run_passed":true,"run_result":{"benchmark.0.mean":"1000.5","benchmark.0.runs":"3",'
        '"benchmark.0.spec":"size: 4"},"run_score":0.5}'
    )
    key = f"leaderboard-{oracle.sha256(content)[7:19]}"
    assert run["run_id"] == f"gpumode-kernelbot:submission/1/run/{key}/benchmark/0"
    assert run["external_id"] == "submission/1/benchmark/0"


def test_the_best_of_several_scores_on_one_runner_is_kept(tmp_path: Path) -> None:
    rows = [
        score_row(1, 0.1, mode="test"),
        score_row(1, 0.2, passed=False),
        score_row(1, 0.4),
        score_row(1, 0.3),
        score_row(1, 0.9, runner="H100"),
    ]
    write_rows(tmp_path, "new_submissions", rows)
    tables = oracle.read(tmp_path, {"boards": [board("sum", "aggregate")]})
    assert {run["runner"]: run["primary_value"] for run in tables["runs"]} == {"B200": 0.3, "H100": 0.9}
    assert tables["files"]["new_submissions.parquet"]["duplicate"] == 3
    assert tables["submissions"][0]["score_s"] == 0.3


def test_each_reason_against_a_run_is_given(tmp_path: Path) -> None:
    rows = [
        score_row(1, None, passed=None, mode=None, runner=None),
        score_row(2, 0.1, status="hacked"),
        score_row(3, 4.6e-25),
        score_row(4, 0.1, passed=False, mode="profile.0"),
    ]
    write_rows(tmp_path, "new_submissions", rows)
    tables = oracle.read(tmp_path, {"boards": []})
    found = {run["submission_id"]: (run["status"], run["ineligible_reasons"]) for run in tables["runs"]}
    assert found == {
        1: ("unknown", ["NOT_PASSED", "MODE_UNKNOWN", "NO_VALUE", "NO_ENVIRONMENT"]),
        2: ("revoked", ["REVOKED"]),
        3: ("passed", ["BELOW_FLOOR"]),
        4: ("failed", ["NOT_PASSED", "MODE_PROFILE"]),
    }
    has_document = {run["submission_id"]: run["run_digest"] is not None for run in tables["runs"]}
    assert has_document == {1: False, 2: False, 3: True, 4: False}
    assert tables["ranks"] == []
    (problem,) = tables["problems"]
    assert (problem["slug"], problem["family"], problem["curated"]) == ("kernelmart-sum", "uncategorized", False)


def test_a_run_that_did_not_pass_says_why(tmp_path: Path) -> None:
    failed = {"run_passed": False}
    rows = [
        case_row(1, **failed, run_compilation={"success": False}, run_meta={"success": False, "stdout": "x"}),
        case_row(2, **failed, run_meta={"success": False, "stdout": "x"}),
        case_row(3, **failed, run_result={"check": "fail"}),
        case_row(4, **failed),
        case_row(5, run_passed=None),
    ]
    write_rows(tmp_path, "submissions", rows)
    tables = oracle.read(tmp_path, {"boards": [board("sum", "per_case")]})
    statuses = {run["submission_id"]: run["status"] for run in tables["runs"]}
    assert statuses == {1: "compile_error", 2: "runtime_error", 3: "incorrect", 4: "failed", 5: "unknown"}


def test_names_of_a_per_case_run(tmp_path: Path) -> None:
    write_rows(tmp_path, "submissions", [case_row(1)])
    tables = oracle.read(tmp_path, {"boards": [board("sum", "per_case")]})
    (documents,) = tables["run_documents"].values()
    assert documents["run"]["metadata"] == {
        "name": "kernelbot-1-size4",
        "title": "sum · submission 1 · case 0",
        "labels": {"torch": "2.8"},
    }
    assert documents["protocol"]["metadata"]["name"] == "gpumode-kernelbot-eval"
    assert documents["environment"]["metadata"] == {
        "name": "gpumode-kernelbot-mi300",
        "title": "KernelBot runner · AMD Instinct MI300X",
    }
    assert documents["run"]["spec"]["timing"] == {
        "primaryStatistic": "mean",
        "samples": 3,
        "latencyNs": {"mean": 1001},
    }
    assert "measurements" not in documents["run"]["spec"]


def test_a_rejected_case_leaves_the_rest_of_its_row(tmp_path: Path) -> None:
    result = {"benchmark.0.spec": "size: x", "benchmark.0.mean": "5", "benchmark.2.spec": "size: 4"}
    write_rows(tmp_path, "submissions", [case_row(1, run_result=result), case_row(2, run_result=None)])
    tables = oracle.read(tmp_path, {"boards": [board("sum", "per_case")]})
    rejected = [(row["locator"], row["item"], row["reason"]) for row in tables["rejects"]]
    assert rejected == [("submissions.parquet", "0/benchmark/0", "SPEC_VALUE")]
    assert [run["run_id"].split(":")[1] for run in tables["runs"]] == [
        "submission/1/run/1/benchmark/2",
        "submission/2/run/1",
    ]
    assert tables["runs"][0]["ineligible_reasons"] == ["NO_VALUE"]


def test_sources_that_are_read_make_an_identity_final(tmp_path: Path) -> None:
    write_rows(tmp_path, "new_submissions", [score_row(1, 0.1, code="a\r\n"), score_row(2, 0.1, code=None)])
    facts = {"boards": [board("sum", "aggregate")]}
    assert {run["identity"] for run in oracle.read(tmp_path, facts)["runs"]} == {"provisional"}
    tables = oracle.read(tmp_path, facts, code=True)
    assert {run["identity"] for run in tables["runs"]} == {"final"}
    assert [row["document"]["spec"].get("source") for row in tables["implementations"]] == [
        {"contentDigest": oracle.sha256(b"a\r\n"), "sizeBytes": 3},
        None,
    ]


def test_text_that_is_no_utf8_and_ids_that_are_no_integers_reject_a_row(tmp_path: Path) -> None:
    (tmp_path / "kernelbot").mkdir()
    names = pa.array([b"ok.py", b"\xff.py"], pa.binary()).cast(pa.binary())
    bad_text = pa.StringArray.from_buffers(2, names.buffers()[1], names.buffers()[2])
    table = pa.Table.from_pylist([score_row(1, 0.1), score_row(2, 0.1)]).append_column("file_name", bad_text)
    pq.write_table(table, tmp_path / "kernelbot" / "a.parquet")
    write_rows(tmp_path, "b", [score_row("x", 0.1), score_row("12", 0.1)])  # type: ignore[arg-type]
    tables = oracle.read(tmp_path, {"boards": []})
    assert [(row["locator"], row["reason"]) for row in tables["rejects"]] == [
        ("a.parquet", "BAD_TEXT"),
        ("b.parquet", "BAD_ID"),
    ]
    assert sorted(run["submission_id"] for run in tables["runs"]) == [1, 12]


def test_nanoseconds_of_a_time_are_cut_off(tmp_path: Path) -> None:
    times = pa.array([1_748_769_074_635_999_999], pa.timestamp("ns"))
    table = pa.Table.from_pylist([score_row(1, 0.1)]).drop(["submission_time"]).append_column("submission_time", times)
    (tmp_path / "kernelbot").mkdir()
    pq.write_table(table, tmp_path / "kernelbot" / "a.parquet")
    (run,) = oracle.read(tmp_path, {"boards": []})["runs"]
    assert run["observed_at"] == "2025-06-01T09:11:14.635Z"


def write_sol(folder: Path, kernels: dict[int, Json], submissions: dict[str, list[Json]]) -> None:
    for name in ("kernels", "submissions"):
        (folder / "sol_execbench" / name).mkdir(parents=True)
    for kernel_id, definition in kernels.items():
        (folder / f"sol_execbench/kernels/{kernel_id}.json").write_text(json.dumps({"data": definition}))
    for stem, rows in submissions.items():
        (folder / f"sol_execbench/submissions/{stem}.json").write_text(json.dumps({"data": {"submissions": rows}}))


def test_sol_submissions_of_every_kind(tmp_path: Path) -> None:
    case = {"axes": {"n": 4}, "sol_ms": 0.01, "baseline_latency_ms": 1.0}
    kernel = {
        "id": 1,
        "name": "001_plain_sum",
        "tags": ["L1", "model:x", "Sum Up"],
        "axes": {"n": {"type": "var"}},
        "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
        "workloads": [case, case | {"baseline_latency_ms": 2.0}],
    }
    good = {
        "kernel_id": 1,
        "username": "someone",
        "submission_mode": "release",
        "status": "COMPLETED",
        "is_correct": True,
        "latency_ms": 0.02,
        "sol_score": 0,
        "gpu_type": "B200",
        "submitted_at": "2026-01-01T00:00:00",
    }
    rows = [
        good | {"id": 1},
        good | {"id": 2, "is_disqualified": True},
        good | {"id": 3, "latency_ms": 0.005},
        good | {"id": 4, "latency_ms": 0, "submission_mode": "private", "is_correct": False},
        good | {"id": 5, "kernel_id": 9},
        good | {"id": 6, "username": "a\ud800"},
        "no object",
    ]
    write_sol(
        tmp_path, {1: kernel, 2: kernel, 3: kernel | {"name": "bad", "axes": {"n": 1}}}, {"1": rows, "1.2": rows[:1]}
    )
    tables = oracle.read(tmp_path, {"boards": []})
    assert [(row["locator"], row["item"], row["reason"]) for row in tables["rejects"]] == [
        ("kernels/2.json", "data", "NAME_TAKEN"),
        ("kernels/3.json", "data", "BAD_DEFINITION"),
        ("submissions/1.json", "data/submissions/4", "NO_PROBLEM"),
        ("submissions/1.json", "data/submissions/5", "BAD_TEXT"),
        ("submissions/1.json", "data/submissions/6", "NOT_AN_OBJECT"),
    ]
    found = {run["submission_id"]: (run["status"], run["ineligible_reasons"]) for run in tables["runs"]}
    assert found == {
        1: ("passed", []),
        2: ("revoked", ["REVOKED"]),
        3: ("passed", ["BELOW_SOL_BOUND"]),
        4: ("incorrect", ["NOT_PASSED", "MODE_PRIVATE", "NO_VALUE"]),
    }
    assert tables["runs"][0]["native_metrics"] == {"latency_ms": 0.02, "sol_score": 0}
    assert tables["runs"][3]["flags"] == ["OUT_OF_RANGE:latency_ms"]
    assert [(case["kind"], case["occurrence"]) for case in tables["cases"]] == [("case", 0), ("case", 1), ("suite", 0)]
    (problem,) = tables["problems"]
    assert [problem[name] for name in ("slug", "title", "family")] == ["001-plain-sum", "Plain sum", "sum-up"]
    names = tables["run_documents"]["sol-execbench:submission/1"]
    assert names["run"]["metadata"]["title"] == "someone · 001_plain_sum · B200"
    assert names["environment"]["metadata"]["name"] == "sol-execbench-b200-unknown"


def test_ranks_are_dense_and_an_author_has_one_best() -> None:
    def run(run_id: str, value: int, author: str | None, observed: str | None, submission_id: int) -> Json:
        return {
            "run_id": run_id,
            "comparison_key": "k",
            "primary_value": value,
            "author_key": author,
            "observed_at": observed,
            "submission_id": submission_id,
            "eligible": True,
        }

    runs = [
        run("r1", 200, "a", None, 1),
        run("r2", 200, "a", "2025-01-01T00:00:00.000Z", 10),
        run("r3", 200, "a", "2025-01-01T00:00:00.000Z", 9),
        run("r4", 100, None, None, 2),
        run("r5", 300, "b", None, 3),
    ]
    rows = {row["run_id"]: row for row in oracle.ranks(runs)}
    assert {run_id: row["rank"] for run_id, row in rows.items()} == {"r1": 2, "r2": 2, "r3": 2, "r4": 1, "r5": 3}
    assert {run_id: row["author_rank"] for run_id, row in rows.items() if row["author_best"]} == {"r3": 1, "r5": 2}
    assert (rows["r5"]["percentile"], rows["r5"]["gap_to_best"], rows["r4"]["tied"]) == (1, 3, False)
    assert {(row["cohort_runs"], row["cohort_authors"]) for row in rows.values()} == {(5, 2)}
