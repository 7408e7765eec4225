"""One submission's row of SOL-ExecBench, and the hardware and names that go with it."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from assets.sol_execbench import environment as machines
from assets.sol_execbench.read import Rejected
from assets.sol_execbench.results import number_text
from assets.sol_execbench.submissions import Submission, boolean, instant, integer_id, read_submission

ROW: dict[str, Any] = {
    "username": "solver",
    "submission_mode": "release",
    "status": "COMPLETED",
    "is_correct": True,
    "is_disqualified": False,
    "sol_score": 0.531788,
    "latency_ms": 0.005404,
    "avg_speedup": 1.1132,
    "fast_1_count": 15,
    "fast_1_total": 16,
    "gpu_type": "B200",
    "worker_id": "worker-1",
    "evaluation_stack_version": "v1.0",
    "submitted_at": "2026-06-29T23:43:29",
    "finished_at": "2026-06-29T23:43:30.106789",
    "original_filename": "kernel.py",
}


def submission(**changes: Any) -> tuple[Submission, list[tuple[str, str, str]]]:
    """The submission of a row, and what was told of it."""
    notes: list[tuple[str, str, str]] = []
    made = read_submission({**ROW, **changes}, 5, lambda *note: notes.append(note))
    return made, notes


def test_an_ordinary_row_is_read_without_a_remark() -> None:
    made, notes = submission()
    assert notes == []
    assert made == Submission(
        id=5,
        author_name="solver",
        mode="release",
        upstream_status="COMPLETED",
        status="passed",
        passed=True,
        revoked=False,
        gpu_type="B200",
        worker="worker-1",
        version="v1.0",
        file_name="kernel.py",
        submitted_at=datetime(2026, 6, 29, 23, 43, 29, tzinfo=UTC),
        observed_at=datetime(2026, 6, 29, 23, 43, 30, 106789, tzinfo=UTC),
        metrics={
            "avg_speedup": 1.1132,
            "fast_1_count": 15,
            "fast_1_total": 16,
            "latency_ms": 0.005404,
            "sol_score": 0.531788,
        },
        primary_value=5404.0,
        flags=[],
    )


def test_a_row_that_says_nothing_is_a_submission_of_unknown_status() -> None:
    made = read_submission({}, 5, lambda *_: pytest.fail("nothing is nothing new"))
    assert (made.status, made.passed, made.revoked, made.observed_at) == ("unknown", False, False, None)
    assert (made.metrics, made.primary_value, made.flags) == ({}, None, [])


@pytest.mark.parametrize(
    ("status", "correct", "expected", "known"),
    [
        ("COMPLETED", True, "passed", True),
        ("COMPLETED", False, "incorrect", True),
        ("COMPLETED", None, "unknown", True),
        ("FAILED", None, "failed", True),
        ("FAILED", True, "failed", True),
        ("COMPILE_ERROR", None, "compile_error", True),
        ("Compilation failed", None, "compile_error", True),
        ("RUNTIME_ERROR", False, "runtime_error", True),
        ("runtime error", None, "runtime_error", True),
        ("TIMEOUT", None, "timeout", True),
        ("TIMED_OUT", None, "timeout", True),
        ("INCORRECT_NUMERICAL", None, "incorrect", True),
        ("QUEUED", None, "unknown", True),
        ("RUNNING", True, "unknown", True),
        (None, True, "unknown", True),
        ("completed", True, "unknown", False),
        ("REWARD_HACK", True, "unknown", False),
        ("NO_TIMEOUT_AT_ALL", True, "unknown", False),
    ],
)
def test_statuses(status: Any, correct: Any, expected: str, known: bool) -> None:
    made, notes = submission(status=status, is_correct=correct)
    assert made.status == expected
    assert made.upstream_status == status
    assert made.passed == (expected == "passed")
    assert notes == ([] if known else [("status", "unknown_value", status)])


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", None])
def test_a_disqualified_submission_is_revoked_whatever_its_status(status: Any) -> None:
    made, _ = submission(is_disqualified=True, status=status)
    assert (made.status, made.passed, made.revoked) == ("revoked", False, True)


@pytest.mark.parametrize(
    ("latency_ms", "nanoseconds"),
    [
        (0.0000004, 0.0),
        (0.0000005, 1.0),
        (0.1234565, 123457.0),
        (1, 1000000.0),
        (9007199254.740990, 9007199254740990.0),
    ],
)
def test_latency_becomes_whole_nanoseconds_half_up(latency_ms: float, nanoseconds: float) -> None:
    made, _ = submission(latency_ms=latency_ms)
    assert made.primary_value == nanoseconds
    assert made.metrics["latency_ms"] == latency_ms
    assert made.flags == []


@pytest.mark.parametrize(
    ("field", "value", "flag"),
    [
        ("latency_ms", math.nan, "NOT_FINITE:latency_ms"),
        ("latency_ms", math.inf, "NOT_FINITE:latency_ms"),
        ("latency_ms", 2**53, "NOT_FINITE:latency_ms"),
        ("latency_ms", 0, "OUT_OF_RANGE:latency_ms"),
        ("latency_ms", -0.0, "OUT_OF_RANGE:latency_ms"),
        ("latency_ms", -1.5, "OUT_OF_RANGE:latency_ms"),
        ("sol_score", math.nan, "NOT_FINITE:sol_score"),
        ("avg_speedup", -math.inf, "NOT_FINITE:avg_speedup"),
        ("fast_1_count", 10**30, "NOT_FINITE:fast_1_count"),
        ("fast_1_total", math.nan, "NOT_FINITE:fast_1_total"),
        ("sol_score", True, "NOT_FINITE:sol_score"),
        ("sol_score", [1], "NOT_FINITE:sol_score"),
        ("sol_score", "fast", "NOT_FINITE:sol_score"),
    ],
)
def test_a_figure_that_does_not_count_is_absent_and_marked(field: str, value: Any, flag: str) -> None:
    made, _ = submission(**{field: value})
    assert field not in made.metrics
    assert made.flags == [flag]
    assert (made.primary_value is None) == (field == "latency_ms")


def test_a_null_latency_is_told_from_a_zero_one() -> None:
    assert submission(latency_ms=None)[0].flags == []
    assert submission(latency_ms=0.0)[0].flags == ["OUT_OF_RANGE:latency_ms"]


def test_a_latency_whose_nanoseconds_have_no_canonical_form_is_native_but_not_primary() -> None:
    made, _ = submission(latency_ms=1e300)
    assert (made.metrics["latency_ms"], made.primary_value, made.flags) == (1e300, None, ["NOT_FINITE:latency_ms"])


def test_other_figures_count_at_zero_and_below() -> None:
    made, _ = submission(sol_score=0, avg_speedup=0.0, fast_1_count=0, fast_1_total=0)
    assert made.metrics == {
        "avg_speedup": 0,
        "fast_1_count": 0,
        "fast_1_total": 0,
        "latency_ms": 0.005404,
        "sol_score": 0,
    }
    assert submission(sol_score=-0.5)[0].metrics["sol_score"] == -0.5


def test_a_number_written_as_text_counts_and_is_told() -> None:
    made, notes = submission(latency_ms="5.404e-3", fast_1_count="")
    assert made.primary_value == 5404.0
    assert "fast_1_count" not in made.metrics
    assert notes == [("latency_ms", "retyped", "a text where a number was")]


@pytest.mark.parametrize(
    ("count", "total", "mean", "contradicts"),
    [
        (16, 16, 1.0, False),
        (16, 16, 0.9999, True),
        (0, 16, 1.0, False),
        (0, 16, 1.0001, True),
        (8, 16, 0.5, False),
        (8, 16, 0.4999, True),
        (8, 16, 50.0, False),
        (17, 16, 2.0, True),
        (-1, 16, 0.5, True),
        (0, 0, 5.0, False),
        (None, 16, 0.1, False),
        (16, None, 0.1, False),
        (16, 16, None, False),
    ],
)
def test_speedups_that_cannot_be_true_together_are_marked(count: Any, total: Any, mean: Any, contradicts: bool) -> None:
    made, _ = submission(fast_1_count=count, fast_1_total=total, avg_speedup=mean)
    assert made.flags == (["SPEEDUP_CONTRADICTION"] if contradicts else [])


@pytest.mark.parametrize(
    ("field", "value"),
    [("gpu_type", "TPU_v5"), ("submission_mode", "rehearsal"), ("status", "EXPLODED")],
)
def test_words_that_nobody_knows_are_told(field: str, value: str) -> None:
    assert submission(**{field: value})[1] == [(field, "unknown_value", value)]


@pytest.mark.parametrize(
    "field",
    ["username", "gpu_type", "worker_id", "evaluation_stack_version", "original_filename", "submission_mode", "status"],
)
@pytest.mark.parametrize("value", [None, ""])
def test_an_empty_text_is_absent(field: str, value: Any) -> None:
    made, notes = submission(**{field: value})
    names = {
        "username": "author_name",
        "worker_id": "worker",
        "evaluation_stack_version": "version",
        "original_filename": "file_name",
        "submission_mode": "mode",
        "status": "upstream_status",
    }
    assert getattr(made, names.get(field, field)) is None
    assert notes == []


def test_a_text_of_another_type_is_told() -> None:
    made, notes = submission(username=42, worker_id=["a"], original_filename=True)
    assert (made.author_name, made.worker, made.file_name) == ("42", None, None)
    assert sorted(notes) == [
        ("original_filename", "retyped", "a boolean where a text was"),
        ("username", "retyped", "a number where a text was"),
        ("worker_id", "retyped", "a list where a text was"),
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), (False, False), (None, None), (1, True), (0, False), ("True", True), ("false", False), ("no", None)],
)
def test_yes_and_no_are_understood_in_other_types(value: Any, expected: Any) -> None:
    notes: list[tuple[str, str, str]] = []
    assert boolean(value, "is_correct", lambda *note: notes.append(note)) is expected
    assert len(notes) == (0 if value is None or isinstance(value, bool) else 1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(5, 5), ("5", 5), ("-7", -7), (5.0, 5), (2**63 - 1, 2**63 - 1), (str(-(2**63)), -(2**63)), ("007", 7)],
)
def test_ids_are_integers_of_64_bits_or_texts_of_them(value: Any, expected: int) -> None:
    assert integer_id(value, "id", lambda *_: None) == expected


@pytest.mark.parametrize(
    "value", [None, True, 5.5, math.nan, "", "five", "5.0", " 5", 2**63, "9" * 19, "9" * 9000, [5]]
)
def test_other_ids_are_rejected(value: Any) -> None:
    with pytest.raises(Rejected) as caught:
        integer_id(value, "id", lambda *_: None)
    assert caught.value.reason == "BAD_ID"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-06-26T08:55:51.933", datetime(2026, 6, 26, 8, 55, 51, 933000, UTC)),
        ("2026-06-26 08:55:51", datetime(2026, 6, 26, 8, 55, 51, 0, UTC)),
        ("2026-06-26T08:55:51.1234569", datetime(2026, 6, 26, 8, 55, 51, 123456, UTC)),
        ("2026-06-26T08:55:51Z", datetime(2026, 6, 26, 8, 55, 51, 0, UTC)),
        ("2026-06-26T08:55:51+02:00", datetime(2026, 6, 26, 6, 55, 51, 0, UTC)),
        ("2026-01-01T00:30:00-0530", datetime(2026, 1, 1, 6, 0, 0, 0, UTC)),
    ],
)
def test_times_without_a_zone_are_utc_and_keep_their_microseconds(text: str, expected: datetime) -> None:
    read = instant(text, "finished_at")
    assert read == expected
    assert read is not None
    assert read.utcoffset() == expected.utcoffset()


@pytest.mark.parametrize(
    "value",
    ["yesterday", "2026-06-26", "2026-13-01T00:00:00", "2026-06-26T08:55:61", "0001-01-01T00:00:00+10:00", 1782, True],
)
@pytest.mark.parametrize("field", ["submitted_at", "finished_at"])
def test_a_time_that_cannot_be_read_rejects_the_row(field: str, value: Any) -> None:
    with pytest.raises(Rejected) as caught:
        submission(**{field: value})
    assert caught.value.reason == "BAD_TIME"
    assert field in caught.value.detail


def test_a_run_was_observed_when_it_finished_else_when_it_was_submitted() -> None:
    made, _ = submission(finished_at=None)
    assert made.observed_at == datetime(2026, 6, 29, 23, 43, 29, tzinfo=UTC)
    made, _ = submission(submitted_at=None)
    assert made.observed_at == datetime(2026, 6, 29, 23, 43, 30, 106789, tzinfo=UTC)
    made, _ = submission(finished_at=None, submitted_at=None)
    assert made.observed_at is None


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53) + 1, 2**53 - 1))
def test_number_texts_are_canonical(value: float) -> None:
    assert number_text(value) == rfc8785.dumps(value).decode()


@pytest.mark.parametrize(
    "value", [1e-7, 1.0048658277929109e-05, 4057360.0, 1e21, 1e16, -0.0, 0.0001, 123456789012345.6]
)
def test_number_texts_are_canonical_at_the_edges(value: float) -> None:
    assert number_text(value) == rfc8785.dumps(value).decode()


@pytest.mark.parametrize(
    ("label", "product", "architecture", "known"),
    [
        ("B200", "NVIDIA B200", "sm_100", True),
        ("NVIDIA_B200", "NVIDIA B200", "sm_100", True),
        ("GB200", "NVIDIA GB200", "sm_100", True),
        ("H200", "NVIDIA H200", "sm_90", True),
        ("H100", "NVIDIA H100", "sm_90", True),
        ("NVIDIA_H100", "NVIDIA H100", "sm_90", True),
        ("A100", "NVIDIA A100", "sm_80", True),
        ("NVIDIA_GB300_NVL", "NVIDIA GB300 NVL", "unknown", False),
        ("b200", "b200", "unknown", False),
    ],
)
def test_hardware(label: str, product: str, architecture: str, known: bool) -> None:
    assert machines.hardware(label) == machines.Hardware("nvidia", product, architecture, known)


def test_protocols_and_environments_carry_the_stack() -> None:
    protocol = machines.protocol("v1.0")
    assert protocol["protocol_digest"] == "sha256:2964c5c4ed9cb0dcdc0f74674035bc71bf5e66620939e38441060f76434ed3e5"
    assert (protocol["harness"], protocol["version"]) == ("SOL-ExecBench evaluation stack", "v1.0")
    assert (protocol["timer"], protocol["comparator"]) == ("harness_reported", "sol_execbench_eval")
    assert protocol["family"] == "sol_execbench_leaderboard"
    environment = machines.environment("B200", "v1.0")
    assert environment["environment_digest"] == (
        "sha256:5296c820e166474e590abb1beaf7728cdfe0a4bde9bf55f8966a40f4f5401621"
    )
    assert environment["software"] == '{"libraries":{"evaluation_stack":"v1.0"}}'
    assert environment["runner"] is None
    assert machines.protocol(None)["version"] == "unknown"
    assert '"evaluation_stack":"unknown"' in machines.environment("B200", None)["document"]


def test_names_and_titles() -> None:
    assert machines.run_name(6683) == "sol-submission-6683"
    assert machines.run_title("solver", "080_moe", "B200") == "solver · 080_moe · B200"
    assert machines.run_title(None, "080_moe", None) == "080_moe"
    assert machines.protocol_name("v1.1") == "sol-execbench-leaderboard-v1-1"
    assert machines.protocol_title("v1.1") == "SOL-ExecBench evaluation stack v1.1"
    assert machines.environment_name("NVIDIA_H100", "v1.1") == "sol-execbench-nvidia-h100-v1-1"
    assert machines.environment_title("NVIDIA_H100", "v1.1") == "SOL-ExecBench NVIDIA H100, stack v1.1"
    assert machines.environment_name("B200", None) == "sol-execbench-b200-unknown"
