"""KernelBot's rows become runs: the figures that count, a status, and every reason that keeps a run unranked."""

from __future__ import annotations

import json
import math
from datetime import UTC
from pathlib import Path

import pytest

from assets.kernelbot.facts import load_boards
from tests import oracle
from tests.kernelbot_folder import (
    MOMENT,
    SPEC,
    Row,
    by_submission,
    case,
    case_row,
    normalised,
    result,
    score_row,
    table,
    write,
)

FP8 = load_boards()["amd-fp8-mm"]
TRIMUL = load_boards()["trimul"]


def test_a_case_becomes_a_run_with_all_its_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "in", "submissions", [case_row(7, 12, case(), case("4175913.45", std="0", runs="20"))])
    made = normalised(tmp_path / "in", tmp_path / "out")
    first, second = made.runs
    assert (first["run_id"], second["run_id"]) == (
        "gpumode-kernelbot:submission/7/run/12/benchmark/0",
        "gpumode-kernelbot:submission/7/run/12/benchmark/1",
    )
    digests = {name: second.pop(name) for name in list(second) if name.endswith("_digest")}
    assert {name: value for name, value in second.items() if name not in ("run_id", "comparison_key")} == {
        "source": "gpumode-kernelbot",
        "submission_key": "gpumode-kernelbot:7",
        "problem": "amd-fp8-mm",
        "mode": "leaderboard",
        "status": "passed",
        "runner": "AMD Instinct MI300X",
        "gpu": "AMD Instinct MI300X",
        "architecture": "gfx942",
        "case_index": 1,
        "identity": "provisional",
        "primary_metric": "latency",
        "primary_statistic": "mean",
        "primary_unit": "ns",
        "primary_value": 4175913.0,
        "sample_count": 20,
        "mean_ns": 4175913.45,
        "min_ns": 900.0,
        "max_ns": 1100.0,
        "std_ns": 0.0,
        "native_metrics": '{"best_ns":900,"leaderboard_score_s":0.0000010005,"mean_ns":4175913.45}',
        "labels": '{"platform":"Linux","torch":"2.8"}',
        "system": '{"device_count":1,"gpu":"AMD Instinct MI300X","platform":"Linux","torch":"2.8"}',
        "eligible": True,
        "ineligible_reasons": [],
        "flags": ["MEAN_OUTSIDE_RANGE", "SCORE_MISMATCH"],
        "evidence_level": "reported",
        "external_id": "submission/7/benchmark/1",
        "observed_at": MOMENT.replace(tzinfo=UTC),
        "locator": "submissions.parquet",
        "item": "0",
    }
    assert digests["content_digest"] == oracle.sha256(path.read_bytes())
    assert digests["problem_digest"] == FP8.problem_digest
    document = {
        "apiVersion": "kernelindex.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "spec": {
            **{
                f"{name}Digest": digests[f"{name}_digest"]
                for name in ("implementation", "workload", "protocol", "environment")
            },
            "status": "passed",
            "timing": {
                "primaryStatistic": "mean",
                "samples": 20,
                "latencyNs": {"mean": 4175913, "minimum": 900, "maximum": 1100},
            },
            "measurements": [{"metric": "latency", "unit": "ns", "statistic": "std", "value": 0, "sampleCount": 20}],
            "sourceNative": {
                "source": "gpumode-kernelbot",
                "benchmark": "amd-fp8-mm/1",
                "externalId": "submission/7",
                "metrics": {"mean_ns": 4175913.45, "best_ns": 900.0, "leaderboard_score_s": 1.0005e-06},
            },
            "observedAt": "2025-06-01T09:11:14.635Z",
        },
    }
    assert digests["run_digest"] == oracle.document_digest(document)


def test_a_score_becomes_a_run_with_what_it_has(tmp_path: Path) -> None:
    write(tmp_path / "in", "a", [score_row(7, 1.0048658277929109e-05, submission_time=None)])
    run = normalised(tmp_path / "in", tmp_path / "out").run
    assert run["run_id"] == "gpumode-kernelbot:submission/7/leaderboard/B200"
    assert run["external_id"] == "submission/7/leaderboard"
    assert run["native_metrics"] == '{"leaderboard_score_s":0.000010048658277929109}'
    assert (run["labels"], run["system"]) == ("{}", '{"runner":"B200"}')
    assert (run["primary_metric"], run["primary_statistic"], run["primary_unit"]) == ("score", "geomean", "s")
    assert (run["primary_value"], run["mean_ns"], run["case_index"]) == (1.0048658277929109e-05, None, None)
    assert TRIMUL.suite is not None
    assert run["workload_digest"] == TRIMUL.suite.workload_digest
    document = {
        "apiVersion": "kernelindex.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "spec": {
            **{
                f"{name}Digest": run[f"{name}_digest"]
                for name in ("implementation", "workload", "protocol", "environment")
            },
            "status": "passed",
            "measurements": [{"metric": "score", "unit": "s", "statistic": "geomean", "value": 1.0048658277929109e-05}],
            "sourceNative": {
                "source": "gpumode-kernelbot",
                "benchmark": "trimul",
                "externalId": "submission/7",
                "metrics": {"leaderboard_score_s": 1.0048658277929109e-05},
            },
        },
    }
    assert run["run_digest"] == oracle.document_digest(document)
    assert run["eligible"]


def test_figures_that_do_not_count_are_absent_and_flagged(tmp_path: Path) -> None:
    cases = [
        case("nan", best="-1", worst="inf", std="-0.5", runs="2.5"),
        case(None, best=None, worst=None, std=None, runs=None),
        case("1_000", best="soon", std="0", runs="0"),
        case("1e16", best="0.3", worst="9007199254740993", runs="1e3"),
        case("99.5", best=None, worst=None, std=None, runs="1"),
        case("99.4", best=None, worst=None, std=None, runs="1"),
        case("1000", best="1001", worst="2000"),
    ]
    write(tmp_path / "in", "submissions", [case_row(1, 1, *cases, run_score=math.nan)])
    runs = {run["case_index"]: run for run in normalised(tmp_path / "in", tmp_path / "out").runs}
    figures = {
        index: tuple(run[name] for name in ("mean_ns", "min_ns", "max_ns", "std_ns", "sample_count", "primary_value"))
        for index, run in runs.items()
    }
    assert figures == {
        0: (None, None, None, None, None, None),
        1: (None, None, None, None, None, None),
        2: (None, None, 1100.0, 0.0, None, None),
        3: (None, 0.3, None, 5.5, 1000, None),
        4: (99.5, None, None, None, 1, 100.0),
        5: (99.4, None, None, None, 1, 99.0),
        6: (1000.0, 1001.0, 2000.0, 5.5, 3, 1000.0),
    }
    assert {index: sorted(set(run["flags"]) - {"NOT_FINITE:run_score"}) for index, run in runs.items()} == {
        0: ["NOT_FINITE:mean", "NOT_FINITE:worst", "OUT_OF_RANGE:best", "OUT_OF_RANGE:runs", "OUT_OF_RANGE:std"],
        1: [],
        2: ["OUT_OF_RANGE:runs", "UNREADABLE:best", "UNREADABLE:mean"],
        3: ["NOT_FINITE:mean", "NOT_FINITE:worst"],
        4: [],
        5: [],
        6: ["MEAN_OUTSIDE_RANGE"],
    }
    assert all("NOT_FINITE:run_score" in run["flags"] for run in runs.values())
    assert {index: run["ineligible_reasons"] for index, run in runs.items() if run["ineligible_reasons"]} == {
        0: ["NO_VALUE"], 1: ["NO_VALUE"], 2: ["NO_VALUE"], 3: ["NO_VALUE"], 5: ["BELOW_FLOOR"]
    }  # fmt: skip
    # What is below the floor has a document all the same; what has no value has none.
    assert {index for index, run in runs.items() if run["run_digest"]} == {4, 5, 6}


@pytest.mark.parametrize(
    "values", [[math.nan, 0.5, -1.0], [math.nan, 0.0], [math.inf, math.nan, 0.25, None], [0.5, math.nan]]
)
def test_scores_that_are_not_finite_count_in_no_company(tmp_path: Path, values: list[float | None]) -> None:
    write(tmp_path / "in", "a", table([score_row(i, value) for i, value in enumerate(values)]))
    runs = by_submission(normalised(tmp_path / "in", tmp_path / "out").runs, "primary_value", "flags")
    assert runs == {
        i: (value, [])
        if value and 0 < value < math.inf
        else (None, [] if value is None else ["OUT_OF_RANGE:score" if value <= 0 else "NOT_FINITE:score"])
        for i, value in enumerate(values)
    }


def test_a_score_that_its_cases_contradict_is_marked(tmp_path: Path) -> None:
    geometric = math.sqrt(1000.0 * 4000.0) / 1e9
    rows = [
        case_row(1, 1, case("1000"), case("4000"), run_score=geometric),
        case_row(2, 2, case("1000"), case("4000"), run_score=geometric * 1.001),
        case_row(3, 3, case("1000"), case("4000"), run_score=geometric * 1.001, run_mode="benchmark"),
        case_row(4, 4, case("1000"), case(None), run_score=1.0),
        case_row(5, 5, case("1000"), case("4000", "m: x"), run_score=1.0),
        case_row(6, 6, case("1000"), case("4000"), run_score=1.0, leaderboard_id=398),
        case_row(7, 7, case("1000"), case("4000"), run_score=None),
    ]
    write(tmp_path / "in", "submissions", rows)
    made = normalised(tmp_path / "in", tmp_path / "out")
    marked = {run["submission_key"] for run in made.runs if "SCORE_MISMATCH" in run["flags"]}
    assert marked == {"gpumode-kernelbot:2"}
    assert all(run["eligible"] for run in made.runs if run["submission_key"] == "gpumode-kernelbot:2")


def test_the_status_says_how_a_run_ended(tmp_path: Path) -> None:
    failed: Row = {"run_passed": False}
    rows = [
        case_row(1, 1),
        case_row(2, 2, **failed),
        case_row(3, 3, run_passed=None),
        case_row(4, 4, **failed, run_compilation={"success": False}, run_meta={"success": False}),
        case_row(5, 5, **failed, run_compilation={"success": True}, run_meta={"success": False}),
        case_row(6, 6, **failed, run_result=result(case(), check="fail"), run_meta={"success": False}),
        case_row(7, 7, run_compilation={"success": False}),
    ]
    write(tmp_path / "in", "submissions", rows)
    ends = [
        (True, "hacked"), (False, "hacked"), (None, "hacked"), (True, "failed"), (False, "timeout"), (None, "failed"),
        (None, "succeeded"), (None, None), (False, "runtime_error"), (None, "compile_error"), (False, "incorrect"),
        (False, "active"),
    ]  # fmt: skip
    scores = [score_row(i, passed=passed, status=status) for i, (passed, status) in enumerate(ends, start=11)]
    write(tmp_path / "in", "zzz", scores)
    runs = normalised(tmp_path / "in", tmp_path / "out").runs
    assert by_submission(runs, "status") == {
        1: "passed", 2: "failed", 3: "unknown", 4: "compile_error", 5: "runtime_error", 6: "incorrect", 7: "passed",
        11: "revoked", 12: "revoked", 13: "revoked", 14: "passed", 15: "timeout", 16: "failed", 17: "unknown",
        18: "unknown", 19: "runtime_error", 20: "compile_error", 21: "incorrect", 22: "failed",
    }  # fmt: skip
    assert {key for key, digest in by_submission(runs, "run_digest").items() if digest} == {1, 7, 14}


def test_every_reason_that_keeps_a_run_out_is_given(tmp_path: Path) -> None:
    nothing: Row = {"passed": None, "mode": None, "runner": None}
    scores = [
        score_row(1, None, **nothing),
        score_row(2, 0.5, status="hacked", mode="test"),
        score_row(3, 4.6e-25),
        score_row(4, 1e-7),
        score_row(5, 9.9e-8, passed=False, mode="profile.0"),
        score_row(6, mode="Secret mode/2.x"),
        score_row(7, mode="private"),
        score_row(8, mode=".odd"),
        score_row(9, -0.5, runner=""),
    ]
    write(tmp_path / "in", "zzz", scores)
    made = normalised(tmp_path / "in", tmp_path / "out")
    assert by_submission(made.runs, "ineligible_reasons") == {
        1: ["NOT_PASSED", "MODE_UNKNOWN", "NO_VALUE", "NO_ENVIRONMENT"],
        2: ["REVOKED", "MODE_TEST"],
        3: ["BELOW_FLOOR"],
        4: [],
        5: ["NOT_PASSED", "MODE_PROFILE", "BELOW_FLOOR"],
        6: ["MODE_SECRET_MODE_2"],
        7: ["MODE_PRIVATE"],
        8: ["MODE_UNKNOWN"],
        9: ["NO_VALUE", "NO_ENVIRONMENT"],
    }
    assert by_submission(made.runs, "eligible") == {i: i == 4 for i in range(1, 10)}
    documented = {key for key, value in by_submission(made.runs, "comparison_key").items() if value}
    assert documented == {key for key, value in by_submission(made.runs, "run_digest").items() if value} == {3, 4}
    without = {run["run_id"]: run for run in made.runs}["gpumode-kernelbot:submission/1/leaderboard"]
    assert (without["runner"], without["gpu"], without["identity"], without["implementation_digest"]) == (None,) * 4
    assert (without["system"], without["native_metrics"]) == ("{}", "{}")
    unknown = {(entry["field"], entry["detail"]) for entry in made.drift if entry["kind"] == "unknown_value"}
    assert unknown == {("mode", "Secret mode/2"), ("mode", "private"), ("mode", "")}


def test_a_run_without_cases_to_show_is_one_row(tmp_path: Path) -> None:
    rows = [
        case_row(1, 5, run_mode="test", run_result={"check": "pass", "test-count": "3"}),
        case_row(2, None, run_mode=None, run_result=None, run_score=None, run_passed=None),
        case_row(3, 6, case(spec="m"), case(spec=None)),
    ]
    write(tmp_path / "in", "submissions", rows)
    made = normalised(tmp_path / "in", tmp_path / "out")
    content = oracle.sha256("{}")[7:19]
    assert [(run["run_id"], run["external_id"], run["case_index"], run["workload_digest"]) for run in made.runs] == [
        ("gpumode-kernelbot:submission/1/run/5", "submission/1", None, None),
        (f"gpumode-kernelbot:submission/2/run/unknown-{content}", "submission/2", None, None),
        ("gpumode-kernelbot:submission/3/run/6", "submission/3", None, None),
    ]
    assert by_submission(made.runs, "ineligible_reasons")[3] == ["NO_VALUE"]
    assert [(row["item"], row["reason"]) for row in made.tables["rejects"]] == [
        ("2/benchmark/0", "SPEC_FORM"), ("2/benchmark/1", "SPEC_MISSING")
    ]  # fmt: skip


def test_a_case_that_cannot_be_bound_is_rejected_and_its_row_kept(tmp_path: Path) -> None:
    specs = [SPEC, "m: 1; m: 2", "m: mixed; n: 1; k: 1; seed: 1", "m: 9007199254740992; n: 1; k: 1; seed: 1", "size: 1"]
    write(tmp_path / "in", "submissions", [case_row(1, 5, *(case(spec=spec) for spec in specs))])
    made = normalised(tmp_path / "in", tmp_path / "out")
    assert [run["case_index"] for run in made.runs] == [0]
    assert made.counts == {"submissions.parquet": (1, 0)}
    rejects = {row["item"]: row for row in made.tables["rejects"]}
    assert {item: row["reason"] for item, row in rejects.items()} == {
        "0/benchmark/1": "SPEC_COLLISION",
        "0/benchmark/2": "SPEC_VALUE",
        "0/benchmark/3": "NUMBER_OUT_OF_RANGE",
        "0/benchmark/4": "UNBOUND_AXIS",
    }
    assert "amd-fp8-mm, case 2" in rejects["0/benchmark/2"]["detail"]
    assert json.loads(rejects["0/benchmark/1"]["raw"]) == {
        "best": "900.0", "mean": "1000.5", "runs": "3", "spec": "m: 1; m: 2", "std": "5.5", "worst": "1100.0"
    }  # fmt: skip


def test_a_folder_of_no_runs_gives_no_rows(tmp_path: Path) -> None:
    write(tmp_path / "in", "submissions", table([case_row()]).slice(0, 0))
    made = normalised(tmp_path / "in", tmp_path / "out")
    assert {name: rows for name, rows in made.tables.items() if rows and name != "protocols"} == {}
    assert (made.counts, made.drift) == ({}, [])
