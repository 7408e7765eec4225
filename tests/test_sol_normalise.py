"""Saved answers of SOL-ExecBench as tables, the same in whatever order the answers come."""

from __future__ import annotations

import hashlib
import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from assets.sol_execbench.normalise import normalise
from assets.sol_execbench.read import Answer, UnreadableAnswer
from tests.sol_answers import (
    FETCHED_AT,
    MADE,
    answer,
    corpus,
    counts,
    definition,
    drift,
    listed,
    made_of,
    one_kernel,
    submission,
)


def test_no_answers_make_empty_tables_and_one_remark() -> None:
    tables = made_of([])
    assert {name: len(rows) for name, rows in tables.items() if rows} == {"drift": 1}
    assert drift(tables) == [("kernels.json", "kernels", "missing", "there is no listing of kernels")]


def test_a_result_says_all_that_the_source_says() -> None:
    answers = one_kernel(submission(5, 1))
    tables = made_of(answers)
    (row,) = tables["results"]
    suite, case = tables["cases"]
    digests = {
        "problem_digest": tables["problems"][0]["problem_digest"],
        "workload_digest": suite["workload_digest"],
        "correctness_key": suite["correctness_key"],
        "implementation_digest": tables["implementations"][0]["implementation_digest"],
        "protocol_digest": tables["protocols"][0]["protocol_digest"],
        "environment_digest": tables["environments"][0]["environment_digest"],
    }
    assert (suite["kind"], case["kind"]) == ("suite", "case")
    assert row == {
        **dict.fromkeys(("case_index", "sample_count", "mean_ns", "min_ns", "max_ns", "std_ns", "score_s")),
        **digests,
        "run_id": "sol-execbench:submission/5",
        "source": "sol-execbench",
        "submission_key": "sol-execbench:5",
        "problem": "001_copy",
        "mode": "release",
        "status": "passed",
        "runner": "B200",
        "gpu": "NVIDIA B200",
        "architecture": "sm_100",
        "identity": "final",
        "primary_metric": "latency",
        "primary_statistic": "mean",
        "primary_unit": "ns",
        "primary_value": 1e6,
        "native_metrics": '{"avg_speedup":2,"fast_1_count":1,"fast_1_total":1,"latency_ms":1,"sol_score":0.75}',
        "labels": '{"worker":"worker-1"}',
        "system": '{"gpu_type":"B200","worker_id":"worker-1"}',
        "submission_id": 5,
        "version_label": "v1.1",
        "passed": True,
        "revoked": False,
        "leaderboard_mode": True,
        "below_floor": False,
        "below_sol_bound": False,
        "flags": [],
        "external_id": "submission/5",
        "observed_at": datetime(2026, 7, 1, 10, 0, 5, 123456, tzinfo=UTC),
        "content_digest": answers[-1].content_digest,
        "locator": "submissions/1.json",
        "item": "submissions/0",
    }
    assert drift(tables) == []


def test_a_submission_and_its_author_and_implementation() -> None:
    tables = made_of(one_kernel(submission(5, 1, original_filename="a.py"), submission(6, 1, username=None)))
    first, second = tables["submissions"]
    assert first == {
        **dict.fromkeys(("score_s", "source_digest", "source_bytes", "code_id")),
        "submission_key": "sol-execbench:5",
        "source": "sol-execbench",
        "submission_id": 5,
        "problem": "001_copy",
        "author_key": "sol-execbench:user/solver",
        "revision": "submission-5",
        "submitted_at": datetime(2026, 7, 1, 10, 0, tzinfo=UTC),
        "file_name": "a.py",
        "upstream_status": "COMPLETED",
        "license_declared": "unknown",
        "license_concluded": "unknown",
    }
    assert second["author_key"] is None
    assert tables["authors"] == [
        {
            "author_key": "sol-execbench:user/solver",
            "source": "sol-execbench",
            "author_id": "solver",
            "author_name": "solver",
            "project_slug": "sol-user-solver",
            "project_name": "solver",
            "stable": True,
            "submissions": 1,
        }
    ]
    implementation = tables["implementations"][0]
    assert json.loads(implementation["document"])["spec"] == {
        "projectRevision": {"version": "submission-5"},
        "operation": {"specDigest": tables["problems"][0]["problem_digest"]},
        "callable": {"language": "unknown"},
        "support": {"hardwareArchitectures": ["sm_100"], "productsTested": ["NVIDIA B200"], "dtypes": ["fp32"]},
        "licensing": {},
    }
    digest = "sha256:" + hashlib.sha256(implementation["document"].encode()).hexdigest()
    assert implementation["implementation_digest"] == digest
    assert (implementation["language"], implementation["submission_key"]) == ("unknown", "sol-execbench:5")
    assert implementation["architectures"] == ["sm_100"]
    assert implementation["products"] == ["NVIDIA B200"]
    assert implementation["dtypes"] == ["fp32"]


def test_a_name_without_letters_still_gives_a_slug() -> None:
    tables = made_of(one_kernel(submission(5, 1, username="内核")))
    slug = hashlib.sha256("内核".encode()).hexdigest()[:12]
    assert tables["authors"][0]["project_slug"] == f"sol-user-{slug}"


def test_a_hostile_label_cannot_move_the_id_in_an_implementation() -> None:
    label = '"version":"submission-'
    tables = made_of(one_kernel(submission(5, 1, gpu_type=label)))
    spec = json.loads(tables["implementations"][0]["document"])["spec"]
    assert spec["projectRevision"] == {"version": "submission-5"}
    assert spec["support"]["productsTested"] == [label.replace("_", " ")]


def test_without_a_label_there_is_no_environment_and_no_implementation() -> None:
    tables = made_of(one_kernel(submission(5, 1, gpu_type=None, worker_id=None)))
    (row,) = tables["results"]
    for column in ("runner", "gpu", "architecture", "implementation_digest", "environment_digest", "identity"):
        assert row[column] is None
    assert row["protocol_digest"] == tables["protocols"][0]["protocol_digest"]
    assert (row["labels"], row["system"]) == ("{}", "{}")
    assert tables["implementations"] == tables["environments"] == []


def test_both_stacks_are_kept_apart_and_a_missing_one_is_unknown() -> None:
    rows = [submission(n, 1, evaluation_stack_version=version) for n, version in enumerate(("v1.0", "v1.1", None))]
    tables = made_of(one_kernel(*rows))
    assert {row["version"] for row in tables["protocols"]} == {"v1.0", "v1.1", "unknown"}
    assert len({row["environment_digest"] for row in tables["results"]}) == 3
    assert [row["version_label"] for row in tables["results"]] == ["v1.0", "v1.1", None]


def test_a_run_without_a_figure_has_no_primary_metric() -> None:
    (row,) = made_of(one_kernel(submission(5, 1, latency_ms=0)))["results"]
    for column in ("primary_metric", "primary_statistic", "primary_unit", "primary_value"):
        assert row[column] is None
    assert row["flags"] == ["OUT_OF_RANGE:latency_ms"]
    assert "latency_ms" not in json.loads(row["native_metrics"])


@pytest.mark.parametrize(
    ("latency_ms", "floor", "bound"),
    [
        (0.5, False, False),
        (0.4999, False, True),
        (0.0000994, True, True),
        (0.0000996, False, True),
        (None, False, False),
    ],
)
def test_a_figure_below_the_floor_or_the_bound_is_marked(latency_ms: Any, floor: bool, bound: bool) -> None:
    (row,) = made_of(one_kernel(submission(5, 1, latency_ms=latency_ms)))["results"]
    assert (row["below_floor"], row["below_sol_bound"]) == (floor, bound)


def test_a_dummy_bound_marks_nothing() -> None:
    answers = corpus([listed(1)], [definition(1, sol_is_dummy=True)], {"1": [submission(5, 1, latency_ms=0.1)]})
    assert made_of(answers)["results"][0]["below_sol_bound"] is False


def test_rows_of_every_mode_and_status_are_kept() -> None:
    rows = [
        submission(1, 1, submission_mode="private"),
        submission(2, 1, submission_mode=None),
        submission(3, 1, status="FAILED", is_correct=None, latency_ms=None, error_log="boom"),
        submission(4, 1, is_disqualified=True),
        submission(5, 1, status="COMPLETED", is_correct=False),
    ]
    tables = made_of(one_kernel(*rows))
    found = [(row["leaderboard_mode"], row["passed"], row["revoked"], row["status"]) for row in tables["results"]]
    assert found == [
        (False, True, False, "passed"),
        (False, True, False, "passed"),
        (True, False, False, "failed"),
        (True, False, True, "revoked"),
        (True, False, False, "incorrect"),
    ]
    assert counts(tables)["submissions/1.json"] == (5, 5, 0, 0)


@pytest.mark.parametrize("locator", ["kernels.json", "kernels/1.json", "submissions/1.json"])
def test_an_unreadable_answer_is_named(locator: str) -> None:
    answers = [one for one in one_kernel(submission(5, 1)) if one.locator != locator]
    with pytest.raises(UnreadableAnswer) as caught:
        normalise([*answers, Answer.of(locator, b"<html>502</html>")], FETCHED_AT, None)
    assert caught.value.locator == locator


def test_the_order_of_answers_never_matters() -> None:
    answers = corpus(
        [listed(1), listed(2), listed(3), listed(3, submission_count=7)],
        [definition(1, colour=1), definition(2, name="001_copy"), definition(3, colour=2, axes=5), definition(4)],
        {
            "1": [submission(5, 1), submission(6, 1, gpu_type="TPU"), submission(7, 1, energy=1)],
            "1.1": [submission(6, 1, gpu_type="NPU"), submission(8, 4)],
            "2": [submission(9, 2), submission(5, 1)],
            "4": [submission(8, 4, username="other"), submission(10, None, energy=2)],
        },
        total=9,
    )
    # One answer under two digests, as a retried pull may leave it.
    answers.append(answer("kernels/1.json", definition(1, colour=3)))
    expected = normalise(answers, FETCHED_AT, None)
    made_of(answers)
    shuffler = random.Random(7)
    for _ in range(20):
        shuffler.shuffle(answers)
        # An answer that is handed over twice is one answer.
        made = normalise([*answers, answers[0]], FETCHED_AT, None)
        assert {name: table.equals(expected[name]) for name, table in made.items()} == dict.fromkeys(MADE, True)


def test_hostile_text_comes_through_and_error_logs_stay_out() -> None:
    hostile = "=cmd|'/c'!A1\";drop table runs;--\x00../../etc\u202e\x1b[2J\U0001f600" + "n" * 100_000
    rows = [
        submission(5, 1, username=hostile, worker_id=hostile, gpu_type=hostile, original_filename=hostile),
        submission(6, 1, status=hostile, submission_mode=hostile, evaluation_stack_version=hostile),
        submission("x", 1, username=hostile, error_log="secret-token", review_notes={"error_log": "secret-token"}),
    ]
    answers = corpus([listed(1, name=hostile)], [definition(1, name=hostile, baseline="secret-token")], {"1": rows})
    tables = made_of(answers)
    first, second = tables["results"]
    assert (first["problem"], first["runner"]) == (hostile, hostile)
    assert json.loads(first["system"]) == {"gpu_type": hostile, "worker_id": hostile}
    assert (second["mode"], second["version_label"], second["status"]) == (hostile, hostile, "unknown")
    assert tables["authors"][0]["author_name"] == hostile
    assert tables["submissions"][0]["file_name"] == hostile
    assert len(json.loads(tables["rejects"][0]["raw"])["username"]) == 2001
    assert "secret-token" not in repr(tables)
    for row in tables["drift"]:
        assert len(row["detail"]) <= 301
